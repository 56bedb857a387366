//! Four processes that take tasks and complete them until there are none, beside four that make as many bare
//! transactions: one for each claim and one for each completion.

use std::path::Path;
use std::time::{Duration, Instant};

use taskbus::answer::Answer;
use taskbus::engine::{Engine, Request};
use taskbus_core::command::{Command, Patch};
use taskbus_core::id::TaskId;
use taskbus_core::limits::PLAN_TASKS_MAX;
use taskbus_core::name::Identity;

use super::job::{Job, ready, say};
use super::{Crew, median};
use crate::bench::bar::{Bar, Unit, ratio};
use crate::bench::effort::Effort;
use crate::bench::lists::calls::next_of;
use crate::bench::lists::field::{Field, Mode, engine, list_name, plan, register};
use crate::bench::lists::fill::plain;
use crate::bench::raw::Raw;
use crate::term::failure::Failure;
use crate::term::progress::Progress;

const WORKERS: usize = 4;
/// Tasks that a worker completes and takes in one transaction.
const BATCH: usize = 8;
/// What a task takes apart: a transaction to claim it, and one to complete it.
const TRANSACTIONS: usize = 2;

/// A way to drain a list.
struct Way {
    word: &'static str,
    batch: usize,
    durable: bool,
    /// To the rate of the bare transactions.
    least: f64,
}

const WAYS: [Way; 4] = [
    Way { word: "drain_apart_relaxed", batch: 1, durable: false, least: 0.25 },
    Way { word: "drain_batches_of_8_relaxed", batch: BATCH, durable: false, least: 0.6 },
    Way { word: "drain_apart", batch: 1, durable: true, least: 0.25 },
    Way { word: "drain_batches_of_8", batch: BATCH, durable: true, least: 0.6 },
];

/// Measures each way.
pub(in crate::bench) fn bars(effort: &Effort, dir: Option<&Path>) -> Result<Vec<Bar>, Failure> {
    let progress = Progress::new((effort.rounds * WAYS.len()) as u64);
    progress.note(&format!("{WORKERS} processes drain a list of {} tasks", effort.drained));
    let mut times: [Vec<(f64, f64)>; WAYS.len()] = Default::default();
    for round in 0..effort.rounds {
        for (number, way) in WAYS.iter().enumerate() {
            let bare = bare(effort.drained, way.durable, dir)?;
            let ours = drain(effort.drained, way, dir)?;
            times[number].push((bare.as_secs_f64(), ours.as_secs_f64()));
            progress.set((round * WAYS.len() + number + 1) as u64);
        }
    }
    Ok(WAYS.iter().zip(times).flat_map(|(way, times)| way_bars(way, &times, effort.drained)).collect())
}

fn way_bars(way: &Way, times: &[(f64, f64)], tasks: usize) -> [Bar; 2] {
    let rates = median(times.iter().map(|(bare, ours)| ratio(*bare, *ours)).collect());
    let per_second = median(times.iter().map(|(_, ours)| ratio(tasks as f64, *ours)).collect());
    [Bar::at_least(way.word, rates, way.least), Bar::figure(format!("{}_tasks", way.word), per_second, Unit::PerSecond)]
}

fn bare(tasks: usize, durable: bool, dir: Option<&Path>) -> Result<Duration, Failure> {
    let place = crate::bench::place(dir)?;
    let _file = Raw::open(place.path())?;
    let count = TRANSACTIONS * tasks / WORKERS;
    let job = |_| Job::Bare { dir: place.path().to_owned(), count, durable };
    Ok(timed(job)?.0)
}

fn drain(tasks: usize, way: &Way, dir: Option<&Path>) -> Result<Duration, Failure> {
    let place = crate::bench::place(dir)?;
    let field = Field::empty(place.path())?;
    for start in (0..tasks).step_by(PLAN_TASKS_MAX) {
        let numbers = start..tasks.min(start + PLAN_TASKS_MAX);
        plan(&field.relaxed, &field.caller, numbers.map(|number| plain(&format!("task {number}"))).collect())?;
    }
    let (batch, durable) = (way.batch, way.durable);
    let job = |worker| Job::Drain { store: field.path.clone(), worker, batch, durable };
    let (took, done) = timed(job)?;
    if done == tasks {
        return Ok(took);
    }
    Err(Failure::Broken(format!("the workers completed {done} tasks of {tasks}: some were lost, or done twice")))
}

/// From the word to begin until the last has finished; and how much they did.
fn timed(job: impl FnMut(usize) -> Job) -> Result<(Duration, usize), Failure> {
    let mut crew = Crew::start((0..WORKERS).map(job))?;
    let began = Instant::now();
    let done: Vec<usize> = crew.run()?;
    Ok((began.elapsed(), done.into_iter().sum()))
}

/// One worker.
struct Worker {
    engine: Engine,
    name: Identity,
}

/// Takes tasks and completes them until there are none.
pub(super) fn work(store: &Path, worker: usize, batch: usize, mode: Mode) -> Result<(), Failure> {
    let engine = engine(store, mode, None)?;
    let name = register(&engine, &format!("worker {worker}"))?;
    let worker = Worker { engine, name };
    ready()?;
    let done = if batch == 1 { worker.apart()? } else { worker.in_batches(batch)? };
    say(&done)
}

impl Worker {
    /// A transaction for each claim and for each completion.
    fn apart(&self) -> Result<usize, Failure> {
        let mut done = 0;
        loop {
            let next = Request { list: Some(list_name()), ..self.request(next_of(1)) };
            let taken = taken(self.engine.execute(&next)?);
            let Some(id) = taken.into_iter().next() else { return Ok(done) };
            self.engine.execute(&self.request(complete(&id)))?;
            done += 1;
        }
    }

    /// One transaction for what is done and what comes next.
    fn in_batches(&self, batch: usize) -> Result<usize, Failure> {
        let (list, mut held, mut done) = (list_name(), Vec::new(), 0);
        loop {
            let commands = || held.iter().map(complete).chain([next_of(batch)]).collect();
            let mut together = self.engine.execute_together(&self.name, &list, &mut |_| Ok(commands()), None)?;
            done += held.len();
            held = together.answers.pop().map(taken).unwrap_or_default();
            if held.is_empty() {
                return Ok(done);
            }
        }
    }

    fn request(&self, command: Command) -> Request {
        Request { caller: self.name.clone(), list: None, command, key: None }
    }
}

fn complete(id: &TaskId) -> Command {
    Command::Update(id.clone(), Box::new(Patch::complete(None)))
}

fn taken(answer: Answer) -> Vec<TaskId> {
    match answer {
        Answer::Next(taken) => taken.tasks.into_iter().map(|task| task.id).collect(),
        _ => unreachable!("BUG: taking tasks answers with them"),
    }
}
