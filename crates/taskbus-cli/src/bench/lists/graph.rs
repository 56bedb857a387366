//! What is dear because of its graph: a dependency that turns the order of a whole list around, and completing a task
//! that a thousand wait for. Both are told in milliseconds.
//!
//! The worst dependency joins two chains, each half the list, so that what was first has to come behind all of the other;
//! and then the other way round.

use std::path::Path;
use std::time::{Duration, Instant};

use taskbus_core::command::{Command, Patch, Planned};
use taskbus_core::id::TaskId;
use taskbus_core::limits::PLAN_TASKS_MAX;

use super::field::{Field, Mode, plan};
use super::fill::plain;
use super::samples::short;
use crate::bench::bar::{Bar, Target, Unit};
use crate::bench::effort::Effort;
use crate::term::failure::Failure;
use crate::term::progress::Progress;

/// How many wait for the one.
const FAN_OUT: usize = 1_000;
const COMPLETE_MILLIS: f64 = 20.0;
const DEPENDENCY_MILLIS: f64 = 300.0;

/// A chain of tasks of which each waits for the one before.
struct Chain {
    first: TaskId,
    last: TaskId,
}

/// Measures both.
pub(in crate::bench) fn bars(effort: &Effort, dir: Option<&Path>) -> Result<Vec<Bar>, Failure> {
    let tasks = effort.graph();
    let place = crate::bench::place(dir)?;
    let field = Field::empty(place.path())?;
    let filling = Progress::new(tasks as u64);
    filling.note(&format!("joining two chains of {} tasks", tasks / 2));
    let one = chain(&field, tasks / 2, &|done| filling.set(done))?;
    let other = chain(&field, tasks / 2, &|done| filling.set((tasks / 2) as u64 + done))?;
    let worst = median((0..effort.long_samples).map(|turn| {
        let (task, blocker) = if turn % 2 == 0 { (&one, &other) } else { (&other, &one) };
        join(&field, &task.first, &blocker.last)
    }))?;
    let hub = fan(&field)?;
    let completed = median((0..effort.long_samples).map(|_| complete(&field, &hub)))?;
    let bar = |name: String, took: Duration, most| {
        Bar::new(name, took.as_secs_f64() * 1e3, Unit::Millis, Target::AtMost(most))
    };
    Ok(vec![
        bar(format!("add_dependency_worst_{}", short(tasks)), worst, DEPENDENCY_MILLIS),
        bar("complete_fan_out_1000".to_owned(), completed, COMPLETE_MILLIS),
    ])
}

fn chain(field: &Field, length: usize, done: &dyn Fn(u64)) -> Result<Chain, Failure> {
    let mut ends: Option<Chain> = None;
    for start in (0..length).step_by(PLAN_TASKS_MAX) {
        let numbers = start..length.min(start + PLAN_TASKS_MAX);
        let before = ends.as_ref().map(|ends| ends.last.to_string());
        let links = numbers.clone().map(|number| link(number, if number == start { before.clone() } else { None }));
        let mut ids = plan(&field.relaxed, &field.caller, links.collect())?;
        let last = ids.pop().expect("BUG: a chain has links");
        let first = ends.map_or_else(|| ids.first().unwrap_or(&last).clone(), |ends| ends.first);
        ends = Some(Chain { first, last });
        done(numbers.end as u64);
    }
    Ok(ends.expect("BUG: a chain has links"))
}

/// A link behind the one before it: that one's id, or its key in the same plan.
fn link(number: usize, before: Option<String>) -> Planned {
    let key = |number: usize| format!("k{number}");
    let in_plan = || (!number.is_multiple_of(PLAN_TASKS_MAX)).then(|| key(number - 1));
    let blocked_by = before.or_else(in_plan).into_iter().collect();
    Planned { key: Some(key(number)), blocked_by, ..plain(&format!("link {number}")) }
}

/// Joins two tasks, and parts them again.
fn join(field: &Field, task: &TaskId, blocker: &TaskId) -> Result<Duration, Failure> {
    let patch = Patch { add_blocked_by: vec![blocker.clone()], ..Patch::default() };
    let took = timed(field, task, patch)?;
    timed(field, task, Patch { remove_blocked_by: vec![blocker.clone()], ..Patch::default() })?;
    Ok(took)
}

fn fan(field: &Field) -> Result<TaskId, Failure> {
    let hub = plan(&field.relaxed, &field.caller, vec![plain("hub")])?.swap_remove(0);
    let behind = |number| Planned { blocked_by: vec![hub.to_string()], ..plain(&format!("behind {number}")) };
    plan(&field.relaxed, &field.caller, (0..FAN_OUT).map(behind).collect())?;
    Ok(hub)
}

/// Completes a task, and opens it again.
fn complete(field: &Field, id: &TaskId) -> Result<Duration, Failure> {
    let (id, _) = field.claim(Mode::Durable, id.clone(), None)?;
    let (id, took) = field.complete(Mode::Durable, id)?;
    field.reopen(Mode::Durable, id)?;
    Ok(took)
}

fn timed(field: &Field, id: &TaskId, patch: Patch) -> Result<Duration, Failure> {
    let began = Instant::now();
    field.execute(Mode::Durable, Command::Update(id.clone(), Box::new(patch)))?;
    Ok(began.elapsed())
}

fn median(times: impl Iterator<Item = Result<Duration, Failure>>) -> Result<Duration, Failure> {
    let mut times = times.collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
