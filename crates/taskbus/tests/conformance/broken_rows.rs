//! A store of rows in memory that can be broken in one way at a time. Whole, it passes every check.
//!
//! The disk is a shared object that outlives the handles; opening a place gives another handle on it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use taskbus::conformance::{Plant, Planted, RowPlace};
use taskbus::store::rows::{RowSet, RowStore, Rows, RowsBody};
use taskbus::store::{Abilities, Abort, StoreError};
use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::policy::Policy;
use taskbus_core::task::Task;
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;

/// The one thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The next id is one more than the largest of a live row.
    IdFromMax,
    /// The mark of the largest id is kept by the handle, not on the disk.
    IdFromHandle,
    /// Ids that others took are not looked at.
    IdIgnoresRows,
    /// Text is cut to what is between the blanks around it.
    TrimsText,
    /// Metadata of the old row stays under the new one.
    MergesMetadata,
    /// Large numbers become floating point.
    RoundsNumbers,
    /// A list is in the order of writing.
    OrderOfWriting,
    /// A list is in the order of the ids as text.
    OrderOfText,
    /// A row must have its lists of blockers.
    WantsLists,
    /// A row that cannot be read is none.
    UnreadableIsNone,
    /// What a body refused is kept.
    KeepsRefused,
    /// What a body panicked in is kept.
    KeepsPanicked,
    /// Readers see a body before its end.
    DirtyReads,
    /// A body reads what was there before it.
    BlindToItself,
    /// A body that writes nothing counts as a change.
    AlwaysChanges,
    /// A delete is no new version.
    SilentDelete,
    /// A delete always says that the row existed.
    DeleteSaysYes,
    /// A delete takes along what waited for the row.
    DeleteTakesWaiting,
    /// A tombstone is written once.
    FirstWordsLast,
    /// Bodies run side by side.
    NoTurns,
    /// Versions come again.
    VersionsRepeat,
    /// What was written last is lost when nobody has the store open any more.
    LosesTheLast,
}

/// A row on the disk.
#[derive(Clone)]
struct Row {
    task: Task,
    deleted: bool,
}

type Table = BTreeMap<TaskId, (u64, Row)>;

/// What outlives the handles.
#[derive(Default)]
struct Disk {
    table: Mutex<Table>,
    /// The table before the last transaction.
    before: Mutex<Table>,
    written: AtomicU64,
    mark: AtomicU64,
    version: Mutex<u64>,
    bell: Condvar,
    turn: Mutex<()>,
    running: Mutex<usize>,
    company: Condvar,
    unreadable: Mutex<Option<TaskId>>,
    without_lists: Mutex<bool>,
    overwritten: Mutex<bool>,
    handles: Mutex<usize>,
}

/// Where the broken store is.
pub(crate) struct BrokenPlace(Arc<Disk>, Fault);

impl BrokenPlace {
    pub(crate) fn new(fault: Fault) -> Self {
        Self(Arc::default(), fault)
    }
}

impl RowPlace for BrokenPlace {
    fn open(&self) -> Arc<dyn RowStore> {
        *locked(&self.0.handles) += 1;
        Arc::new(Handle { disk: Arc::clone(&self.0), fault: self.1, mark: AtomicU64::new(0) })
    }

    fn plant(&self, plant: Plant) -> Option<Planted> {
        let id = TaskId::Number(self.0.mark.fetch_add(1, Ordering::SeqCst) + 1);
        let disk = Arc::clone(&self.0);
        match plant {
            Plant::WithoutLists => {
                let model = locked(&disk.table).values().next().unwrap().1.task.clone();
                let task = Task { id: id.clone(), subject: Subject::new("planted").unwrap(), ..model };
                disk.put(Row { task, deleted: false }, &mut locked(&disk.table));
                *locked(&disk.without_lists) = true;
            }
            Plant::Unreadable => *locked(&disk.unreadable) = Some(id.clone()),
        }
        *locked(&disk.version) += 1;
        Some(Planted { id, is_intact: Box::new(move || !*locked(&disk.overwritten)) })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    fn put(&self, row: Row, table: &mut Table) {
        let at = self.written.fetch_add(1, Ordering::SeqCst);
        let at = table.get(&row.task.id).map_or(at, |(at, _)| *at);
        table.insert(row.task.id.clone(), (at, row));
    }

    /// Waits for another body to run beside this one, where there are enough handles for a race.
    fn keep_company(&self) {
        let is_race = *locked(&self.handles) >= 4;
        *locked(&self.running) += 1;
        self.company.notify_all();
        let alone = |running: &mut usize| *running < 2;
        let wait = Duration::from_millis(if is_race { 500 } else { 0 });
        drop(self.company.wait_timeout_while(locked(&self.running), wait, alone).unwrap());
    }
}

struct Handle {
    disk: Arc<Disk>,
    fault: Fault,
    mark: AtomicU64,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut handles = locked(&self.disk.handles);
        *handles -= 1;
        if *handles == 0 && self.fault == Fault::LosesTheLast {
            *locked(&self.disk.table) = locked(&self.disk.before).clone();
        }
    }
}

impl Handle {
    fn rows(&self, table: &Table) -> Result<RowSet, StoreError> {
        if self.fault == Fault::WantsLists && *locked(&self.disk.without_lists) {
            return Err(damaged("a row has no lists"));
        }
        let mut rows: Vec<(u64, Row)> = table.values().cloned().collect();
        match self.fault {
            Fault::OrderOfWriting => rows.sort_by_key(|(at, _)| *at),
            Fault::OrderOfText => rows.sort_by_key(|(_, row)| row.task.id.to_string()),
            _ => {}
        }
        let (deleted, live): (Vec<Row>, Vec<Row>) = rows.into_iter().map(|(_, row)| row).partition(|row| row.deleted);
        let tasks = |rows: Vec<Row>| rows.into_iter().map(|row| row.task).collect();
        let hidden = locked(&self.disk.unreadable).clone().filter(|_| self.fault != Fault::UnreadableIsNone);
        Ok(RowSet { live: tasks(live), deleted: tasks(deleted), unreadable: hidden.into_iter().collect() })
    }

    fn run(&self, f: &mut RowsBody<'_>) -> (Result<(), Abort>, Table, bool) {
        let table = locked(&self.disk.table).clone();
        if self.fault == Fault::NoTurns {
            self.disk.keep_company();
        }
        let mut sheet = Sheet { handle: self, before: table.clone(), table, given: 0, rings: false };
        let keeps_panicked = self.fault == Fault::KeepsPanicked;
        let result = if keeps_panicked {
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(&mut sheet))) {
                Ok(result) => result,
                Err(panic) => {
                    *locked(&self.disk.table) = sheet.table;
                    std::panic::resume_unwind(panic)
                }
            }
        } else {
            f(&mut sheet)
        };
        (result, sheet.table, sheet.rings)
    }
}

fn damaged(reason: &str) -> StoreError {
    StoreError::Damaged { store: "broken".to_owned(), reason: reason.to_owned(), next: "mend it" }
}

impl RowStore for Handle {
    fn abilities(&self) -> Abilities {
        Abilities { durable: true, shared_across_processes: false, liveness: false }
    }

    fn describe(&self) -> String {
        format!("{:?}", self.fault)
    }

    fn list_name(&self) -> ListName {
        ListName::from_short("broken").unwrap()
    }

    fn policy(&self) -> Policy {
        Policy::Strict
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_millis(1_796_054_400_000))
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        let turn = (self.fault != Fault::NoTurns).then(|| locked(&self.disk.turn));
        let before = locked(&self.disk.table).clone();
        let (result, table, rings) = self.run(f);
        if turn.is_none() {
            *locked(&self.disk.running) -= 1;
        }
        match result {
            Ok(()) => {
                *locked(&self.disk.table) = table;
                *locked(&self.disk.before) = before;
            }
            Err(_) if self.fault == Fault::KeepsRefused => *locked(&self.disk.table) = table,
            Err(_) => *locked(&self.disk.table) = before,
        }
        if result.is_ok() && (rings || self.fault == Fault::AlwaysChanges) {
            *locked(&self.disk.version) += 1;
            self.disk.bell.notify_all();
        }
        result
    }

    fn snapshot(&self) -> Result<RowSet, StoreError> {
        self.rows(&locked(&self.disk.table).clone())
    }

    fn version(&self) -> Result<u64, StoreError> {
        let version = *locked(&self.disk.version);
        Ok(if self.fault == Fault::VersionsRepeat { version % 2 } else { version })
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        let repeats = self.fault == Fault::VersionsRepeat;
        let same = |version: &mut u64| if repeats { *version % 2 == seen } else { *version == seen };
        drop(self.disk.bell.wait_timeout_while(locked(&self.disk.version), timeout, same).unwrap());
        Ok(())
    }
}

/// The table of one body.
struct Sheet<'a> {
    handle: &'a Handle,
    before: Table,
    table: Table,
    /// The largest id that this body was given.
    given: u64,
    rings: bool,
}

impl Sheet<'_> {
    fn is(&self, fault: Fault) -> bool {
        self.handle.fault == fault
    }

    fn seen(&self) -> &Table {
        if self.is(Fault::BlindToItself) { &self.before } else { &self.table }
    }

    fn live(&self, id: &TaskId) -> Option<Task> {
        self.seen().get(id).filter(|(_, row)| !row.deleted).map(|(_, row)| row.task.clone())
    }

    fn check_readable(&self, id: &TaskId) -> Result<(), StoreError> {
        let is_hidden = locked(&self.handle.disk.unreadable).as_ref() == Some(id);
        match (is_hidden, self.is(Fault::UnreadableIsNone)) {
            (true, false) => Err(damaged("the row cannot be read")),
            (true, true) => {
                *locked(&self.handle.disk.overwritten) = true;
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }

    fn put(&mut self, task: Task, deleted: bool) {
        self.handle.disk.put(Row { task, deleted }, &mut self.table);
        self.rings = true;
        if self.is(Fault::DirtyReads) {
            *locked(&self.handle.disk.table) = self.table.clone();
        }
    }

    /// What a broken store makes of a task.
    fn spoilt(&self, task: &Task) -> Task {
        let mut task = task.clone();
        let old = self.table.get(&task.id).map(|(_, row)| row.task.clone());
        match (self.handle.fault, old) {
            (Fault::TrimsText, _) => task.subject = Subject::new(task.subject.as_str().trim()).unwrap(),
            (Fault::RoundsNumbers, _) => task.metadata.values_mut().for_each(round),
            (Fault::MergesMetadata, Some(old)) => {
                let new = std::mem::replace(&mut task.metadata, old.metadata);
                task.metadata.extend(new);
            }
            _ => {}
        }
        task
    }
}

#[expect(clippy::cast_precision_loss, reason = "that is what is wrong with it")]
fn round(value: &mut Value) {
    if let Some(number) = value.as_u64().filter(|number| *number > 1 << 53) {
        *value = (number as f64).into();
    }
}

impl Rows for Sheet<'_> {
    fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        self.check_readable(id)?;
        Ok(self.live(id))
    }

    fn set(&mut self, task: &Task) -> Result<(), StoreError> {
        self.check_readable(&task.id)?;
        let task = self.spoilt(task);
        self.put(task, false);
        Ok(())
    }

    fn delete(&mut self, id: &TaskId) -> Result<bool, StoreError> {
        self.check_readable(id)?;
        let Some(task) = self.live(id) else { return Ok(self.is(Fault::DeleteSaysYes)) };
        self.bury(&task)
    }

    fn bury(&mut self, task: &Task) -> Result<bool, StoreError> {
        let there = self.live(&task.id).is_some();
        let is_tombstone = self.table.get(&task.id).is_some_and(|(_, row)| row.deleted);
        if is_tombstone && self.is(Fault::FirstWordsLast) {
            return Ok(there);
        }
        let rings = self.rings;
        self.put(task.clone(), true);
        if self.is(Fault::SilentDelete) {
            self.rings = rings;
        }
        if self.is(Fault::DeleteTakesWaiting) {
            self.table.retain(|_, (_, row)| !row.task.blocked_by.contains(&task.id));
        }
        Ok(there)
    }

    fn list(&self) -> Result<RowSet, StoreError> {
        self.handle.rows(self.seen())
    }

    fn allocate(&mut self) -> Result<TaskId, StoreError> {
        let disk = &self.handle.disk;
        let numbers = |live: bool| {
            let rows = self.table.values().filter(move |(_, row)| !live || !row.deleted);
            rows.filter_map(|(_, row)| row.task.id.as_number()).max().unwrap_or(0).max(self.given)
        };
        let number = match self.handle.fault {
            Fault::IdFromMax => numbers(true) + 1,
            Fault::IdFromHandle => {
                let next = self.handle.mark.load(Ordering::SeqCst).max(numbers(true)) + 1;
                self.handle.mark.store(next, Ordering::SeqCst);
                next
            }
            Fault::IdIgnoresRows => disk.mark.fetch_add(1, Ordering::SeqCst) + 1,
            Fault::NoTurns => disk.mark.load(Ordering::SeqCst).max(numbers(false)) + 1,
            Fault::UnreadableIsNone => numbers(false) + 1,
            _ => {
                let next = disk.mark.load(Ordering::SeqCst).max(numbers(false)) + 1;
                disk.mark.store(next, Ordering::SeqCst);
                next
            }
        };
        self.given = number;
        Ok(TaskId::Number(number))
    }
}
