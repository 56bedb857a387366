//! What can be asked of a list. Claim, release, complete and the tool families of other products are
//! constructors of a [`Patch`], not second paths.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::glob::PathGlob;
use crate::id::TaskId;
use crate::name::{Identity, Label};
use crate::task::Status;
use crate::text::{Body, Note, Subject};
use crate::time::Timestamp;

/// Everything that changes a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Make one task.
    Create(Box<Draft>),
    /// Make a whole graph, all or nothing.
    Plan(Vec<Planned>),
    /// Change, claim, hand on, complete, release or delete one task.
    Update(TaskId, Box<Patch>),
    /// Take the first ready task that fits.
    Next(Box<Next>),
    /// Bring a deleted task back.
    Restore(TaskId),
}

/// A task to be made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Draft {
    /// One line that says what it is.
    pub subject: Subject,
    /// The long form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Body>,
    /// The present-continuous label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_form: Option<Subject>,
    /// The parent, a live task of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// Where among its siblings; none: last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What must be done first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<TaskId>,
    /// Not ready before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// What a worker must match.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<Label>,
    /// Files the work touches.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub paths: BTreeSet<PathGlob>,
    /// Free data.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
}

impl Draft {
    /// A draft with a subject and nothing else.
    #[must_use]
    pub fn new(subject: Subject) -> Self {
        Self {
            subject,
            description: None,
            active_form: None,
            parent: None,
            place: None,
            blocked_by: Vec::new(),
            not_before: None,
            labels: BTreeSet::new(),
            paths: BTreeSet::new(),
            metadata: BTreeMap::new(),
        }
    }
}

/// A place among siblings, named by one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Directly before this sibling.
    Before(TaskId),
    /// Directly after this sibling.
    After(TaskId),
}

/// One task of a plan. `draft.parent` and `draft.blocked_by` stay empty; the references take their place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Planned {
    /// The name by which other tasks of the plan refer to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The task.
    pub draft: Draft,
    /// The parent: a key of the plan, or an existing id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The blockers: keys of the plan, or existing ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
    /// Whether it is done already, as a ticked line of a checklist is; the caller becomes its owner of record.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
}

/// A change of one task; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Patch {
    /// The new status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The new owner; `Some(None)` clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Option<Identity>>,
    /// The new subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// The new description; `Some(None)` removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Option<Body>>,
    /// The new active form; `Some(None)` removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_form: Option<Option<Subject>>,
    /// The new parent; `Some(None)` moves the task to the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Option<TaskId>>,
    /// The new place among its siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Blockers to add, after those to remove are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add_blocked_by: Vec<TaskId>,
    /// Blockers to remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove_blocked_by: Vec<TaskId>,
    /// The lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseAsk>,
    /// The new earliest time; `Some(None)` removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Option<Timestamp>>,
    /// The new labels, replacing the old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeSet<Label>>,
    /// The new paths, replacing the old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<BTreeSet<PathGlob>>,
    /// Metadata to merge; `None` as a value removes the key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Option<Value>>,
    /// What came of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Note>,
    /// A remark for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Make it a tombstone. Goes with no other change.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
    /// Bypass the owner guard, on record.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The fencing token of the caller's claim: refused if the task has moved on since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// Apply only to this revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_revision: Option<u64>,
}

/// What a caller asks of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseAsk {
    /// No lease: the hold lasts as long as the owner's session.
    Clear,
    /// Until this time.
    Until(Timestamp),
    /// For so many seconds from now.
    Seconds(u64),
}

impl Patch {
    /// Taking a task: `{owner: caller, status: in_progress, lease}`.
    #[must_use]
    pub fn claim(caller: Identity, lease: Option<LeaseAsk>) -> Self {
        Self { owner: Some(Some(caller)), status: Some(Status::InProgress), lease, ..Self::default() }
    }

    /// Giving a task back: `{owner: none, status: pending, lease: none}`.
    #[must_use]
    pub fn release() -> Self {
        Self { owner: Some(None), status: Some(Status::Pending), lease: Some(LeaseAsk::Clear), ..Self::default() }
    }

    /// Finishing a task.
    #[must_use]
    pub fn complete(result: Option<Note>) -> Self {
        Self { status: Some(Status::Completed), result, ..Self::default() }
    }

    /// Making a task a tombstone.
    #[must_use]
    pub fn delete() -> Self {
        Self { delete: true, ..Self::default() }
    }

    /// The fields that a delete may not come with.
    #[must_use]
    pub fn other_than_delete(&self) -> Vec<&'static str> {
        let given = [
            ("status", self.status.is_some()),
            ("owner", self.owner.is_some()),
            ("subject", self.subject.is_some()),
            ("description", self.description.is_some()),
            ("active_form", self.active_form.is_some()),
            ("parent", self.parent.is_some()),
            ("before/after", self.place.is_some()),
            ("add_blocked_by", !self.add_blocked_by.is_empty()),
            ("remove_blocked_by", !self.remove_blocked_by.is_empty()),
            ("leased_until", self.lease.is_some()),
            ("not_before", self.not_before.is_some()),
            ("labels", self.labels.is_some()),
            ("paths", self.paths.is_some()),
            ("metadata", !self.metadata.is_empty()),
            ("result", self.result.is_some()),
        ];
        given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
    }
}

/// Taking the first ready task that fits (docs/rules.md 7).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Next {
    /// What the worker can do: a task's labels must all be among these.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<Label>,
    /// Only tasks below this one, at any depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// How many, 1 to 16.
    pub count: usize,
    /// The lease of what is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseAsk>,
    /// A task of the caller to complete in the same transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<Finish>,
}

impl Default for Next {
    fn default() -> Self {
        Self { labels: BTreeSet::new(), parent: None, count: 1, lease: None, complete: None }
    }
}

/// A task to complete on the way to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finish {
    /// Which.
    pub id: TaskId,
    /// What came of it.
    pub result: Option<Note>,
    /// The fencing token of its claim.
    pub fence: Option<u64>,
}
