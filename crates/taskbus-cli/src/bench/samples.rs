//! What was measured, and the bars made of it.

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
    /// Taking the first ready task.
    Next,
    /// Completing a task that two wait for.
    Complete,
    /// Completing a task that ten wait for.
    CompleteLarge,
    /// A page of 50 in tree order.
    Page,
    /// A page of 50 ready tasks.
    ReadyPage,
    /// Looking for the abandoned when there are none.
    Tick,
    /// Receiving the next 100 messages, with 50 readers.
    Receive,
}

/// A bar: a figure and what it should be at most.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    /// What, and at which size.
    pub(super) name: String,
    /// The figure.
    pub(super) value: f64,
    /// At most.
    pub(super) target: f64,
}

impl Bar {
    /// Whether it is as it should be.
    pub(super) fn met(&self) -> bool {
        self.value <= self.target
    }
}

/// What a call may cost, as a multiple of a bare transaction.
struct Target {
    name: Name,
    word: &'static str,
    mode: Mode,
    at_most: f64,
}

const fn target(name: Name, word: &'static str, mode: Mode, at_most: f64) -> Target {
    Target { name, word, mode, at_most }
}

const TARGETS: [Target; 13] = [
    target(Name::Create, "create", Mode::Durable, 8.0),
    target(Name::Claim, "claim", Mode::Durable, 5.0),
    target(Name::Next, "next", Mode::Durable, 5.0),
    target(Name::Complete, "complete", Mode::Durable, 8.0),
    target(Name::CompleteLarge, "complete_fan_out_10", Mode::Durable, 15.0),
    target(Name::Create, "create_relaxed", Mode::Relaxed, 8.0),
    target(Name::Claim, "claim_relaxed", Mode::Relaxed, 5.0),
    target(Name::Next, "next_relaxed", Mode::Relaxed, 5.0),
    target(Name::Complete, "complete_relaxed", Mode::Relaxed, 8.0),
    target(Name::CompleteLarge, "complete_fan_out_10_relaxed", Mode::Relaxed, 15.0),
    target(Name::Page, "page", Mode::Relaxed, 8.0),
    target(Name::ReadyPage, "ready_page", Mode::Relaxed, 8.0),
    target(Name::Tick, "tick", Mode::Relaxed, 0.3),
];

/// How much a call may cost more on the largest list than on the smallest.
const GROWTH: [Target; 4] = [
    target(Name::Next, "next_relaxed", Mode::Relaxed, 1.5),
    target(Name::Page, "page", Mode::Relaxed, 4.0),
    target(Name::ReadyPage, "ready_page", Mode::Relaxed, 4.0),
    target(Name::Receive, "receive", Mode::Relaxed, 1.5),
];

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

    /// The bars, size by size, and then how things grow.
    pub(super) fn bars(&self, sizes: &[usize]) -> Vec<Bar> {
        let costs = sizes.iter().flat_map(|tasks| TARGETS.iter().filter_map(|target| self.cost(target, *tasks)));
        let ends = sizes.first().zip(sizes.last()).filter(|(small, large)| small != large);
        let growth =
            ends.into_iter().flat_map(|ends| GROWTH.iter().filter_map(move |target| self.growth(target, ends)));
        costs.chain(growth).collect()
    }

    fn cost(&self, target: &Target, tasks: usize) -> Option<Bar> {
        let took = self.median(target.name, target.mode, tasks)?;
        let raw = self.median(Name::Raw, target.mode, tasks)?;
        Some(bar(format!("{}_{}", target.word, short(tasks)), took, raw, target.at_most))
    }

    fn growth(&self, target: &Target, (small, large): (&usize, &usize)) -> Option<Bar> {
        let at = |tasks| self.median(target.name, target.mode, tasks);
        Some(bar(
            format!("{}_{}_to_{}", target.word, short(*large), short(*small)),
            at(*large)?,
            at(*small)?,
            target.at_most,
        ))
    }
}

fn bar(name: String, took: Duration, base: Duration, target: f64) -> Bar {
    let ratio = took.as_secs_f64() / base.as_secs_f64().max(f64::EPSILON);
    Bar { name, value: (ratio * 100.0).round() / 100.0, target }
}

/// `1k`, `10k`.
pub(super) fn short(tasks: usize) -> String {
    format!("{}k", tasks / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_medians_as_multiples() {
        let mut samples = Samples::default();
        for (raw, next) in [(10, 30), (90, 500), (11, 33), (9, 31), (12, 29)] {
            samples.add(Name::Raw, Mode::Relaxed, 1000, Duration::from_micros(raw));
            samples.add(Name::Next, Mode::Relaxed, 1000, Duration::from_micros(next));
            samples.add(Name::Next, Mode::Relaxed, 10_000, Duration::from_micros(2 * next));
        }
        let bars = samples.bars(&[1000, 10_000]);
        let expected = [("next_relaxed_1k", 2.82, 5.0, true), ("next_relaxed_10k_to_1k", 2.0, 1.5, false)];
        let found: Vec<_> = bars.iter().map(|bar| (bar.name.as_str(), bar.value, bar.target, bar.met())).collect();
        assert_eq!(found, expected);
    }
}
