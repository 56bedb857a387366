//! The bus around the task lists: channels, messages, memories, and who hears of what. Pure, like everything here.
//!
//! ```text
//!  channel       names and kinds; an inbox is dm/<identity>, a task list is tasks/<name>
//!  message       what is sent and what is read
//!  memory        how a memory is revised and deleted, and how large a message may be
//!  tag           tags of messages, and patterns of tags that an identity follows
//!  subscription  how far who has read what
//!  rules         what may be done to channels: made, followed, sent to, read, deleted
//!  wishes        what a repository wishes for who registers in it
//!  mailbox       what delivery asks of a store
//!  receive       what is delivered next, acknowledged, and delivered again
//!  peek          what would be, for those who only look
//!  fold          which letters and words are the same
//!  query         what a search looks for
//!  relevance     how well a text fits it
//!  fusion        how what was found is ranked, and which part of a ranking a page shows
//!  embedding     what is turned into a vector, and what the answer must look like
//!  retain        what is kept for how long
//! ```

use serde::Serialize;

pub mod channel;
pub mod embedding;
pub mod fold;
pub mod fusion;
pub mod mailbox;
pub mod memory;
pub mod message;
pub mod peek;
pub mod query;
pub mod receive;
pub mod relevance;
pub mod retain;
pub mod rules;
mod select;
pub mod subscription;
pub mod tag;
pub mod wishes;

/// How long something is as compact JSON, in bytes.
#[must_use]
pub fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).expect("BUG: what is measured has text for keys").len()
}
