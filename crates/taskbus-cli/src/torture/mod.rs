//! `taskbus torture`: what becomes of a store when many processes work on it and are killed, frozen and raced, checked
//! from what they were told and from what is stored. It works on a store of its own, on the disk that is to be tested.
//!
//! ```text
//!  seed ─▶ mind, dice ─▶ deed ─▶ hand (library or server) ─▶ told
//!                          └─▶ record: a log that survives its writer ─▶ collect ─▶ checker ─▶ report
//!  storm kills and freezes those who do it; race has many do the same
//! ```

mod checker;
mod collect;
mod deed;
mod dice;
mod forge;
mod hand;
mod life;
mod mind;
mod place;
mod power;
mod race;
mod record;
mod report;
mod round;
mod rude;
#[cfg(test)]
mod sabotage_tests;
mod storm;
mod told;
mod worker;

use self::deed::Deed;
use self::place::Place;
use self::report::TortureReport;
use self::worker::Orders;
use crate::options::{Globals, Torture, TortureWorker};
use crate::term::failure::Failure;
use crate::term::progress::Progress;
use crate::term::report::Report;

/// How long it takes when nothing is said, in seconds; a longer torture is made of rounds of this length.
const SECONDS: u32 = 60;
/// The shortest last round.
const SECONDS_MIN: u32 = 10;

/// What needs a shim between a process and its files, which does not ship.
const ELSEWHERE: [(&str, &str); 2] = [
    ("failing calls (I/O errors, no space, half writes)", "cargo nextest run -p taskbus -E 'binary(faults)'"),
    ("power cuts that lose what was not synced", "cargo nextest run -p taskbus -E 'binary(faults)'"),
];

/// A task of no importance.
const NEW: Deed = Deed::Add { parent: None, blocked_by: Vec::new(), before: None };

/// Runs the torture.
pub(crate) fn run(globals: &Globals, args: &Torture) -> Result<Box<dyn Report>, Failure> {
    let seconds = args.minutes.map_or(args.seconds.unwrap_or(SECONDS), |minutes| minutes * 60);
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let progress = Progress::new(u64::from(seconds));
    let mut report = TortureReport {
        seed,
        replay: replay_line(globals, seconds, seed),
        phases: Vec::new(),
        elsewhere: ELSEWHERE.to_vec(),
        evidence: None,
    };
    for (round, seconds) in (0..).zip(rounds(seconds)) {
        let seed = seed.wrapping_add(round);
        let place = Place::new(globals.store.as_deref(), seed)?;
        progress.note(&format!("seed {seed}, in {}", place.path().display()));
        let before = u64::from(SECONDS) * round;
        let phases = round::run(&place, seconds, &|done, what| {
            progress.set(before + done);
            progress.doing(what);
        })?;
        report.add(phases);
        if !report.ok() {
            report.replay = replay_line(globals, seconds, seed);
            report.seed = seed;
            report.evidence = Some(place.keep().display().to_string());
            break;
        }
    }
    Ok(Box::new(report))
}

/// A long torture is made of rounds, each with a store and a seed of its own, which can be run again alone.
fn rounds(seconds: u32) -> Vec<u32> {
    let (whole, rest) = (seconds / SECONDS, seconds % SECONDS);
    let mut rounds: Vec<u32> = std::iter::repeat_n(SECONDS, whole as usize).collect();
    rounds.extend((rest >= SECONDS_MIN || rounds.is_empty()).then_some(rest));
    rounds
}

/// Runs one worker.
pub(crate) fn work(args: &TortureWorker) -> Result<(), Failure> {
    let orders: Orders = serde_json::from_str(&args.orders).map_err(Failure::usage)?;
    worker::work(&orders)
}

fn fresh_seed() -> u64 {
    record::nanos() % 1_000_000_000
}

fn replay_line(globals: &Globals, seconds: u32, seed: u64) -> String {
    let store = globals.store.as_ref().map_or_else(String::new, |store| format!(" --store {}", store.display()));
    format!("taskbus torture --seconds {seconds} --seed {seed}{store}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_torture_is_made_of_rounds() {
        assert_eq!(rounds(10), [10]);
        assert_eq!(rounds(60), [60]);
        assert_eq!(rounds(65), [60]);
        assert_eq!(rounds(90), [60, 30]);
        assert_eq!(rounds(1_800).len(), 30);
    }
}
