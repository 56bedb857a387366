//! Kin's panel: what is under way and what comes next, in a few lines, once or whenever it changes; and every change of
//! a list as an event with the whole graph, with the messages that come in between.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use taskbus::answer::TaskView;
use taskbus::engine::{Engine, Error, Overview};
use taskbus_core::bus::message::Message;
use taskbus_core::bus::peek::PeekAsk;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::refusal::{Missing, Refusal};
use taskbus_core::task::Status;

use super::bus::wait::shown as shown_message;
use super::desk::Desk;
use super::input;
use super::show;
use crate::term::failure::{DONE, Failure, LATE};
use crate::term::report::{Report, print_words};
use crate::term::safe::display_safe;
use crate::wire::kin::Graph;

/// Pending tasks in the panel.
const PENDING_MAX: usize = 5;
/// The longest that one look at the store may be away: leases end without anybody writing.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Empties a terminal, so that a panel takes the place of the last one.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// Shows the panel.
pub(crate) fn lite(desk: &Desk) -> Result<Box<dyn Report>, Failure> {
    let list = desk.list()?.clone();
    let overview = desk.engine.overview(None, &list, usize::MAX)?;
    Ok(Box::new(Panel { tasks: shown(overview), list }))
}

/// Shows the panel again whenever it changes, until nobody reads.
pub(crate) fn watch(desk: &Desk) -> Result<Box<dyn Report>, Failure> {
    let list = desk.list()?.clone();
    let mut last = None;
    let clear = if std::io::stdout().is_terminal() { CLEAR } else { "" };
    loop {
        let seen = desk.engine.store().version()?;
        let tasks = shown(desk.engine.overview(None, &list, usize::MAX)?);
        let words = Panel { tasks, list: list.clone() }.words(None);
        if last.as_ref() != Some(&words) {
            let between = if last.is_some() && clear.is_empty() { "\n" } else { "" };
            print_words(&format!("{clear}{between}{words}"))?;
            last = Some(words);
        }
        desk.engine.store().wait(seen, LOOK_AGAIN)?;
    }
}

/// Prints an event a change, and one a message that is new to this name: one JSON value a line, for so long.
pub(crate) fn events(desk: &Desk, time: Duration) -> Result<Box<dyn Report>, Failure> {
    let list = desk.list()?.clone();
    let who = input::identity("as", &desk.name())?;
    let (engine, over) = (&desk.engine, AtomicBool::new(false));
    let (changes, messages) = std::thread::scope(|scope| {
        let messages = scope.spawn(|| new_messages(engine, &who, time, &over));
        let changes = list_changes(engine, &list, time);
        over.store(true, Ordering::SeqCst);
        engine.waker().wake();
        (changes, messages.join().expect("BUG: who listens for messages does not panic"))
    });
    Ok(Box::new(Streamed { list, changes: changes? + messages? }))
}

fn list_changes(engine: &Engine, list: &ListName, time: Duration) -> Result<u64, Failure> {
    let (deadline, mut last, mut changes) = (Instant::now() + time, None, 0);
    loop {
        let seen = engine.store().version()?;
        let snapshot = Graph::of(&engine.overview(None, list, usize::MAX)?).whole();
        if last.as_ref().is_some_and(|last| *last != snapshot) {
            let event = json!({"event": "tasks_changed", "channel": list, "snapshot": snapshot});
            print_words(&format!("{event}\n"))?;
            changes += 1;
        }
        last = Some(snapshot);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(changes);
        }
        engine.store().wait(seen, left.min(LOOK_AGAIN))?;
    }
}

/// Prints each message once; where there is no bus, or nothing is heard under this name, there are none.
fn new_messages(engine: &Engine, who: &Identity, time: Duration, over: &AtomicBool) -> Result<u64, Failure> {
    let (mut messages, mut unread) = (0, None);
    if !engine.store().has_bus() {
        return Ok(0);
    }
    let mut tell = |message: &Message| {
        let event = json!({"event": "message", "message": shown_message(message)});
        unread = unread.take().or(print_words(&format!("{event}\n")).err());
        messages += 1;
        unread.is_some()
    };
    let end = || over.load(Ordering::SeqCst);
    match engine.wait_for(who, &PeekAsk::default(), Some(time), &mut tell, &end) {
        Ok(_) | Err(Error::Refused(Refusal::NotFound(Missing::Subscription { .. }))) => {}
        Err(error) => return Err(error.into()),
    }
    unread.map_or(Ok(messages), |error| Err(error.into()))
}

/// What is in progress, then as many of the pending as fit.
fn shown(overview: Overview) -> Vec<TaskView> {
    let mut pending = 0;
    let fits = |task: &TaskView| match task.status {
        Status::InProgress => true,
        Status::Pending => {
            pending += 1;
            pending <= PENDING_MAX
        }
        Status::Completed => false,
    };
    overview.tasks.into_iter().filter(fits).collect()
}

/// The panel.
struct Panel {
    list: ListName,
    tasks: Vec<TaskView>,
}

impl Report for Panel {
    fn json(&self) -> Map<String, Value> {
        let row = |task: &TaskView| json!({"id": task.id, "subject": task.subject, "status": task.status, "blocked": task.blocked});
        Map::from_iter([
            ("channel".to_owned(), json!(self.list)),
            ("tasks".to_owned(), self.tasks.iter().map(row).collect()),
        ])
    }

    /// Nothing at all when nothing is open.
    fn words(&self, _: Option<usize>) -> String {
        self.tasks.iter().map(|task| format!("{}\n", display_safe(&line(task)))).collect()
    }
}

fn line(task: &TaskView) -> String {
    let doing = task.active_form.as_ref().filter(|_| task.status == Status::InProgress);
    let blocked = if task.blocked { " (blocked)" } else { "" };
    format!("{} {}{blocked}", show::mark(task.status, false), doing.unwrap_or(&task.subject))
}

/// How a stream of events ended.
struct Streamed {
    list: ListName,
    changes: u64,
}

impl Report for Streamed {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("channel".to_owned(), json!(self.list)), ("changes".to_owned(), json!(self.changes))])
    }

    /// Everything was printed as it came.
    fn words(&self, _: Option<usize>) -> String {
        String::new()
    }

    fn exit(&self) -> u8 {
        if self.changes > 0 { DONE } else { LATE }
    }
}
