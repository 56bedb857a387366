//! The commands about messages, channels and memories, and the wait for a message.

pub(crate) mod args;
pub(crate) mod channels;
pub(crate) mod identity;
pub(crate) mod memory;
pub(crate) mod reset;
pub(crate) mod search;
mod show;
mod single;
pub(crate) mod talk;
pub(crate) mod wait;
