//! Every scenario script, on an engine over every store here.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};
use taskbus::conformance::{ALL, Driver, EngineDriver, run};
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
        !ran.is_ok_and(|ran| ran.stopped.is_none() && ran.skipped == 0 && ran.steps > 5 && ran.fields > 5)
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

/// Has a form for no call.
struct Mute;

impl Driver for Mute {
    fn call(&mut self, _: &str, tool: &str, _: &Map<String, Value>) -> Result<Value, Value> {
        panic!("{tool} has no form here")
    }

    fn can(&self, _: &str, _: &Map<String, Value>) -> bool {
        false
    }

    fn pass(&mut self, _: u64) -> bool {
        false
    }

    fn kill(&mut self, _: &str) -> bool {
        false
    }
}

/// Answers as an engine, and tells nothing.
struct Silent(EngineDriver);

impl Driver for Silent {
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        self.0.call(actor, tool, arguments)
    }

    fn tells(&self, _: &str, _: &str) -> bool {
        false
    }

    fn has_facts(&self, _: &str) -> bool {
        false
    }

    fn pass(&mut self, seconds: u64) -> bool {
        self.0.pass(seconds)
    }

    fn kill(&mut self, actor: &str) -> bool {
        self.0.kill(actor)
    }
}

#[test]
fn what_was_not_run_and_not_compared_does_not_count() {
    for (name, text) in ALL {
        let ran = run(name, text, &mut Mute);
        let stopped = ran.stopped.as_ref().unwrap();
        assert_eq!((ran.steps, ran.fields), (0, 0), "{name}: {ran}");
        assert!(ran.skipped + stopped.left > 5 && ran.to_string().contains("were not run"), "{name}: {ran}");
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_796_054_400_000)));
        let store = Arc::new(MemoryStore::with_clock(Arc::<ManualClock>::clone(&clock)));
        let ran = run(name, text, &mut Silent(EngineDriver::new(store, clock)));
        assert_eq!(ran.fields, text.lines().filter(|line| line.contains(" ! ")).count(), "the codes alone: {ran}");
    }
}
