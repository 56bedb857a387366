//! The mirror between a shared list and a task directory: what it plans, on random lists, and what it does, on real
//! ones.
#![allow(clippy::unwrap_used)]

#[path = "../claude/claude_code.rs"]
mod claude_code;
mod live;
mod plan;
