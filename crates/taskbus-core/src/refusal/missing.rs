//! What a request can name that does not exist.

use serde_json::{Value, json};

use crate::bus::channel::ChannelName;
use crate::id::TaskId;
use crate::name::{Identity, ListName};

/// What does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No live task has this id.
    #[error("there is no task {id}; task_list shows the live ones")]
    Task {
        /// The id.
        id: TaskId,
    },
    /// No tombstone has this id.
    #[error("there is no deleted task {id} to restore")]
    Tombstone {
        /// The id.
        id: TaskId,
    },
    /// No list has this name.
    #[error("there is no list {name}; make it with create_channel {{\"name\": \"{name}\", \"kind\": \"memory\"}}")]
    List {
        /// The name.
        name: ListName,
    },
    /// No channel has this name.
    #[error("there is no channel {name}; make it with create_channel, or see list_channels")]
    Channel {
        /// The name.
        name: ChannelName,
    },
    /// It never registered, or its inbox is not the caller's to read: the two are not told apart.
    #[error("there is no channel {name}: {owner} never registered, or it is not yours to read")]
    Inbox {
        /// The name.
        name: ChannelName,
        /// Whose it would be.
        owner: Identity,
    },
    /// The message to answer is not there.
    #[error("{field} names message {seq}, which is not there")]
    Message {
        /// The field.
        field: &'static str,
        /// The number.
        seq: u64,
    },
    /// No live memory has this id.
    #[error("there is no memory {id}; search finds those that are there")]
    Memory {
        /// The id.
        id: u64,
    },
    /// No subscription would ever wake the caller.
    #[error("{who} is subscribed to none of these channels; subscribe first, or name others")]
    Subscription {
        /// Who.
        who: Identity,
    },
    /// Nobody ever registered this name.
    #[error("{name} never registered, so it cannot own a task; name an identity that register returned")]
    Owner {
        /// The name.
        name: Identity,
    },
}

impl Missing {
    pub(super) fn facts(&self) -> Value {
        match self {
            Missing::Task { id } | Missing::Tombstone { id } => json!({"task_id": id}),
            Missing::List { name } => json!({"channel": name}),
            Missing::Channel { name } | Missing::Inbox { name, .. } => json!({"channel": name}),
            Missing::Message { field, seq } => json!({"field": field, "seq": seq}),
            Missing::Memory { id } => json!({"id": id}),
            Missing::Subscription { who } => json!({"as": who}),
            Missing::Owner { name } => json!({"field": "owner", "owner": name}),
        }
    }
}
