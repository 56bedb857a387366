//! What can have happened: the facts that a decision leads to, one for each revision written.

use serde::{Deserialize, Serialize};

use crate::name::Identity;
use crate::task::Task;
use crate::text::Note;

/// Why a revision exists. The word is the `type` of its message envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The first revision.
    Created,
    /// An ordinary change.
    Changed,
    /// An abandoned task went back to the queue.
    Reclaimed,
    /// The owner guard was really bypassed.
    Forced,
    /// The task became a tombstone.
    Deleted,
    /// The tombstone became a task again.
    Restored,
    /// Only the rank changed, because its sibling group was ranked anew. Left out of histories.
    Reranked,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 7] =
        [Kind::Created, Kind::Changed, Kind::Reclaimed, Kind::Forced, Kind::Deleted, Kind::Restored, Kind::Reranked];

    /// The envelope's `type`: empty for ordinary changes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Created | Kind::Changed => "",
            Kind::Reclaimed => "reclaimed",
            Kind::Forced => "forced",
            Kind::Deleted => "deleted",
            Kind::Restored => "restored",
            Kind::Reranked => "reranked",
        }
    }
}

/// One revision to write: the task as it is afterwards (for [`Kind::Deleted`]: as it was), and what goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Why.
    pub kind: Kind,
    /// The task afterwards; its `revision` is already counted up and its `updated` stamp says who and when.
    pub task: Task,
    /// A remark that goes into the history only.
    pub note: Option<Note>,
}

impl Change {
    /// Who made the change; none for the maintenance tick.
    #[must_use]
    pub fn by(&self) -> Option<&Identity> {
        self.task.updated.by.as_ref()
    }
}
