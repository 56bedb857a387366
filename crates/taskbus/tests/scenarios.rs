//! Every scenario script, on an engine over every store here.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use taskbus::conformance::{ALL, EngineDriver, Ran, run};
use taskbus::store::memory::MemoryStore;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus::store::{ManualClock, Store};
use taskbus_core::time::Timestamp;

#[track_caller]
fn run_all(store: impl Fn(Arc<ManualClock>) -> Arc<dyn Store>) {
    let failed = ALL.iter().filter(|(name, text)| {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_796_054_400_000)));
        let mut driver = EngineDriver::new(store(Arc::clone(&clock)), clock);
        let ran = catch_unwind(AssertUnwindSafe(|| run(name, text, &mut driver)));
        !matches!(ran, Ok(Ran::Whole(steps)) if steps > 5)
    });
    assert_eq!(failed.map(|(name, _)| *name).collect::<Vec<_>>(), [""; 0], "scripts that failed");
}

#[test]
fn memory_answers_as_the_scripts_say() {
    run_all(|clock| Arc::new(MemoryStore::with_clock(clock)));
}

#[test]
fn sqlite_answers_as_the_scripts_say() {
    let place = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    run_all(|clock| {
        count.set(count.get() + 1);
        let path = place.path().join(format!("{}.db", count.get()));
        Arc::new(SqliteStore::open(path, SqliteOptions::default()).unwrap().with_clock(clock))
    });
}
