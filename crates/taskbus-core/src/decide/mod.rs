//! The one place where rules are: a command, the list around it and the facts of the call go in; changes or one
//! refusal come out.
//!
//! [`run`] drives a command: it takes small pure steps (one file each) and applies every step's changes to the
//! [`World`] before the next, so that a later step sees what an earlier one did. It reads only what it asks for.
//! When it refuses, the caller drops the transaction; nothing of the command remains, the fix-up neither
//! (docs/rules.md 2).
//!
//! ```text
//! run ── update ── reclaim (fix-up) ── guard ── fields ── status ── links ── rank ── no-op? size? ── Change
//!     ├─ next ──── reclaim all ── update(complete) ── first ready that fits ── update(claim)
//!     ├─ create ── links ── rank ── Change
//!     ├─ plan ──── references ── cycles ── create, parents first
//!     └─ restore ─ links ── Change
//! ```

use crate::change::Change;
use crate::command::Command;
use crate::id::TaskId;
use crate::name::Identity;
use crate::neighbourhood::{Look, LookupError, Neighbourhood};
use crate::refusal::{Conflict, Invalid, Missing, Refusal};
use crate::task::Task;
use crate::time::Timestamp;

mod create;
mod delete;
mod deleted;
mod guard;
mod links;
mod next;
mod place;
mod plan;
mod reclaim;
mod restore;
mod status;
mod update;

pub use next::{Outlook, is_kept_apart, outlook};
pub use reclaim::{is_abandoned, reclaim_all, reclaim_one, recovered};

/// A list that a command changes: the questions of [`Neighbourhood`], and the two verbs.
pub trait World: Neighbourhood {
    /// `count` fresh ids, in order; each is used by the next `count` created tasks, in this order.
    ///
    /// # Errors
    /// [`LookupError`] when the store fails.
    fn mint(&mut self, count: usize) -> Look<Vec<TaskId>>;

    /// Writes one change; every later question sees it.
    ///
    /// # Errors
    /// [`LookupError`] when the store fails.
    fn apply(&mut self, change: Change) -> Look<()>;
}

/// What the rules need to know besides the list.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The time of the call, by the store's clock.
    pub now: Timestamp,
    /// Who asks; none for the maintenance tick.
    pub caller: Option<Identity>,
}

/// Why a command came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The rules refuse.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store could not answer.
    #[error(transparent)]
    Lookup(#[from] LookupError),
}

impl From<Invalid> for Stop {
    fn from(invalid: Invalid) -> Self {
        Stop::Refused(Refusal::Invalid(invalid))
    }
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Self {
        Stop::Refused(Refusal::NotFound(missing))
    }
}

impl From<Conflict> for Stop {
    fn from(conflict: Conflict) -> Self {
        Stop::Refused(Refusal::Conflict(conflict))
    }
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A task was made.
    Created(Task),
    /// A graph was made: each task's key in the plan and its id, in the order of the plan.
    Planned(Vec<(Option<String>, TaskId)>),
    /// A task was changed, or already was as asked.
    Written(Effect),
    /// Tasks were handed out, perhaps after one was completed.
    Taken {
        /// Now held by the caller; empty when nothing fits.
        tasks: Vec<Task>,
        /// What completing did.
        completed: Option<Effect>,
    },
    /// A task was brought back.
    Restored(Task),
}

/// What an update did.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The task afterwards; a deleted one as it was.
    pub task: Task,
    /// Whether a revision was written (a fix-up does not count).
    pub written: bool,
    /// Whether the task is a tombstone now.
    pub deleted: bool,
    /// The tasks that became ready by it, by id.
    pub unblocked: Vec<TaskId>,
    /// Children still open under a completed parent.
    pub open_children: Vec<TaskId>,
    /// Whether the parent's last open child was completed by this.
    pub parent_complete: bool,
    /// What the policy lets pass but the caller should know.
    pub warnings: Vec<String>,
}

/// Runs a command on a list.
///
/// # Errors
/// [`Stop::Refused`] when the rules refuse, [`Stop::Lookup`] when the store fails; then the caller must drop
/// whatever was applied.
pub fn run(command: &Command, world: &mut dyn World, facts: &Facts) -> Result<Outcome, Stop> {
    match command {
        Command::Create(draft) => create::create(draft, world, facts).map(Outcome::Created),
        Command::Plan(tasks) => plan::plan(tasks, world, facts).map(Outcome::Planned),
        Command::Update(id, patch) => update::update(id, patch, world, facts).map(Outcome::Written),
        Command::Next(next) => next::next(next, world, facts),
        Command::Restore(id) => restore::restore(id, world, facts).map(Outcome::Restored),
    }
}
