//! What each tool does: arguments into a command, the engine's answer into the wire form, and nothing else.

pub(super) mod channels;
pub(super) mod claude;
mod drop_in;
pub(super) mod kin;
pub(super) mod memory;
pub(super) mod messages;
pub(super) mod next;
pub(super) mod people;
pub(super) mod plan;
pub(super) mod read;
pub(super) mod write;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use taskbus::answer::Answer;
use taskbus::engine::{Engine, Request};
use taskbus_core::command::{Command, LeaseAsk};
use taskbus_core::name::{Key, ListName};

use super::args::Args;
use super::desk::{Asked, Desk, Reply};
use super::people::Acting;
use super::typed;
use crate::wire::answer;
use crate::wire::error::Failure;

/// A call that acts: the engine, and the name and key it acts under.
struct Act {
    engine: Arc<Engine>,
    who: Acting,
    key: Option<Key>,
}

impl Act {
    fn begin(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Self, Failure> {
        let key = args.text("idempotency_key").map(|key| typed("idempotency_key", key, Key::new)).transpose()?;
        let engine = desk.engine()?;
        let who = desk.people.acting(args.text("as"), asked, &engine)?;
        Ok(Self { engine, who, key })
    }

    fn request(&self, list: Option<ListName>, command: Command) -> Request {
        Request { caller: self.who.name.clone(), list, command, key: self.key.clone() }
    }

    fn run(&self, list: Option<ListName>, command: Command) -> Result<Answer, Failure> {
        Ok(self.engine.execute(&self.request(list, command))?)
    }

    /// An answer, signed.
    fn signed(&self, mut facts: Map<String, Value>) -> Reply {
        self.sign(&mut facts);
        facts.into()
    }

    /// A page, signed; its rows are bare in the text.
    fn rows(&self, mut facts: Map<String, Value>, list: &str) -> Reply {
        self.sign(&mut facts);
        let text = answer::bare(&facts, list).to_string();
        Reply::told(facts, text)
    }

    /// Says the name in the answer to a caller that did not give one.
    fn sign(&self, facts: &mut Map<String, Value>) {
        if self.who.is_news {
            facts.insert("as".to_owned(), json!(self.who.name));
        }
    }
}

fn lease(args: &mut Args) -> Result<Option<LeaseAsk>, Failure> {
    let until = args.time("leased_until").map(|at| at.map_or(LeaseAsk::Clear, LeaseAsk::Until));
    let seconds = args.count("lease_seconds").map(LeaseAsk::Seconds);
    match (until, seconds) {
        (Some(_), Some(_)) => Err(Failure::shape("lease_seconds", TWO_LEASES)),
        (until, seconds) => Ok(until.or(seconds)),
    }
}

const TWO_LEASES: &str = "lease_seconds and leased_until exclude each other; send one of them";

/// How long a call may wait.
fn wait(args: &mut Args, asked: &Asked<'_>) -> Duration {
    let wait = Duration::from_secs(args.count("wait_seconds").unwrap_or(0));
    if asked.impatient { Duration::ZERO } else { wait }
}

fn texts<T>(
    field: &'static str,
    given: Vec<String>,
    new: impl Fn(String) -> Result<T, taskbus_core::text::TextError>,
) -> Result<std::collections::BTreeSet<T>, Failure>
where
    T: Ord,
{
    given.into_iter().map(|text| typed(field, text, &new)).collect()
}

#[cfg(test)]
mod bus_tests;
#[cfg(test)]
mod tests;
