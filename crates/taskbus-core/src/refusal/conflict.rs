//! What the state of the store can refuse.

use serde_json::{Value, json};

use super::{ids, shown};
use crate::bus::channel::{ChannelKind, ChannelName};
use crate::id::TaskId;
use crate::limits;
use crate::name::{Identity, ListName};
use crate::time::Timestamp;

/// Why the state of a task refuses a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Somebody else holds it.
    #[error("task {id} is held by {owner}{}; take another with task_next", ending(.until.as_ref()))]
    Held {
        /// The task.
        id: TaskId,
        /// Who.
        owner: Identity,
        /// Until when, if it has a lease.
        until: Option<Timestamp>,
    },
    /// It is assigned to, or was completed by, somebody else.
    #[error("task {id} belongs to {owner}; ask them to release it, or take another with task_next")]
    Assigned {
        /// The task.
        id: TaskId,
        /// Whose.
        owner: Identity,
    },
    /// The caller's claim has ended.
    #[error("task {id} was reclaimed or handed on since fence {sent} (it is {current} now): stop working on it")]
    LeaseLost {
        /// The task.
        id: TaskId,
        /// The token sent.
        sent: u64,
        /// The token now.
        current: u64,
        /// Who holds it now.
        owner: Option<Identity>,
    },
    /// The task has changed since.
    #[error("task {id} is at revision {current}, not {sent}; read it again and decide anew")]
    Revision {
        /// The task.
        id: TaskId,
        /// The revision sent.
        sent: u64,
        /// The revision now.
        current: u64,
    },
    /// Something must be done first.
    #[error("task {id} is blocked by {}; complete those first", ids(.blockers, ", "))]
    Blocked {
        /// The task.
        id: TaskId,
        /// Its open blockers.
        blockers: Vec<TaskId>,
    },
    /// Its time has not come.
    #[error("task {id} is deferred until {until}; change not_before to start it earlier")]
    Deferred {
        /// The task.
        id: TaskId,
        /// Until when.
        until: Timestamp,
    },
    /// It has live children.
    #[error("task {id} has the children {}; move or delete those first", ids(.children, ", "))]
    Children {
        /// The task.
        id: TaskId,
        /// The children.
        children: Vec<TaskId>,
    },
    /// Bringing it back would close a cycle.
    #[error("restoring task {} would close the cycle {}; remove one of these links first", .path[0], ids(.path, " -> "))]
    RestoreCycle {
        /// The way, its first and last task the same.
        path: Vec<TaskId>,
    },
    /// The key was used for something else.
    #[error("the idempotency key {key:?} was used for another call; use a new key")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// A channel of that name exists with other settings.
    #[error("{name} exists already with other settings; use it as it is or choose another name")]
    ListExists {
        /// The name.
        name: ListName,
    },
    /// A channel of that name exists and is of the other kind.
    #[error("{name} exists already and is of kind {}; use it as it is or choose another name", .kind.as_str())]
    ChannelExists {
        /// The name.
        name: ChannelName,
        /// Its kind.
        kind: ChannelKind,
    },
    /// Somebody else still reads it.
    #[error("{name} is read by {}; they must unsubscribe first", names(.subscribers))]
    Subscribed {
        /// The channel.
        name: ChannelName,
        /// The live ones.
        subscribers: Vec<Identity>,
    },
    /// A running agent has the name that a command wants to act under.
    #[error("{name} is a running agent's name, held until its process ends; choose another with --as")]
    NameHeld {
        /// The name.
        name: Identity,
    },
}

impl Conflict {
    /// One word for the reason, beside the code.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Conflict::Held { .. } => "held",
            Conflict::Assigned { .. } => "assigned",
            Conflict::LeaseLost { .. } => "lease_lost",
            Conflict::Revision { .. } => "revision",
            Conflict::Blocked { .. } => "blocked",
            Conflict::Deferred { .. } => "deferred",
            Conflict::Children { .. } => "children",
            Conflict::RestoreCycle { .. } => "cycle",
            Conflict::KeyReused { .. } => "key_reused",
            Conflict::ListExists { .. } => "exists",
            Conflict::ChannelExists { .. } => "exists",
            Conflict::Subscribed { .. } => "subscribed",
            Conflict::NameHeld { .. } => "name_held",
        }
    }

    pub(super) fn facts(&self) -> Value {
        let mut facts = match self {
            Conflict::Held { id, owner, until } => json!({"task_id": id, "owner": owner, "leased_until": until}),
            Conflict::Assigned { id, owner } => json!({"task_id": id, "owner": owner}),
            Conflict::LeaseLost { id, current, owner, .. } => json!({"task_id": id, "fence": current, "owner": owner}),
            Conflict::Revision { id, current, .. } => json!({"task_id": id, "revision": current}),
            Conflict::Blocked { id, blockers } => json!({"task_id": id, "open_blockers": shown(blockers)}),
            Conflict::Deferred { id, until } => json!({"task_id": id, "not_before": until}),
            Conflict::Children { id, children } => json!({"task_id": id, "children": shown(children)}),
            Conflict::RestoreCycle { path } => json!({"cycle": shown(path)}),
            Conflict::KeyReused { key } => json!({"idempotency_key": key}),
            Conflict::ListExists { name } => json!({"channel": name}),
            Conflict::ChannelExists { name, kind } => json!({"channel": name, "kind": kind}),
            Conflict::Subscribed { name, subscribers } => {
                json!({"channel": name, "subscribers": &subscribers[..subscribers.len().min(limits::IDS_SHOWN_MAX)]})
            }
            Conflict::NameHeld { name } => json!({"as": name}),
        };
        facts["reason"] = self.reason().into();
        facts
    }
}

fn names(all: &[Identity]) -> String {
    let shown = &all[..all.len().min(limits::IDS_SHOWN_MAX)];
    shown.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn ending(until: Option<&Timestamp>) -> String {
    until.map_or_else(String::new, |at| format!(" until {at}"))
}
