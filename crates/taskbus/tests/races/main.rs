//! The parts of a process that are nothing but locks, under schedules that a seed decides: at each lock, wait and notice,
//! the seed says who goes on. No wait ever times out here, so a notice that is lost leaves everybody waiting, which is
//! told. The files are those of the library, read again with other locks in place of the standard library's.
//!
//! Tried are the hall in which calls wait for a change of a store that cannot be nudged, and the flushes that callers
//! share. Not tried are the thread that moves the log of a store and the bell of SQLite's waiters: they are woken by
//! conditions too, but what they do is SQLite's and the system's. Each schedule is one of many, chosen at
//! random; not all of them.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "the tests beside it ask more")]
#[path = "../../src/store/sqlite/flushes.rs"]
mod flushes;
mod flushing;
#[allow(dead_code, reason = "the tests beside it ask more")]
#[path = "../../src/engine/hall.rs"]
mod hall;
mod sync;
mod waiting;

/// What the hall needs of a store.
mod store {
    pub(crate) use taskbus::store::{Store, StoreError};
}

/// How many schedules each test tries.
fn schedules() -> u64 {
    let times = std::env::var("TASKBUS_TEST_TIMES").ok().map_or(1, |text| text.parse().expect("a number"));
    1_500 * times
}

/// Every schedule ends well.
fn all_end_well(bodies: impl Fn() -> Vec<sync::Body>) {
    for seed in 1..=schedules() {
        if let Err(why) = sync::run(seed, bodies()) {
            panic!("schedule {seed}: {why}");
        }
    }
}

/// Some schedule shows what is wrong.
fn one_ends_badly(bodies: impl Fn() -> Vec<sync::Body>) -> String {
    (1..=schedules()).find_map(|seed| sync::run(seed, bodies()).err()).expect("nothing was found out")
}
