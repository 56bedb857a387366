//! Tests of the SQLite store: what it promises beyond the answers of the engine.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod backup;
mod bus_files;
mod bus_model;
mod bus_questions;
mod chain;
mod checkpoints;
mod contention;
mod files;
mod flips;
mod hostile;
mod model;
mod rollback;
mod support;
mod upgrade;
mod waiting;
