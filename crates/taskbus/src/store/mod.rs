//! The seam: what the engine needs of a place that keeps tasks. Small, object-safe, sync, and without rules.
//!
//! # Contract
//! - [`Store::write`] opens one write transaction, hands out a [`Tx`], and commits when the closure returns `Ok`. A
//!   refusal, an error or a panic leaves no trace. Transactions of one list are serial, across processes too.
//! - When `write` has returned `Ok`, the change is on disk (unless the store was opened with less), and so is everything
//!   it saw: an answer may rest on what somebody wrote who died before it was.
//! - [`Store::read`] shows one consistent snapshot and never waits for writers.
//! - Ids come from [`Tx::mint`]: never reused, not after a crash, a delete or a reopen.
//! - A store never judges: it answers the questions of [`Neighbourhood`] and writes what it is told.
//! - No path deletes, truncates or re-initialises something that is not empty and not understood.
//!
//! Stores import this module and the core, never the engine.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use taskbus_core::change::{Change, Kind};
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::neighbourhood::{ListRules, LookupError, Neighbourhood};
use taskbus_core::refusal::Refusal;
use taskbus_core::task::Task;
use taskbus_core::text::Note;
use taskbus_core::time::Timestamp;

pub mod bus;
pub mod chain;
pub mod claude;
mod clock;
mod look;
pub mod memory;
mod page;
mod plain;
mod revision;
pub mod rows;
pub mod sidecar;
pub mod small;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod steady;
pub mod verdict;
mod watch;

use self::bus::{BusSnapshot, BusTx};
pub use clock::{Clock, ManualClock, SystemClock};
pub use page::{Page, PageQuery, Row, View};

/// What a store can do beyond the contract. A missing ability is declared, never silently skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// What is written survives the process.
    pub durable: bool,
    /// Other processes may open the same store at the same time.
    pub shared_across_processes: bool,
    /// It keeps sessions, so that dead owners can be told from live ones.
    pub liveness: bool,
}

/// A place that keeps task lists, sessions and receipts.
pub trait Store: Send + Sync {
    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// Whether it has channels, messages and memories beside its lists: whether [`Snapshot::bus`] and
    /// [`Tx::bus_mut`] answer.
    fn has_bus(&self) -> bool {
        false
    }

    /// A line for people: what it is and where, such as `sqlite:/home/…/taskbus.db`.
    fn describe(&self) -> String;

    /// Looks at everything: follows the chain of revisions, replays each task's history by the rules, recomputes every
    /// derived row, and says what differs. A store that keeps no history has nothing to say.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read at all.
    fn verify(&self, progress: &mut verdict::Progress<'_>) -> Result<Option<verdict::Verdict>, StoreError> {
        let _ = progress;
        Ok(None)
    }

    /// The time by the store's clock.
    ///
    /// # Errors
    /// [`StoreError`] when a remote clock cannot be read.
    fn now(&self) -> Result<Timestamp, StoreError>;

    /// The list that a task belongs to, live or deleted.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot answer.
    fn locate(&self, id: &TaskId) -> Result<Option<ListName>, StoreError>;

    /// Runs `f` on a snapshot. `list` is the list that the [`Neighbourhood`] questions are about; without one
    /// they fail.
    ///
    /// # Errors
    /// What `f` returned, or [`StoreError`] when no snapshot could be had.
    fn read(&self, list: Option<&ListName>, f: &mut ReadBody<'_>) -> Result<(), StoreError>;

    /// Runs `f` in a write transaction and commits when it returns `Ok`. May run it again from its start when a
    /// writer that knows no transactions came between; only the last run counts.
    ///
    /// # Errors
    /// What `f` returned (then nothing was written), or [`Abort::Failed`] when the transaction could not begin
    /// or commit.
    fn write(&self, list: Option<&ListName>, f: &mut WriteBody<'_>) -> Result<(), Abort>;

    /// As [`Store::write`], on the list that a task belongs to, live or deleted: `f` is told which, or that there is none.
    ///
    /// # Errors
    /// As [`Store::write`].
    fn write_where(&self, id: &TaskId, f: &mut WhereBody<'_>) -> Result<(), Abort> {
        let list = self.locate(id)?;
        self.write(list.as_ref(), &mut |tx| f(tx, list.as_ref()))
    }

    /// Brings what a search looks at up to date; without it a search may miss what was written last. To be called
    /// outside every transaction, before a search and now and then. A store that indexes as it writes has nothing to do.
    ///
    /// # Errors
    /// [`StoreError`] when the index cannot be written.
    fn index_texts(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// A number that differs after every commit of any process.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot answer.
    fn version(&self) -> Result<u64, StoreError>;

    /// Returns when [`Store::version`] may differ from `seen`, or after `timeout`, whichever is first. Costs
    /// nothing while nobody writes.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be watched.
    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError>;

    /// The same, which also ends soon after a [`Store::nudge`] if `stop` then says so; so the caller needs no thread that
    /// waits in its place. None, and at once, from a store that nobody can nudge.
    fn wait_unless(&self, _seen: u64, _timeout: Duration, _stop: &dyn Fn() -> bool) -> Option<Result<(), StoreError>> {
        None
    }

    /// Has every [`Store::wait_unless`] of this handle ask its `stop`.
    fn nudge(&self) {}
}

/// The body of a read.
pub type ReadBody<'a> = dyn FnMut(&dyn Snapshot) -> Result<(), StoreError> + 'a;

/// The body of a write.
pub type WriteBody<'a> = dyn FnMut(&mut dyn Tx) -> Result<(), Abort> + 'a;

/// The body of a write on the list of a task.
pub type WhereBody<'a> = dyn FnMut(&mut dyn Tx, Option<&ListName>) -> Result<(), Abort> + 'a;

/// Why a write transaction was rolled back.
#[derive(Debug, thiserror::Error)]
pub enum Abort {
    /// The rules refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] StoreError),
}

impl From<LookupError> for Abort {
    fn from(error: LookupError) -> Self {
        Abort::Failed(error.into())
    }
}

/// A failure of a store. Nothing was written, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be opened or reached.
    #[error("the store {store} cannot be opened: {reason}; {next}")]
    Unavailable {
        /// Which store.
        store: String,
        /// Why.
        reason: String,
        /// What to do next.
        next: &'static str,
    },
    /// What is there is no store of ours, or it is damaged. It was left untouched.
    #[error("the store {store} cannot be read as a taskbus store: {reason}; it was left untouched; {next}")]
    Damaged {
        /// Which store.
        store: String,
        /// Why.
        reason: String,
        /// What to do next.
        next: &'static str,
    },
    /// It was written by a newer version, in a way this one cannot write.
    #[error("the store {store} has schema {found}, this taskbus knows up to {known}: update taskbus")]
    Newer {
        /// Which store.
        store: String,
        /// The schema there.
        found: u32,
        /// The newest schema known here.
        known: u32,
    },
    /// It can be read but not written.
    #[error(
        "the store {store} is read-only: {reason}; reading works, writing needs write access to the file and its directory"
    )]
    ReadOnly {
        /// Which store.
        store: String,
        /// Why.
        reason: String,
    },
    /// Other writers held it for longer than the deadline.
    #[error("the store {store} was busy for {waited_ms} ms; nothing was written, send the same call again")]
    Busy {
        /// Which store.
        store: String,
        /// How long, in milliseconds.
        waited_ms: u64,
    },
    /// The path names another file than the one that is open.
    #[error("the store {store} was moved or replaced while it was open; nothing was written, restart this process")]
    Moved {
        /// Which store.
        store: String,
    },
    /// It is behind what it acknowledged: its newest changes are gone, or an earlier copy was put in its place.
    #[error(
        "the store {store} lost acknowledged changes: its newest number is {seq}, but {high} was given out; nothing was \
         written, reading works; put the newer file back together with its log, or go on without what is lost: taskbus doctor \
         --accept-rollback"
    )]
    RolledBack {
        /// Which store.
        store: String,
        /// Its newest seq.
        seq: u64,
        /// The highest that is known to have been acknowledged.
        high: u64,
    },
    /// The disk is full.
    #[error(
        "the store {store} cannot grow: {reason}; nothing was written, free some space and send the same call again"
    )]
    Full {
        /// Which store.
        store: String,
        /// Why.
        reason: String,
    },
    /// Anything else.
    #[error("the store {store} failed: {source}")]
    Failed {
        /// Which store.
        store: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Whether the same call may pass later without anybody mending anything.
    #[must_use]
    pub fn retryable(&self) -> bool {
        matches!(self, StoreError::Busy { .. } | StoreError::Failed { .. } | StoreError::Full { .. })
    }
}

/// A lookup fails with the store's own error; take that back out.
impl From<LookupError> for StoreError {
    fn from(error: LookupError) -> Self {
        match error.0.downcast::<StoreError>() {
            Ok(error) => *error,
            Err(source) => StoreError::Failed { store: "in use".to_owned(), source },
        }
    }
}

impl From<StoreError> for LookupError {
    fn from(error: StoreError) -> Self {
        LookupError(Box::new(error))
    }
}

/// A consistent view of a store.
pub trait Snapshot: Neighbourhood {
    /// The bus as of this snapshot, if the store has one.
    fn bus(&self) -> Option<&dyn BusSnapshot> {
        None
    }

    /// Every list, by name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot answer; so for every method here.
    fn lists(&self) -> Result<Vec<ListRow>, StoreError>;

    /// One list.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list(&self, name: &ListName) -> Result<Option<ListRow>, StoreError>;

    /// The seq of the newest revision of a task of the list in scope, live or deleted.
    ///
    /// # Errors
    /// [`StoreError`].
    fn seq(&self, id: &TaskId) -> Result<Option<u64>, StoreError>;

    /// One page of the list in scope, in tree order.
    ///
    /// # Errors
    /// [`StoreError`].
    fn page(&self, query: &PageQuery) -> Result<Page, StoreError>;

    /// The ready tasks of the list in scope that declare paths.
    ///
    /// # Errors
    /// [`StoreError`].
    fn ready_with_paths(&self, now: Timestamp) -> Result<Vec<(TaskId, Vec<PathGlob>)>, StoreError>;

    /// Deleted tasks of the list in scope as they were, the highest ids first, at most `limit`; and how many there are.
    ///
    /// # Errors
    /// [`StoreError`].
    fn deleted(&self, limit: usize) -> Result<(Vec<Task>, u64), StoreError>;

    /// The revisions of a task, newest first, at most `limit`, older than `before` if given.
    ///
    /// # Errors
    /// [`StoreError`].
    fn history(&self, id: &TaskId, before: Option<u64>, limit: usize) -> Result<Vec<RevisionRow>, StoreError>;

    /// One session, live or not.
    ///
    /// # Errors
    /// [`StoreError`].
    fn session(&self, name: &Identity) -> Result<Option<SessionRow>, StoreError>;

    /// Every session whose `alive_until` is after `now`, by name.
    ///
    /// # Errors
    /// [`StoreError`].
    fn sessions(&self, now: Timestamp) -> Result<Vec<SessionRow>, StoreError>;

    /// The in-progress tasks that this identity holds, in every list.
    ///
    /// # Errors
    /// [`StoreError`].
    fn held_by(&self, owner: &Identity) -> Result<Vec<(ListName, TaskId)>, StoreError>;

    /// Whether any receipt has expired, so that [`Tx::drop_receipts`] has something to do.
    ///
    /// # Errors
    /// [`StoreError`].
    fn has_expired_receipts(&self, now: Timestamp) -> Result<bool, StoreError>;

    /// The receipt of a key, unless it has expired.
    ///
    /// # Errors
    /// [`StoreError`].
    fn receipt(&self, sender: &Identity, key: &Key, now: Timestamp) -> Result<Option<ReceiptRow>, StoreError>;
}

/// A write transaction: a snapshot that sees its own writes, and the verbs.
pub trait Tx: Snapshot {
    /// The bus inside this transaction, if the store has one.
    fn bus_mut(&mut self) -> Option<&mut dyn BusTx> {
        None
    }

    /// `count` fresh ids, in order. On a store with number ids each must be used by the next `count`
    /// [`Tx::append`]s of [`Kind::Created`], in this order, before anything else is appended.
    ///
    /// # Errors
    /// [`StoreError`]; so for every method here.
    fn mint(&mut self, count: usize) -> Result<Vec<TaskId>, StoreError>;

    /// Writes one revision and keeps every index true: the task's own row, its edges, and what depends on it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn append(&mut self, change: &Change, author: &Author) -> Result<Appended, StoreError>;

    /// Makes a list.
    ///
    /// # Errors
    /// [`StoreError`].
    fn create_list(&mut self, name: &ListName, rules: ListRules, now: Timestamp) -> Result<(), StoreError>;

    /// Writes a session, replacing the one of that name, and remembers the name for ever.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_session(&mut self, session: &SessionRow) -> Result<(), StoreError>;

    /// Moves `alive_until` of every session with this token forward, never back; says how many there are.
    ///
    /// # Errors
    /// [`StoreError`].
    fn extend_sessions(&mut self, token: &str, alive_until: Timestamp) -> Result<usize, StoreError>;

    /// Ends every session with this token.
    ///
    /// # Errors
    /// [`StoreError`].
    fn end_sessions(&mut self, token: &str) -> Result<(), StoreError>;

    /// Keeps the answer to a key.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_receipt(&mut self, sender: &Identity, key: &Key, receipt: &ReceiptRow) -> Result<(), StoreError>;

    /// Drops receipts that have expired, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn drop_receipts(&mut self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// A task list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRow {
    /// Its name.
    pub name: ListName,
    /// Its settings.
    pub rules: ListRules,
    /// When it was made.
    pub created_at: Timestamp,
    /// How many live tasks it has.
    pub live: u64,
    /// The seq of its newest revision; 0 for none.
    pub latest_seq: u64,
}

/// A session: one identity, held by one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    /// The display name.
    pub name: Identity,
    /// The random token of the process that holds it.
    pub token: String,
    /// Dead when this is not after now: 30 s past the last heartbeat, or the end of a lease taken by a command.
    pub alive_until: Timestamp,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// What it works on.
    pub context: String,
    /// The client program and its version, as it said.
    pub client: String,
    /// The process id, for people.
    pub pid: u32,
    /// The program that started this process, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<Harness>,
}

/// The process that an agent runs in: it starts the server and the hooks, which find each other by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Harness {
    /// Its process id.
    pub pid: u32,
    /// When it started, in any unit that tells it from a later process of that id; 0 when that is not known.
    pub start: u64,
}

impl Harness {
    /// Whether both are the same process, as far as is known.
    #[must_use]
    pub fn is(self, other: Harness) -> bool {
        self.pid == other.pid && (self.start == other.start || self.start == 0 || other.start == 0)
    }
}

/// Who writes, for the message envelope; the identity itself is in the change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// The session's context; empty for the tick.
    pub context: String,
    /// The client program; empty for the tick.
    pub client: String,
}

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The seq of the new revision: its place in the global order.
    pub seq: u64,
    /// The seq of the revision it replaced; 0 for none.
    pub replaced: u64,
    /// How long the document of the task is, in bytes.
    pub bytes: usize,
}

/// The stored answer to a keyed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptRow {
    /// What was asked, as a hash.
    pub fingerprint: String,
    /// The answer, as JSON.
    pub answer: String,
    /// When it may be forgotten.
    pub expires_at: Timestamp,
}

/// One revision of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionRow {
    /// Its place in the global order.
    pub seq: u64,
    /// Why it exists.
    pub kind: Kind,
    /// The task as it was then.
    pub task: Task,
    /// The remark made with it.
    pub note: Option<Note>,
    /// The session's context.
    pub context: String,
    /// The client program.
    pub client: String,
}

/// Runs a read and hands its result out.
///
/// # Errors
/// As [`Store::read`].
pub fn read_with<T>(
    store: &dyn Store,
    list: Option<&ListName>,
    mut f: impl FnMut(&dyn Snapshot) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut result = None;
    store.read(list, &mut |snapshot| {
        result = Some(f(snapshot)?);
        Ok(())
    })?;
    Ok(result.expect("BUG: a read that returned Ok ran its body"))
}

/// Runs a write and hands its result out.
///
/// # Errors
/// As [`Store::write`].
pub fn write_with<T>(
    store: &dyn Store,
    list: Option<&ListName>,
    mut f: impl FnMut(&mut dyn Tx) -> Result<T, Abort>,
) -> Result<T, Abort> {
    let mut result = None;
    store.write(list, &mut |tx| {
        result = Some(f(tx)?);
        Ok(())
    })?;
    Ok(result.expect("BUG: a write that returned Ok ran its body"))
}
