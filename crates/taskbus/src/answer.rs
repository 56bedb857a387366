//! What the engine answers. The forms serialise, because a receipt keeps an answer to give it again; field
//! order is the order for reading, empty fields are left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::tag::TagSet;
use taskbus_core::change::Kind;
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Label, ListName};
use taskbus_core::task::{Status, Task};
use taskbus_core::text::{Body, Note, Subject};
use taskbus_core::time::Timestamp;

pub mod bus;
pub mod memory;
pub mod status;

use self::bus::PendingView;

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A task was made.
    Created(Box<TaskView>),
    /// A graph was made.
    Planned(Vec<PlannedTask>),
    /// A task was changed, or already was as asked.
    Written(Box<Written>),
    /// The next task or tasks, or why there is none.
    Next(Box<Taken>),
    /// A task was brought back.
    Restored(Box<TaskView>),
}

/// A task whole, with what is derived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// Its list.
    pub channel: ListName,
    /// Its subject.
    pub subject: Subject,
    /// Its status.
    pub status: Status,
    /// Its assignee, holder, or owner of record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Identity>,
    /// The fencing token.
    pub fence: u64,
    /// When its hold ends by itself, in Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leased_until: Option<Timestamp>,
    /// Whether an open blocker keeps it from starting.
    pub blocked: bool,
    /// Which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_blockers: Vec<TaskId>,
    /// The long form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Body>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Note>,
    /// The present-continuous label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<Subject>,
    /// The stored parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// What must be done first, open or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<TaskId>,
    /// The live tasks that wait for it, at most [`IDS_SHOWN_MAX`](taskbus_core::limits::IDS_SHOWN_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<TaskId>,
    /// Not ready before this time, in Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Parked after too many reclaims.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// What a worker must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// Files the work touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathGlob>,
    /// Free data.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Its place among its siblings.
    pub rank: String,
    /// Counts its changes.
    pub revision: u64,
    /// Reclaims since the last completion, or since a change took it out of parking.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reclaims: u32,
    /// When it was made, in Unix ms.
    pub created_at: Timestamp,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Identity>,
    /// The last change, in Unix ms.
    pub updated_at: Timestamp,
    /// Who made it; none for the maintenance tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<Identity>,
    /// When it was completed, in Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

impl TaskView {
    /// The view of a task, given what is derived from its neighbours.
    #[must_use]
    pub fn new(channel: ListName, task: Task, open_blockers: Vec<TaskId>, blocks: Vec<TaskId>) -> Self {
        Self {
            channel,
            status: task.status(),
            owner: task.owner().cloned(),
            leased_until: task.leased_until(),
            completed_at: task.completed_at(),
            blocked: !open_blockers.is_empty(),
            open_blockers,
            blocks,
            id: task.id,
            subject: task.subject,
            fence: task.fence,
            description: task.description,
            result: task.result,
            active_form: task.active_form,
            parent: task.parent,
            blocked_by: task.blocked_by,
            not_before: task.not_before,
            parked: task.parked,
            labels: task.labels.into_iter().collect(),
            paths: task.paths.into_iter().collect(),
            metadata: task.metadata,
            rank: task.rank.as_str().to_owned(),
            revision: task.revision,
            reclaims: task.reclaims,
            created_at: task.created.at,
            created_by: task.created.by,
            updated_at: task.updated.at,
            updated_by: task.updated.by,
        }
    }
}

/// One task that a plan made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// Its key in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its id.
    pub id: TaskId,
}

/// What an update did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The task afterwards (a deleted one: as it was).
    pub task: TaskView,
    /// The seq of the revision that was replaced; 0 when nothing had to be written.
    pub replaced: u64,
    /// Whether it is a tombstone now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The tasks that became ready by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unblocked: Vec<TaskId>,
    /// Children still open under a completed parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_children: Vec<TaskId>,
    /// The parent whose last open child this was, so that somebody can close it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parent_complete: bool,
    /// What the list's policy allows but the caller should know, such as a blocked start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What `next` handed out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// The tasks, now held by the caller.
    pub tasks: Vec<TaskView>,
    /// What completing on the way did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Written>,
    /// Why there is none, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
}

/// Why nothing is ready, and what to do (docs/rules.md 7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// One word.
    pub advice: Advice,
    /// Ready, but not for this caller: assigned to others, other labels, paths in use.
    pub ready_for_others: u64,
    /// Pending with open blockers.
    pub blocked: u64,
    /// In progress.
    pub in_progress: u64,
    /// By whom, at most 16, those whose lease ends first in front.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// Pending, not due yet.
    pub deferred: u64,
    /// Parked.
    pub parked: u64,
    /// Completed.
    pub done: u64,
}

/// Who holds what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// The task.
    pub id: TaskId,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Identity>,
    /// Until when, in Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leased_until: Option<Timestamp>,
}

/// What to do when nothing is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Something will become ready by itself: ask again, with a wait.
    Wait,
    /// All is done: stop.
    Done,
    /// Nothing will become ready unless somebody changes something, the caller perhaps: it may hold what is left.
    Stuck,
}

/// One task, with more on request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Got {
    /// The task.
    #[serde(flatten)]
    pub task: TaskView,
    /// Whether it could be claimed now.
    pub ready: bool,
    /// Why not, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_ready: Vec<String>,
    /// Its children not completed, at most [`IDS_SHOWN_MAX`](taskbus_core::limits::IDS_SHOWN_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_children: Vec<TaskId>,
    /// Its history, newest first, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<HistoryEntry>>,
}

/// One change in a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Its place in the global order.
    pub seq: u64,
    /// The revision it made.
    pub revision: u64,
    /// When, in Unix ms.
    pub at: Timestamp,
    /// Who; none for the maintenance tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Identity>,
    /// Why.
    pub kind: Kind,
    /// What changed, in words such as `status: pending -> in_progress`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// The remark made with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListPage {
    /// The rows, in tree order.
    pub tasks: Vec<Summary>,
    /// How many match in all.
    pub total: u64,
    /// Whether more follow.
    pub truncated: bool,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A task in a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Its id.
    pub id: TaskId,
    /// Its subject.
    pub subject: Subject,
    /// Its status.
    pub status: Status,
    /// Its assignee, holder, or owner of record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Identity>,
    /// Its stored parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// Its depth: 0 for a root.
    pub depth: usize,
    /// Its open blockers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_blockers: Vec<TaskId>,
    /// When its hold ends by itself, in Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leased_until: Option<Timestamp>,
    /// Not ready before this time, in Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Parked after too many reclaims.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// What a worker must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// Whether task_get shows more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_details: bool,
}

/// What `register` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// The display name to act as from now on.
    #[serde(rename = "as")]
    pub name: Identity,
    /// Whether this process held the name already, or the name was subscribed to something before.
    pub resumed: bool,
    /// What is unread: every subscription to a channel, at most
    /// [`IDS_SHOWN_MAX`](taskbus_core::limits::IDS_SHOWN_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingView>,
    /// Channels that the repository wishes to be read, and that are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscribed: Vec<ChannelName>,
    /// Channels of memories that it names: they are searched, not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_channels: Vec<ChannelName>,
    /// Task lists that it names, which nobody is subscribed to by a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_channels: Vec<String>,
    /// What of its wishes could not be done, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subscribe_failed: BTreeMap<String, String>,
    /// Sets of tags that are followed because it wishes so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tag_subscriptions: Vec<TagSet>,
    /// The tags that it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repo_tags: Vec<Label>,
    /// What it calls tags and is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_tags: Vec<String>,
    /// The task lists there are, at most [`IDS_SHOWN_MAX`](taskbus_core::limits::IDS_SHOWN_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<ListView>,
    /// Other live sessions, at most [`IDS_SHOWN_MAX`](taskbus_core::limits::IDS_SHOWN_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SessionView>,
}

/// A list in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListView {
    /// Its name.
    pub name: ListName,
    /// How many live tasks it has.
    pub tasks: u64,
    /// The seq of its newest revision; 0 for none.
    pub latest_seq: u64,
}

/// A session in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionView {
    /// The display name.
    pub name: Identity,
    /// What it works on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The client program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// When it registered, in Unix ms.
    pub registered_at: Timestamp,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
