//! What of a task both sides keep, in one form, and where a task's other half is.

use serde_json::{Map, Value};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::task::{State, Status, Task};
use taskbus_core::text::{Body, Subject};
use taskbus_core::time::Timestamp;

/// In the metadata of a shared task: its half in the directory, as `LIST/ID`.
pub(super) const CLAUDE_ID: &str = "claude_id";
/// Among what taskbus keeps of a file: its half on the shared list, as `tasks/NAME#ID`.
pub(super) const SHARED_ID: &str = "shared_id";

/// Who has a task, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Its status.
    pub status: Status,
    /// Its owner; none also when the mirror itself stands in for a Claude Code that names none.
    pub owner: Option<Identity>,
}

/// What both sides keep of a task. Its blockers are ids of its own side.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    /// Its subject.
    pub subject: Subject,
    /// Its description.
    pub description: Option<Body>,
    /// Its active form.
    pub active_form: Option<Subject>,
    /// Status and owner.
    pub hold: Hold,
    /// Its metadata, without what the mirror keeps there.
    pub metadata: Map<String, Value>,
    /// What it waits for.
    pub blockers: Vec<TaskId>,
}

/// Where the other half of a task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Half {
    /// Nowhere yet.
    None,
    /// There.
    Here(TaskId),
    /// On another list, or in another directory.
    Elsewhere(String),
}

/// One task of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct SideTask {
    /// Its id on its side.
    pub id: TaskId,
    /// Its other half, as it says.
    pub half: Half,
    /// Its revision.
    pub revision: u64,
    /// When it was changed.
    pub updated: Timestamp,
    /// The rest.
    pub fields: Fields,
}

impl Fields {
    fn of(task: &Task, me: &Identity) -> Self {
        let mut metadata = task.metadata.clone();
        metadata.shift_remove(CLAUDE_ID);
        Self {
            subject: task.subject.clone(),
            description: task.description.clone().filter(|text| !text.as_str().is_empty()),
            active_form: task.active_form.clone(),
            hold: Hold { status: task.status(), owner: task.owner().filter(|owner| *owner != me).cloned() },
            metadata,
            blockers: task.blocked_by.clone(),
        }
    }
}

/// A task of the shared list, mirrored in the directory of that list by `me`.
pub(super) fn shared(task: &Task, directory: &ListName, me: &Identity) -> SideTask {
    let said = task.metadata.get(CLAUDE_ID).and_then(Value::as_str);
    let half = said.map_or(Half::None, |said| half(said, &format!("{}/", directory.short())));
    side(task, half, me)
}

/// A task of the directory, mirrored on this list.
pub(super) fn file(task: &Task, list: &ListName, me: &Identity) -> SideTask {
    let said = task.extra.get(SHARED_ID).and_then(Value::as_str);
    let half = said.map_or(Half::None, |said| half(said, &format!("{list}#")));
    side(task, half, me)
}

fn side(task: &Task, half: Half, me: &Identity) -> SideTask {
    SideTask {
        id: task.id.clone(),
        half,
        revision: task.revision,
        updated: task.updated.at,
        fields: Fields::of(task, me),
    }
}

fn half(said: &str, prefix: &str) -> Half {
    let here = said.strip_prefix(prefix).and_then(|id| id.parse().ok());
    here.map_or_else(|| Half::Elsewhere(said.to_owned()), Half::Here)
}

/// How a shared task names its file.
pub(super) fn claude_id(directory: &ListName, id: &TaskId) -> String {
    format!("{}/{id}", directory.short())
}

/// How a file names its shared task.
pub(super) fn shared_id(list: &ListName, id: &TaskId) -> String {
    format!("{list}#{id}")
}

/// The state that a hold is in the directory.
pub(super) fn state(hold: &Hold, now: Timestamp) -> State {
    let owner = hold.owner.clone();
    match hold.status {
        Status::Pending => State::Pending { assignee: owner },
        Status::InProgress => State::InProgress { owner, lease: None },
        Status::Completed => State::Completed { by: owner, at: now },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_found_by_list_and_id() {
        let (list, directory) = (ListName::from_short("work").unwrap(), ListName::from_short("sprint").unwrap());
        let id = TaskId::Number(7);
        assert_eq!(half(&claude_id(&directory, &id), "sprint/"), Half::Here(id.clone()));
        assert_eq!(half(&shared_id(&list, &id), "tasks/work#"), Half::Here(id));
        for said in ["sprint2/7", "7", "sprint/", "sprint/0"] {
            assert_eq!(half(said, "sprint/"), Half::Elsewhere(said.to_owned()));
        }
    }
}
