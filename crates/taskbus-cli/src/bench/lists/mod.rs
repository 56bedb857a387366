//! What each call costs on lists of several sizes, turn by turn with a bare transaction, and how it grows. A few turns on
//! one list, then a few on the next: so what else the machine does hits the small lists and the large ones alike.

use std::path::Path;

use tempfile::TempDir;

use self::field::{Field, Mode};
use self::mail::{Mail, READERS};
use self::samples::{Name, Samples};
use super::bar::Bar;
use super::effort::Effort;
use super::raw::Raw;
use crate::term::failure::Failure;
use crate::term::progress::Progress;

pub(super) mod calls;
pub(super) mod field;
pub(super) mod fill;
pub(super) mod graph;
mod mail;
pub(super) mod samples;
mod targets;
mod turn;

/// Turns on one list before the next list has its.
const TURNS_AT_ONCE: usize = 10;
/// Largest channel: what is measured is whether a delivery grows with it.
const MESSAGES_MAX: usize = 100_000;

/// What was measured.
pub(super) struct Measured {
    /// The bars, size by size, and then how things grow.
    pub(super) bars: Vec<Bar>,
    /// A bare transaction at each size, in microseconds: on disk, and not waiting for it.
    pub(super) raw: Vec<(usize, f64, f64)>,
}

/// A list, the bare loop beside it, and the files of both.
struct Ground {
    tasks: usize,
    field: Field,
    raw: Raw,
    cursor: Option<String>,
    _place: TempDir,
}

/// Measures on lists of every size.
pub(super) fn measure(effort: &Effort, dir: Option<&Path>) -> Result<Measured, Failure> {
    let mut samples = Samples::default();
    let mut grounds = fill(effort, dir)?;
    let turns = Progress::new((effort.samples * grounds.len()) as u64);
    turns.note("measuring each call on each list");
    for start in (0..effort.samples).step_by(TURNS_AT_ONCE) {
        for ground in &mut grounds {
            for number in start..effort.samples.min(start + TURNS_AT_ONCE) {
                turn::turn(ground, number, &mut samples)?;
            }
        }
        turns.set(((start + TURNS_AT_ONCE).min(effort.samples) * effort.sizes.len()) as u64);
    }
    drop(turns);
    drop(grounds);
    deliveries(effort, dir, &mut samples)?;
    Ok(Measured { bars: targets::bars(&samples, &effort.sizes), raw: raw(&samples, &effort.sizes) })
}

fn fill(effort: &Effort, dir: Option<&Path>) -> Result<Vec<Ground>, Failure> {
    let filling = Progress::new(effort.sizes.iter().sum::<usize>() as u64);
    let mut before = 0;
    let mut grounds = Vec::new();
    for tasks in effort.sizes.iter().copied() {
        filling.note(&format!("filling a list with {tasks} tasks"));
        let place = super::place(dir)?;
        let mut field = Field::fill(place.path(), tasks, &|done| filling.set(before + done))?;
        field.occupy()?;
        let raw = Raw::open(place.path())?;
        grounds.push(Ground { tasks, field, raw, cursor: None, _place: place });
        before += tasks as u64;
    }
    Ok(grounds)
}

/// The next batch of many readers of each channel: one reader of each in turn, as with the lists.
fn deliveries(effort: &Effort, dir: Option<&Path>, samples: &mut Samples) -> Result<(), Failure> {
    let mut channels = Vec::new();
    for messages in effort.sizes.iter().copied().filter(|messages| *messages <= MESSAGES_MAX) {
        let filling = Progress::new(messages as u64);
        filling.note(&format!("filling a channel with {messages} messages"));
        let place = super::place(dir)?;
        let mail = Mail::fill(place.path(), messages, &|done| filling.set(done))?;
        channels.push((messages, mail, place));
    }
    for reader in 0..READERS {
        for (messages, mail, _) in &channels {
            samples.add(Name::Receive, Mode::Relaxed, *messages, mail.receive(reader)?);
        }
    }
    Ok(())
}

fn raw(samples: &Samples, sizes: &[usize]) -> Vec<(usize, f64, f64)> {
    let micros = |mode, tasks| samples.median(Name::Raw, mode, tasks).map_or(0.0, |took| took.as_secs_f64() * 1e6);
    sizes.iter().map(|tasks| (*tasks, micros(Mode::Durable, *tasks), micros(Mode::Relaxed, *tasks))).collect()
}
