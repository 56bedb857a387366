//! taskbus: a task list that coding agents share. The [`Engine`](engine::Engine) is the only door.
//!
//! A surface makes a [`Request`](engine::Request) out of what it was sent and turns the
//! [`Answer`](answer::Answer) back; the rules are in `taskbus-core`, rows are kept by a
//! [`Store`](store::Store). Everything here is synchronous.

pub mod answer;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod engine;
pub mod mirror;
pub mod store;
mod sync;

pub use taskbus_core as core;
