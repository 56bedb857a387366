//! `wait` for a message: in the background of an agent, without a session and without a trace (reference E.3, J). It
//! has exit codes of its own, which hooks and skills rely on.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use regex_automata::meta::Regex;
use serde_json::{Map, Value, json};
use signal_hook::consts::SIGTERM;
use taskbus::engine::Waker;
use taskbus::store::Harness;
use taskbus_core::bus::message::Message;
use taskbus_core::bus::peek::{self, PeekAsk};
use taskbus_core::name::Identity;

use super::args::Wait;
use super::identity::acting;
use super::single::Single;
use super::talk::channels;
use crate::cli::desk::Desk;
use crate::harness;
use crate::term::failure::{DONE, Failure};
use crate::term::report::Report;

/// Nothing came in time.
const LATE: u8 = 1;
/// Another wait for the same name took its place.
const REPLACED: u8 = 3;
/// The program that started it has ended.
const ABANDONED: u8 = 4;

/// Waits for a message.
pub(crate) fn wait(desk: &Desk, wait: &Wait) -> Result<Box<dyn Report>, Failure> {
    until_message(desk, wait).map_err(|failure| Failure::Waiting(Box::new(failure)))
}

fn until_message(desk: &Desk, wait: &Wait) -> Result<Box<dyn Report>, Failure> {
    let filter = wait.filter.as_deref().map(regex).transpose()?;
    let ask = PeekAsk { channels: channels(&wait.channels)?, include_own: wait.include_own };
    let who = acting(desk, harness::around_here())?;
    let end = End { why: Arc::default(), waker: desk.engine.waker() };
    // The signal of a successor may come as soon as the place is taken.
    end.on_signal()?;
    if !wait.no_harness_watch {
        end.on_end_of(harness::owner());
    }
    let single =
        desk.config.data_directory().map(|data| Single::take(&data, who.as_str(), &desk.engine.store().describe()));
    let _single = single.transpose()?;
    let time = wait.seconds.map(Duration::from_secs);
    let mut matches = |message: &Message| is_wanted(message, &who, filter.as_ref());
    let found = desk.engine.wait_for(&who, &ask, time, &mut matches, &|| end.has_come())?;
    Ok(Box::new(Ended { messages: found.unwrap_or_default(), why: end.why.load(Ordering::SeqCst) }))
}

fn regex(text: &str) -> Result<Regex, Failure> {
    Regex::new(text).map_err(|error| Failure::usage(format!("--filter {text:?} is no regular expression: {error}")))
}

/// Whether a message wakes.
fn is_wanted(message: &Message, who: &Identity, filter: Option<&Regex>) -> bool {
    let Some(filter) = filter else { return true };
    let subject = || message.subject.as_ref().is_some_and(|subject| filter.is_match(subject.as_str()));
    peek::always_wakes(message, who) || filter.is_match(&message.content) || subject()
}

/// What ends a wait from outside.
#[derive(Clone)]
struct End {
    /// The exit code that says why; 0: nothing has.
    why: Arc<AtomicU8>,
    waker: Waker,
}

impl End {
    fn come(&self, why: u8) {
        let _first = self.why.compare_exchange(DONE, why, Ordering::SeqCst, Ordering::SeqCst);
        self.waker.wake();
    }

    fn has_come(&self) -> bool {
        self.why.load(Ordering::SeqCst) != DONE
    }

    fn on_signal(&self) -> Result<(), Failure> {
        let cannot = |error| Failure::machine("no signal can be heard", error);
        let (mut heard, told) = UnixStream::pair().map_err(cannot)?;
        signal_hook::low_level::pipe::register(SIGTERM, told).map_err(cannot)?;
        let end = self.clone();
        std::thread::spawn(move || {
            if heard.read_exact(&mut [0]).is_ok() {
                end.come(REPLACED);
            }
        });
        Ok(())
    }

    /// Nobody above means that whoever started this is gone already.
    fn on_end_of(&self, owner: Option<Harness>) {
        let Some(owner) = owner else { return self.come(ABANDONED) };
        let end = self.clone();
        std::thread::spawn(move || {
            harness::wait_for_end(owner);
            end.come(ABANDONED);
        });
    }
}

/// A message as whoever reads the output may see it.
pub(crate) fn shown(message: &Message) -> Map<String, Value> {
    let mut shown = crate::wire::object(message);
    if peek::is_confidential(message) {
        for secret in ["subject", "content", "metadata"] {
            shown.shift_remove(secret);
        }
    }
    shown
}

/// How a wait ended.
struct Ended {
    messages: Vec<Message>,
    why: u8,
}

impl Report for Ended {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("messages".to_owned(), self.messages.iter().map(|it| json!(shown(it))).collect())])
    }

    /// For programs too: a line of JSON for each message.
    fn words(&self, _: Option<usize>) -> String {
        self.messages.iter().map(|message| format!("{}\n", Value::Object(shown(message)))).collect()
    }

    fn exit(&self) -> u8 {
        match self.why {
            _ if !self.messages.is_empty() => DONE,
            DONE => LATE,
            why => why,
        }
    }

    fn is_silent(&self) -> bool {
        self.messages.is_empty() && self.why != DONE
    }
}
