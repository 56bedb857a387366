//! The list that is measured, with two engines on it: one that answers when a change is on disk, one that does not
//! wait. What it is filled with is in `fill`, what is timed on it in `calls`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taskbus::answer::Answer;
use taskbus::engine::{Engine, Error, Limits, Registration, Request, Span};
use taskbus::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbus_core::command::{Command, LeaseAsk, Patch, Planned};
use taskbus_core::id::TaskId;
use taskbus_core::limits::LEASE_SECONDS_MAX;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::ListRules;

use super::fill::Filled;
use crate::term::failure::Failure;

/// Who is at work while others call: each holds one task, with a lease that does not end meanwhile.
const HOLDERS: usize = 50;
/// A store may grow as it needs to.
const BUDGET_MIB: u64 = 1024 * 1024;
/// An answer is as large as what was asked for.
const RESULT_KIB: usize = 64;

/// A filled list.
pub(in crate::bench) struct Field {
    /// Its file.
    pub(in crate::bench) path: PathBuf,
    /// Its name.
    pub(super) list: ListName,
    /// Who calls.
    pub(in crate::bench) caller: Identity,
    /// On disk before the answer.
    pub(super) durable: Engine,
    /// As SQLite's NORMAL.
    pub(in crate::bench) relaxed: Engine,
    /// What the calls are made on.
    pub(super) tasks: Filled,
}

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) enum Mode {
    /// On disk before the answer.
    Durable,
    /// As SQLite's NORMAL.
    Relaxed,
}

/// An engine that limits neither the rate nor the size, on a file.
pub(in crate::bench) fn engine(path: &Path, mode: Mode, patience: Option<Duration>) -> Result<Engine, Failure> {
    let usual = SqliteOptions::default();
    let durability = if mode == Mode::Durable { Durability::Full } else { Durability::Relaxed };
    let options = SqliteOptions { durability, deadline: patience.unwrap_or(usual.deadline), ..usual };
    let limits = Limits {
        writes_per_second: u32::MAX,
        write_kib_per_second: u32::MAX,
        sqlite_budget_mib: BUDGET_MIB,
        result_default_kib: RESULT_KIB,
        ..Limits::default()
    };
    Ok(Engine::new(Arc::new(SqliteStore::open(path, options)?), limits))
}

/// A session that outlives the process, as a command of the command line has one.
pub(in crate::bench) fn register(engine: &Engine, name: &str) -> Result<Identity, Failure> {
    let wish = Registration { name: name.to_owned(), span: Span::Command, ..Registration::default() };
    Ok(engine.register(&wish)?.name)
}

/// The list that everything is measured on.
pub(in crate::bench) fn list_name() -> ListName {
    ListName::from_short("bench").expect("BUG: a plain word is a list name")
}

/// Adds tasks; says their ids.
pub(in crate::bench) fn plan(engine: &Engine, caller: &Identity, tasks: Vec<Planned>) -> Result<Vec<TaskId>, Failure> {
    let command = Command::Plan(tasks);
    let request = Request { caller: caller.clone(), list: Some(list_name()), command, key: None };
    match engine.execute(&request)? {
        Answer::Planned(tasks) => Ok(tasks.into_iter().map(|task| task.id).collect()),
        _ => unreachable!("BUG: a plan answers with its tasks"),
    }
}

impl Field {
    /// An empty list in a directory.
    pub(in crate::bench) fn empty(dir: &Path) -> Result<Self, Failure> {
        let path = dir.join("bench.db");
        let (durable, relaxed) = (engine(&path, Mode::Durable, None)?, engine(&path, Mode::Relaxed, None)?);
        let caller = register(&durable, "bench")?;
        register(&relaxed, "bench")?;
        let list = list_name();
        durable.create_list(&caller, &list, ListRules::default())?;
        Ok(Self { path, list, caller, durable, relaxed, tasks: Filled::default() })
    }

    /// Has others hold tasks, as there are when many work.
    pub(super) fn occupy(&mut self) -> Result<(), Failure> {
        for number in 0..HOLDERS {
            let holder = register(&self.relaxed, &format!("holder {number}"))?;
            let id = self.tasks.hubs.pop().expect("BUG: every size has more hubs than holders");
            let claim = Patch::claim(holder.clone(), Some(LeaseAsk::Seconds(LEASE_SECONDS_MAX)));
            let command = Command::Update(id, Box::new(claim));
            self.relaxed.execute(&Request { caller: holder, list: None, command, key: None })?;
        }
        Ok(())
    }

    /// The engine of a mode.
    pub(super) fn engine(&self, mode: Mode) -> &Engine {
        if mode == Mode::Durable { &self.durable } else { &self.relaxed }
    }

    /// Makes a call that is not timed.
    pub(super) fn execute(&self, mode: Mode, command: Command) -> Result<Answer, Error> {
        self.engine(mode).execute(&self.request(command))
    }

    /// A call of the caller.
    pub(super) fn request(&self, command: Command) -> Request {
        let names_task = matches!(command, Command::Update(..));
        let list = (!names_task).then(|| self.list.clone());
        Request { caller: self.caller.clone(), list, command, key: None }
    }
}
