//! Pages: one stream for each index that holds a part of the answer, each in tree order, merged and cut.
//!
//! Totals come from the counters unless an owner, a label or a subtree narrows them; then the same streams count.

use rusqlite::{Row as SqlRow, named_params};
use taskbus_core::name::{Identity, Label};
use taskbus_core::task::Status;
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;
use taskbus_core::tree::TreePath;

use super::error::{Answer, Fault};
use super::queue::Span;
use super::row::{Condition, NO_LEASE, Shown, ids_from};
use super::scope::{Scope, task_id, task_ids, valid};
use super::sum;
use super::tree::as_limit;
use crate::store::{Page, PageQuery, Row, View};

const NAME: &str = "SELECT name FROM names WHERE id = ?1";

/// Where a stream reads, and what its index already selects.
macro_rules! stream {
    ($from:expr, $selected:expr) => {
        Stream {
            rows: concat!(
                "SELECT t.path, t.id, t.subject, t.condition, t.owner, t.parent, t.lost_parent, t.depth, t.open, t.lease,
                        t.not_before, t.parked, t.labels, t.has_details, t.sum
                 FROM ", $from, "
                 WHERE t.list = :list AND ", $selected, " AND t.path > :behind AND t.path < :before
                   AND (:conditions >> t.condition) & 1 AND (t.not_before IS NULL OR t.not_before <= :due)
                   AND (:owner IS NULL OR t.owner = :owner)
                   AND (:label IS NULL OR instr(' ' || t.labels || ' ', ' ' || :label || ' ') > 0)
                 ORDER BY t.path LIMIT :limit"
            ),
            count: concat!(
                "SELECT count(*) FROM ", $from, "
                 WHERE t.list = :list AND ", $selected, " AND t.path > :behind AND t.path < :before
                   AND (:conditions >> t.condition) & 1 AND (t.not_before IS NULL OR t.not_before <= :due)
                   AND (:owner IS NULL OR t.owner = :owner)
                   AND (:label IS NULL OR instr(' ' || t.labels || ' ', ' ' || :label || ' ') > 0)"
            ),
        }
    };
}

/// The pending tasks of an owner in one condition.
macro_rules! own {
    ($condition:literal) => {
        stream!(
            "tasks t INDEXED BY tasks_assigned",
            concat!("t.owner = :owner AND t.owner <> 0 AND t.condition <= 4 AND t.condition = ", $condition)
        )
    };
}

/// One index, read in tree order.
pub(super) struct Stream {
    pub(super) rows: &'static str,
    pub(super) count: &'static str,
}

const TREE: Stream = stream!("tasks t INDEXED BY tasks_tree", "1");
const LABELLED: Stream =
    stream!("task_labels l CROSS JOIN tasks t ON t.id = l.task AND l.list = :list AND l.label = :label", "1");
const READY: Stream = stream!("tasks t INDEXED BY tasks_pending", "t.condition = 0 AND t.condition <= 4");
const ASSIGNED: Stream = stream!("tasks t INDEXED BY tasks_pending", "t.condition = 1 AND t.condition <= 4");
const BLOCKED: Stream = stream!("tasks t INDEXED BY tasks_pending", "t.condition = 2 AND t.condition <= 4");
const PARKED: Stream = stream!("tasks t INDEXED BY tasks_pending", "t.condition = 3 AND t.condition <= 4");
const DEFERRED: Stream = stream!("tasks t INDEXED BY tasks_pending", "t.condition = 4 AND t.condition <= 4");
const DUE: Stream = stream!("tasks t INDEXED BY tasks_timed", "t.condition = 4 AND t.not_before <= :due");
const ACTIVE: Stream = stream!("tasks t INDEXED BY tasks_active", "t.condition = 5");
/// Completed tasks are mostly in front, so that no index of their own pays.
const DONE: Stream = stream!("tasks t INDEXED BY tasks_tree", "t.done = 1");
const OWN_ASSIGNED: Stream = own!("1");
const OWN_BLOCKED: Stream = own!("2");
const OWN_PARKED: Stream = own!("3");
const OWN_DEFERRED: Stream = own!("4");
const OWN_ACTIVE: Stream = stream!("tasks t INDEXED BY tasks_active", "t.condition = 5 AND t.owner = :owner");
const OWN_DONE: Stream = stream!("tasks t INDEXED BY tasks_done", "t.done = 1 AND t.owner = :owner");

/// All of them by name, for the test of how they run.
#[cfg(test)]
pub(super) const STREAMS: [(&str, Stream); 16] = [
    ("tree", TREE),
    ("labelled", LABELLED),
    ("ready", READY),
    ("assigned", ASSIGNED),
    ("blocked", BLOCKED),
    ("parked", PARKED),
    ("deferred", DEFERRED),
    ("due", DUE),
    ("active", ACTIVE),
    ("done", DONE),
    ("own assigned", OWN_ASSIGNED),
    ("own blocked", OWN_BLOCKED),
    ("own parked", OWN_PARKED),
    ("own deferred", OWN_DEFERRED),
    ("own active", OWN_ACTIVE),
    ("own done", OWN_DONE),
];

/// What a query selects, in the terms of the table.
struct Selection {
    streams: Vec<Stream>,
    /// A bit for each condition.
    conditions: i64,
    due: i64,
    owner: Option<i64>,
    label: Option<String>,
}

impl Scope<'_> {
    pub(super) fn page_of(&self, query: &PageQuery) -> Answer<Page> {
        let empty = Page { rows: Vec::new(), total: 0, more: false };
        let owner = query.owner.as_ref().map(|owner| self.name_id(owner)).transpose()?;
        if owner == Some(None) {
            return Ok(empty);
        }
        let Some(span) = self.span(query.below.as_ref(), None)? else { return Ok(empty) };
        if query.view == View::Ready {
            self.promote(query.now)?;
        }
        let selection = select(query, owner.flatten());
        let total = match self.counted(query)? {
            Some(total) => total,
            None => self.count_rows(&selection, &span)?,
        };
        let behind = query.after.clone().map_or(span.behind.clone(), |after| after.max(span.behind.clone()));
        let mut rows = self.rows_of(&selection, &Span { behind, before: span.before }, query.limit)?;
        let more = rows.len() > query.limit;
        rows.truncate(query.limit);
        Ok(Page { rows, total, more })
    }

    /// The total where the counters know it.
    fn counted(&self, query: &PageQuery) -> Answer<Option<u64>> {
        if query.owner.is_some() || query.label.is_some() || query.below.is_some() {
            return Ok(None);
        }
        let tally = self.tally_at(query.now)?;
        Ok(Some(match (query.view, query.status) {
            (View::Tree, None) => tally.total(),
            (View::Tree, Some(Status::Pending)) => tally.pending(),
            (View::Tree, Some(Status::InProgress)) => tally.in_progress,
            (View::Tree, Some(Status::Completed)) => tally.completed,
            (View::Ready, None | Some(Status::Pending)) => tally.ready,
            (View::Blocked, None | Some(Status::Pending)) => tally.blocked,
            (View::Ready | View::Blocked, Some(Status::InProgress | Status::Completed)) => 0,
        }))
    }

    fn count_rows(&self, selection: &Selection, span: &Span) -> Answer<u64> {
        let mut total = 0;
        for stream in &selection.streams {
            let values = named_params! {
                ":list": self.list()?, ":behind": span.behind.as_bytes(), ":before": span.before.as_bytes(),
                ":conditions": selection.conditions, ":due": selection.due, ":owner": selection.owner,
                ":label": selection.label,
            };
            total += self.one(stream.count, values, |row| row.get::<_, u64>(0))?.unwrap_or(0);
        }
        Ok(total)
    }

    /// One row more than the limit, if there is one.
    fn rows_of(&self, selection: &Selection, span: &Span, limit: usize) -> Answer<Vec<Row>> {
        let mut stored = Vec::new();
        for stream in &selection.streams {
            let values = named_params! {
                ":list": self.list()?, ":behind": span.behind.as_bytes(), ":before": span.before.as_bytes(),
                ":conditions": selection.conditions, ":due": selection.due, ":owner": selection.owner,
                ":label": selection.label, ":limit": as_limit(limit).saturating_add(1),
            };
            stored.extend(self.all(stream.rows, values, read)?);
        }
        if selection.streams.len() > 1 {
            stored.sort_by(|a, b| a.path.cmp(&b.path));
        }
        let stored = stored.into_iter().take(limit.saturating_add(1));
        let mut owners = Vec::new();
        stored.map(|row| checked(self.owner_of(&row, &mut owners)?, row)).collect()
    }

    /// The owner of a row: most have none, and few are different.
    fn owner_of(&self, row: &Stored, known: &mut Vec<(i64, Identity)>) -> Answer<Option<Identity>> {
        if row.owner == 0 {
            return Ok(None);
        }
        if let Some((_, name)) = known.iter().find(|(id, _)| *id == row.owner) {
            return Ok(Some(name.clone()));
        }
        let found: Option<String> = self.one(NAME, [row.owner], |name| name.get(0))?;
        let name = found.map(|name| valid(Identity::new(name), "owner")).transpose()?;
        known.extend(name.clone().map(|name| (row.owner, name)));
        Ok(name)
    }
}

fn select(query: &PageQuery, owner: Option<i64>) -> Selection {
    let wanted = wanted(query);
    // With all of them, one that does not exist shows as damage instead of hiding.
    let all = wanted.len() == Condition::ALL.len();
    let conditions = if all { -1 } else { wanted.iter().map(|condition| 1 << condition.number()).sum() };
    let label = query.label.as_ref().map(ToString::to_string);
    let due = if query.view == View::Ready { query.now.as_millis() } else { i64::MAX };
    let streams = if label.is_some() {
        vec![LABELLED]
    } else if owner.is_some() {
        wanted.iter().filter_map(|condition| own_stream_of(*condition)).collect()
    } else if all {
        vec![TREE]
    } else {
        wanted.iter().map(|condition| stream_of(*condition, query.view)).collect()
    };
    Selection { streams, conditions, due, owner, label }
}

/// The conditions that fit both the view and the status.
fn wanted(query: &PageQuery) -> Vec<Condition> {
    let fits = |condition: &Condition| {
        let seen = match query.view {
            View::Tree => true,
            View::Ready => matches!(condition, Condition::Ready | Condition::Assigned | Condition::Deferred),
            View::Blocked => *condition == Condition::Blocked,
        };
        seen && query.status.is_none_or(|status| condition.status() == status)
    };
    Condition::ALL.into_iter().filter(fits).collect()
}

fn stream_of(condition: Condition, view: View) -> Stream {
    match condition {
        Condition::Ready => READY,
        Condition::Assigned => ASSIGNED,
        Condition::Blocked => BLOCKED,
        Condition::Parked => PARKED,
        Condition::Deferred if view == View::Ready => DUE,
        Condition::Deferred => DEFERRED,
        Condition::InProgress => ACTIVE,
        Condition::Completed => DONE,
    }
}

/// The same for one owner; what is ready and has an owner is assigned.
fn own_stream_of(condition: Condition) -> Option<Stream> {
    match condition {
        Condition::Ready => None,
        Condition::Assigned => Some(OWN_ASSIGNED),
        Condition::Blocked => Some(OWN_BLOCKED),
        Condition::Parked => Some(OWN_PARKED),
        Condition::Deferred => Some(OWN_DEFERRED),
        Condition::InProgress => Some(OWN_ACTIVE),
        Condition::Completed => Some(OWN_DONE),
    }
}

/// A row as it is stored, its words not checked yet.
struct Stored {
    path: Vec<u8>,
    id: i64,
    subject: String,
    condition: Condition,
    owner: i64,
    parent: i64,
    lost_parent: Option<i64>,
    depth: i64,
    open: String,
    lease: i64,
    not_before: Option<i64>,
    parked: bool,
    labels: String,
    has_details: bool,
    sum: i64,
}

impl Stored {
    fn shown(&self) -> Shown<'_> {
        let Self { id, owner, lease, not_before, parked, has_details, .. } = *self;
        Shown { id, owner, lease, not_before, parked, has_details, labels: &self.labels, subject: &self.subject }
    }
}

fn read(row: &SqlRow<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        path: row.get(0)?,
        id: row.get(1)?,
        subject: row.get(2)?,
        condition: row.get(3)?,
        owner: row.get(4)?,
        parent: row.get(5)?,
        lost_parent: row.get(6)?,
        depth: row.get(7)?,
        open: row.get(8)?,
        lease: row.get(9)?,
        not_before: row.get(10)?,
        parked: row.get(11)?,
        labels: row.get(12)?,
        has_details: row.get(13)?,
        sum: row.get(14)?,
    })
}

fn checked(owner: Option<Identity>, stored: Stored) -> Answer<Row> {
    sum::check(stored.sum, stored.shown().sum(), || format!("the row of task {}", stored.id))?;
    let parent = stored.lost_parent.or((stored.parent != 0).then_some(stored.parent));
    let labels = stored.labels.split_whitespace().map(|label| valid(Label::new(label), "label"));
    Ok(Row {
        id: task_id(stored.id)?,
        subject: valid(Subject::new(stored.subject), "subject")?,
        status: stored.condition.status(),
        owner,
        parent: parent.map(task_id).transpose()?,
        depth: usize::try_from(stored.depth).map_err(|_| Fault::Damaged("a negative depth".to_owned()))?,
        open_blockers: task_ids(&ids_from(&stored.open))?,
        leased_until: (stored.lease != NO_LEASE).then(|| Timestamp::from_millis(stored.lease)),
        not_before: stored.not_before.map(Timestamp::from_millis),
        parked: stored.parked,
        labels: labels.collect::<Answer<_>>()?,
        has_details: stored.has_details,
        path: TreePath::from_bytes(stored.path),
    })
}
