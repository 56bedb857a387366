//! The calls that are timed on a list, each through the engine as a surface would make it, and what undoes them, so
//! that the list is the same at each turn.

use std::time::{Duration, Instant};

use taskbus::answer::Answer;
use taskbus::engine::{Error, ListAsk, SearchAsk};
use taskbus::store::{View, read_with};
use taskbus_core::command::{Command, Draft, Next, Patch};
use taskbus_core::id::TaskId;
use taskbus_core::name::Key;
use taskbus_core::task::Status;

use super::field::{Field, Mode, engine, register};
use super::fill::{WORD, draft};
use crate::term::failure::Failure;

/// Rows of a page.
const PAGE: usize = 50;
/// A rest after which a process begins a slice of time anew.
const REST: Duration = Duration::from_millis(1);

/// Which tasks wait for a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) enum Hub {
    /// Two.
    Small,
    /// Ten.
    Large,
}

/// What a call took, and the task that it was about.
pub(in crate::bench) type Timed = Result<(TaskId, Duration), Error>;

impl Field {
    /// A hub, from the end of the list; another one at each turn.
    pub(in crate::bench) fn hub(&self, hub: Hub, turn: usize) -> TaskId {
        let hubs = if hub == Hub::Large { &self.tasks.large_hubs } else { &self.tasks.hubs };
        hubs[hubs.len() - 1 - turn % hubs.len()].clone()
    }

    /// Two tasks that wait for nothing, the later one first, from the second half of the list.
    fn free(&self, turn: usize) -> (TaskId, TaskId) {
        let free = &self.tasks.free;
        let last = free.len() - 1 - turn % (free.len() / 2);
        (free[last].clone(), free[last - 1].clone())
    }

    /// Adds a task that waits for two others.
    pub(in crate::bench) fn create(&self, mode: Mode, turn: usize) -> Timed {
        let (one, other) = self.free(turn);
        let draft = Draft { blocked_by: vec![one, other], ..draft(&format!("late task {turn}")) };
        let (answer, took) = self.time(mode, Command::Create(Box::new(draft)), None)?;
        match answer {
            Answer::Created(task) => Ok((task.id, took)),
            _ => unreachable!("BUG: adding a task answers with it"),
        }
    }

    /// Undoes that.
    pub(in crate::bench) fn delete(&self, mode: Mode, id: TaskId) -> Result<(), Error> {
        self.execute(mode, Command::Update(id, Box::new(Patch::delete()))).map(drop)
    }

    /// Claims a task by its id.
    pub(in crate::bench) fn claim(&self, mode: Mode, id: TaskId, key: Option<Key>) -> Timed {
        self.update(mode, id, Patch::claim(self.caller.clone(), None), key)
    }

    /// Undoes that.
    pub(in crate::bench) fn release(&self, mode: Mode, id: TaskId) -> Result<(), Error> {
        self.execute(mode, Command::Update(id, Box::new(Patch::release()))).map(drop)
    }

    /// Completes a task.
    pub(in crate::bench) fn complete(&self, mode: Mode, id: TaskId) -> Timed {
        self.update(mode, id, Patch::complete(None), None)
    }

    /// Undoes that.
    pub(in crate::bench) fn reopen(&self, mode: Mode, id: TaskId) -> Result<(), Error> {
        let patch = Patch { status: Some(Status::Pending), ..Patch::default() };
        self.execute(mode, Command::Update(id, Box::new(patch))).map(drop)
    }

    /// Takes the first ready task.
    pub(in crate::bench) fn next(&self, mode: Mode, key: Option<Key>) -> Timed {
        let (answer, took) = self.time(mode, Command::Next(Box::default()), key)?;
        Ok((first_of(answer), took))
    }

    /// Has a task wait for one that was there before it, which is the usual case.
    pub(super) fn add_blocker(&self, mode: Mode, turn: usize) -> Timed {
        let (task, blocker) = self.free(turn);
        self.update(mode, task, Patch { add_blocked_by: vec![blocker], ..Patch::default() }, None)
    }

    /// Undoes that.
    pub(super) fn remove_blocker(&self, mode: Mode, turn: usize) -> Result<(), Error> {
        let (task, blocker) = self.free(turn);
        let patch = Patch { remove_blocked_by: vec![blocker], ..Patch::default() };
        self.execute(mode, Command::Update(task, Box::new(patch))).map(drop)
    }

    /// Reads a page of 50; says where the next one begins.
    pub(in crate::bench) fn page(
        &self,
        view: View,
        cursor: Option<&String>,
    ) -> Result<(Duration, Option<String>), Error> {
        let ask = ListAsk { view, limit: Some(PAGE), cursor: cursor.cloned(), ..ListAsk::default() };
        let began = Instant::now();
        let page = self.relaxed.list(None, &self.list, &ask)?;
        Ok((began.elapsed(), page.next))
    }

    /// Asks the store which tasks are abandoned, when none is: the question alone, and with the read around it.
    pub(super) fn scan(&self) -> Result<(Duration, Duration), Error> {
        let now = self.relaxed.now()?;
        let began = Instant::now();
        let (found, alone) = read_with(self.relaxed.store(), Some(&self.list), |snapshot| {
            let began = Instant::now();
            let found = snapshot.suspects(now, 1)?.len();
            Ok((found, began.elapsed()))
        })?;
        let whole = began.elapsed();
        assert_eq!(found, 0, "BUG: no lease of the bench ends while it runs");
        Ok((alone, whole))
    }

    /// One tick of the maintenance when there is nothing to mend.
    pub(super) fn tick(&self) -> Result<Duration, Error> {
        let began = Instant::now();
        self.relaxed.tick()?;
        Ok(began.elapsed())
    }

    /// Searches for a word that the same number of tasks has in every list, with nothing left to index.
    pub(super) fn search(&self) -> Result<Duration, Error> {
        self.relaxed.store().index_texts()?;
        let ask = SearchAsk { query: WORD.to_owned(), ..SearchAsk::default() };
        let began = Instant::now();
        let found = self.relaxed.search(&self.caller, &ask)?;
        let took = began.elapsed();
        assert!(!found.hits.is_empty(), "BUG: the list was filled with the word");
        Ok(took)
    }

    /// Opens the store anew, as a process does that begins, and takes the first ready task.
    pub(super) fn open(&self) -> Result<Duration, Failure> {
        // It takes as long as many calls: at the end of a slice of time somebody else would have the processor meanwhile.
        std::thread::sleep(REST);
        let began = Instant::now();
        let fresh = engine(&self.path, Mode::Relaxed, None)?;
        register(&fresh, self.caller.as_str())?;
        let answer = fresh.execute(&self.request(Command::Next(Box::default())))?;
        let took = began.elapsed();
        self.release(Mode::Relaxed, first_of(answer))?;
        Ok(took)
    }

    fn update(&self, mode: Mode, id: TaskId, patch: Patch, key: Option<Key>) -> Timed {
        let (_, took) = self.time(mode, Command::Update(id.clone(), Box::new(patch)), key)?;
        Ok((id, took))
    }

    fn time(&self, mode: Mode, command: Command, key: Option<Key>) -> Result<(Answer, Duration), Error> {
        let request = taskbus::engine::Request { key, ..self.request(command) };
        let began = Instant::now();
        let answer = self.engine(mode).execute(&request)?;
        Ok((answer, began.elapsed()))
    }
}

fn first_of(answer: Answer) -> TaskId {
    match answer {
        Answer::Next(mut taken) if !taken.tasks.is_empty() => taken.tasks.swap_remove(0).id,
        _ => unreachable!("BUG: the list has ready tasks"),
    }
}

/// Takes tasks; none when there is nothing to take.
pub(in crate::bench) fn next_of(count: usize) -> Command {
    Command::Next(Box::new(Next { count, ..Next::default() }))
}
