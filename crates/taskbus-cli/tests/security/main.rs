//! The threats of SECURITY.md, tried on the real binary and on real files.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::needless_pass_by_value, reason = "arguments read better at the calls")]

#[path = "../common/mod.rs"]
mod common;

mod commands;
mod corpus;
mod files;
mod lock;
mod names;
mod stores;
mod terminal;
mod tools;
