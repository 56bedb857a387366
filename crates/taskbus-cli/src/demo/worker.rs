//! One worker of the demo: a process that speaks MCP to its own server, takes tasks, does them and completes them.
//!
//! It tells its parent what happens, one JSON event a line, and after each claim waits for the word to go on: that
//! is the moment in which the parent may kill it, with the task in its hands.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, Write as _};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use taskbus_core::id::TaskId;

use crate::client::{CallError, Client};
use crate::options::{DemoWorker, Globals};
use crate::term::failure::Failure;

/// How long a worker holds a task, in seconds. A dead worker's task comes back when this is over.
pub(super) const LEASE_SECONDS: u64 = 2;
/// How long one call waits for a task when there will be one, in seconds: short, so that the end is noticed.
const WAIT_SECONDS: u64 = 1;
/// What one task's work is: so many hashes of a block of so many bytes.
const HASHES: usize = 6;
const BLOCK_BYTES: usize = 512 * 1024;

/// What a worker tells its parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    /// It is registered and waits for the word to start.
    Ready {
        /// Its name.
        name: String,
    },
    /// It holds a task and waits for the word to go on.
    Claimed(Hold),
    /// Somebody else holds the task.
    Refused {
        /// The task.
        id: TaskId,
        /// Who holds it, as the refusal says.
        owner: Option<String>,
    },
    /// It has completed a task.
    Done {
        /// The task.
        id: TaskId,
    },
    /// There is nothing left to do.
    Finished,
    /// It cannot go on.
    Failed {
        /// Why.
        why: String,
    },
    /// Its output has ended: it is dead, or done. Made by the parent.
    #[serde(skip)]
    Gone,
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hold {
    /// The task.
    pub(super) id: TaskId,
    /// What it is about.
    pub(super) subject: String,
    /// The fencing token.
    pub(super) fence: u64,
    /// When the claim ends by itself, in Unix ms.
    pub(super) leased_until: i64,
}

/// What the parent tells a worker in front of an id: try to get this task, all of you at once.
pub(super) const RACE: &str = "race ";
/// What the parent tells a worker: go on.
pub(super) const GO: &str = "go";

/// The work on a task: something that takes a few milliseconds and whose result can be checked.
pub(super) fn work(subject: &str) -> String {
    let mut block: Vec<u8> = subject.bytes().cycle().take(BLOCK_BYTES).collect();
    let mut hash = blake3::hash(&block);
    for _ in 1..HASHES {
        block[..blake3::OUT_LEN].copy_from_slice(hash.as_bytes());
        hash = blake3::hash(&block);
    }
    format!("blake3 {}", &hash.to_hex()[..16])
}

/// Works until nothing is left.
pub(super) fn run(globals: &Globals, args: &DemoWorker) -> Result<(), Failure> {
    let store = globals.store.as_deref().unwrap_or(OsStr::new(""));
    let outcome =
        Worker::start(store, globals.list.as_deref().unwrap_or(""), args).and_then(|mut worker| worker.work_all());
    match outcome {
        Ok(()) => Ok(tell(&Event::Finished)?),
        Err(error) => {
            tell(&Event::Failed { why: error.to_string() })?;
            Err(Failure::Machine(error.to_string()))
        }
    }
}

struct Worker {
    client: Client,
    name: String,
    channel: String,
    labels: Vec<String>,
}

/// A task that is done but not said to be.
struct Finished {
    hold: Hold,
    result: String,
}

impl Worker {
    fn start(store: &OsStr, channel: &str, args: &DemoWorker) -> Result<Self, CallError> {
        let mut client = Client::start(store, super::CLIENT)?;
        let answer = client.call("register", &json!({"name": args.worker, "context": "the demo"}))?;
        let name = answer.get("as").and_then(Value::as_str).unwrap_or(&args.worker).to_owned();
        Ok(Self { client, name, channel: channel.to_owned(), labels: args.labels.clone() })
    }

    fn work_all(&mut self) -> Result<(), CallError> {
        tell(&Event::Ready { name: self.name.clone() }).map_err(|error| broken(&error))?;
        let word = hear()?;
        let contested = word.strip_prefix(RACE).and_then(|id| id.parse().ok());
        let contested = contested.ok_or_else(|| CallError::Broken(format!("was not told to race, but {word:?}")))?;
        let mut finished = self.race(contested)?;
        while let Some(hold) = self.next(finished.take())? {
            finished = Some(self.do_it(hold)?);
        }
        Ok(())
    }

    /// Tries to get the task that all others try to get.
    fn race(&mut self, id: TaskId) -> Result<Option<Finished>, CallError> {
        let arguments = json!({"task_id": id, "lease_seconds": LEASE_SECONDS, "as": self.name});
        match self.client.call("task_claim", &arguments) {
            Ok(mut answer) => self.do_it(hold(answer.remove("task"))?).map(Some),
            Err(CallError::Refused(facts)) if facts.get("code") == Some(&json!("conflict")) => {
                let owner = facts.get("owner").and_then(Value::as_str).map(str::to_owned);
                tell(&Event::Refused { id, owner }).map_err(|error| broken(&error))?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Completes what is finished and takes the next task in the same step; none when all is done.
    fn next(&mut self, finished: Option<Finished>) -> Result<Option<Hold>, CallError> {
        let mut wish = json!({
            "channel": self.channel,
            "labels": self.labels,
            "lease_seconds": LEASE_SECONDS,
            "as": self.name,
        });
        let mut answer = match finished {
            None => self.client.call("task_next", &wish)?,
            Some(finished) => self.complete_and_next(wish.clone(), finished)?,
        };
        wish["wait_seconds"] = json!(WAIT_SECONDS);
        loop {
            if let Some(task) = answer.remove("task") {
                return hold(Some(task)).map(Some);
            }
            match answer.get("idle").and_then(|idle| idle.get("advice")).and_then(Value::as_str) {
                Some("wait") => answer = self.client.call("task_next", &wish)?,
                Some("done") => return Ok(None),
                _ => return Err(CallError::Broken(format!("has nothing to hand out: {}", Value::Object(answer)))),
            }
        }
    }

    fn complete_and_next(
        &mut self,
        mut wish: Value,
        finished: Finished,
    ) -> Result<serde_json::Map<String, Value>, CallError> {
        let Finished { hold, result } = finished;
        wish["complete"] = json!(hold.id);
        wish["fence"] = json!(hold.fence);
        wish["result"] = json!(result);
        let answer = self.client.call("task_next", &wish)?;
        tell(&Event::Done { id: hold.id }).map_err(|error| broken(&error))?;
        Ok(answer)
    }

    /// Holds the task until the word to go on comes, then does it.
    fn do_it(&mut self, hold: Hold) -> Result<Finished, CallError> {
        tell(&Event::Claimed(hold.clone())).map_err(|error| broken(&error))?;
        match hear()?.as_str() {
            GO => Ok(Finished { result: work(&hold.subject), hold }),
            word => Err(CallError::Broken(format!("was not told to go on, but {word:?}"))),
        }
    }
}

fn hold(task: Option<Value>) -> Result<Hold, CallError> {
    let wrong = |error| CallError::Broken(format!("hands out no task with a lease: {error}"));
    serde_json::from_value(task.unwrap_or_default()).map_err(wrong)
}

fn tell(event: &Event) -> io::Result<()> {
    let line = serde_json::to_string(event)?;
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}

/// The next word of the parent. Without a parent there is nobody to work for.
fn hear() -> Result<String, CallError> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => Err(CallError::Broken("is of no use: the demo is gone".to_owned())),
        Ok(_) => Ok(line.trim().to_owned()),
        Err(error) => Err(broken(&error)),
    }
}

fn broken(error: &io::Error) -> CallError {
    CallError::Broken(format!("is of no use: the demo does not listen: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_the_pipe() {
        let hold = Hold { id: TaskId::Number(7), subject: "a".to_owned(), fence: 2, leased_until: 5 };
        let events = [
            Event::Ready { name: "w".to_owned() },
            Event::Claimed(hold),
            Event::Refused { id: TaskId::Number(7), owner: Some("x".to_owned()) },
            Event::Done { id: TaskId::Number(7) },
            Event::Finished,
        ];
        for event in events {
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event, "{line}");
        }
    }

    #[test]
    fn work_depends_on_the_subject_alone() {
        assert_eq!(work("a"), work("a"));
        assert_ne!(work("a"), work("b"));
    }
}
