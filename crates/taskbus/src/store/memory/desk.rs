//! The locked state of a memory store during one read or write: the answers to every question, and the undo log.
//!
//! A store of rows uses it too ([`super::super::small`]): then ids come from its rows, and nobody is ever dead.

use std::sync::MutexGuard;

use taskbus_core::change::{Change, Kind};
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::neighbourhood::{Dependent, ListRules, Look, Neighbourhood, ReadyScan, Sibling, Tally};
use taskbus_core::task::{Status, Task};
use taskbus_core::time::Timestamp;

use super::bus::Bus;
use super::{List, State, page};
use crate::store::bus::BusSnapshot;
use crate::store::rows::Rows;
use crate::store::{ListRow, Page, PageQuery, ReceiptRow, RevisionRow, SessionRow, Snapshot, StoreError};

/// The state, and how to take back what was done to it. Dropped without [`Work::commit`], it does so.
pub(in crate::store) struct Work<'a> {
    pub(super) state: MutexGuard<'a, State>,
    pub(super) undo: Vec<Undo>,
}

/// A read or a write in progress.
pub(in crate::store) struct Desk<'a, 'm> {
    pub(in crate::store) work: Work<'a>,
    pub(super) scope: Option<ListName>,
    /// The rows underneath, which mint the ids; none for a memory store.
    pub(super) rows: Option<&'m mut dyn Rows>,
}

/// How to take one step back.
pub(super) enum Undo {
    /// A revision of a task: what it was before, and the newest seq of the list then.
    Revision(ListName, TaskId, Was, u64),
    /// A list that was made.
    List(ListName),
    /// A session: what it was before.
    Session(Identity, Option<SessionRow>),
    /// A name that became known.
    Known(Identity),
    /// A receipt: what it was before.
    Receipt((Identity, Key), Option<ReceiptRow>),
    /// The number of the newest revision or message, before.
    Seq(u64),
    /// A list that was removed, with its history.
    ListGone(ListName, Box<List>, Vec<RevisionRow>),
    /// An entry of the bus.
    Bus(Box<dyn FnOnce(&mut Bus)>),
    /// Everything there was.
    All(Box<State>),
}

/// What a task was.
pub(super) enum Was {
    Absent,
    Live(Box<Task>),
    Deleted(Box<Task>),
}

impl Work<'_> {
    /// Keeps what was done so far; says whether anything was.
    pub(in crate::store) fn commit(&mut self) -> bool {
        let changed = !self.undo.is_empty();
        self.undo.clear();
        self.state.version += u64::from(changed);
        changed
    }
}

impl<'a> Desk<'a, '_> {
    pub(super) fn new(state: MutexGuard<'a, State>, scope: Option<&ListName>) -> Self {
        Self { work: Work { state, undo: Vec::new() }, scope: scope.cloned(), rows: None }
    }

    pub(super) fn state(&self) -> &State {
        &self.work.state
    }

    pub(super) fn scoped(&self) -> Result<&List, StoreError> {
        self.scope.as_ref().and_then(|name| self.state().lists.get(name)).ok_or_else(out_of_scope)
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        while let Some(step) = self.undo.pop() {
            self.state.step_back(step);
        }
    }
}

pub(super) fn out_of_scope() -> StoreError {
    StoreError::Failed { store: "memory".to_owned(), source: Box::new(OutOfScope) }
}

/// A list that a store of one list cannot make.
pub(super) fn one_list_only(name: &ListName) -> StoreError {
    StoreError::Unavailable {
        store: "of one list".to_owned(),
        reason: format!("it has no room for the list {name}"),
        next: "use the list it has, or another store",
    }
}

/// A task whose row is there but cannot be read.
pub(in crate::store) fn unreadable(id: &TaskId) -> StoreError {
    StoreError::Damaged {
        store: "of this list".to_owned(),
        reason: format!("the row of task {id} is no task"),
        next: "mend it by hand or move it away; taskbus doctor shows what is wrong with it",
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a question about tasks needs a list that exists")]
struct OutOfScope;

impl State {
    fn step_back(&mut self, step: Undo) {
        match step {
            Undo::Revision(list, id, was, latest_seq) => self.unwrite(&list, &id, was, latest_seq),
            Undo::List(name) => drop(self.lists.remove(&name)),
            Undo::Session(name, Some(row)) => drop(self.sessions.insert(name, row)),
            Undo::Session(name, None) => drop(self.sessions.remove(&name)),
            Undo::Known(name) => drop(self.known.remove(&name)),
            Undo::Receipt(key, Some(row)) => drop(self.receipts.insert(key, row)),
            Undo::Receipt(key, None) => drop(self.receipts.remove(&key)),
            Undo::Seq(seq) => self.seq = seq,
            Undo::ListGone(name, list, log) => self.put_back(&name, *list, log),
            Undo::Bus(step) => step(&mut self.bus),
            Undo::All(state) => *self = *state,
        }
    }

    fn put_back(&mut self, name: &ListName, list: List, log: Vec<RevisionRow>) {
        self.homes.extend(list.revisions.keys().map(|id| (id.clone(), name.clone())));
        self.log.extend(log.into_iter().map(|row| (row.seq, (name.clone(), row))));
        self.lists.insert(name.clone(), list);
    }

    fn unwrite(&mut self, name: &ListName, id: &TaskId, was: Was, latest_seq: u64) {
        let Some(list) = self.lists.get_mut(name) else { return };
        let (live, seqs) = (list.board.get(id).is_some(), list.revisions.get_mut(id));
        if let Some(seq) = seqs.and_then(Vec::pop) {
            self.log.remove(&seq);
        }
        match was {
            Was::Absent => {
                list.board.forget(id);
                list.revisions.remove(id);
                self.homes.remove(id);
            }
            Was::Live(task) => list.board.put(&Change { kind: Kind::Changed, task: *task, note: None }),
            Was::Deleted(task) => list.board.put(&Change { kind: Kind::Deleted, task: *task, note: None }),
        }
        list.live = list.live + u64::from(list.board.get(id).is_some()) - u64::from(live);
        list.latest_seq = latest_seq;
    }

    fn is_alive(&self, who: &Identity, now: Timestamp) -> bool {
        self.one_list || self.sessions.get(who).is_some_and(|row| row.alive_until > now)
    }
}

/// Questions that a [`Board`](taskbus_core::board::Board) answers as they are.
macro_rules! ask_the_board {
    ($($question:ident($($name:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $question(&self, $($name: $kind),*) -> Look<$answer> {
            self.scoped()?.board.$question($($name),*)
        })*
    };
}

impl Neighbourhood for Desk<'_, '_> {
    fn is_known(&self, who: &Identity) -> Look<bool> {
        Ok(self.state().one_list || self.state().known.contains(who))
    }

    fn is_alive(&self, who: &Identity, now: Timestamp) -> Look<bool> {
        Ok(self.state().is_alive(who, now))
    }

    fn suspects(&self, now: Timestamp, limit: usize) -> Look<Vec<TaskId>> {
        let held = self.scoped()?.board.held(usize::MAX)?.into_iter();
        let suspects = held.filter(|task| {
            let ended = task.leased_until().is_some_and(|at| at <= now);
            ended || task.owner().is_none_or(|owner| !self.state().is_alive(owner, now))
        });
        Ok(suspects.take(limit).map(|task| task.id).collect())
    }

    fn task(&self, id: &TaskId) -> Look<Option<Task>> {
        let board = &self.scoped()?.board;
        if board.is_unreadable(id) { Err(unreadable(id).into()) } else { board.task(id) }
    }

    ask_the_board! {
        rules() -> ListRules;
        tombstone(id: &TaskId) -> Option<Task>;
        live_of(ids: &[TaskId]) -> Vec<TaskId>;
        open_of(ids: &[TaskId]) -> Vec<TaskId>;
        children(parent: &TaskId, open_only: bool, limit: usize) -> Vec<TaskId>;
        last_sibling(parent: Option<&TaskId>) -> Option<Sibling>;
        sibling_before(parent: Option<&TaskId>, place: &Sibling) -> Option<Sibling>;
        sibling_after(parent: Option<&TaskId>, place: &Sibling) -> Option<Sibling>;
        siblings(parent: Option<&TaskId>) -> Vec<Sibling>;
        depth(id: &TaskId) -> usize;
        height(id: &TaskId) -> usize;
        way(from: &TaskId, to: &TaskId) -> Option<Vec<TaskId>>;
        dependents(blocker: &TaskId) -> Vec<Dependent>;
        paths_in_use() -> Vec<(TaskId, Vec<PathGlob>)>;
        ready(scan: &ReadyScan) -> Vec<Task>;
        held(limit: usize) -> Vec<Task>;
        tally(now: Timestamp) -> Tally;
    }
}

impl Snapshot for Desk<'_, '_> {
    fn bus(&self) -> Option<&dyn BusSnapshot> {
        (!self.state().one_list).then_some(self)
    }

    fn lists(&self) -> Result<Vec<ListRow>, StoreError> {
        Ok(self.state().lists.iter().map(|(name, list)| list.row(name)).collect())
    }

    fn list(&self, name: &ListName) -> Result<Option<ListRow>, StoreError> {
        Ok(self.state().lists.get(name).map(|list| list.row(name)))
    }

    fn seq(&self, id: &TaskId) -> Result<Option<u64>, StoreError> {
        Ok(self.scoped()?.revisions.get(id).and_then(|seqs| seqs.last().copied()))
    }

    fn page(&self, query: &PageQuery) -> Result<Page, StoreError> {
        Ok(page::page(&self.scoped()?.board, query))
    }

    fn ready_with_paths(&self, now: Timestamp) -> Result<Vec<(TaskId, Vec<PathGlob>)>, StoreError> {
        let board = &self.scoped()?.board;
        let tasks = board.tasks().filter(|task| !task.paths.is_empty() && page::is_ready(board, task, now));
        Ok(tasks.map(|task| (task.id.clone(), task.paths.iter().cloned().collect())).collect())
    }

    fn deleted(&self, limit: usize) -> Result<(Vec<Task>, u64), StoreError> {
        let tombstones = self.scoped()?.board.tombstones();
        Ok((tombstones.clone().rev().take(limit).cloned().collect(), tombstones.count() as u64))
    }

    fn history(&self, id: &TaskId, before: Option<u64>, limit: usize) -> Result<Vec<RevisionRow>, StoreError> {
        let seqs = self.scoped()?.revisions.get(id).map_or(&[][..], Vec::as_slice);
        let older = seqs.iter().rev().filter(|seq| before.is_none_or(|before| **seq < before)).take(limit);
        Ok(older.filter_map(|seq| self.state().log.get(seq)).map(|(_, row)| row.clone()).collect())
    }

    fn session(&self, name: &Identity) -> Result<Option<SessionRow>, StoreError> {
        Ok(self.state().sessions.get(name).cloned())
    }

    fn sessions(&self, now: Timestamp) -> Result<Vec<SessionRow>, StoreError> {
        Ok(self.state().sessions.values().filter(|row| row.alive_until > now).cloned().collect())
    }

    fn held_by(&self, owner: &Identity) -> Result<Vec<(ListName, TaskId)>, StoreError> {
        let mut tasks = Vec::new();
        for (name, list) in &self.state().lists {
            let own = list.board.tasks().filter(|task| task.owner() == Some(owner));
            let held = own.filter(|task| task.status() == Status::InProgress);
            tasks.extend(held.map(|task| (name.clone(), task.id.clone())));
        }
        Ok(tasks)
    }

    fn has_expired_receipts(&self, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.state().receipts.values().any(|receipt| receipt.expires_at <= now))
    }

    fn receipt(&self, sender: &Identity, key: &Key, now: Timestamp) -> Result<Option<ReceiptRow>, StoreError> {
        let receipt = self.state().receipts.get(&(sender.clone(), key.clone()));
        Ok(receipt.filter(|receipt| receipt.expires_at > now).cloned())
    }
}

impl List {
    fn row(&self, name: &ListName) -> ListRow {
        ListRow {
            name: name.clone(),
            rules: self.rules,
            created_at: self.created_at,
            live: self.live,
            latest_seq: self.latest_seq,
        }
    }
}
