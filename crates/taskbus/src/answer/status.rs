//! What is answered about the store as a whole.

use serde::{Deserialize, Serialize};
use taskbus_core::bus::channel::ChannelName;

use super::SessionView;
use super::bus::ChannelView;

/// How a store is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusStatus {
    /// How much it holds, in MiB.
    pub used_mib: u64,
    /// How much it may hold.
    pub budget_mib: u64,
    /// What everybody who receives is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// What is known of vectors, if a model is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding: Option<EmbeddingStatus>,
    /// Who is there.
    pub sessions: Vec<SessionView>,
    /// Every channel, inboxes and task lists among them.
    pub channels: Vec<ChannelView>,
}

/// What is known of the vectors of memories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingStatus {
    /// The model.
    pub model: String,
    /// Memories that have one.
    pub embedded: u64,
    /// Memories that will get one.
    pub backlog: u64,
    /// Memories that the model refused.
    pub rejected: u64,
    /// What went wrong at the last try, if it went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A channel that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelGone {
    /// Its name.
    pub deleted: ChannelName,
    /// How many live messages went with it.
    pub messages: u64,
}

/// What was in a store before it was emptied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Emptied {
    /// Who was there, and has to register again.
    pub sessions: Vec<SessionView>,
    /// How many channels there were.
    pub channels: usize,
    /// How many live messages they had.
    pub messages: u64,
}
