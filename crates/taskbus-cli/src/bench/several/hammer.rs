//! Many processes that write to one store for a while: how many durable commits that gives beside bare loops, and, in
//! a crowd, whether everybody gets a share and nobody waits for long.

use std::path::{Path, PathBuf};

use super::job::Job;
use super::write::Wrote;
use super::{Crew, median};
use crate::bench::bar::{Bar, Target, Unit, ratio};
use crate::bench::effort::Effort;
use crate::bench::lists::field::Field;
use crate::bench::raw::{Flush, Raw};
use crate::term::failure::Failure;
use crate::term::progress::Progress;

/// Who makes durable commits.
const WRITERS: usize = 8;
/// The crowds.
const CROWDS: [usize; 2] = [8, 64];
/// What eight durable writers should make of a loop that flushes under the lock, and of eight bare flushes.
const TO_FULL: f64 = 2.0;
const TO_SYNC: f64 = 0.5;
/// The slowest of a crowd, to its fastest.
const SHARE: f64 = 0.4;
/// The worst wait, to that with SQLite's own handler.
const WAIT: f64 = 0.2;

/// Where they write.
struct Ground {
    store: PathBuf,
    dir: PathBuf,
    _field: Field,
    _raw: Raw,
    _place: tempfile::TempDir,
}

impl Ground {
    fn new(dir: Option<&Path>) -> Result<Self, Failure> {
        let place = crate::bench::place(dir)?;
        let (field, raw) = (Field::empty(place.path())?, Raw::open(place.path())?);
        let (store, dir) = (field.path.clone(), place.path().to_owned());
        Ok(Self { store, dir, _field: field, _raw: raw, _place: place })
    }
}

/// Durable commits of eight writers.
pub(in crate::bench) fn durable(effort: &Effort, dir: Option<&Path>) -> Result<Vec<Bar>, Failure> {
    let ground = Ground::new(dir)?;
    let time = effort.writing;
    let progress = Progress::new(effort.rounds as u64);
    progress.note(&format!("{WRITERS} processes write until it is on disk"));
    let (mut ours, mut to_full, mut to_sync) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..effort.rounds {
        let store = |worker| Job::Write { store: ground.store.clone(), worker, time, durable: true };
        let full = |_| Job::BareWrite { dir: ground.dir.clone(), time, flush: Flush::Full };
        let file = |worker: usize| Job::Sync { file: ground.dir.join(format!("file-{worker}")), time };
        let rates = [rate(&write(WRITERS, store)?), rate(&write(WRITERS, full)?), rate(&write(WRITERS, file)?)];
        ours.push(rates[0]);
        to_full.push(ratio(rates[0], rates[1]));
        to_sync.push(ratio(rates[0], rates[2]));
        progress.set(round as u64 + 1);
    }
    Ok(vec![
        Bar::at_least("durable_8_to_full", median(to_full), TO_FULL),
        Bar::at_least("durable_8_to_fdatasync", median(to_sync), TO_SYNC),
        Bar::figure("durable_8", median(ours), Unit::PerSecond),
    ])
}

/// Crowds that do nothing but write.
pub(in crate::bench) fn crowds(effort: &Effort, dir: Option<&Path>) -> Result<Vec<Bar>, Failure> {
    let ground = Ground::new(dir)?;
    let mut bars = Vec::new();
    for writers in CROWDS {
        let progress = Progress::new(effort.rounds as u64);
        progress.note(&format!("{writers} processes do nothing but write"));
        let mut seen = Vec::new();
        for round in 0..effort.rounds {
            seen.push(crowd(&ground, effort, writers)?);
            progress.set(round as u64 + 1);
        }
        bars.extend(crowd_bars(writers, &seen));
    }
    Ok(bars)
}

/// What one crowd did through the engine, and another one with SQLite's own handler.
struct Seen {
    ours: Vec<Wrote>,
    bare: Vec<Wrote>,
}

fn crowd(ground: &Ground, effort: &Effort, writers: usize) -> Result<Seen, Failure> {
    let time = effort.writing;
    let ours = |worker| Job::Write { store: ground.store.clone(), worker, time, durable: false };
    let bare = |_| Job::BareWrite { dir: ground.dir.clone(), time, flush: Flush::Normal };
    Ok(Seen { ours: write(writers, ours)?, bare: write(writers, bare)? })
}

fn crowd_bars(writers: usize, seen: &[Seen]) -> Vec<Bar> {
    let of = |figure: fn(&Seen) -> f64| median(seen.iter().map(figure).collect());
    let locked: u64 = seen.iter().flat_map(|seen| &seen.ours).map(|wrote| wrote.locked).sum();
    vec![
        Bar::at_least(format!("crowd_{writers}_share"), of(|seen| share(&seen.ours)), SHARE),
        Bar::new(format!("crowd_{writers}_locked"), locked as f64, Unit::Count, Target::AtMost(0.0)),
        Bar::at_most(
            format!("crowd_{writers}_worst_wait"),
            of(|seen| ratio(worst(&seen.ours), worst(&seen.bare))),
            WAIT,
        ),
        Bar::figure(format!("crowd_{writers}_worst_wait_ms"), of(|seen| worst(&seen.ours) / 1e3), Unit::Millis),
        Bar::figure(format!("crowd_{writers}_share_of_busy_handler"), of(|seen| share(&seen.bare)), Unit::Times),
        Bar::figure(format!("crowd_{writers}"), of(|seen| rate(&seen.ours)), Unit::PerSecond),
    ]
}

fn write(writers: usize, job: impl FnMut(usize) -> Job) -> Result<Vec<Wrote>, Failure> {
    Crew::start((0..writers).map(job))?.run()
}

fn rate(wrote: &[Wrote]) -> f64 {
    wrote.iter().map(Wrote::rate).sum()
}

fn worst(wrote: &[Wrote]) -> f64 {
    wrote.iter().map(|wrote| wrote.worst_micros).max().unwrap_or_default() as f64
}

/// The slowest of them, to the fastest.
fn share(wrote: &[Wrote]) -> f64 {
    let counts = || wrote.iter().map(|wrote| wrote.count as f64);
    ratio(counts().fold(f64::INFINITY, f64::min), counts().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_judged_by_its_slowest_and_its_longest_wait() {
        let wrote = |count, locked, worst_micros| Wrote { count, locked, worst_micros, micros: 1_000_000 };
        let seen = Seen {
            ours: vec![wrote(100, 0, 2_000), wrote(30, 1, 9_000)],
            bare: vec![wrote(1_000, 0, 90_000), wrote(0, 0, 1_000)],
        };
        let bars = crowd_bars(2, &[seen]);
        let found: Vec<_> = bars.iter().map(|bar| (bar.name.as_str(), bar.value, bar.met())).collect();
        let expected = [
            ("crowd_2_share", 0.3, Some(false)),
            ("crowd_2_locked", 1.0, Some(false)),
            ("crowd_2_worst_wait", 0.1, Some(true)),
            ("crowd_2_worst_wait_ms", 9.0, None),
            ("crowd_2_share_of_busy_handler", 0.0, None),
            ("crowd_2", 130.0, None),
        ];
        assert_eq!(found, expected);
    }
}
