//! Every store against the memory store, in lockstep, over random calls.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use taskbus::conformance::EngineDriver;
use taskbus::conformance::lockstep::{Random, Seen, step};
use taskbus::store::memory::MemoryStore;
use taskbus::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbus::store::{ManualClock, Store};
use taskbus_core::time::Timestamp;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_millis(1_796_054_400_000)))
}

fn memory() -> (Arc<dyn Store>, Arc<ManualClock>) {
    let clock = clock();
    (Arc::new(MemoryStore::with_clock(Arc::<ManualClock>::clone(&clock))), clock)
}

/// Runs `steps` calls of one seed; `reopen` gives the store to go on with, every hundred calls.
#[track_caller]
fn compare(
    seed: u64,
    steps: usize,
    other: (Arc<dyn Store>, Arc<ManualClock>),
    reopen: &mut dyn FnMut() -> Arc<dyn Store>,
) {
    let (model, model_clock) = memory();
    let mut left = EngineDriver::new(Arc::clone(&model), model_clock);
    let mut right = EngineDriver::new(other.0, other.1);
    let (mut random, mut ids, mut seen) = (Random::new(seed), Vec::new(), Seen::default());
    for at in 1..=steps {
        step(&mut random, &mut ids, &mut seen, &mut left, &mut right);
        if at % 100 == 0 {
            left.restart(Arc::clone(&model));
            right.restart(reopen());
        }
    }
    assert!(seen.done * 4 > steps && seen.refused * 10 > steps, "seed {seed} saw too little: {seen:?}");
}

#[test]
fn the_model_answers_as_itself() {
    for seed in 0..4 {
        let (store, clock) = memory();
        compare(seed, 500, (Arc::clone(&store), clock), &mut || Arc::clone(&store));
    }
}

#[test]
fn sqlite_answers_as_the_model_does() {
    for seed in 0..8 {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lockstep.db");
        let clock = clock();
        let open = || -> Arc<dyn Store> {
            let options = SqliteOptions { durability: Durability::Relaxed, ..SqliteOptions::default() };
            Arc::new(SqliteStore::open(&path, options).unwrap().with_clock(Arc::<ManualClock>::clone(&clock)))
        };
        compare(seed, 1_250, (open(), Arc::clone(&clock)), &mut || open());
        let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        assert_eq!(store.check().unwrap(), [""; 0], "seed {seed}: derived rows that differ from the documents");
    }
}
