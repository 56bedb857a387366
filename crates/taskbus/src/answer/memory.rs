//! What is answered about memories, and what a search finds.

use serde::{Deserialize, Serialize};
use taskbus_core::bus::message::Message;

/// What an edit of a memory did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// The number of the new revision's message.
    pub seq: u64,
    /// The memory.
    pub memory_id: u64,
    /// 2, 3, 4 …
    pub revision: u64,
    /// The number of the revision's message that it took the place of.
    pub replaced: u64,
}

/// What a deletion of a memory did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// The memory.
    pub deleted: u64,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The messages of this page, the best first.
    pub hits: Vec<HitView>,
    /// The cursor of the next page, when there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether a search by meaning was wanted and only words could be looked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub semantic_unavailable: bool,
}

/// A message that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HitView {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// How well it fits; higher is better, within one search.
    pub score: f64,
}
