//! The list that is measured: filled with tasks of which some are ready, some done and most blocked, and the calls
//! that are timed on it, each through the engine as a surface would make it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use taskbus::answer::Answer;
use taskbus::engine::{Engine, Error, Limits, ListAsk, Registration, Request, Span};
use taskbus::store::View;
use taskbus::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbus_core::command::{Command, Draft, Patch, Planned};
use taskbus_core::id::TaskId;
use taskbus_core::limits;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::text::{Body, Subject};

use crate::term::failure::Failure;

/// Tasks in a group: a hub that others wait for, those others, a free task, and some that are done.
const GROUP: usize = 10;
/// How many wait for a hub.
const FAN_OUT: usize = 2;
/// How many wait for a large hub.
pub(super) const FAN_OUT_LARGE: usize = 10;

/// A filled list, and two engines on it: one that answers when a change is on disk, one that does not wait.
pub(super) struct Field {
    list: ListName,
    caller: Identity,
    durable: Engine,
    relaxed: Engine,
    /// Ready, each waited for by two.
    hubs: Vec<TaskId>,
    /// Ready, each waited for by ten.
    large_hubs: Vec<TaskId>,
    /// Ready, waited for by nobody.
    free: Vec<TaskId>,
}

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// On disk before the answer.
    Durable,
    /// As SQLite's NORMAL.
    Relaxed,
}

impl Field {
    /// A list of so many tasks in a directory; `filled` hears how many there are.
    pub(super) fn fill(dir: &Path, tasks: usize, samples: usize, filled: &dyn Fn(u64)) -> Result<Self, Failure> {
        let engine = |durability| -> Result<Engine, Failure> {
            let options = SqliteOptions { durability, ..SqliteOptions::default() };
            let limits = Limits { writes_per_second: u32::MAX, write_kib_per_second: u32::MAX, ..Limits::default() };
            Ok(Engine::new(Arc::new(SqliteStore::open(dir.join("bench.db"), options)?), limits))
        };
        let (durable, relaxed) = (engine(Durability::Full)?, engine(Durability::Relaxed)?);
        let wish = Registration { name: "bench".to_owned(), span: Span::Command, ..Registration::default() };
        let caller = durable.register(&wish)?.name;
        relaxed.register(&wish)?;
        let list = ListName::from_short("bench").expect("BUG: a plain word is a list name");
        durable.create_list(&caller, &list, ListRules::default())?;
        let (hubs, large_hubs, free) = (Vec::new(), Vec::new(), Vec::new());
        let mut field = Self { list, caller, durable, relaxed, hubs, large_hubs, free };
        field.plan_groups(tasks, filled)?;
        field.plan_large_hubs(samples)?;
        Ok(field)
    }

    fn plan_groups(&mut self, tasks: usize, filled: &dyn Fn(u64)) -> Result<(), Failure> {
        for start in (0..tasks).step_by(limits::PLAN_TASKS_MAX) {
            let numbers = start..tasks.min(start + limits::PLAN_TASKS_MAX);
            let ids = self.plan(numbers.clone().map(member).collect())?;
            for (number, id) in numbers.zip(ids) {
                match number % GROUP {
                    0 => self.hubs.push(id),
                    3 => self.free.push(id),
                    _ => {}
                }
            }
            filled(tasks.min(start + limits::PLAN_TASKS_MAX) as u64);
        }
        Ok(())
    }

    fn plan_large_hubs(&mut self, count: usize) -> Result<(), Failure> {
        let size = FAN_OUT_LARGE + 1;
        let at_once = limits::PLAN_TASKS_MAX / size;
        for start in (0..count).step_by(at_once) {
            let hubs = start..count.min(start + at_once);
            let tasks = hubs.flat_map(|hub| (0..size).map(move |at| large_member(hub, at))).collect();
            self.large_hubs.extend(self.plan(tasks)?.into_iter().step_by(size));
        }
        Ok(())
    }

    fn plan(&self, tasks: Vec<Planned>) -> Result<Vec<TaskId>, Failure> {
        match self.relaxed.execute(&self.request(Command::Plan(tasks)))? {
            Answer::Planned(tasks) => Ok(tasks.into_iter().map(|task| task.id).collect()),
            _ => unreachable!("BUG: a plan answers with its tasks"),
        }
    }

    /// Adds a task that waits for two others.
    pub(super) fn create(&self, mode: Mode, turn: usize) -> Result<Duration, Error> {
        let last = self.free.len() - 1 - turn % (self.free.len() / 2);
        let blocked_by = vec![self.free[last].clone(), self.free[last - 1].clone()];
        let draft = Draft { blocked_by, ..draft(&format!("late task {turn}")) };
        self.time(mode, &self.request(Command::Create(Box::new(draft))))
    }

    /// Claims a task by its id; the tasks are taken from the end of the list.
    pub(super) fn claim(&mut self, mode: Mode, hub: Hub) -> Result<(TaskId, Duration), Error> {
        let hubs = if hub == Hub::Large { &mut self.large_hubs } else { &mut self.hubs };
        let id = hubs.pop().expect("BUG: there are more hubs than samples");
        let patch = Patch::claim(self.caller.clone(), None);
        let took = self.time(mode, &self.request(Command::Update(id.clone(), Box::new(patch))))?;
        Ok((id, took))
    }

    /// Completes a task.
    pub(super) fn complete(&self, mode: Mode, id: TaskId) -> Result<Duration, Error> {
        self.time(mode, &self.request(Command::Update(id, Box::new(Patch::complete(None)))))
    }

    /// Takes the first ready task.
    pub(super) fn next(&self, mode: Mode) -> Result<Duration, Error> {
        self.time(mode, &self.request(Command::Next(Box::default())))
    }

    /// Completes nothing and finds nothing expired: what every call pays for the dead.
    pub(super) fn tick(&self) -> Result<Duration, Error> {
        let began = Instant::now();
        self.relaxed.tick()?;
        Ok(began.elapsed())
    }

    /// Reads a page of 50.
    pub(super) fn page(&self, view: View, cursor: Option<&String>) -> Result<(Duration, Option<String>), Error> {
        let ask = ListAsk { view, limit: Some(50), cursor: cursor.cloned(), ..ListAsk::default() };
        let began = Instant::now();
        let page = self.relaxed.list(None, &self.list, &ask)?;
        Ok((began.elapsed(), page.next))
    }

    fn time(&self, mode: Mode, request: &Request) -> Result<Duration, Error> {
        let engine = if mode == Mode::Durable { &self.durable } else { &self.relaxed };
        let began = Instant::now();
        engine.execute(request)?;
        Ok(began.elapsed())
    }

    fn request(&self, command: Command) -> Request {
        let names_task = matches!(command, Command::Update(..));
        let list = (!names_task).then(|| self.list.clone());
        Request { caller: self.caller.clone(), list, command, key: None }
    }
}

/// Which kind of hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hub {
    /// Two wait for it.
    Small,
    /// Ten wait for it.
    Large,
}

fn member(number: usize) -> Planned {
    let (group, place) = (number / GROUP, number % GROUP);
    let key = |place: usize| format!("g{group}.{place}");
    let blocked_by = match place {
        1..=FAN_OUT => vec![key(0)],
        9 => vec![key(3)],
        _ => Vec::new(),
    };
    Planned {
        key: Some(key(place)),
        draft: draft(&format!("task {number}")),
        parent: (place > 3 && place < 9).then(|| key(0)),
        blocked_by,
        done: place > 3 && place < 9,
    }
}

fn large_member(hub: usize, at: usize) -> Planned {
    let key = |at: usize| format!("h{hub}.{at}");
    let blocked_by = if at == 0 { Vec::new() } else { vec![key(0)] };
    Planned { key: Some(key(at)), draft: draft(&format!("hub {hub} {at}")), parent: None, blocked_by, done: false }
}

fn draft(subject: &str) -> Draft {
    let description = Body::new(format!("What there is to say about {subject}, in a sentence or two. ").repeat(3));
    let description = Some(description.expect("BUG: a short text is a description"));
    Draft { description, ..Draft::new(Subject::new(subject).expect("BUG: a short line is a subject")) }
}
