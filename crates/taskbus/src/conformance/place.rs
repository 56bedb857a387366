//! Where a store under test is. A third party says here how its store is opened, and whatever else it can.

use std::process::Command;
use std::sync::Arc;

use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::policy::Policy;

use crate::store::rows::RowStore;
use crate::store::small::Small;
use crate::store::{ManualClock, Store};

/// A place of rows, made afresh for each check.
pub trait RowPlace: Send + Sync {
    /// Opens the store here, as another process would. One that lives only in this process is the same each time.
    fn open(&self) -> Arc<dyn RowStore>;

    /// The clock that the store goes by, if a test may move it.
    fn clock(&self) -> Option<Arc<ManualClock>> {
        None
    }

    /// A command whose process opens the store here and calls [`jobs::work`](super::jobs::work) on it; none for a store
    /// that other processes cannot open.
    fn command(&self) -> Option<Command> {
        None
    }

    /// Puts something here by hand, as another program would. None if that cannot be here.
    fn plant(&self, plant: Plant) -> Option<Planted> {
        let _ = plant;
        None
    }

    /// An id that another program may put here and that no id of ours has reached, given our newest.
    fn foreign_id(&self, newest: &TaskId) -> Option<TaskId> {
        TaskId::number(newest.as_number()? + 5).ok()
    }
}

/// What another program may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A task without lists of blockers, with the subject `planted`.
    WithoutLists,
    /// A row that is no task.
    Unreadable,
}

/// What was put somewhere by hand.
pub struct Planted {
    /// The task it is or would be.
    pub id: TaskId,
    /// Whether every byte of it is still as it was put there.
    pub is_intact: Box<dyn Fn() -> bool>,
}

/// A place of a whole store, made afresh for each check.
pub trait StorePlace: Send + Sync {
    /// Opens the store here, as another process would.
    fn open(&self) -> Arc<dyn Store>;

    /// The list to work on, and its settings; it is made if the store does not have it.
    fn list(&self) -> (ListName, ListRules) {
        let name = ListName::from_short("conformance").expect("BUG: a constant name is valid");
        (name, ListRules { policy: Policy::Strict, max_reclaims: 2 })
    }

    /// As [`RowPlace::clock`].
    fn clock(&self) -> Option<Arc<ManualClock>> {
        None
    }

    /// As [`RowPlace::command`], for [`jobs::work_on_store`](super::jobs::work_on_store).
    fn command(&self) -> Option<Command> {
        None
    }
}

/// Rows as a whole store.
pub struct OverRows<P>(pub P);

impl<P: RowPlace> StorePlace for OverRows<P> {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Small::new(self.0.open()).expect("the rows are opened"))
    }

    fn list(&self) -> (ListName, ListRules) {
        let rows = self.0.open();
        (rows.list_name(), ListRules { policy: rows.policy(), max_reclaims: rows.max_reclaims() })
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        self.0.clock()
    }

    fn command(&self) -> Option<Command> {
        self.0.command()
    }
}
