//! `taskbus bench`: what each call costs on this machine, as a multiple of a bare SQLite transaction that is as
//! durable, measured turn by turn in the same run. The targets are ours; a bar that is missed is said to be missed.
//!
//! Reads and calls that need not wait for the disk are compared with a commit that does not wait either.

mod count;
mod field;
mod mail;
mod raw;
mod report;
mod samples;

use std::path::{Path, PathBuf};

use taskbus::engine::Error;
use taskbus::store::View;
use tempfile::TempDir;

use self::field::{Field, Hub, Mode};
use self::mail::Mail;
use self::raw::Raw;
use self::report::BenchReport;
use self::samples::{Name, Samples};
use crate::options::{Bench, Globals};
use crate::term::failure::Failure;
use crate::term::progress::Progress;
use crate::term::report::Report;

/// Sizes of the list; the last one is left out when it must be quick.
const SIZES: [u32; 3] = [1_000, 10_000, 100_000];
/// Samples at each size: at most so many, and not so many that the list runs out of ready tasks.
const SAMPLES_MAX: usize = 200;
const TASKS_PER_SAMPLE: usize = 40;

/// A size of the list.
#[derive(Clone, Copy, Debug)]
struct Size {
    tasks: usize,
    samples: usize,
}

impl Size {
    fn of(tasks: u32) -> Self {
        let tasks = tasks as usize;
        Self { tasks, samples: SAMPLES_MAX.min(tasks / TASKS_PER_SAMPLE) }
    }
}

fn sizes(args: &Bench) -> Vec<Size> {
    let sizes = match (args.sizes.as_slice(), args.quick) {
        ([], false) => &SIZES[..],
        ([], true) => &SIZES[..SIZES.len() - 1],
        (given, _) => given,
    };
    sizes.iter().copied().map(Size::of).collect()
}

/// Measures.
pub(crate) fn run(_: &Globals, args: &Bench) -> Result<Box<dyn Report>, Failure> {
    if let (Some(call), Some(times)) = (args.count, args.times) {
        return Ok(Box::new(count::run(place(args.dir.as_deref())?.path(), call, times)?));
    }
    let sizes = sizes(args);
    let total = sizes.iter().map(|size| 2 * size.tasks + size.samples).sum::<usize>() as u64;
    let progress = Progress::new(total);
    let mut samples = Samples::default();
    let mut before = 0;
    for size in &sizes {
        let done = |steps: u64| progress.set(before + steps);
        measure(*size, args.dir.as_deref(), &mut samples, &progress, &done)?;
        before += (2 * size.tasks + size.samples) as u64;
    }
    drop(progress);
    Ok(Box::new(BenchReport::new(&samples, &sizes.iter().map(|size| size.tasks).collect::<Vec<_>>())))
}

/// A directory that is gone afterwards.
fn place(dir: Option<&Path>) -> Result<TempDir, Failure> {
    let parent = dir.map_or_else(std::env::temp_dir, PathBuf::from);
    let place = tempfile::Builder::new().prefix("taskbus-bench-").tempdir_in(&parent);
    place.map_err(|error| Failure::usage(format!("{} cannot be written: {error}", parent.display())))
}

fn measure(
    size: Size,
    dir: Option<&Path>,
    samples: &mut Samples,
    progress: &Progress,
    done: &dyn Fn(u64),
) -> Result<(), Failure> {
    let place = place(dir)?;
    progress.doing(&format!("filling a list with {} tasks", size.tasks));
    let mut field = Field::fill(place.path(), size.tasks, 2 * size.samples, done)?;
    let mut raw = Raw::open(place.path())?;
    progress.doing(&format!("measuring with {} tasks", size.tasks));
    let mut cursor = None;
    for turn in 0..size.samples {
        for mode in [Mode::Durable, Mode::Relaxed] {
            writes(&mut field, &mut raw, mode, size.tasks, turn, samples)?;
        }
        cursor = reads(&field, size.tasks, cursor.as_ref(), samples)?;
        done((size.tasks + turn) as u64);
    }
    deliveries(size, place.path(), samples, progress, &|messages| done((size.tasks + size.samples) as u64 + messages))
}

/// The next batch of many readers of one channel.
fn deliveries(
    size: Size,
    dir: &Path,
    samples: &mut Samples,
    progress: &Progress,
    filled: &dyn Fn(u64),
) -> Result<(), Failure> {
    progress.doing(&format!("filling a channel with {} messages", size.tasks));
    for took in Mail::fill(dir, size.tasks, filled)?.receive()? {
        samples.add(Name::Receive, Mode::Relaxed, size.tasks, took);
    }
    Ok(())
}

/// One of each call that writes, with bare commits in between.
fn writes(
    field: &mut Field,
    raw: &mut Raw,
    mode: Mode,
    tasks: usize,
    turn: usize,
    samples: &mut Samples,
) -> Result<(), Failure> {
    // The other engine has written meanwhile: what is read anew because of that is not what is to be measured.
    field.create(mode, turn)?;
    raw.turn(mode)?;
    let mut bare = |samples: &mut Samples| -> Result<(), Failure> {
        samples.add(Name::Raw, mode, tasks, raw.turn(mode)?);
        Ok(())
    };
    let created = field.create(mode, turn)?;
    bare(samples)?;
    let (small, claimed) = field.claim(mode, Hub::Small)?;
    bare(samples)?;
    let completed = field.complete(mode, small)?;
    bare(samples)?;
    let (large, _) = field.claim(mode, Hub::Large)?;
    let completed_large = field.complete(mode, large)?;
    bare(samples)?;
    let taken = field.next(mode)?;
    bare(samples)?;
    samples.add(Name::Create, mode, tasks, created);
    samples.add(Name::Claim, mode, tasks, claimed);
    samples.add(Name::Complete, mode, tasks, completed);
    samples.add(Name::CompleteLarge, mode, tasks, completed_large);
    samples.add(Name::Next, mode, tasks, taken);
    Ok(())
}

/// One of each call that reads; pages are read on and on, so that not only the first one is measured.
fn reads(field: &Field, tasks: usize, cursor: Option<&String>, samples: &mut Samples) -> Result<Option<String>, Error> {
    let (page, next) = field.page(View::Tree, cursor)?;
    samples.add(Name::Page, Mode::Relaxed, tasks, page);
    samples.add(Name::ReadyPage, Mode::Relaxed, tasks, field.page(View::Ready, None)?.0);
    samples.add(Name::Tick, Mode::Relaxed, tasks, field.tick()?);
    Ok(next)
}
