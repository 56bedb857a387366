//! The MCP server as a client meets it: real processes, real pipes, real stores.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(clippy::needless_pass_by_value, reason = "arguments read better at the calls")]
#![allow(clippy::print_stdout, reason = "what was measured is shown")]

mod bad_input;
mod bus;
mod contention;
mod drop_ins;
mod golden;
mod handshake;
mod idle;
mod lenient;
mod lifecycle;
mod operator;
mod resources;
mod schema;
mod server;
mod stores;
