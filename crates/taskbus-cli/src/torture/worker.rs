//! `torture-worker`: a process of the torture. What it is to do comes as JSON on its command line; what it does stands in
//! its log, so that it may be killed at any moment.

use std::path::PathBuf;

use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use taskbus_core::name::Identity;

use super::deed::Deed;
use super::hand::Hand;
use super::hand::library::Library;
use super::life::{Death, Life, carry_out};
use super::mind::now_ms;
use super::race;
use super::record::{Begin, Log, Number, left_open, nanos};
use super::rude;
use super::told::Told;
use crate::term::failure::Failure;

/// How long a sleeper holds what it takes, in milliseconds.
pub(super) const SLEEPER_LEASE_MS: i64 = 200;

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    /// Where the store is.
    pub(super) store: PathBuf,
    /// Where to write down what it does.
    pub(super) log: PathBuf,
    /// The seed of the run.
    pub(super) seed: u64,
    /// Which client it is.
    pub(super) client: u64,
    /// How often it had been started before.
    pub(super) life: u64,
    /// Its name.
    pub(super) name: String,
    /// Those it may write to.
    pub(super) others: Vec<Identity>,
    /// What it does.
    pub(super) part: Part,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// Everything, until it is killed.
    Storm,
    /// Takes a task, freezes beyond its lease, and then writes under its old claim.
    Sleeper,
    /// Takes the store to itself, and is stopped.
    Holder,
    /// Writes until its files may not grow any more.
    Cramped,
    /// At the word claims a task, or writes as fast as it can and tells how long each write took.
    Racer,
}

/// Does it.
pub(super) fn work(orders: &Orders) -> Result<(), Failure> {
    match orders.part {
        Part::Holder => rude::hold_and_stop(orders),
        Part::Cramped => rude::cramp(Library::open(&orders.store, &orders.name)?, orders),
        Part::Storm | Part::Sleeper | Part::Racer => work_with(Library::open(&orders.store, &orders.name)?, orders),
    }
}

/// The same by any hand.
pub(super) fn work_with(hand: impl Hand, orders: &Orders) -> Result<(), Failure> {
    if orders.part == Part::Racer {
        return race::run(hand, orders.client).map_err(|error| Failure::machine("the race cannot be heard", error));
    }
    let open = left_open(&orders.log).map_err(|error| Failure::machine("the log cannot be read", error))?;
    let mut log = Log::open(&orders.log).map_err(|error| Failure::machine("the log cannot be opened", error))?;
    let died = match orders.part {
        Part::Sleeper => sleep(hand, &mut log, orders),
        _ => storm(hand, &mut log, orders, open),
    };
    died.map_err(Failure::machine_error)
}

fn storm(hand: impl Hand, log: &mut Log, orders: &Orders, open: Option<Begin>) -> Result<(), Death> {
    Life::begin(hand, log, orders.seed, orders.client, orders.life, &orders.others).live(open, || false)
}

/// Takes a task under a short lease, stops itself until the lease is over, and then tries three times to write.
fn sleep(mut hand: impl Hand, log: &mut Log, orders: &Orders) -> Result<(), Death> {
    let mut number = Number { client: orders.client, life: orders.life, deed: 0 };
    loop {
        let until = now_ms() + SLEEPER_LEASE_MS;
        let take = begin(&hand, &mut number, Deed::Next { count: 1, until, complete: None }, false);
        let Told::Wrote(tasks) = carry_out(&mut hand, log, &take)? else {
            let add = begin(&hand, &mut number, Deed::Plan { tasks: 4 }, false);
            carry_out(&mut hand, log, &add)?;
            continue;
        };
        // Whoever started this process sees that it has stopped, waits for longer than the lease, and wakes it.
        let _stopped = kill_process(getpid(), Signal::STOP);
        let Some((id, fence)) = tasks.first().and_then(|task| Some((task.id.clone(), task.fence?))) else { continue };
        let is_over = now_ms() > until;
        for deed in late_deeds(&id, fence) {
            let late = begin(&hand, &mut number, deed, is_over);
            carry_out(&mut hand, log, &late)?;
        }
    }
}

fn late_deeds(id: &taskbus_core::id::TaskId, fence: u64) -> [Deed; 3] {
    [
        Deed::Done { id: id.clone(), fence: Some(fence) },
        Deed::Renew { id: id.clone(), fence, until: now_ms() + 10 * SLEEPER_LEASE_MS },
        Deed::Edit { id: id.clone(), fence: Some(fence), force: false },
    ]
}

fn begin(hand: &impl Hand, number: &mut Number, deed: Deed, is_wrong: bool) -> Begin {
    let begin = Begin { number: *number, at: nanos(), caller: hand.caller().clone(), deed, key: None, is_wrong };
    number.deed += 1;
    begin
}
