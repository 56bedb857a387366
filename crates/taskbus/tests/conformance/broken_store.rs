//! A whole store that answers one question wrongly, or does one thing wrongly: the memory store with a liar in front.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use taskbus::conformance::StorePlace;
use taskbus::store::{
    Abilities, Abort, Appended, Author, ListRow, ManualClock, Page, PageQuery, ReadBody, ReceiptRow, RevisionRow,
    SessionRow, Snapshot, Store, StoreError, Tx, WriteBody,
    bus::{BusSnapshot, BusTx},
};
use taskbus_core::change::Change;
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::neighbourhood::{Dependent, ListRules, Look, Neighbourhood, ReadyScan, Sibling, Tally};
use taskbus_core::task::{State, Status, Task};
use taskbus_core::time::Timestamp;

use crate::places::MemoryPlace;

/// The one thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    EverybodyIsAlive,
    NoLeases,
    NoWayLeadsAnywhere,
    NothingIsOpen,
    NobodyWaits,
    NothingWasDeleted,
    NobodyHasChildren,
    NothingBefore,
    NothingAfter,
    NoReceipts,
    OnlyTheNewestRevision,
    PagesSkipARow,
    NothingEverChanges,
    RefusedIsKept,
    /// A body reads tasks as they were before it had its turn.
    TasksOfYesterday,
    NobodyIsSubscribed,
    ChannelsAreNeverEmpty,
    MessagesOfEverybody,
    OnlyTheNewestMessages,
    MemoriesLiveForEver,
    VectorsOfEveryModel,
    FindsOneOnly,
    SearchesEverywhere,
    EvictsTheNewest,
    ForgetsTheLease,
}

pub(crate) struct BrokenStorePlace(MemoryPlace, Lie);

impl BrokenStorePlace {
    pub(crate) fn new(lie: Lie) -> Self {
        Self(MemoryPlace::new(), lie)
    }
}

impl StorePlace for BrokenStorePlace {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Broken { store: self.0.open(), lie: self.1 })
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        self.0.clock()
    }
}

struct Broken {
    store: Arc<dyn Store>,
    lie: Lie,
}

/// Writers that are about to have their turn.
static ABOUT_TO: Mutex<usize> = Mutex::new(0);
static COMPANY: Condvar = Condvar::new();

/// Waits for another writer to come as far as this one is, when both want the same task.
fn keep_company(tasks: &BTreeMap<TaskId, Task>) {
    let is_wanted = |task: &Task| task.subject.as_str() == "wanted" && task.status() == Status::Pending;
    if !tasks.values().any(is_wanted) {
        return;
    }
    let mut about_to = ABOUT_TO.lock().unwrap();
    *about_to += 1;
    COMPANY.notify_all();
    let alone = |about_to: &mut usize| *about_to < 2;
    about_to = COMPANY.wait_timeout_while(about_to, Duration::from_millis(500), alone).unwrap().0;
    *about_to -= 1;
}

impl Broken {
    fn tasks(&self, list: &ListName) -> BTreeMap<TaskId, Task> {
        let mut tasks = BTreeMap::new();
        let read = self.store.read(Some(list), &mut |snapshot| {
            let page = snapshot.page(&PageQuery::all(1_000, Timestamp::from_millis(0)))?;
            for row in page.rows {
                tasks.extend(snapshot.task(&row.id)?.map(|task| (row.id, task)));
            }
            Ok(())
        });
        // A list that is not made yet has no tasks.
        read.map_or_else(|_| BTreeMap::new(), |()| tasks)
    }
}

impl Store for Broken {
    fn abilities(&self) -> Abilities {
        self.store.abilities()
    }

    fn has_bus(&self) -> bool {
        self.store.has_bus()
    }

    fn index_texts(&self) -> Result<(), StoreError> {
        self.store.index_texts()
    }

    fn describe(&self) -> String {
        format!("{:?}", self.lie)
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        self.store.now()
    }

    fn locate(&self, id: &TaskId) -> Result<Option<ListName>, StoreError> {
        self.store.locate(id)
    }

    fn read(&self, list: Option<&ListName>, f: &mut ReadBody<'_>) -> Result<(), StoreError> {
        self.store
            .read(list, &mut |snapshot| f(&Liar { view: View::Read(snapshot), lie: self.lie, old: BTreeMap::new() }))
    }

    fn write(&self, list: Option<&ListName>, f: &mut WriteBody<'_>) -> Result<(), Abort> {
        let mut old = BTreeMap::new();
        if let Some(list) = list.filter(|_| self.lie == Lie::TasksOfYesterday) {
            old = self.tasks(list);
            keep_company(&old);
        }
        let mut result = Ok(());
        let written = self.store.write(list, &mut |tx| {
            result = f(&mut Liar { view: View::Write(tx), lie: self.lie, old: std::mem::take(&mut old) });
            let kept = result.is_ok() || self.lie == Lie::RefusedIsKept;
            if kept { Ok(()) } else { Err(StoreError::Moved { store: String::new() }.into()) }
        });
        result.and(if matches!(written, Err(Abort::Failed(StoreError::Moved { .. }))) { Ok(()) } else { written })
    }

    fn version(&self) -> Result<u64, StoreError> {
        if self.lie == Lie::NothingEverChanges { Ok(1) } else { self.store.version() }
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.store.wait(seen, timeout)
    }
}

enum View<'a> {
    Read(&'a dyn Snapshot),
    Write(&'a mut dyn Tx),
}

pub(crate) struct Liar<'a> {
    view: View<'a>,
    lie: Lie,
    old: BTreeMap<TaskId, Task>,
}

impl Liar<'_> {
    pub(crate) fn is(&self, lie: Lie) -> bool {
        self.lie == lie
    }

    pub(crate) fn ask(&self) -> &dyn Snapshot {
        match &self.view {
            View::Read(snapshot) => *snapshot,
            View::Write(tx) => &**tx,
        }
    }

    pub(crate) fn tell(&mut self) -> &mut dyn Tx {
        match &mut self.view {
            View::Read(_) => unreachable!("a snapshot is not written to"),
            View::Write(tx) => &mut **tx,
        }
    }
}

/// Answers that are passed on, unless this lie is told: then the answer is another.
macro_rules! answers {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty $(, $lie:ident => $other:expr)?;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> $out {
            $(if self.is(Lie::$lie) { return Ok($other); })?
            self.ask().$name($($arg),*)
        })*
    };
}

impl Neighbourhood for Liar<'_> {
    fn task(&self, id: &TaskId) -> Look<Option<Task>> {
        if let Some(task) = self.old.get(id) {
            return Ok(Some(task.clone()));
        }
        let mut task = self.ask().task(id)?;
        if let Some(Task { state: State::InProgress { lease, .. }, .. }) = &mut task
            && self.is(Lie::NoLeases)
        {
            *lease = None;
        }
        Ok(task)
    }

    answers! {
        rules() -> Look<ListRules>;
        tombstone(id: &TaskId) -> Look<Option<Task>>, NothingWasDeleted => None;
        is_known(who: &Identity) -> Look<bool>;
        is_alive(who: &Identity, now: Timestamp) -> Look<bool>, EverybodyIsAlive => true;
        live_of(ids: &[TaskId]) -> Look<Vec<TaskId>>;
        open_of(ids: &[TaskId]) -> Look<Vec<TaskId>>, NothingIsOpen => Vec::new();
        children(parent: &TaskId, open: bool, limit: usize) -> Look<Vec<TaskId>>, NobodyHasChildren => Vec::new();
        last_sibling(parent: Option<&TaskId>) -> Look<Option<Sibling>>;
        sibling_before(parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>>, NothingBefore => None;
        sibling_after(parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>>, NothingAfter => None;
        siblings(parent: Option<&TaskId>) -> Look<Vec<Sibling>>;
        depth(id: &TaskId) -> Look<usize>;
        height(id: &TaskId) -> Look<usize>;
        way(from: &TaskId, to: &TaskId) -> Look<Option<Vec<TaskId>>>, NoWayLeadsAnywhere => None;
        dependents(blocker: &TaskId) -> Look<Vec<Dependent>>, NobodyWaits => Vec::new();
        suspects(now: Timestamp, limit: usize) -> Look<Vec<TaskId>>;
        paths_in_use() -> Look<Vec<(TaskId, Vec<PathGlob>)>>;
        ready(scan: &ReadyScan) -> Look<Vec<Task>>;
        held(limit: usize) -> Look<Vec<Task>>;
        tally(now: Timestamp) -> Look<Tally>;
    }
}

impl Snapshot for Liar<'_> {
    fn bus(&self) -> Option<&dyn BusSnapshot> {
        Some(self)
    }

    fn page(&self, query: &PageQuery) -> Result<Page, StoreError> {
        let mut page = self.ask().page(query)?;
        if self.is(Lie::PagesSkipARow) && query.after.is_some() && !page.rows.is_empty() {
            page.rows.remove(0);
        }
        Ok(page)
    }

    fn history(&self, id: &TaskId, before: Option<u64>, limit: usize) -> Result<Vec<RevisionRow>, StoreError> {
        self.ask().history(id, before, if self.is(Lie::OnlyTheNewestRevision) { 1 } else { limit })
    }

    answers! {
        lists() -> Result<Vec<ListRow>, StoreError>;
        list(name: &ListName) -> Result<Option<ListRow>, StoreError>;
        seq(id: &TaskId) -> Result<Option<u64>, StoreError>;
        ready_with_paths(now: Timestamp) -> Result<Vec<(TaskId, Vec<PathGlob>)>, StoreError>;
        deleted(limit: usize) -> Result<(Vec<Task>, u64), StoreError>, NothingWasDeleted => (Vec::new(), 0);
        session(name: &Identity) -> Result<Option<SessionRow>, StoreError>;
        sessions(now: Timestamp) -> Result<Vec<SessionRow>, StoreError>;
        held_by(owner: &Identity) -> Result<Vec<(ListName, TaskId)>, StoreError>;
        has_expired_receipts(now: Timestamp) -> Result<bool, StoreError>;
        receipt(who: &Identity, key: &Key, now: Timestamp) -> Result<Option<ReceiptRow>, StoreError>, NoReceipts => None;
    }
}

/// Verbs that are passed on.
macro_rules! verbs {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&mut self, $($arg: $type),*) -> Result<$out, StoreError> {
            self.tell().$name($($arg),*)
        })*
    };
}

impl Tx for Liar<'_> {
    fn bus_mut(&mut self) -> Option<&mut dyn BusTx> {
        Some(self)
    }

    fn append(&mut self, change: &Change, author: &Author) -> Result<Appended, StoreError> {
        self.old.remove(&change.task.id);
        self.tell().append(change, author)
    }

    verbs! {
        mint(count: usize) -> Vec<TaskId>;
        create_list(name: &ListName, rules: ListRules, now: Timestamp) -> ();
        put_session(session: &SessionRow) -> ();
        extend_sessions(token: &str, alive_until: Timestamp) -> usize;
        end_sessions(token: &str) -> ();
        put_receipt(sender: &Identity, key: &Key, receipt: &ReceiptRow) -> ();
        drop_receipts(now: Timestamp, limit: usize) -> usize;
    }
}
