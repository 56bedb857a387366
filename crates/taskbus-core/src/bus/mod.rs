//! The bus around the task lists: channels, messages, memories, and who hears of what. Pure, like everything here.
//!
//! ```text
//!  channel   names and kinds; an inbox is dm/<identity>, a task list is tasks/<name>
//!  message   what is sent and what is read
//!  tag       tags of messages, and patterns of tags that an identity follows
//! ```

pub mod channel;
pub mod message;
pub mod tag;
