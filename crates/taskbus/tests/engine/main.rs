//! The engine's promises, each written once and held by every store (docs/rules.md 2 to 7).

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod atomic;
mod bus;
mod claims;
mod clocks;
#[cfg(feature = "embeddings")]
mod embedding;
mod graph;
#[cfg(feature = "embeddings")]
mod http;
mod inspection;
mod limits;
mod maintenance;
mod memories;
mod processes;
mod reads;
mod receipts;
mod reclaim;
mod sessions;
mod support;
mod together;
mod waiting;
