//! A whole store out of a [`RowStore`]: the list in memory answers every question, the rows keep it.
//!
//! The memory is that of a [`MemoryStore`], brought up to date from the rows whenever those have changed, and under
//! their lock before every write. What a write did goes to the rows as each task's last state; when they refuse,
//! the memory takes it back. Sessions and receipts live as long as this process, everybody counts as alive, and
//! the history of a task is what this process saw of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taskbus_core::change::Change;
use taskbus_core::decide::recovered;
use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;

use super::memory::MemoryStore;
use super::memory::desk::{Desk, Work, unreadable};
use super::rows::{RowSet, RowStore, Rows};
use super::{Abilities, Abort, Author, ReadBody, Snapshot, Store, StoreError, WriteBody, read_with, write_with};

/// A store over rows.
pub struct Small<R> {
    rows: R,
    list: ListName,
    memory: MemoryStore,
    seen: Mutex<Seen>,
}

/// What the rows were when they were last read.
#[derive(Default)]
struct Seen {
    /// Their version before that; none before the first time, and after a write of ours.
    version: Option<u64>,
    /// Counts the times.
    reads: u64,
    rows: RowSet,
}

impl<R: RowStore> Small<R> {
    /// A store over these rows, which are opened by this: what their policy gives back on opening, is given back now.
    ///
    /// # Errors
    /// [`StoreError`] when the rows cannot be read.
    pub fn new(rows: R) -> Result<Self, StoreError> {
        let store = Self::beside(rows)?;
        match store.recover() {
            Err(Abort::Failed(error @ (StoreError::Busy { .. } | StoreError::ReadOnly { .. }))) => {
                tracing::warn!(%error, "tasks that were left in progress could not be given back; shown as they stand");
            }
            Err(Abort::Failed(error)) => return Err(error),
            Err(Abort::Refused(_)) | Ok(()) => {}
        }
        Ok(store)
    }

    /// A store over these rows, beside whoever has opened them and may be at work: nothing is given back.
    ///
    /// # Errors
    /// As [`Small::new`].
    pub fn beside(rows: R) -> Result<Self, StoreError> {
        let list = rows.list_name();
        let rules = ListRules { policy: rows.policy(), max_reclaims: rows.max_reclaims() };
        let memory = MemoryStore::for_rows(&list, rules, rows.now()?);
        Ok(Self { rows, list, memory, seen: Mutex::default() })
    }

    /// Gives back what was left in progress for too long. The rows are locked only if there is such a task.
    fn recover(&self) -> Result<(), Abort> {
        let stale = |snapshot: &dyn Snapshot| -> Result<Vec<Change>, StoreError> {
            let (policy, now) = (self.rows.policy(), self.rows.now()?);
            Ok(snapshot.held(usize::MAX)?.iter().filter_map(|task| recovered(task, policy, now)).collect())
        };
        if read_with(self, Some(&self.list), stale)?.is_empty() {
            return Ok(());
        }
        write_with(self, Some(&self.list), |tx| {
            for change in stale(tx)? {
                tx.append(&change, &Author::default())?;
            }
            Ok(())
        })
    }

    /// The rows underneath.
    pub fn rows(&self) -> &R {
        &self.rows
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory, as new as the rows were when this was called. The rows are never asked while the memory is
    /// locked, as they may wait for a writer that waits for the memory. If somebody else read them meanwhile, what we
    /// read may be the older, and we begin anew.
    fn fresh(&self, scope: Option<&ListName>) -> Result<Desk<'_, '_>, StoreError> {
        loop {
            let (version, reads) = (self.rows.version()?, self.seen().reads);
            let current = |seen: &Seen| seen.version == Some(version);
            let desk = self.memory.desk(scope);
            if current(&self.seen()) {
                return Ok(desk);
            }
            drop(desk);
            let rows = self.rows.snapshot()?;
            let mut desk = self.memory.desk(scope);
            let mut seen = self.seen();
            if seen.reads == reads {
                desk.work.take_over(&self.list, &mut seen, rows)?;
                seen.version = Some(version);
            }
            if current(&seen) {
                drop(seen);
                return Ok(desk);
            }
        }
    }

    /// Runs `f` on the memory, as the rows are now, and hands them what it did. The memory stays locked until the
    /// rows say that they kept it.
    fn write_rows<'a>(&'a self, scope: &ListName, f: &mut WriteBody<'_>) -> Result<Option<Done<'a>>, Abort> {
        let mut done = None;
        self.rows.transact(&mut |rows| {
            done = None;
            let mut desk = self.memory.desk(Some(scope));
            desk.work.take_over(&self.list, &mut self.seen(), rows.list()?)?;
            let mut desk = desk.over(rows);
            f(&mut desk)?;
            let mut work = desk.work;
            let after = work.hand_over(&self.list, rows)?;
            done = Some((work, after));
            Ok(())
        })?;
        Ok(done)
    }
}

/// A write whose fate the rows decide, and the rows as they are with it, if it changed any.
type Done<'a> = (Work<'a>, Option<RowSet>);

impl<R: RowStore> Store for Small<R> {
    fn abilities(&self) -> Abilities {
        Abilities { liveness: false, ..self.rows.abilities() }
    }

    fn describe(&self) -> String {
        self.rows.describe()
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        self.rows.now()
    }

    fn locate(&self, id: &TaskId) -> Result<Option<ListName>, StoreError> {
        let desk = self.fresh(None)?;
        if self.seen().rows.unreadable.contains(id) { Err(unreadable(id)) } else { Ok(desk.home(id)) }
    }

    fn read(&self, list: Option<&ListName>, f: &mut ReadBody<'_>) -> Result<(), StoreError> {
        f(&self.fresh(list)?)
    }

    /// Without a list nothing is written but what this process alone remembers.
    fn write(&self, list: Option<&ListName>, f: &mut WriteBody<'_>) -> Result<(), Abort> {
        let Some(list) = list else {
            let mut desk = self.fresh(None)?;
            f(&mut desk)?;
            desk.work.commit();
            return Ok(());
        };
        if let Some((mut work, after)) = self.write_rows(list, f)? {
            work.commit();
            if let Some(after) = after {
                let mut seen = self.seen();
                *seen = Seen { version: None, reads: seen.reads + 1, rows: after };
            }
        }
        Ok(())
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.rows.version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.rows.wait(seen, timeout)
    }
}

impl Work<'_> {
    /// Makes the memory what the rows are, one revision for each row that differs from when they were last read.
    fn take_over(&mut self, list: &ListName, seen: &mut Seen, rows: RowSet) -> Result<(), StoreError> {
        for (task, deleted) in changed(&seen.rows, &rows) {
            let known = self.any(list, &task.id);
            self.learn(list, counted_on(task.clone(), known.as_ref()), deleted)?;
        }
        for gone in vanished(&seen.rows, &rows) {
            if let Some(known) = self.live(list, &gone.id) {
                self.learn(list, Task { revision: known.revision + 1, ..known }, true)?;
            }
        }
        self.commit();
        self.hide(list, &rows.unreadable);
        *seen = Seen { version: None, reads: seen.reads + 1, rows };
        Ok(())
    }

    /// Writes the last state of every task that was touched to the rows. The rows as they are then, if any was.
    fn hand_over(&mut self, list: &ListName, rows: &mut dyn Rows) -> Result<Option<RowSet>, StoreError> {
        let touched = self.touched();
        for id in &touched {
            match (self.live(list, id), self.any(list, id)) {
                (Some(task), _) => rows.set(&task)?,
                (None, Some(task)) => drop(rows.bury(&task)?),
                (None, None) => {}
            }
        }
        if touched.is_empty() {
            return Ok(None);
        }
        let after = rows.list()?;
        self.settle(list, &touched, &after);
        Ok(Some(after))
    }

    /// Replaces what was just written by what the rows made of it: they may keep less.
    fn settle(&mut self, list: &ListName, touched: &BTreeSet<TaskId>, after: &RowSet) {
        for (task, deleted) in both(after).into_values().filter(|(task, _)| touched.contains(&task.id)) {
            let Some(ours) = self.any(list, &task.id) else { continue };
            let kept = Task { revision: ours.revision, fence: ours.fence.max(task.fence), ..task.clone() };
            if kept != ours {
                self.replace(list, kept, deleted);
            }
        }
    }
}

/// A row that somebody else changed: its revision and fence go on from what was known, if it does not say so itself.
fn counted_on(row: Task, known: Option<&Task>) -> Task {
    let (revision, fence) = known.map_or((1, 0), |known| (known.revision + 1, known.fence));
    Task { revision: row.revision.max(revision), fence: row.fence.max(fence), ..row }
}

/// Every row by id, and whether it is a deleted one.
fn both(rows: &RowSet) -> BTreeMap<&TaskId, (&Task, bool)> {
    let live = rows.live.iter().map(|task| (&task.id, (task, false)));
    live.chain(rows.deleted.iter().map(|task| (&task.id, (task, true)))).collect()
}

/// The rows that are new or different.
fn changed<'a>(old: &RowSet, new: &'a RowSet) -> Vec<(&'a Task, bool)> {
    let old = both(old);
    both(new).into_values().filter(|row| old.get(&row.0.id) != Some(row)).collect()
}

/// The rows that are no longer there. One that cannot be read is.
fn vanished<'a>(old: &'a RowSet, new: &RowSet) -> Vec<&'a Task> {
    let there = both(new);
    let gone = |task: &&Task| !there.contains_key(&task.id) && !new.unreadable.contains(&task.id);
    both(old).into_values().map(|(task, _)| task).filter(gone).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use taskbus_core::command::{Command, Draft, Patch};
    use taskbus_core::name::Identity;
    use taskbus_core::policy::Policy;
    use taskbus_core::refusal::{Invalid, Refusal};
    use taskbus_core::task::Status;
    use taskbus_core::text::Subject;

    use super::super::rows::RowsBody;
    use super::*;
    use crate::answer::{Answer, TaskView};
    use crate::engine::{Engine, Error, Limits, Registration, Request};

    /// Rows in a map, some of them unreadable, which can be made to fail at the end of a transaction and to be changed from outside.
    #[derive(Default)]
    struct Shelf {
        rows: Mutex<BTreeMap<TaskId, Task>>,
        minted: AtomicU64,
        version: AtomicU64,
        jammed: AtomicBool,
        torn: Mutex<Vec<TaskId>>,
    }

    struct Drawer<'a>(BTreeMap<TaskId, Task>, &'a AtomicU64);

    impl Rows for Drawer<'_> {
        fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
            Ok(self.0.get(id).cloned())
        }

        fn set(&mut self, task: &Task) -> Result<(), StoreError> {
            self.0.insert(task.id.clone(), task.clone());
            Ok(())
        }

        fn delete(&mut self, id: &TaskId) -> Result<bool, StoreError> {
            Ok(self.0.remove(id).is_some())
        }

        fn list(&self) -> Result<RowSet, StoreError> {
            Ok(RowSet { live: self.0.values().cloned().collect(), ..RowSet::default() })
        }

        fn allocate(&mut self) -> Result<TaskId, StoreError> {
            Ok(TaskId::Number(self.1.fetch_add(1, Ordering::SeqCst) + 1))
        }
    }

    impl Shelf {
        fn change(&self, f: impl FnOnce(&mut BTreeMap<TaskId, Task>)) {
            f(&mut self.rows.lock().unwrap());
            self.version.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl RowStore for Shelf {
        fn abilities(&self) -> Abilities {
            Abilities { durable: false, shared_across_processes: false, liveness: false }
        }

        fn describe(&self) -> String {
            "shelf".to_owned()
        }

        fn list_name(&self) -> ListName {
            ListName::from_short("shelf").unwrap()
        }

        fn policy(&self) -> Policy {
            Policy::Strict
        }

        fn now(&self) -> Result<Timestamp, StoreError> {
            Ok(Timestamp::from_millis(1_000_000_000_000))
        }

        fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
            let mut rows = self.rows.lock().unwrap();
            let mut drawer = Drawer(rows.clone(), &self.minted);
            f(&mut drawer)?;
            if self.jammed.load(Ordering::SeqCst) {
                return Err(Abort::Failed(StoreError::Busy { store: "shelf".to_owned(), waited_ms: 1 }));
            }
            *rows = drawer.0;
            self.version.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }

        fn snapshot(&self) -> Result<RowSet, StoreError> {
            let unreadable = self.torn.lock().unwrap().clone();
            let mut live: Vec<Task> = self.rows.lock().unwrap().values().cloned().collect();
            live.retain(|task| !unreadable.contains(&task.id));
            Ok(RowSet { live, deleted: Vec::new(), unreadable })
        }

        fn version(&self) -> Result<u64, StoreError> {
            Ok(self.version.load(Ordering::SeqCst))
        }

        fn wait(&self, _: u64, _: Duration) -> Result<(), StoreError> {
            Ok(())
        }
    }

    fn start() -> (Arc<Shelf>, Engine, Identity) {
        let shelf = Arc::new(Shelf::default());
        let engine = Engine::new(Arc::new(Small::new(Arc::clone(&shelf)).unwrap()), Limits::default());
        let zed = engine.register(&Registration { name: "zed".to_owned(), ..Registration::default() }).unwrap().name;
        (shelf, engine, zed)
    }

    fn ask(engine: &Engine, caller: &Identity, command: Command) -> Result<TaskView, Error> {
        let list = Some(ListName::from_short("shelf").unwrap());
        match engine.execute(&Request { caller: caller.clone(), list, command, key: None })? {
            Answer::Created(task) | Answer::Restored(task) => Ok(*task),
            Answer::Written(written) => Ok(written.task),
            answer => panic!("{answer:?}"),
        }
    }

    fn draft(subject: &str) -> Command {
        Command::Create(Box::new(Draft::new(Subject::new(subject).unwrap())))
    }

    #[test]
    fn the_engine_runs_over_rows_and_follows_those_that_others_change() {
        let (shelf, engine, zed) = start();
        let a = ask(&engine, &zed, draft("a")).unwrap();
        let b = ask(&engine, &zed, draft("b")).unwrap();
        shelf.change(|rows| {
            let first = rows.get_mut(&a.id).unwrap();
            first.subject = Subject::new("other").unwrap();
            first.revision = 0;
            rows.remove(&b.id);
        });
        let got = engine.get(Some(&zed), &a.id, true).unwrap();
        assert_eq!((got.task.subject.as_str(), got.task.revision), ("other", 2));
        assert_eq!(got.history.unwrap().len(), 2);
        assert!(matches!(engine.get(Some(&zed), &b.id, false), Err(Error::Refused(Refusal::NotFound(_)))));
        assert_eq!(ask(&engine, &zed, Command::Restore(b.id.clone())).unwrap().subject.as_str(), "b");
        assert!(shelf.rows.lock().unwrap().contains_key(&b.id));
    }

    #[test]
    fn a_row_that_cannot_be_read_is_neither_gone_nor_a_task_and_blocks() {
        let (shelf, engine, zed) = start();
        let a = ask(&engine, &zed, draft("a")).unwrap();
        let waits = Draft { blocked_by: vec![a.id.clone()], ..Draft::new(Subject::new("b").unwrap()) };
        let b = ask(&engine, &zed, Command::Create(Box::new(waits))).unwrap();
        shelf.torn.lock().unwrap().push(a.id.clone());
        shelf.change(|_| {});
        assert!(matches!(engine.get(Some(&zed), &a.id, false), Err(Error::Store(StoreError::Damaged { .. }))));
        assert_eq!(engine.get(Some(&zed), &b.id, false).unwrap().task.open_blockers, std::slice::from_ref(&a.id));
        shelf.torn.lock().unwrap().clear();
        shelf.change(|_| {});
        assert_eq!(engine.get(Some(&zed), &a.id, false).unwrap().task.subject.as_str(), "a");
        assert_eq!(engine.lists().unwrap()[0].tasks, 2);
    }

    #[test]
    fn a_task_is_held_by_whoever_claimed_it_though_nobody_keeps_sessions() {
        let (shelf, engine, zed) = start();
        let a = ask(&engine, &zed, draft("a")).unwrap();
        ask(&engine, &zed, Command::Update(a.id.clone(), Box::new(Patch::claim(zed.clone(), None)))).unwrap();
        let other = Engine::new(Arc::new(Small::new(Arc::clone(&shelf)).unwrap()), Limits::default());
        let amp = other.register(&Registration { name: "amp".to_owned(), ..Registration::default() }).unwrap().name;
        let claim = Patch::claim(amp.clone(), None);
        let refused = ask(&other, &amp, Command::Update(a.id.clone(), Box::new(claim)));
        assert!(matches!(refused, Err(Error::Refused(Refusal::Conflict(_)))));
        assert_eq!(other.tick().unwrap().reclaimed, 0);
    }

    #[test]
    fn what_is_refused_or_fails_is_kept_nowhere() {
        let (shelf, engine, zed) = start();
        let a = ask(&engine, &zed, draft("a")).unwrap();
        let before = shelf.rows.lock().unwrap().clone();
        let itself = Patch { add_blocked_by: vec![a.id.clone()], ..Patch::complete(None) };
        let refused = ask(&engine, &zed, Command::Update(a.id.clone(), Box::new(itself)));
        assert!(matches!(refused, Err(Error::Refused(Refusal::Invalid(Invalid::Itself { .. })))));
        shelf.jammed.store(true, Ordering::SeqCst);
        assert!(matches!(ask(&engine, &zed, draft("lost")), Err(Error::Store(StoreError::Busy { .. }))));
        let done = Command::Update(a.id.clone(), Box::new(Patch::complete(None)));
        assert!(ask(&engine, &zed, done.clone()).is_err());
        assert_eq!(*shelf.rows.lock().unwrap(), before);
        let got = engine.get(Some(&zed), &a.id, true).unwrap();
        assert_eq!((got.task.status, got.task.revision, got.history.unwrap().len()), (Status::Pending, 1, 1));
        shelf.jammed.store(false, Ordering::SeqCst);
        assert_eq!(ask(&engine, &zed, done).unwrap().revision, 2);
    }

    #[test]
    fn it_has_the_list_of_its_rows_and_no_other() {
        let (_, engine, zed) = start();
        let (own, other) = (ListName::from_short("shelf").unwrap(), ListName::from_short("other").unwrap());
        assert_eq!(engine.create_list(&zed, &own, ListRules::default()).unwrap().name, own);
        let error = engine.create_list(&zed, &other, ListRules::default()).unwrap_err();
        assert!(error.to_string().contains("tasks/other"), "{error}");
        assert_eq!(engine.lists().unwrap().len(), 1);
    }
}
