//! Stores that do one thing wrong, to see that it is found out: what a body asks or says passes through here.

use std::sync::Arc;
use std::time::Duration;

use taskbus::core::change::{Change, Kind};
use taskbus::core::glob::PathGlob;
use taskbus::core::id::TaskId;
use taskbus::core::name::{Identity, Key, ListName};
use taskbus::core::neighbourhood::{Dependent, ListRules, Look, Neighbourhood, ReadyScan, Sibling, Tally};
use taskbus::core::task::Task;
use taskbus::core::time::Timestamp;
use taskbus::store::bus::{BusSnapshot, BusTx};
use taskbus::store::{
    Abilities, Abort, Appended, Author, ListRow, Page, PageQuery, ReadBody, ReceiptRow, RevisionRow, SessionRow,
    Snapshot, Store, StoreError, Tx, WriteBody,
};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    None,
    /// A task that is taken back keeps its fence.
    KeepsTheFence,
    /// Nobody counts as alive.
    BuriesTheLiving,
    /// A repeated call is done again.
    ForgetsReceipts,
    /// Every fourth write is answered and not kept.
    AnswersFirst,
    /// What waits for others is handed out.
    StartsTheBlocked,
    /// Every revision is written twice.
    WritesTwice,
}

impl Sabotage {
    pub(crate) const ALL: [Sabotage; 6] = [
        Sabotage::KeepsTheFence,
        Sabotage::BuriesTheLiving,
        Sabotage::ForgetsReceipts,
        Sabotage::AnswersFirst,
        Sabotage::StartsTheBlocked,
        Sabotage::WritesTwice,
    ];
}

pub(crate) struct Broken {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sabotage: Sabotage,
    pub(crate) writes: std::sync::atomic::AtomicU64,
}

impl Broken {
    fn kept(&self) -> bool {
        let count = self.writes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.sabotage != Sabotage::AnswersFirst || count % 4 != 3
    }
}

impl Store for Broken {
    fn abilities(&self) -> Abilities {
        self.store.abilities()
    }

    fn has_bus(&self) -> bool {
        self.store.has_bus()
    }

    fn describe(&self) -> String {
        format!("{:?}", self.sabotage)
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        self.store.now()
    }

    fn locate(&self, id: &TaskId) -> Result<Option<ListName>, StoreError> {
        self.store.locate(id)
    }

    fn read(&self, list: Option<&ListName>, f: &mut ReadBody<'_>) -> Result<(), StoreError> {
        self.store.read(list, f)
    }

    fn write(&self, list: Option<&ListName>, f: &mut WriteBody<'_>) -> Result<(), Abort> {
        let kept = self.kept();
        let written = self.store.write(list, &mut |tx| {
            f(&mut Twisted { tx, sabotage: self.sabotage })?;
            if kept { Ok(()) } else { Err(StoreError::Moved { store: "sabotage".to_owned() }.into()) }
        });
        if matches!(written, Err(Abort::Failed(StoreError::Moved { .. }))) { Ok(()) } else { written }
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.store.version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.store.wait(seen, timeout)
    }
}

struct Twisted<'a> {
    tx: &'a mut dyn Tx,
    sabotage: Sabotage,
}

/// Answers that are passed on, unless this goes wrong: then the answer is another.
macro_rules! answers {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty $(, $wrong:ident => $other:expr)?;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> $out {
            $(if self.sabotage == Sabotage::$wrong { return Ok($other); })?
            self.tx.$name($($arg),*)
        })*
    };
}

impl Neighbourhood for Twisted<'_> {
    answers! {
        rules() -> Look<ListRules>;
        task(id: &TaskId) -> Look<Option<Task>>;
        tombstone(id: &TaskId) -> Look<Option<Task>>;
        is_known(who: &Identity) -> Look<bool>;
        is_alive(who: &Identity, now: Timestamp) -> Look<bool>, BuriesTheLiving => false;
        live_of(ids: &[TaskId]) -> Look<Vec<TaskId>>;
        open_of(ids: &[TaskId]) -> Look<Vec<TaskId>>, StartsTheBlocked => Vec::new();
        children(parent: &TaskId, open: bool, limit: usize) -> Look<Vec<TaskId>>;
        last_sibling(parent: Option<&TaskId>) -> Look<Option<Sibling>>;
        sibling_before(parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>>;
        sibling_after(parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>>;
        siblings(parent: Option<&TaskId>) -> Look<Vec<Sibling>>;
        depth(id: &TaskId) -> Look<usize>;
        height(id: &TaskId) -> Look<usize>;
        way(from: &TaskId, to: &TaskId) -> Look<Option<Vec<TaskId>>>;
        dependents(blocker: &TaskId) -> Look<Vec<Dependent>>;
        suspects(now: Timestamp, limit: usize) -> Look<Vec<TaskId>>;
        paths_in_use() -> Look<Vec<(TaskId, Vec<PathGlob>)>>;
        held(limit: usize) -> Look<Vec<Task>>;
        tally(now: Timestamp) -> Look<Tally>;
    }

    fn ready(&self, scan: &ReadyScan) -> Look<Vec<Task>> {
        if self.sabotage != Sabotage::StartsTheBlocked {
            return self.tx.ready(scan);
        }
        let page = self
            .tx
            .page(&PageQuery { status: Some(taskbus::core::task::Status::Pending), ..PageQuery::all(8, scan.now) })?;
        page.rows.iter().filter_map(|row| self.tx.task(&row.id).transpose()).collect()
    }
}

impl Snapshot for Twisted<'_> {
    fn bus(&self) -> Option<&dyn BusSnapshot> {
        self.tx.bus()
    }

    answers! {
        page(query: &PageQuery) -> Result<Page, StoreError>;
        history(id: &TaskId, before: Option<u64>, limit: usize) -> Result<Vec<RevisionRow>, StoreError>;
        lists() -> Result<Vec<ListRow>, StoreError>;
        list(name: &ListName) -> Result<Option<ListRow>, StoreError>;
        seq(id: &TaskId) -> Result<Option<u64>, StoreError>;
        ready_with_paths(now: Timestamp) -> Result<Vec<(TaskId, Vec<PathGlob>)>, StoreError>;
        deleted(limit: usize) -> Result<(Vec<Task>, u64), StoreError>;
        session(name: &Identity) -> Result<Option<SessionRow>, StoreError>;
        sessions(now: Timestamp) -> Result<Vec<SessionRow>, StoreError>;
        held_by(owner: &Identity) -> Result<Vec<(ListName, TaskId)>, StoreError>;
        has_expired_receipts(now: Timestamp) -> Result<bool, StoreError>;
        receipt(who: &Identity, key: &Key, now: Timestamp) -> Result<Option<ReceiptRow>, StoreError>, ForgetsReceipts => None;
    }
}

macro_rules! verbs {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&mut self, $($arg: $type),*) -> Result<$out, StoreError> {
            self.tx.$name($($arg),*)
        })*
    };
}

impl Tx for Twisted<'_> {
    fn bus_mut(&mut self) -> Option<&mut dyn BusTx> {
        self.tx.bus_mut()
    }

    fn append(&mut self, change: &Change, author: &Author) -> Result<Appended, StoreError> {
        let mut change = change.clone();
        if self.sabotage == Sabotage::KeepsTheFence && change.kind == Kind::Reclaimed {
            change.task.fence -= 1;
        }
        let appended = self.tx.append(&change, author)?;
        if self.sabotage == Sabotage::WritesTwice && change.kind == Kind::Changed {
            return self.tx.append(&change, author);
        }
        Ok(appended)
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
