//! What one process of the bench does, given as an argument: it gets ready and says so, waits for the word to begin,
//! and says what came of it, one JSON value a line.

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{drain, notice, wait, write};
use crate::bench::lists::field::Mode;
use crate::bench::raw::{Flush, Raw};
use crate::term::failure::Failure;
use crate::term::report::Report;

/// The word to begin.
pub(super) const GO: &str = "go";

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Job {
    /// Take tasks and complete them until there are none, so many at once.
    Drain { store: PathBuf, worker: usize, batch: usize, durable: bool },
    /// Make so many bare transactions.
    Bare { dir: PathBuf, count: usize, durable: bool },
    /// Claim and release one task for so long.
    Write { store: PathBuf, worker: usize, time: Duration, durable: bool },
    /// Make bare transactions for so long.
    BareWrite { dir: PathBuf, time: Duration, flush: Flush },
    /// Write to a file and flush it for so long.
    Sync { file: PathBuf, time: Duration },
    /// Wait for a message, each time anew.
    Wait { store: PathBuf, worker: usize },
    /// Look every 10 ms whether the store has changed, each time anew.
    Poll { store: PathBuf },
    /// Hear the system's notice that a bare file has changed, each time anew.
    Notice { file: PathBuf },
    /// Wait for a message for so long that does not come.
    Idle { store: PathBuf, worker: usize, time: Duration },
}

impl Job {
    /// As an argument.
    pub(super) fn to_words(&self) -> String {
        serde_json::to_string(self).expect("BUG: a job has a JSON form")
    }
}

/// What a process of the bench prints at its end: nothing.
pub(in crate::bench) struct Quiet;

impl Report for Quiet {
    fn json(&self) -> Map<String, Value> {
        Map::new()
    }

    fn words(&self, _: Option<usize>) -> String {
        String::new()
    }

    fn is_silent(&self) -> bool {
        true
    }
}

/// Does a job.
pub(in crate::bench) fn run(words: &str) -> Result<Quiet, Failure> {
    let job = serde_json::from_str(words).map_err(|error| Failure::usage(format!("this is no job: {error}")))?;
    match job {
        Job::Drain { store, worker, batch, durable } => drain::work(&store, worker, batch, mode(durable)),
        Job::Bare { dir, count, durable } => bare(&dir, count, mode(durable)),
        Job::Write { store, worker, time, durable } => write::work(&store, worker, time, mode(durable)),
        Job::BareWrite { dir, time, flush } => write::bare(&dir, time, flush),
        Job::Sync { file, time } => write::sync(&file, time),
        Job::Wait { store, worker } => wait::work(&store, worker),
        Job::Poll { store } => wait::poll(&store),
        Job::Notice { file } => notice::work(&file),
        Job::Idle { store, worker, time } => wait::idle(&store, worker, time),
    }?;
    Ok(Quiet)
}

fn mode(durable: bool) -> Mode {
    if durable { Mode::Durable } else { Mode::Relaxed }
}

fn bare(dir: &std::path::Path, count: usize, mode: Mode) -> Result<(), Failure> {
    let mut raw = Raw::join(dir, Flush::Normal)?;
    ready()?;
    for _ in 0..count {
        raw.turn(mode)?;
    }
    say(&count)
}

/// Says that all is ready, and waits for the word to begin.
pub(super) fn ready() -> Result<(), Failure> {
    say(&())?;
    if heard_go()? { Ok(()) } else { Err(Failure::Machine("the bench is gone".to_owned())) }
}

/// Waits for the word to begin; false when there is none to come.
pub(super) fn heard_go() -> Result<bool, Failure> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::machine("the bench cannot be heard", error))?;
    Ok(line.trim_end() == GO)
}

/// Says something to the bench.
pub(super) fn say<T: Serialize>(word: &T) -> Result<(), Failure> {
    let word = serde_json::to_string(word).expect("BUG: what a process of the bench says has a JSON form");
    let mut output = io::stdout().lock();
    writeln!(output, "{word}")
        .and_then(|()| output.flush())
        .map_err(|error| Failure::machine("the bench does not listen", error))
}
