//! What was timed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::field::Mode;

/// What was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// A bare transaction.
    Raw,
    /// Adding a task with two blockers.
    Create,
    /// Claiming a task by id.
    Claim,
    /// The same with a key, of which a receipt is kept.
    ClaimKeyed,
    /// Taking the first ready task.
    Next,
    /// The same with a key.
    NextKeyed,
    /// Completing a task that two wait for.
    Complete,
    /// Completing a task that ten wait for.
    CompleteLarge,
    /// Having a task wait for an earlier one.
    AddBlocker,
    /// A page of 50 in tree order.
    Page,
    /// A page of 50 ready tasks.
    ReadyPage,
    /// Asking the store for the abandoned when there are none.
    Scan,
    /// The same, and the read around it.
    ScanRead,
    /// The whole tick of the maintenance with nothing to do.
    Tick,
    /// Searching for a rare word.
    Search,
    /// Opening the store and taking the first ready task.
    Open,
    /// Receiving the next 100 messages, with 50 readers.
    Receive,
}

/// Every time that was taken.
#[derive(Debug, Default)]
pub(super) struct Samples(BTreeMap<(usize, Name, bool), Vec<Duration>>);

impl Samples {
    /// Adds a time taken on a list of so many tasks.
    pub(super) fn add(&mut self, name: Name, mode: Mode, tasks: usize, took: Duration) {
        self.0.entry((tasks, name, mode == Mode::Durable)).or_default().push(took);
    }

    /// The median.
    pub(super) fn median(&self, name: Name, mode: Mode, tasks: usize) -> Option<Duration> {
        let mut times = self.0.get(&(tasks, name, mode == Mode::Durable))?.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }
}

/// `1k`, `10k`, `1m`; a number that is not round is written out.
pub(in crate::bench) fn short(tasks: usize) -> String {
    match tasks {
        _ if tasks > 0 && tasks.is_multiple_of(1_000_000) => format!("{}m", tasks / 1_000_000),
        _ if tasks > 0 && tasks.is_multiple_of(1_000) => format!("{}k", tasks / 1_000),
        _ => tasks.to_string(),
    }
}
