//! The task, and the states it can be in.
//!
//! ```text
//!             claim                    complete
//!  pending ───────────▶ in progress ───────────▶ completed
//!     ▲  ◀───────────        │                       │
//!     │  release, reclaim    ╰── hand-off ──╮        │
//!     │                      ▲──────────────╯        │
//!     ╰──────────────────── reopen ──────────────────╯
//! ```
//!
//! A pending task may also complete at once. Deletion is a tombstone beside these states, not one of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::glob::PathGlob;
use crate::id::TaskId;
use crate::name::{Identity, Label};
use crate::rank::Rank;
use crate::text::{Body, Note, Subject};
use crate::time::Timestamp;

/// The status as callers name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waiting to be taken.
    Pending,
    /// Somebody works on it.
    InProgress,
    /// Done.
    Completed,
}

impl Status {
    /// Every status, in the order of a task's life.
    pub const ALL: [Status; 3] = [Status::Pending, Status::InProgress, Status::Completed];

    /// The word used on every surface.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
        }
    }

    /// The status with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// What a task's status carries with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Waiting; perhaps assigned to somebody.
    Pending {
        /// Who it is assigned to.
        assignee: Option<Identity>,
    },
    /// Held. `owner` is none only in documents of a foreign writer that keeps no owners.
    InProgress {
        /// Who holds it.
        owner: Option<Identity>,
        /// When the hold ends by itself; none: when the owner's session does.
        lease: Option<Timestamp>,
    },
    /// Done.
    Completed {
        /// The owner of record.
        by: Option<Identity>,
        /// When.
        at: Timestamp,
    },
}

/// Who changed a task, and when. `by` is none only for the maintenance tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Option<Identity>,
}

/// One task as it stands (docs/rules.md 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id, minted by the store.
    pub id: TaskId,
    /// One line that says what it is.
    pub subject: Subject,
    /// The long form.
    pub description: Option<Body>,
    /// The present-continuous label, such as "Running tests".
    pub active_form: Option<Subject>,
    /// Its status and what goes with it.
    pub state: State,
    /// The stored parent; it may no longer be live, and then the task is a root.
    pub parent: Option<TaskId>,
    /// Its place among its siblings.
    pub rank: Rank,
    /// Tasks that must be completed or gone before this one starts; no duplicates.
    pub blocked_by: Vec<TaskId>,
    /// Not ready before this time.
    pub not_before: Option<Timestamp>,
    /// What a worker must match.
    pub labels: BTreeSet<Label>,
    /// Files the work touches.
    pub paths: BTreeSet<PathGlob>,
    /// Free data of the caller.
    pub metadata: Map<String, Value>,
    /// What came out of it, said on completion.
    pub result: Option<Note>,
    /// Who created it, and when.
    pub created: Stamp,
    /// The last change.
    pub updated: Stamp,
    /// 1 for the first revision, then one more for each change.
    pub revision: u64,
    /// The fencing token: raised by every claim, hand-off, reclaim and bypassing force.
    pub fence: u64,
    /// Reclaims since the last completion, or since a change took it out of parking.
    pub reclaims: u32,
    /// Reclaimed too often: never ready until somebody changes it.
    pub parked: bool,
    /// Fields of the stored document that this version does not know; kept.
    pub extra: Map<String, Value>,
}

impl Task {
    /// The status as callers name it.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.state {
            State::Pending { .. } => Status::Pending,
            State::InProgress { .. } => Status::InProgress,
            State::Completed { .. } => Status::Completed,
        }
    }

    /// The assignee, the holder, or the owner of record, by status.
    #[must_use]
    pub fn owner(&self) -> Option<&Identity> {
        match &self.state {
            State::Pending { assignee: owner }
            | State::InProgress { owner, .. }
            | State::Completed { by: owner, .. } => owner.as_ref(),
        }
    }

    /// When the hold ends by itself.
    #[must_use]
    pub fn leased_until(&self) -> Option<Timestamp> {
        match self.state {
            State::InProgress { lease, .. } => lease,
            State::Pending { .. } | State::Completed { .. } => None,
        }
    }

    /// When it was completed.
    #[must_use]
    pub fn completed_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Completed { at, .. } => Some(at),
            State::Pending { .. } | State::InProgress { .. } => None,
        }
    }

    /// Whether it still blocks what depends on it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status() != Status::Completed
    }

    /// Whether there is more to read than a summary shows.
    #[must_use]
    pub fn has_details(&self) -> bool {
        self.description.is_some() || !self.metadata.is_empty() || !self.blocked_by.is_empty() || self.result.is_some()
    }
}
