//! `taskbus bench`: what each call costs on this machine, as a multiple of a bare loop that is as durable, measured turn
//! by turn in the same run. The targets are ours; a bar that is missed is said to be missed.
//!
//! Reads and calls that need not wait for the disk are compared with a commit that does not wait either.

mod bar;
mod count;
mod effort;
mod lists;
mod rank;
mod raw;
mod report;
mod several;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use self::effort::Effort;
use self::report::BenchReport;
use crate::options::{Bench, BenchPart, Globals};
use crate::term::failure::Failure;
use crate::term::report::Report;

/// The parts, in the order in which they are measured.
const PARTS: [BenchPart; 7] = [
    BenchPart::Rank,
    BenchPart::Lists,
    BenchPart::Graph,
    BenchPart::Drain,
    BenchPart::Durable,
    BenchPart::Crowd,
    BenchPart::Wake,
];

/// Measures.
pub(crate) fn run(_: &Globals, args: &Bench) -> Result<Box<dyn Report>, Failure> {
    if let Some(job) = &args.job {
        return Ok(Box::new(several::job::run(job)?));
    }
    let dir = args.dir.as_deref();
    if let (Some(call), Some(times)) = (args.count, args.times) {
        return Ok(Box::new(count::run(place(dir)?.path(), call, times)?));
    }
    let effort = Effort::of(args);
    let mut report = BenchReport::default();
    for part in PARTS.into_iter().filter(|part| args.parts.is_empty() || args.parts.contains(part)) {
        measure(part, &effort, dir, &mut report)?;
    }
    Ok(Box::new(report))
}

fn measure(part: BenchPart, effort: &Effort, dir: Option<&Path>, report: &mut BenchReport) -> Result<(), Failure> {
    let bars = match part {
        BenchPart::Rank => rank::bars()?,
        BenchPart::Lists => {
            let measured = lists::measure(effort, dir)?;
            report.raw = measured.raw;
            measured.bars
        }
        BenchPart::Graph => lists::graph::bars(effort, dir)?,
        BenchPart::Drain => several::drain::bars(effort, dir)?,
        BenchPart::Durable => several::hammer::durable(effort, dir)?,
        BenchPart::Crowd => several::hammer::crowds(effort, dir)?,
        BenchPart::Wake => several::wake::bars(effort, dir)?,
    };
    report.bars.extend(bars);
    Ok(())
}

/// A directory that is gone afterwards.
fn place(dir: Option<&Path>) -> Result<TempDir, Failure> {
    let parent = dir.map_or_else(std::env::temp_dir, PathBuf::from);
    let place = tempfile::Builder::new().prefix("taskbus-bench-").tempdir_in(&parent);
    place.map_err(|error| Failure::usage(format!("{} cannot be written: {error}", parent.display())))
}
