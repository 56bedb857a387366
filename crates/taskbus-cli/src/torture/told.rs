//! What a client was told, in the few words that the checker needs: read from the JSON that every surface answers with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskbus_core::id::TaskId;
use taskbus_core::task::Status;

use super::deed::Deed;

/// The answer to a deed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// It is done, and written.
    Wrote(Vec<Seen>),
    /// It was so already, or there was nothing to take.
    Nothing(Vec<Seen>),
    /// It is so; whether by this call is not said.
    Is(Seen),
    /// The graph is made.
    Made(Vec<TaskId>),
    /// A task as it was read.
    Read(Seen),
    /// The message has this number.
    Sent(u64),
    /// These came.
    Received {
        /// Their numbers, in order.
        seqs: Vec<u64>,
        /// What acknowledges them.
        batch: Option<String>,
        /// Whether they came before.
        again: bool,
        /// Whether the acknowledgement was of nothing.
        ack_ignored: bool,
    },
    /// The rules refuse.
    Refused {
        /// The code, and the reason if there is one.
        code: String,
        /// The whole of it.
        words: String,
    },
    /// The store failed.
    Failed(String),
}

/// A task as somebody was told it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Which.
    pub(super) id: TaskId,
    /// Its revision.
    pub(super) revision: u64,
    /// Its status.
    pub(super) status: Status,
    /// The fence; none where the answer does not say it.
    #[serde(default)]
    pub(super) fence: Option<u64>,
    /// Whose it is.
    #[serde(default)]
    pub(super) owner: Option<String>,
    /// Until when, in Unix ms.
    #[serde(default)]
    pub(super) leased_until: Option<i64>,
}

impl Told {
    /// Reads the answer to a deed.
    pub(super) fn read(deed: &Deed, answer: &Map<String, Value>) -> Result<Told, String> {
        let wrong = || format!("an answer to {deed:?} that says too little: {}", Value::Object(answer.clone()));
        match deed {
            Deed::Add { .. } => Ok(Told::Wrote(vec![seen(answer).ok_or_else(wrong)?])),
            Deed::Plan { .. } => made(answer).map(Told::Made).ok_or_else(wrong),
            Deed::Next { .. } => taken(answer).ok_or_else(wrong),
            Deed::Get { .. } => seen(answer).map(Told::Read).ok_or_else(wrong),
            Deed::Restore { .. } => {
                let task = answer.get("task").and_then(Value::as_object).unwrap_or(answer);
                seen(task).map(Told::Is).ok_or_else(wrong)
            }
            Deed::Send { .. } => number(answer, "seq").map(Told::Sent).ok_or_else(wrong),
            Deed::Receive { .. } => received(answer).ok_or_else(wrong),
            _ => written(answer).ok_or_else(wrong),
        }
    }

    /// Reads a refusal or a failure.
    pub(super) fn refused(facts: &Map<String, Value>) -> Told {
        let word = |name: &str| facts.get(name).and_then(Value::as_str).unwrap_or_default();
        let words = word("message").to_owned();
        match (word("code"), word("reason")) {
            ("internal", reason) => Told::Failed(format!("{reason}: {words}")),
            (code, "") => Told::Refused { code: code.to_owned(), words },
            (code, reason) => Told::Refused { code: format!("{code} {reason}"), words },
        }
    }

    /// Whether something was certainly written by the deed.
    pub(super) fn wrote(&self) -> bool {
        matches!(self, Told::Wrote(_) | Told::Made(_) | Told::Sent(_))
    }
}

fn number(map: &Map<String, Value>, name: &str) -> Option<u64> {
    map.get(name).and_then(Value::as_u64)
}

fn seen(task: &Map<String, Value>) -> Option<Seen> {
    serde_json::from_value(Value::Object(task.clone())).ok()
}

fn made(answer: &Map<String, Value>) -> Option<Vec<TaskId>> {
    let tasks = answer.get("tasks")?.as_array()?;
    tasks.iter().map(|task| serde_json::from_value(task.get("id")?.clone()).ok()).collect()
}

/// `{task, replaced}`: a change that replaced nothing changed nothing.
fn written(answer: &Map<String, Value>) -> Option<Told> {
    let task = seen(answer.get("task")?.as_object()?)?;
    Some(if number(answer, "replaced")? > 0 { Told::Wrote(vec![task]) } else { Told::Nothing(vec![task]) })
}

fn taken(answer: &Map<String, Value>) -> Option<Told> {
    let one = answer.get("task").and_then(Value::as_object).map(seen);
    let several = answer.get("tasks").and_then(Value::as_array).into_iter().flatten();
    let several = several.map(|task| task.as_object().and_then(seen));
    let mut tasks = one.into_iter().chain(several).collect::<Option<Vec<_>>>()?;
    let completed = answer.get("completed").and_then(Value::as_object);
    let wrote = match completed.map(written) {
        None => !tasks.is_empty(),
        Some(Some(Told::Wrote(done))) => {
            tasks.extend(done);
            true
        }
        Some(Some(_)) => !tasks.is_empty(),
        Some(None) => return None,
    };
    Some(if wrote { Told::Wrote(tasks) } else { Told::Nothing(tasks) })
}

fn received(answer: &Map<String, Value>) -> Option<Told> {
    let messages = answer.get("messages")?.as_array()?;
    let flag = |name: &str| answer.get(name).and_then(Value::as_bool).unwrap_or(false);
    Some(Told::Received {
        seqs: messages.iter().map(|message| message.get("seq").and_then(Value::as_u64)).collect::<Option<_>>()?,
        batch: answer.get("batch").and_then(Value::as_str).map(str::to_owned),
        again: flag("redelivered"),
        ack_ignored: flag("ack_ignored"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(deed: &Deed, answer: &Value) -> Told {
        Told::read(deed, answer.as_object().unwrap()).unwrap()
    }

    #[test]
    fn answers_are_told_apart() {
        let id = TaskId::Number(7);
        let task = json!({"id": 7, "revision": 3, "status": "pending", "fence": 2, "rank": "a"});
        let as_seen = Seen {
            id: id.clone(),
            revision: 3,
            status: Status::Pending,
            fence: Some(2),
            owner: None,
            leased_until: None,
        };
        let edit = Deed::Edit { id: id.clone(), fence: None, force: false };
        assert_eq!(read(&edit, &json!({"task": task, "replaced": 9})), Told::Wrote(vec![as_seen.clone()]));
        assert_eq!(read(&edit, &json!({"task": task, "replaced": 0})), Told::Nothing(vec![as_seen.clone()]));
        assert_eq!(read(&Deed::Get { id }, &task), Told::Read(as_seen.clone()));
        let next = Deed::Next { count: 1, until: 1, complete: None };
        assert_eq!(read(&next, &json!({"idle": {}})), Told::Nothing(vec![]));
        let done = json!({"completed": {"task": {"id": 7, "revision": 3, "status": "pending"}, "replaced": 4}});
        assert_eq!(read(&next, &done), Told::Wrote(vec![Seen { fence: None, ..as_seen }]));
        assert!(Told::read(&next, json!({"tasks": [{}]}).as_object().unwrap()).is_err());
        let got = json!({"messages": [{"seq": 4}], "batch": "b", "redelivered": true});
        let told = read(&Deed::Receive { ack: None }, &got);
        assert!(matches!(told, Told::Received { again: true, ack_ignored: false, seqs, .. } if seqs == [4]));
    }

    #[test]
    fn a_failure_of_the_store_is_no_refusal() {
        let facts = |value: Value| Told::refused(value.as_object().unwrap());
        assert!(matches!(facts(json!({"code": "internal", "reason": "store_busy"})), Told::Failed(_)));
        let Told::Refused { code, .. } = facts(json!({"code": "conflict", "reason": "lease_lost"})) else { panic!() };
        assert_eq!(code, "conflict lease_lost");
    }
}
