//! The Kin sidecar: one file that many processes write.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod files;
mod full;
mod storm;
mod unlocked;
