//! The MCP server as a client meets it: real processes, real pipes, real stores.

mod bad_input;
mod contention;
mod handshake;
mod lenient;
mod lifecycle;
mod schema;
mod server;
mod stores;
