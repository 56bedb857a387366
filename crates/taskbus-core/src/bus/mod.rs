//! The bus around the task lists: channels, messages, memories, and who hears of what. Pure, like everything here.
//!
//! ```text
//!  channel       names and kinds; an inbox is dm/<identity>, a task list is tasks/<name>
//!  message       what is sent and what is read
//!  tag           tags of messages, and patterns of tags that an identity follows
//!  subscription  how far who has read what
//!  fold          which letters and words are the same
//!  query         what a search looks for
//!  relevance     how well a text fits it
//! ```

pub mod channel;
pub mod fold;
pub mod message;
pub mod query;
pub mod relevance;
pub mod subscription;
pub mod tag;
