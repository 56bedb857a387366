//! What each call may cost, and the bars made of what was measured.

use std::time::Duration;

use super::field::Mode;
use super::samples::{Name, Samples, short};
use crate::bench::bar::{Bar, Unit, ratio};

/// What a call may cost, as a multiple of a bare transaction or of itself on a smaller list.
struct Most {
    name: Name,
    word: &'static str,
    mode: Mode,
    times: f64,
}

const fn most(name: Name, word: &'static str, mode: Mode, times: f64) -> Most {
    Most { name, word, mode, times }
}

const COSTS: [Most; 19] = [
    most(Name::Create, "create", Mode::Durable, 8.0),
    most(Name::Claim, "claim", Mode::Durable, 7.0),
    most(Name::ClaimKeyed, "claim_keyed", Mode::Durable, 7.0),
    most(Name::Next, "next", Mode::Durable, 7.0),
    most(Name::NextKeyed, "next_keyed", Mode::Durable, 7.0),
    most(Name::Complete, "complete", Mode::Durable, 8.0),
    most(Name::CompleteLarge, "complete_fan_out_10", Mode::Durable, 15.0),
    most(Name::AddBlocker, "add_dependency", Mode::Durable, 5.0),
    most(Name::Create, "create_relaxed", Mode::Relaxed, 8.0),
    most(Name::Claim, "claim_relaxed", Mode::Relaxed, 7.0),
    most(Name::ClaimKeyed, "claim_keyed_relaxed", Mode::Relaxed, 7.0),
    most(Name::Next, "next_relaxed", Mode::Relaxed, 7.0),
    most(Name::NextKeyed, "next_keyed_relaxed", Mode::Relaxed, 7.0),
    most(Name::Complete, "complete_relaxed", Mode::Relaxed, 8.0),
    most(Name::CompleteLarge, "complete_fan_out_10_relaxed", Mode::Relaxed, 15.0),
    most(Name::AddBlocker, "add_dependency_relaxed", Mode::Relaxed, 5.0),
    most(Name::Page, "page", Mode::Relaxed, 8.0),
    most(Name::ReadyPage, "ready_page", Mode::Relaxed, 8.0),
    most(Name::Scan, "reclaim_scan", Mode::Relaxed, 0.3),
];

/// What is told as a multiple of a bare transaction, and nothing demanded of it.
const TOLD: [(Name, &str); 4] =
    [(Name::ScanRead, "reclaim_read"), (Name::Tick, "tick"), (Name::Search, "search"), (Name::Open, "open")];

/// How much more a call may cost on the largest list than on the smallest.
const GROWTH: [Most; 14] = [
    most(Name::Create, "create", Mode::Relaxed, 1.5),
    most(Name::Claim, "claim", Mode::Relaxed, 1.5),
    most(Name::ClaimKeyed, "claim_keyed", Mode::Relaxed, 1.5),
    most(Name::Next, "next", Mode::Relaxed, 1.5),
    most(Name::NextKeyed, "next_keyed", Mode::Relaxed, 1.5),
    most(Name::Complete, "complete", Mode::Relaxed, 1.5),
    most(Name::CompleteLarge, "complete_fan_out_10", Mode::Relaxed, 1.5),
    most(Name::AddBlocker, "add_dependency", Mode::Relaxed, 1.5),
    most(Name::Scan, "reclaim_scan", Mode::Relaxed, 1.5),
    most(Name::Search, "search", Mode::Relaxed, 1.5),
    most(Name::Open, "open", Mode::Relaxed, 1.5),
    most(Name::Page, "page", Mode::Relaxed, 4.0),
    most(Name::ReadyPage, "ready_page", Mode::Relaxed, 4.0),
    most(Name::Receive, "receive", Mode::Relaxed, 1.5),
];

/// The bars, size by size, and then how things grow.
pub(super) fn bars(samples: &Samples, sizes: &[usize]) -> Vec<Bar> {
    let costs = sizes.iter().flat_map(|tasks| COSTS.iter().filter_map(|most| cost(samples, most, *tasks)));
    let told = sizes.iter().flat_map(|tasks| TOLD.iter().filter_map(|what| figure(samples, what, *tasks)));
    let growth = GROWTH.iter().filter_map(|most| growth(samples, most, sizes));
    let received = sizes.iter().filter_map(|tasks| received(samples, *tasks));
    costs.chain(told).chain(received).chain(growth).collect()
}

/// There is no bare transaction beside a channel.
fn received(samples: &Samples, messages: usize) -> Option<Bar> {
    let took = samples.median(Name::Receive, Mode::Relaxed, messages)?;
    Some(Bar::figure(format!("receive_{}", short(messages)), took.as_secs_f64() * 1e6, Unit::Micros))
}

fn cost(samples: &Samples, most: &Most, tasks: usize) -> Option<Bar> {
    let took = samples.median(most.name, most.mode, tasks)?;
    let raw = samples.median(Name::Raw, most.mode, tasks)?;
    Some(Bar::at_most(format!("{}_{}", most.word, short(tasks)), times(took, raw), most.times))
}

fn figure(samples: &Samples, (name, word): &(Name, &str), tasks: usize) -> Option<Bar> {
    let took = samples.median(*name, Mode::Relaxed, tasks)?;
    let raw = samples.median(Name::Raw, Mode::Relaxed, tasks)?;
    Some(Bar::figure(format!("{word}_{}", short(tasks)), times(took, raw), Unit::Times))
}

/// From the smallest to the largest of the lists on which the call was measured.
fn growth(samples: &Samples, most: &Most, sizes: &[usize]) -> Option<Bar> {
    let mut measured = sizes.iter().filter_map(|tasks| Some((*tasks, samples.median(most.name, most.mode, *tasks)?)));
    let (small, low) = measured.next()?;
    let (large, high) = measured.next_back()?;
    let name = format!("{}_{}_to_{}", most.word, short(large), short(small));
    Some(Bar::at_most(name, times(high, low), most.times))
}

fn times(took: Duration, base: Duration) -> f64 {
    ratio(took.as_secs_f64(), base.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_medians_as_multiples() {
        let mut samples = Samples::default();
        for (raw, next) in [(10, 30), (90, 800), (11, 33), (9, 31), (12, 29)] {
            samples.add(Name::Raw, Mode::Relaxed, 1000, Duration::from_micros(raw));
            samples.add(Name::Next, Mode::Relaxed, 1000, Duration::from_micros(next));
            samples.add(Name::Next, Mode::Relaxed, 1_000_000, Duration::from_micros(2 * next));
        }
        let bars = bars(&samples, &[1000, 10_000, 1_000_000]);
        let expected = [("next_relaxed_1k", 2.82, Some(true)), ("next_1m_to_1k", 2.0, Some(false))];
        let found: Vec<_> = bars.iter().map(|bar| (bar.name.as_str(), bar.value, bar.met())).collect();
        assert_eq!(found, expected);
    }
}
