//! A store in memory: for tests, for tries, and the model that the other stores are compared with.
//!
//! One mutex holds everything; lists are [`Board`]s of the core. A write keeps an undo log and takes everything
//! back when it is refused, fails or panics. It lasts as long as the process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taskbus_core::board::Board;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::time::Timestamp;

use self::bus::Bus;
use self::desk::Desk;
use super::steady::Steady;
use super::{
    Abilities, Abort, Clock, ReadBody, ReceiptRow, RevisionRow, SessionRow, Store, StoreError, SystemClock, WriteBody,
};

mod bus;
mod bus_tx;
pub(super) mod desk;
mod mirror;
mod page;
mod search;
mod settle;
mod tx;

/// A store in memory.
pub struct MemoryStore {
    state: Mutex<State>,
    bell: Condvar,
    steady: Steady,
}

#[derive(Default)]
struct State {
    lists: BTreeMap<ListName, List>,
    homes: HashMap<TaskId, ListName>,
    /// The number of the newest revision or message, also when that is gone.
    seq: u64,
    /// Every revision of every list, by its seq.
    log: BTreeMap<u64, (ListName, RevisionRow)>,
    bus: Bus,
    sessions: BTreeMap<Identity, SessionRow>,
    known: BTreeSet<Identity>,
    receipts: BTreeMap<(Identity, Key), ReceiptRow>,
    version: u64,
    /// Whether this is the state behind a store of rows: one list, and nobody is ever unknown or dead.
    one_list: bool,
}

struct List {
    rules: ListRules,
    created_at: Timestamp,
    board: Board,
    live: u64,
    /// The seqs of each task's revisions, oldest first.
    revisions: HashMap<TaskId, Vec<u64>>,
    latest_seq: u64,
}

impl List {
    fn new(rules: ListRules, created_at: Timestamp) -> Self {
        Self { rules, created_at, board: Board::new(rules), live: 0, revisions: HashMap::new(), latest_seq: 0 }
    }
}

impl MemoryStore {
    /// An empty store that goes by this machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// An empty store that goes by this clock.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { state: Mutex::default(), bell: Condvar::new(), steady: Steady::new(clock) }
    }

    /// The state behind a store of rows: its one list is there from the start.
    pub(super) fn for_rows(list: &ListName, rules: ListRules, created_at: Timestamp) -> Self {
        let store = Self::new();
        let mut state = store.lock();
        state.one_list = true;
        state.lists.insert(list.clone(), List::new(rules, created_at));
        drop(state);
        store
    }

    pub(super) fn desk(&self, scope: Option<&ListName>) -> Desk<'_, '_> {
        Desk::new(self.lock(), scope)
    }

    /// A panic elsewhere leaves the state whole, because a dropped [`Desk`] undoes what it did.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn abilities(&self) -> Abilities {
        Abilities { durable: false, shared_across_processes: false, liveness: true }
    }

    fn has_bus(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.steady.now())
    }

    fn locate(&self, id: &TaskId) -> Result<Option<ListName>, StoreError> {
        Ok(self.lock().homes.get(id).cloned())
    }

    fn read(&self, list: Option<&ListName>, f: &mut ReadBody<'_>) -> Result<(), StoreError> {
        f(&self.desk(list))
    }

    fn write(&self, list: Option<&ListName>, f: &mut WriteBody<'_>) -> Result<(), Abort> {
        let mut desk = self.desk(list);
        desk.settle(&self.steady);
        f(&mut desk)?;
        if desk.work.commit() {
            self.bell.notify_all();
        }
        Ok(())
    }

    fn version(&self) -> Result<u64, StoreError> {
        Ok(self.lock().version)
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        let unchanged = |state: &mut State| state.version == seen;
        drop(self.bell.wait_timeout_while(self.lock(), timeout, unchanged).unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}
