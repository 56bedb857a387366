//! `taskbus demo`: the main job on real input with real processes. It imports the plan in `examples/` into a fresh
//! list, starts worker processes that each speak MCP to a `taskbus mcp` of their own, kills some of them, and at the
//! end checks from the history that nothing was lost, done twice, or done in the wrong order.
//!
//! Read [`run`], then [`play`] for the course of it and [`verdict`] for what must hold.

mod crew;
mod play;
mod report;
mod tasks;
mod verdict;
mod worker;

use std::ffi::OsString;
use std::time::Instant;

use taskbus::answer::Answer;
use taskbus::engine::{Engine, Limits, ListAsk, Registration, Request, Span};
use taskbus::store::View;
use taskbus::store::sqlite::SqliteOptions;
use taskbus_core::command::{Command, Planned};
use taskbus_core::id::TaskId;
use taskbus_core::limits;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::ListRules;
use tempfile::TempDir;

use self::crew::{Crew, Workplace};
use self::play::Play;
use self::report::DemoReport;
use self::verdict::Record;
use crate::client::Client;
use crate::options::{Demo, DemoWorker, Globals};
use crate::store;
use crate::term::failure::Failure;
use crate::term::progress::Progress;
use crate::term::report::Report;

/// What the clients of the demo say that they are.
const CLIENT: &str = "taskbus-demo";

/// Runs the demo.
pub(crate) fn run(globals: &Globals, args: &Demo) -> Result<Box<dyn Report>, Failure> {
    let (workers, kills) = sizes(args)?;
    let stage = Stage::set(globals, args)?;
    let progress = Progress::new(stage.ids.len() as u64);
    let place = Workplace { store: &stage.store, channel: stage.list.as_str(), labels: &stage.labels };
    let began = Instant::now();
    let crew = Crew::start(workers, &place)?;
    let ghost = Client::start(&stage.store, CLIENT).map_err(Failure::machine_error)?;
    let play = Play::new(crew, workers, ghost, &progress)?;
    let story = play.run(stage.first_ready()?, stage.ids.len(), kills)?;
    let took = began.elapsed();
    drop(progress);
    let record = Record::read(&stage.engine, &stage.ids)?;
    let checks = verdict::checks(&record, &story, kills);
    let (store, channel, tasks) = (stage.engine.store().describe(), stage.list.to_string(), stage.ids.len());
    Ok(Box::new(DemoReport { store, channel, tasks, story, record, checks, took }))
}

/// Runs one worker.
pub(crate) fn work(globals: &Globals, args: &DemoWorker) -> Result<(), Failure> {
    worker::run(globals, args)
}

/// How many workers and how many of them die. Somebody must be left, and there must be a task for each death.
fn sizes(args: &Demo) -> Result<(usize, usize), Failure> {
    let (workers, kills) = (usize::from(args.workers), usize::from(args.kill.unwrap_or(u8::from(args.workers > 1))));
    if kills >= workers {
        return Err(Failure::usage(format!(
            "--kill {kills} leaves none of {workers} workers; use fewer or more workers"
        )));
    }
    let tasks = args.tasks.map_or(usize::MAX, |tasks| tasks as usize);
    if kills > 1 && tasks < 4 * kills {
        return Err(Failure::usage(format!("--kill {kills} needs at least {} tasks", 4 * kills)));
    }
    Ok((workers, kills))
}

/// The store, the list and the tasks, all set for the workers.
struct Stage {
    engine: Engine,
    store: OsString,
    list: ListName,
    ids: Vec<TaskId>,
    labels: Vec<String>,
    /// Removed with everything in it when the demo is over.
    _place: Option<TempDir>,
}

impl Stage {
    fn set(globals: &Globals, args: &Demo) -> Result<Self, Failure> {
        let (store, place) = match globals.store.clone().filter(|store| !store.is_empty()) {
            Some(store) => (store, None),
            None => fresh_store()?,
        };
        let opened = store::open(&store::named(&store)?, SqliteOptions::default(), store::Opener::Command)?;
        if !opened.abilities().shared_across_processes {
            return Err(Failure::usage(format!(
                "the demo needs a store that processes share; {} is not one, use sqlite:PATH or leave --store out",
                opened.describe()
            )));
        }
        let engine = Engine::new(
            opened,
            Limits { writes_per_second: u32::MAX, write_kib_per_second: u32::MAX, ..Limits::default() },
        );
        let planner = register(&engine)?;
        let list = fresh_list(&engine)?;
        engine.create_list(
            &planner,
            &list,
            ListRules { max_reclaims: limits::PLAN_MAX_RECLAIMS, ..ListRules::default() },
        )?;
        let plans = tasks::plans(args.tasks.map(|tasks| tasks as usize));
        let labels = tasks::labels(&plans);
        let ids = import(&engine, &planner, &list, plans)?;
        Ok(Self { engine, store, list, ids, labels, _place: place })
    }

    fn first_ready(&self) -> Result<TaskId, Failure> {
        let ask = ListAsk { view: View::Ready, limit: Some(1), ..ListAsk::default() };
        let first = self.engine.list(None, &self.list, &ask)?.tasks.into_iter().next();
        first.map(|task| task.id).ok_or_else(|| Failure::Broken("no task of the plan is ready".to_owned()))
    }
}

fn fresh_store() -> Result<(OsString, Option<TempDir>), Failure> {
    let place = tempfile::Builder::new().prefix("taskbus-demo-").tempdir();
    let place = place.map_err(|error| Failure::machine("no directory can be made for the demo", error))?;
    let mut store = OsString::from("sqlite:");
    store.push(place.path().join("demo.db"));
    Ok((store, Some(place)))
}

fn register(engine: &Engine) -> Result<Identity, Failure> {
    let client = concat!("taskbus-demo/", env!("CARGO_PKG_VERSION")).to_owned();
    let wish = Registration { name: "planner".to_owned(), client, span: Span::Command, ..Registration::default() };
    Ok(engine.register_name(&wish)?)
}

/// `tasks/demo`, or the first of `tasks/demo-2` … that is not there yet.
fn fresh_list(engine: &Engine) -> Result<ListName, Failure> {
    let taken: Vec<ListName> = engine.lists()?.into_iter().map(|list| list.name).collect();
    let names = std::iter::once("demo".to_owned()).chain((2..).map(|number| format!("demo-{number}")));
    let mut names = names.map(|name| ListName::from_short(&name).expect("BUG: a plain word is a list name"));
    Ok(names.find(|name| !taken.contains(name)).expect("BUG: there is always a number that is free"))
}

fn import(
    engine: &Engine,
    planner: &Identity,
    list: &ListName,
    plans: Vec<Vec<Planned>>,
) -> Result<Vec<TaskId>, Failure> {
    let mut ids = Vec::new();
    for plan in plans {
        let request =
            Request { caller: planner.clone(), list: Some(list.clone()), command: Command::Plan(plan), key: None };
        let Answer::Planned(tasks) = engine.execute(&request)? else {
            unreachable!("BUG: a plan answers with its tasks")
        };
        ids.extend(tasks.into_iter().map(|task| task.id));
    }
    Ok(ids)
}
