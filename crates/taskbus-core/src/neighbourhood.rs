//! What a decision may ask about the list it changes: point questions, answered by the store inside its own
//! transaction. None of them is a rule; none reads the whole list unless its doc says so.
//!
//! Small stores hold the list in memory and use [`Board`](crate::board::Board); SQLite and Postgres answer
//! from indexes.

use crate::glob::PathGlob;
use crate::id::TaskId;
use crate::name::Identity;
use crate::policy::Policy;
use crate::rank::Rank;
use crate::task::{Status, Task};
use crate::time::Timestamp;

/// A question that the store could not answer: its own error, whatever it is.
#[derive(Debug, thiserror::Error)]
#[error("the store could not answer: {0}")]
pub struct LookupError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// The answer to a question, or the store's failure.
pub type Look<T> = Result<T, LookupError>;

/// The settings of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListRules {
    /// How strict it is.
    pub policy: Policy,
    /// Reclaims after which a task is parked; 0: never.
    pub max_reclaims: u32,
}

/// A task among its siblings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sibling {
    /// Its key; siblings sort by it,
    pub rank: Rank,
    /// then by this.
    pub id: TaskId,
}

/// A task that waits for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// Which.
    pub id: TaskId,
    /// Its status.
    pub status: Status,
    /// How many of its blockers are open.
    pub open_blockers: usize,
    /// Not ready before this time.
    pub not_before: Option<Timestamp>,
    /// Parked.
    pub parked: bool,
}

/// Which ready tasks to look through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyScan {
    /// Pending tasks assigned to this identity; none: those assigned to nobody.
    pub assigned_to: Option<Identity>,
    /// Only tasks below this one, at any depth.
    pub below: Option<TaskId>,
    /// Tasks deferred beyond this time are left out.
    pub now: Timestamp,
    /// Begin behind this task, which the last answer ended with.
    pub behind: Option<TaskId>,
    /// At most so many.
    pub limit: usize,
}

/// How many live tasks of a list are in which condition. A task is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pending, no open blocker, due, not parked.
    pub ready: u64,
    /// Pending with an open blocker.
    pub blocked: u64,
    /// Pending, unblocked, not due yet.
    pub deferred: u64,
    /// Pending, unblocked, parked.
    pub parked: u64,
    /// In progress.
    pub in_progress: u64,
    /// Completed.
    pub completed: u64,
}

impl Tally {
    /// All live tasks.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.pending() + self.in_progress + self.completed
    }

    /// All pending tasks.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.ready + self.blocked + self.deferred + self.parked
    }
}

/// The view of one list that [`run`](crate::decide::run) works on.
///
/// "Live" means not deleted. An *effective parent* is the stored parent if that is live, else none; siblings
/// are the live tasks with one effective parent, in the order of [`Sibling`].
pub trait Neighbourhood {
    /// The settings of the list.
    fn rules(&self) -> Look<ListRules>;

    /// The live task with this id in this list.
    fn task(&self, id: &TaskId) -> Look<Option<Task>>;

    /// The deleted task with this id in this list, as it was.
    fn tombstone(&self, id: &TaskId) -> Look<Option<Task>>;

    /// Whether this identity has ever registered.
    fn is_known(&self, who: &Identity) -> Look<bool>;

    /// Whether this identity has a live session at `now`.
    fn is_alive(&self, who: &Identity, now: Timestamp) -> Look<bool>;

    /// Of `ids`, those that are live in this list, in the given order.
    fn live_of(&self, ids: &[TaskId]) -> Look<Vec<TaskId>>;

    /// Of `ids`, those that are live and not completed, in the given order.
    fn open_of(&self, ids: &[TaskId]) -> Look<Vec<TaskId>>;

    /// The live children of a task in order, at most `limit`; only those not completed if `open_only`.
    fn children(&self, parent: &TaskId, open_only: bool, limit: usize) -> Look<Vec<TaskId>>;

    /// The last sibling under an effective parent.
    fn last_sibling(&self, parent: Option<&TaskId>) -> Look<Option<Sibling>>;

    /// The sibling directly before this place (exclusive) under an effective parent.
    fn sibling_before(&self, parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>>;

    /// The sibling directly after this place (exclusive) under an effective parent.
    fn sibling_after(&self, parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>>;

    /// All siblings under an effective parent, in order. Asked only when a sibling group is ranked anew.
    fn siblings(&self, parent: Option<&TaskId>) -> Look<Vec<Sibling>>;

    /// The depth of a live task: 0 for a root.
    fn depth(&self, id: &TaskId) -> Look<usize>;

    /// How many levels lie below a live task: 0 for a leaf.
    fn height(&self, id: &TaskId) -> Look<usize>;

    /// A way from `from` to `to` along "is blocked by" over live tasks, both ends included; none if there is
    /// no way. `to` itself may be a tombstone that live tasks still name. On a list that
    /// [keeps deleted tasks](crate::policy::Policy::keeps_deleted) the way may lead over those. Must not recurse.
    fn way(&self, from: &TaskId, to: &TaskId) -> Look<Option<Vec<TaskId>>>;

    /// The live tasks that name this one as a blocker, by id.
    fn dependents(&self, blocker: &TaskId) -> Look<Vec<Dependent>>;

    /// In-progress tasks that look abandoned at `now`, at most `limit`, in any order: each whose lease has ended, each
    /// whose owner is none or has no live session. No other, which would hide those behind the limit; only the
    /// policy of the list is left to the rules.
    fn suspects(&self, now: Timestamp, limit: usize) -> Look<Vec<TaskId>>;

    /// The in-progress tasks that declare paths, with their paths.
    fn paths_in_use(&self) -> Look<Vec<(TaskId, Vec<PathGlob>)>>;

    /// Pending tasks with no open blocker, due and not parked, in tree order.
    fn ready(&self, scan: &ReadyScan) -> Look<Vec<Task>>;

    /// In-progress tasks, at most `limit`, those whose lease ends first in front, then those without one, by id.
    fn held(&self, limit: usize) -> Look<Vec<Task>>;

    /// How many tasks are in which condition at `now`.
    fn tally(&self, now: Timestamp) -> Look<Tally>;
}
