//! A whole office in one thread: several agents, a clock that moves when it is told to, a store that fails now and then,
//! agents that crash, fall asleep over their leases and start again, all of it decided by one seed. After each step what
//! must hold is looked at in the revisions of the store, beside all engines.
//!
//! A failure prints its seed and its step. `TASKBUS_SEED` runs one seed again and tells every step; `TASKBUS_TEST_TIMES`
//! asks for as many times more seeds.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod agent;
mod sabotage;
mod seam;
mod watch;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use sabotage::Sabotage;
use world::{Place, Told, World};

const MEMORY_SEEDS: u64 = 200;
const SQLITE_SEEDS: u64 = 30;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Runs a seed to its end.
fn play(seed: u64, place: Place, sabotage: Sabotage) -> Told {
    let mut world = World::new(seed, place, sabotage);
    let ran = catch_unwind(AssertUnwindSafe(|| world.run()));
    if let Err(panic) = ran {
        println!("seed {seed} on {place:?} broke in step {}; the last steps:\n{}", world.step, world.last_steps());
        println!("again: TASKBUS_SEED={seed} cargo nextest run -p taskbus -E 'binary(simulation)' --no-capture");
        resume_unwind(panic);
    }
    world.told()
}

/// Every seed holds, and over all of them everything came up that this is about.
fn play_all(place: Place, count: u64) {
    if let Some(seed) = number("TASKBUS_SEED") {
        play(seed, place, Sabotage::None);
        return;
    }
    let mut all = Told::default();
    for seed in 1..=count * number("TASKBUS_TEST_TIMES").unwrap_or(1) {
        all.add(&play(seed, place, Sabotage::None));
    }
    println!("{place:?}: {all:?}");
    let seen =
        [all.claimed, all.reclaimed, all.late, all.repeated, all.crashed, all.completed, all.delivered, all.failed];
    assert!(seen.iter().all(|count| *count > 20), "something hardly came up: {all:?}");
}

#[test]
fn memory_holds_under_every_seed() {
    play_all(Place::Memory, MEMORY_SEEDS);
}

#[test]
fn sqlite_holds_under_every_seed() {
    play_all(Place::Sqlite, SQLITE_SEEDS);
}

/// Every answer, to the letter, on any store: nothing but the seed decides.
#[test]
fn one_seed_is_one_history() {
    for seed in 1..=10 {
        let once = play(seed, Place::Memory, Sabotage::None).history;
        assert_eq!(once, play(seed, Place::Memory, Sabotage::None).history, "seed {seed} again");
        assert_eq!(once, play(seed, Place::Sqlite, Sabotage::None).history, "seed {seed} on another store");
        assert_ne!(once, play(seed + 1, Place::Memory, Sabotage::None).history, "another seed");
    }
}

/// Each store that does one thing wrong is found out within a few seeds.
#[test]
fn a_store_that_goes_wrong_is_found_out() {
    for sabotage in Sabotage::ALL {
        let found = (1..=40)
            .find(|seed| catch_unwind(AssertUnwindSafe(|| World::new(*seed, Place::Memory, sabotage).run())).is_err());
        println!("{sabotage:?}: seed {found:?}");
        assert!(found.is_some(), "{sabotage:?} was never found out");
    }
}
