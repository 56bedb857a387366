//! A Claude Code task directory as a store: real directories, real processes, and another writer that follows Claude
//! Code's protocol as it was traced.
#![allow(clippy::unwrap_used)]

mod claude_code;
mod crew;
mod edges;
mod foreign;
mod full;

mod reading;
mod storm;
mod support;
mod unlocked;
mod vanishing;
mod waiting;
mod whole;
mod writing;
