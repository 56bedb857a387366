//! What the engine answers about channels, messages and subscriptions. What `receive` answers is
//! [`Received`](taskbus_core::bus::receive::Received).

use serde::{Deserialize, Serialize};
use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::message::Message;
use taskbus_core::bus::tag::TagSet;
use taskbus_core::time::Timestamp;

/// A channel in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChannelView {
    /// Its name.
    pub name: ChannelName,
    /// What it keeps.
    pub kind: ChannelKind,
    /// How many live messages, memories or tasks it has.
    pub messages: u64,
    /// The number of its newest message, live or not; 0 for none.
    pub latest_seq: u64,
    /// When something last happened in it, in Unix ms; of task lists only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<Timestamp>,
}

/// How much of a subscription is unread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingView {
    /// The channel.
    pub channel: ChannelName,
    /// How many messages of others, counted up to [`PENDING_COUNTED_MAX`](taskbus_core::limits::PENDING_COUNTED_MAX).
    pub pending: usize,
}

/// What `send` answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The number of the message.
    pub seq: u64,
    /// The memory that it is, on a channel of memories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_id: Option<u64>,
}

/// What `subscribe` answers: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscribed {
    /// The channel that is read from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribed: Option<ChannelName>,
    /// The tags that are followed from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribed_tags: Option<TagSet>,
}

/// What `unsubscribe` answers: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsubscribed {
    /// The channel that is not read any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsubscribed: Option<ChannelName>,
    /// The tags that are not followed any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsubscribed_tags: Option<TagSet>,
}

/// A part of what was said in a channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryView {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// How many match in all, within the bounds asked for or not; left out when that would take long to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    /// Whether there are more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Where they go on: send it as `after` if the call had `after`, else as `before`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
