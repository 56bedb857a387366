//! Processes that do nothing but write for a while: through the engine, to a bare SQLite file, or to a bare file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use taskbus::engine::{Engine, Error, Request};
use taskbus::store::StoreError;
use taskbus_core::command::{Command, Patch};
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;

use super::job::{ready, say};
use crate::bench::lists::field::{Mode, engine, plan, register};
use crate::bench::lists::fill::plain;
use crate::bench::raw::{Flush, Raw};
use crate::term::failure::Failure;

/// What is written to a bare file as a log is written: a page behind the last one, until it is as long as the log of a
/// store gets, and then from its beginning.
const BLOCK: [u8; 4096] = [7; 4096];
const BLOCKS: u64 = 2048;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Wrote {
    /// How many writes.
    pub(super) count: u64,
    /// How many failed because others held the lock.
    pub(super) locked: u64,
    /// What the slowest one took, in microseconds.
    pub(super) worst_micros: u64,
    /// What all of them took, in microseconds.
    pub(super) micros: u64,
}

impl Wrote {
    /// Writes in a second.
    pub(super) fn rate(&self) -> f64 {
        self.count as f64 / (self.micros as f64 / 1e6)
    }
}

/// Whether a write came through the lock.
enum Came {
    Through,
    NotThrough,
}

/// Claims a task of its own and releases it, again and again.
pub(super) fn work(store: &Path, worker: usize, time: Duration, mode: Mode) -> Result<(), Failure> {
    let engine = engine(store, mode, None)?;
    let name = register(&engine, &format!("writer {worker}"))?;
    let task = plan(&engine, &name, vec![plain(&format!("task of writer {worker}"))])?.swap_remove(0);
    let mut holds = false;
    repeat(time, || change(&engine, &name, &task, &mut holds))
}

fn change(engine: &Engine, name: &Identity, task: &TaskId, holds: &mut bool) -> Result<Came, Failure> {
    let patch = if *holds { Patch::release() } else { Patch::claim(name.clone(), None) };
    let command = Command::Update(task.clone(), Box::new(patch));
    match engine.execute(&Request { caller: name.clone(), list: None, command, key: None }) {
        Ok(_) => {
            *holds = !*holds;
            Ok(Came::Through)
        }
        Err(Error::Store(StoreError::Busy { .. })) => Ok(Came::NotThrough),
        Err(error) => Err(error.into()),
    }
}

/// Makes bare transactions, with SQLite's own way of waiting for the lock.
pub(super) fn bare(dir: &Path, time: Duration, flush: Flush) -> Result<(), Failure> {
    let mut raw = Raw::join(dir, flush)?;
    repeat(time, || raw.turn(Mode::Relaxed).map(|_| Came::Through))
}

/// Writes to a file and flushes it: the least that can be on disk.
pub(super) fn sync(file: &Path, time: Duration) -> Result<(), Failure> {
    let failed = |error| Failure::machine("the bare file cannot be written", error);
    let file = File::create(file).map_err(failed)?;
    let mut number = 0;
    let mut write = || {
        let at = number % BLOCKS * BLOCK.len() as u64;
        number += 1;
        file.write_all_at(&BLOCK, at).and_then(|()| file.sync_data())
    };
    repeat(time, || write().map(|()| Came::Through).map_err(failed))
}

fn repeat(time: Duration, mut write: impl FnMut() -> Result<Came, Failure>) -> Result<(), Failure> {
    ready()?;
    let mut wrote = Wrote::default();
    let began = Instant::now();
    while began.elapsed() < time {
        let this = Instant::now();
        match write()? {
            Came::Through => wrote.count += 1,
            Came::NotThrough => wrote.locked += 1,
        }
        wrote.worst_micros = wrote.worst_micros.max(micros(this));
    }
    wrote.micros = micros(began);
    say(&wrote)
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
