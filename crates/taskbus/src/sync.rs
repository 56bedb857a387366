//! Locks, conditions and threads as the parts take them that the tests also run under schedules of their own: there,
//! another module stands in this one's place (`crates/taskbus/tests/races/main.rs`). Here, they are those of the standard library.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread;
