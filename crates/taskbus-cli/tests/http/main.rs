//! The HTTP server as clients and attackers meet it: a real process, raw sockets, real stores.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::needless_pass_by_value, reason = "arguments read better at the calls")]
#![allow(unreachable_pub, reason = "what the tests share is used by some of them")]

#[path = "../common/mod.rs"]
mod common;

mod callers;
mod ending;
mod limits;
mod server;
mod sessions;
mod starting;
