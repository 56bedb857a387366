//! What is delivered, acknowledged, delivered again and told to be missing: examples, and a naive reader that keeps
//! count of everything while sends, evictions, deletions and filters come as they like.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod batches;
mod limits;
mod missing;
mod naive;
mod peeking;
mod support;
mod tags;
