//! The smallest store: one list, six verbs, one transaction boundary (what Sema asks of a `TaskListStore`).
//!
//! Whoever can do this much gets the whole engine through an adapter, which answers every other
//! question from the list in memory. Richer stores implement [`Store`](super::Store) themselves.
//!
//! # Contract
//! - [`RowStore::transact`] is exclusive, across processes too if the store is shared: what one body reads and then
//!   writes, no other body interleaves. When the body returns an error or panics, nothing of it is kept. A body may
//!   be run again from its start when a writer that knows no transactions came between: only its last run counts.
//! - When `transact` has returned `Ok`, what it wrote is on disk, if the store is durable.
//! - [`Rows::allocate`] never gives an id twice: not after a crash, a delete, a reopen, nor to two callers at once.
//! - Values are detached both ways: a task that was handed out does not change, one that was taken is copied.
//! - [`Rows::list`] is ordered: numbers ascending, then text; the same on every call.
//! - What a store does not keep of a task it leaves empty when it reads it back: `revision` and `fence` are 0 then,
//!   and whoever holds the list in memory counts on from what it knew.
//! - A row that lacks its dependency lists is read as one with none; a row that cannot be read is reported, kept,
//!   and never taken for an absent one.
//! - Nothing that was not written by this contract is deleted or rewritten.

use std::sync::Arc;
use std::time::{Duration, Instant};

use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::policy::Policy;
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;

use super::{Abilities, Abort, Clock as _, StoreError, SystemClock};

/// The time between two looks of a store that nobody tells of changes.
const LOOK: Duration = Duration::from_millis(10);

/// A place that keeps the tasks of one list.
pub trait RowStore: Send + Sync {
    /// What it can do. A row store keeps no sessions, so `liveness` is false.
    fn abilities(&self) -> Abilities;

    /// A line for people: what it is and where; its list's name, if there is no more to say.
    fn describe(&self) -> String {
        self.list_name().to_string()
    }

    /// The name under which its one list is known.
    fn list_name(&self) -> ListName;

    /// How strict its list is.
    fn policy(&self) -> Policy {
        Policy::Strict
    }

    /// Reclaims after which a task of its list is parked; 0: never.
    fn max_reclaims(&self) -> u32 {
        0
    }

    /// The time by the store's clock; this machine's, if it has none of its own.
    ///
    /// # Errors
    /// [`StoreError`] when the clock cannot be read.
    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(SystemClock.now())
    }

    /// Runs `f` alone and keeps what it wrote when it returns `Ok`.
    ///
    /// # Errors
    /// What `f` returned (then nothing was kept), or [`Abort::Failed`].
    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort>;

    /// Every row, without waiting for writers.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    fn snapshot(&self) -> Result<RowSet, StoreError>;

    /// A number that differs after every change of any process.
    ///
    /// # Errors
    /// [`StoreError`].
    fn version(&self) -> Result<u64, StoreError>;

    /// Returns when [`RowStore::version`] may differ from `seen`, or after `timeout`. A store that nobody tells of
    /// changes looks every few milliseconds.
    ///
    /// # Errors
    /// [`StoreError`].
    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        let deadline = Instant::now() + timeout;
        while self.version()? == seen {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(LOOK));
        }
        Ok(())
    }
}

/// Passes every call on, so that a shared store of rows is one, too.
impl<R: RowStore + ?Sized> RowStore for Arc<R> {
    fn abilities(&self) -> Abilities {
        (**self).abilities()
    }

    fn describe(&self) -> String {
        (**self).describe()
    }

    fn list_name(&self) -> ListName {
        (**self).list_name()
    }

    fn policy(&self) -> Policy {
        (**self).policy()
    }

    fn max_reclaims(&self) -> u32 {
        (**self).max_reclaims()
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        (**self).now()
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        (**self).transact(f)
    }

    fn snapshot(&self) -> Result<RowSet, StoreError> {
        (**self).snapshot()
    }

    fn version(&self) -> Result<u64, StoreError> {
        (**self).version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        (**self).wait(seen, timeout)
    }
}

/// The body of a transaction on rows.
pub type RowsBody<'a> = dyn FnMut(&mut dyn Rows) -> Result<(), Abort> + 'a;

/// The six verbs, inside a transaction.
pub trait Rows {
    /// The live row with this id.
    ///
    /// # Errors
    /// [`StoreError`]; so for every verb.
    fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError>;

    /// Writes a row.
    ///
    /// # Errors
    /// [`StoreError`].
    fn set(&mut self, task: &Task) -> Result<(), StoreError>;

    /// Removes a live row for good, or keeps it as a tombstone where the store shows those; says whether it existed.
    ///
    /// # Errors
    /// [`StoreError`].
    fn delete(&mut self, id: &TaskId) -> Result<bool, StoreError>;

    /// Deletes a row; a store that shows tombstones keeps the task as given. Said again for a tombstone, it changes
    /// that. The others need not write this.
    ///
    /// # Errors
    /// [`StoreError`].
    fn bury(&mut self, task: &Task) -> Result<bool, StoreError> {
        self.delete(&task.id)
    }

    /// Every row.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list(&self) -> Result<RowSet, StoreError>;

    /// A fresh id.
    ///
    /// # Errors
    /// [`StoreError`].
    fn allocate(&mut self) -> Result<TaskId, StoreError>;
}

/// The rows of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowSet {
    /// The live ones, in the contract's order.
    pub live: Vec<Task>,
    /// Deleted ones that the store still shows, in the same order.
    pub deleted: Vec<Task>,
    /// Ids whose rows are there but cannot be read: taken for good, neither live nor deleted, and still blocking
    /// whatever names them as a blocker. Reading or writing one of them is [`StoreError::Damaged`].
    pub unreadable: Vec<TaskId>,
}
