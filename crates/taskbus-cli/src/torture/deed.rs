//! What a client of the torture may do, as data: written down before it is tried, and from the same line turned into a
//! command of the library, a call of an MCP tool, and the question to the rules when the history is replayed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use taskbus_core::command::{Command, Draft, Finish, LeaseAsk, Next, Patch, Place, Planned};
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::task::Status;
use taskbus_core::text::{Note, Subject, TextError};
use taskbus_core::time::Timestamp;

/// One operation. Times are in Unix ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Deed {
    /// Makes a task.
    Add { parent: Option<TaskId>, blocked_by: Vec<TaskId>, before: Option<TaskId> },
    /// Makes so many: the first, and the rest below it, each blocked by the one before.
    Plan { tasks: usize },
    /// Takes a task.
    Claim { id: TaskId, until: i64, force: bool },
    /// Takes what is ready, perhaps after completing a task under this fence.
    Next { count: usize, until: i64, complete: Option<(TaskId, u64)> },
    /// Completes a task.
    Done { id: TaskId, fence: Option<u64> },
    /// Gives a task back.
    Release { id: TaskId, fence: u64 },
    /// Holds a task for longer.
    Renew { id: TaskId, fence: u64, until: i64 },
    /// Writes another subject.
    Edit { id: TaskId, fence: Option<u64>, force: bool },
    /// Opens a completed task again.
    Reopen { id: TaskId },
    /// Meant for somebody from now on, or for anybody.
    Assign { id: TaskId, to: Option<Identity> },
    /// Puts a task below another, or at the root, perhaps in front of a sibling.
    Move { id: TaskId, parent: Option<TaskId>, before: Option<TaskId> },
    /// Has a task wait for another.
    Block { id: TaskId, on: TaskId },
    /// Has it wait no longer.
    Unblock { id: TaskId, on: TaskId },
    /// Deletes a task.
    Delete { id: TaskId },
    /// Brings one back.
    Restore { id: TaskId },
    /// Reads one.
    Get { id: TaskId },
    /// Sends a message.
    Send { channel: String },
    /// Receives, and says which batch was worked through.
    Receive { ack: Option<String> },
}

impl Deed {
    /// The command that it is; none for what is no command. The mark stands in what it writes.
    pub(super) fn command(&self, caller: &Identity, mark: &str) -> Result<Option<Command>, TextError> {
        let noted = |patch: Patch| Ok::<_, TextError>(Patch { note: Some(Note::new(mark)?), ..patch });
        let (id, patch) = match self {
            Deed::Add { parent, blocked_by, before } => {
                let place = before.clone().map(Place::Before);
                let draft = Draft { parent: parent.clone(), blocked_by: blocked_by.clone(), place, ..draft(mark)? };
                return Ok(Some(Command::Create(Box::new(draft))));
            }
            Deed::Plan { tasks } => return Ok(Some(Command::Plan(planned(*tasks, mark)?))),
            Deed::Next { count, until, complete } => {
                return Ok(Some(Command::Next(Box::new(next(*count, *until, complete.as_ref(), mark)?))));
            }
            Deed::Restore { id } => return Ok(Some(Command::Restore(id.clone()))),
            Deed::Get { .. } | Deed::Send { .. } | Deed::Receive { .. } => return Ok(None),
            Deed::Claim { id, until, force } => (id, Patch { force: *force, ..claim(caller, *until) }),
            Deed::Done { id, fence } => {
                (id, noted(Patch { fence: *fence, ..Patch::complete(Some(Note::new(mark)?)) })?)
            }
            Deed::Release { id, fence } => (id, noted(Patch { fence: Some(*fence), ..Patch::release() })?),
            Deed::Renew { id, fence, until } => {
                (id, noted(Patch { fence: Some(*fence), lease: Some(lease(*until)), ..Patch::default() })?)
            }
            Deed::Edit { id, fence, force } => {
                let subject = Some(Subject::new(mark)?);
                (id, noted(Patch { subject, fence: *fence, force: *force, ..Patch::default() })?)
            }
            Deed::Reopen { id } => (id, noted(Patch { status: Some(Status::Pending), ..Patch::default() })?),
            Deed::Assign { id, to } => (id, noted(Patch { owner: Some(to.clone()), ..Patch::default() })?),
            Deed::Move { id, parent, before } => {
                let place = before.clone().map(Place::Before);
                (id, noted(Patch { parent: Some(parent.clone()), place, ..Patch::default() })?)
            }
            Deed::Block { id, on } => (id, noted(Patch { add_blocked_by: vec![on.clone()], ..Patch::default() })?),
            Deed::Unblock { id, on } => (id, noted(Patch { remove_blocked_by: vec![on.clone()], ..Patch::default() })?),
            Deed::Delete { id } => (id, noted(Patch::delete())?),
        };
        Ok(Some(Command::Update(id.clone(), Box::new(patch))))
    }

    /// The tool that does it, and its arguments without `as`, the list and the key.
    pub(super) fn call(&self, caller: &Identity, mark: &str) -> (&'static str, Map<String, Value>) {
        let (tool, arguments) = match self {
            Deed::Add { parent, blocked_by, before } => {
                ("task_create", json!({"subject": mark, "parent": parent, "blocked_by": blocked_by, "before": before}))
            }
            Deed::Plan { tasks } => ("task_plan", json!({"tasks": planned_call(*tasks, mark)})),
            Deed::Next { count, until, complete } => {
                let mut wish = json!({"count": count, "leased_until": until});
                if let Some((id, fence)) = complete {
                    wish["complete"] = json!(id);
                    wish["fence"] = json!(fence);
                    wish["result"] = json!(mark);
                }
                ("task_next", wish)
            }
            Deed::Claim { id, until, force: false } => ("task_claim", json!({"task_id": id, "leased_until": until})),
            Deed::Claim { id, until, force: true } => (
                "task_update",
                json!({"task_id": id, "leased_until": until, "owner": caller, "status": "in_progress", "force": true}),
            ),
            Deed::Release { id, fence } => ("task_release", json!({"task_id": id, "fence": fence, "note": mark})),
            Deed::Get { id } => ("task_get", json!({"task_id": id})),
            Deed::Send { channel } => ("send", json!({"channel": channel, "content": mark, "subject": mark})),
            Deed::Receive { ack } => ("receive", json!({"ack": ack})),
            Deed::Restore { id } => ("task_update", json!({"task_id": id, "delete": false})),
            Deed::Done { id, fence } => (
                "task_update",
                json!({"task_id": id, "status": "completed", "result": mark, "fence": fence, "note": mark}),
            ),
            Deed::Renew { id, fence, until } => {
                ("task_update", json!({"task_id": id, "fence": fence, "leased_until": until, "note": mark}))
            }
            Deed::Edit { id, fence, force } => {
                ("task_update", json!({"task_id": id, "subject": mark, "fence": fence, "force": force, "note": mark}))
            }
            Deed::Reopen { id } => ("task_update", json!({"task_id": id, "status": "pending", "note": mark})),
            Deed::Assign { id, to } => {
                let to = to.as_ref().map_or("", Identity::as_str);
                ("task_update", json!({"task_id": id, "owner": to, "note": mark}))
            }
            Deed::Move { id, parent, before } => {
                let parent = parent.as_ref().map_or(json!(0), |parent| json!(parent));
                ("task_update", json!({"task_id": id, "parent": parent, "before": before, "note": mark}))
            }
            Deed::Block { id, on } => ("task_update", json!({"task_id": id, "add_blocked_by": [on], "note": mark})),
            Deed::Unblock { id, on } => {
                ("task_update", json!({"task_id": id, "remove_blocked_by": [on], "note": mark}))
            }
            Deed::Delete { id } => ("task_update", json!({"task_id": id, "delete": true, "note": mark})),
        };
        let Value::Object(arguments) = arguments else { unreachable!("BUG: arguments are an object") };
        (tool, arguments.into_iter().filter(|(_, value)| !value.is_null()).collect())
    }

    /// Whether the call names a list.
    pub(super) fn names_list(&self) -> bool {
        matches!(self, Deed::Add { .. } | Deed::Plan { .. } | Deed::Next { .. })
    }

    /// Whether it takes a key.
    pub(super) fn takes_key(&self) -> bool {
        !matches!(self, Deed::Get { .. } | Deed::Receive { .. })
    }
}

fn draft(mark: &str) -> Result<Draft, TextError> {
    Ok(Draft::new(Subject::new(mark)?))
}

fn lease(until: i64) -> LeaseAsk {
    LeaseAsk::Until(Timestamp::from_millis(until))
}

fn claim(caller: &Identity, until: i64) -> Patch {
    Patch::claim(caller.clone(), Some(lease(until)))
}

fn next(count: usize, until: i64, complete: Option<&(TaskId, u64)>, mark: &str) -> Result<Next, TextError> {
    let finish = |(id, fence): &(TaskId, u64)| {
        Ok::<_, TextError>(Finish { id: id.clone(), result: Some(Note::new(mark)?), fence: Some(*fence) })
    };
    Ok(Next { count, lease: Some(lease(until)), complete: complete.map(finish).transpose()?, ..Next::default() })
}

/// The subject of one task of a plan.
fn planned_subject(mark: &str, at: usize) -> String {
    if at == 0 { mark.to_owned() } else { format!("{mark} part {at}") }
}

fn planned(tasks: usize, mark: &str) -> Result<Vec<Planned>, TextError> {
    let one = |at: usize| {
        Ok(Planned {
            key: Some(format!("k{at}")),
            draft: draft(&planned_subject(mark, at))?,
            parent: (at > 0).then(|| "k0".to_owned()),
            blocked_by: (at > 1).then(|| format!("k{}", at - 1)).into_iter().collect(),
            done: false,
        })
    };
    (0..tasks).map(one).collect()
}

fn planned_call(tasks: usize, mark: &str) -> Vec<Value> {
    let one = |at: usize| {
        let mut task = json!({"key": format!("k{at}"), "subject": planned_subject(mark, at)});
        if at > 0 {
            task["parent"] = json!("k0");
        }
        if at > 1 {
            task["blocked_by"] = json!([format!("k{}", at - 1)]);
        }
        task
    };
    (0..tasks).map(one).collect()
}
