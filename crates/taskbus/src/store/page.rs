//! A page of a list: what is asked for, and the rows that are shown. How a store finds them is its own.

use serde::{Deserialize, Serialize};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Label};
use taskbus_core::task::Status;
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;
use taskbus_core::tree::TreePath;

/// Which tasks a page shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// All.
    #[default]
    Tree,
    /// Pending, no open blocker, due, not parked. (Paths in use are judged by the rules, not by the store.)
    Ready,
    /// Pending with an open blocker.
    Blocked,
}

/// A question for a page. Filters select rows and keep order and depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// Which view.
    pub view: View,
    /// Only this status.
    pub status: Option<Status>,
    /// Only this owner.
    pub owner: Option<Identity>,
    /// Only tasks with this label.
    pub label: Option<Label>,
    /// Only tasks below this one, at any depth.
    pub below: Option<TaskId>,
    /// Only tasks behind this place.
    pub after: Option<TreePath>,
    /// At most so many rows.
    pub limit: usize,
    /// The time of the call.
    pub now: Timestamp,
}

impl PageQuery {
    /// The first page of everything.
    #[must_use]
    pub fn all(limit: usize, now: Timestamp) -> Self {
        Self { view: View::Tree, status: None, owner: None, label: None, below: None, after: None, limit, now }
    }
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The rows, in tree order.
    pub rows: Vec<Row>,
    /// How many tasks match in all, on every page.
    pub total: u64,
    /// Whether more follow the last row.
    pub more: bool,
}

/// One task in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub id: TaskId,
    /// Its subject.
    pub subject: Subject,
    /// Its status.
    pub status: Status,
    /// Its assignee, holder, or owner of record.
    pub owner: Option<Identity>,
    /// Its stored parent.
    pub parent: Option<TaskId>,
    /// Its depth: 0 for a root.
    pub depth: usize,
    /// Its open blockers.
    pub open_blockers: Vec<TaskId>,
    /// When its hold ends by itself.
    pub leased_until: Option<Timestamp>,
    /// Not ready before this time.
    pub not_before: Option<Timestamp>,
    /// Parked.
    pub parked: bool,
    /// Its labels.
    pub labels: Vec<Label>,
    /// Whether there is more to read.
    pub has_details: bool,
    /// Its place, as a cursor.
    pub path: TreePath,
}
