//! The row of a live task in `tasks`: what can be found without reading its document. Derived, never the truth.
//!
//! One table of columns says how the row is read, written and compared, so that an update names just the columns
//! that differ: each index that an update does not name is a page that it does not write.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use taskbus_core::name::Label;
use taskbus_core::task::{Status, Task};
use taskbus_core::time::Timestamp;

use super::error::Answer;
use super::scope::as_row_id;
use super::sum::Sum;

/// The lease of a task without one: later than every other.
pub(super) const NO_LEASE: i64 = i64::MAX;

/// Fresh tasks are this far apart in the order of dependencies, so that a shift of one mostly meets no other.
const ORD_GAP: i64 = 1 << 20;

/// What keeps a task, as a number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    Ready = 0,
    Assigned = 1,
    Blocked = 2,
    Parked = 3,
    Deferred = 4,
    InProgress = 5,
    Completed = 6,
}

impl Condition {
    pub(super) const ALL: [Condition; 7] = [
        Condition::Ready,
        Condition::Assigned,
        Condition::Blocked,
        Condition::Parked,
        Condition::Deferred,
        Condition::InProgress,
        Condition::Completed,
    ];

    pub(super) fn number(self) -> i64 {
        self as i64
    }

    pub(super) fn status(self) -> Status {
        match self {
            Condition::InProgress => Status::InProgress,
            Condition::Completed => Status::Completed,
            Condition::Ready | Condition::Assigned | Condition::Blocked | Condition::Parked | Condition::Deferred => {
                Status::Pending
            }
        }
    }
}

impl FromSql for Condition {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_i64()?;
        Self::ALL.into_iter().find(|known| known.number() == number).ok_or(FromSqlError::OutOfRange(number))
    }
}

/// A row of `tasks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) list: i64,
    pub(super) seq: i64,
    pub(super) condition: Condition,
    pub(super) done: bool,
    pub(super) owner: i64,
    pub(super) parent: i64,
    pub(super) lost_parent: Option<i64>,
    pub(super) rank: String,
    pub(super) path: Vec<u8>,
    pub(super) depth: i64,
    pub(super) lease: i64,
    pub(super) not_before: Option<i64>,
    pub(super) parked: bool,
    pub(super) open: String,
    /// Larger than that of every live blocker; see the graph.
    pub(super) ord: i64,
    pub(super) has_blockers: bool,
    pub(super) has_paths: bool,
    pub(super) has_details: bool,
    pub(super) labels: String,
    pub(super) subject: String,
    /// Over what [`Shown`] takes.
    pub(super) sum: i64,
}

/// What a page shows of a row and nothing but the document decides.
pub(super) struct Shown<'a> {
    pub(super) id: i64,
    pub(super) owner: i64,
    pub(super) lease: i64,
    pub(super) not_before: Option<i64>,
    pub(super) parked: bool,
    pub(super) has_details: bool,
    pub(super) labels: &'a str,
    pub(super) subject: &'a str,
}

impl Shown<'_> {
    pub(super) fn sum(&self) -> Sum {
        let sum = Sum::new().number(self.id).number(self.owner).number(self.lease).optional_number(self.not_before);
        let flags = i64::from(self.parked) * 2 + i64::from(self.has_details);
        sum.number(flags).text(self.labels).text(self.subject)
    }
}

/// A column: its name, and its value in a row.
type Column = (&'static str, fn(&Row) -> ValueRef<'_>);

const COLUMNS: [Column; 22] = [
    ("id", |row| number(row.id)),
    ("list", |row| number(row.list)),
    ("seq", |row| number(row.seq)),
    ("condition", |row| number(row.condition.number())),
    ("done", |row| number(row.done.into())),
    ("owner", |row| number(row.owner)),
    ("parent", |row| number(row.parent)),
    ("lost_parent", |row| optional(row.lost_parent)),
    ("rank", |row| text(&row.rank)),
    ("path", |row| ValueRef::Blob(&row.path)),
    ("depth", |row| number(row.depth)),
    ("lease", |row| number(row.lease)),
    ("not_before", |row| optional(row.not_before)),
    ("parked", |row| number(row.parked.into())),
    ("open", |row| text(&row.open)),
    ("ord", |row| number(row.ord)),
    ("has_blockers", |row| number(row.has_blockers.into())),
    ("has_paths", |row| number(row.has_paths.into())),
    ("has_details", |row| number(row.has_details.into())),
    ("labels", |row| text(&row.labels)),
    ("subject", |row| text(&row.subject)),
    ("sum", |row| number(row.sum)),
];

/// The columns in the order of [`COLUMNS`].
const READ: &str = "
    SELECT id, list, seq, condition, done, owner, parent, lost_parent, rank, path, depth, lease, not_before, parked,
           open, ord, has_blockers, has_paths, has_details, labels, subject, sum
    FROM tasks WHERE id = ?1";
const INSERT: &str = "
    INSERT INTO tasks
          (id, list, seq, condition, done, owner, parent, lost_parent, rank, path, depth, lease, not_before, parked,
           open, ord, has_blockers, has_paths, has_details, labels, subject, sum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const DELETE: &str = "DELETE FROM tasks WHERE id = ?1";

impl Row {
    /// The row of a live task, of any list.
    pub(super) fn read(connection: &Connection, id: i64) -> Answer<Option<Self>> {
        Ok(connection.prepare_cached(READ)?.query_row([id], Self::from_sql).optional()?)
    }

    fn from_sql(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            list: row.get(1)?,
            seq: row.get(2)?,
            condition: row.get(3)?,
            done: flag(row, 4)?,
            owner: row.get(5)?,
            parent: row.get(6)?,
            lost_parent: row.get(7)?,
            rank: row.get(8)?,
            path: row.get(9)?,
            depth: row.get(10)?,
            lease: row.get(11)?,
            not_before: row.get(12)?,
            parked: flag(row, 13)?,
            open: row.get(14)?,
            ord: row.get(15)?,
            has_blockers: flag(row, 16)?,
            has_paths: flag(row, 17)?,
            has_details: flag(row, 18)?,
            labels: row.get(19)?,
            subject: row.get(20)?,
            sum: row.get(21)?,
        })
    }

    /// What the document alone says. The stored parent stands in `lost_parent` until the row is placed in the tree.
    pub(super) fn bare(list: i64, id: i64, seq: u64, task: &Task, owner: i64) -> Self {
        let labels: Vec<&str> = task.labels.iter().map(Label::as_str).collect();
        let mut row = Self {
            id,
            list,
            seq: seq.cast_signed(),
            condition: Condition::Ready,
            done: !task.is_open(),
            owner,
            parent: 0,
            lost_parent: task.parent.as_ref().and_then(as_row_id),
            rank: task.rank.as_str().to_owned(),
            path: Vec::new(),
            depth: 0,
            lease: task.leased_until().map_or(NO_LEASE, Timestamp::as_millis),
            not_before: task.not_before.map(Timestamp::as_millis),
            parked: task.parked,
            open: String::new(),
            ord: id.saturating_mul(ORD_GAP),
            has_blockers: false,
            has_paths: !task.paths.is_empty(),
            has_details: task.has_details(),
            labels: labels.join(" "),
            subject: task.subject.as_str().to_owned(),
            sum: 0,
        };
        row.sum = row.shown().sum().end();
        row
    }

    fn shown(&self) -> Shown<'_> {
        let Self { id, owner, lease, not_before, parked, has_details, .. } = *self;
        Shown { id, owner, lease, not_before, parked, has_details, labels: &self.labels, subject: &self.subject }
    }

    /// The columns in which two rows differ, with what each holds.
    pub(super) fn differences(&self, other: &Row) -> Vec<(&'static str, String)> {
        let differing = COLUMNS.iter().filter(|(_, value)| value(self) != value(other));
        let told =
            |name, value: fn(&Row) -> ValueRef<'_>| format!("{name} is {:?}, not {:?}", value(self), value(other));
        differing.map(|(name, value)| (*name, told(name, *value))).collect()
    }

    pub(super) fn insert(&self, connection: &Connection) -> Answer<()> {
        connection
            .prepare_cached(INSERT)?
            .execute(params_from_iter(COLUMNS.iter().map(|(_, value)| bound(value(self)))))?;
        Ok(())
    }

    /// Writes the columns in which this row differs from the one stored.
    pub(super) fn update(&self, connection: &Connection, stored: &Row) -> Answer<()> {
        let mut sql = String::from("UPDATE tasks SET ");
        let mut values = Vec::with_capacity(COLUMNS.len());
        for (name, value) in COLUMNS.iter().filter(|(_, value)| value(self) != value(stored)) {
            sql.push_str(if values.is_empty() { "" } else { ", " });
            sql.push_str(name);
            sql.push_str(" = ?");
            values.push(bound(value(self)));
        }
        if values.is_empty() {
            return Ok(());
        }
        sql.push_str(" WHERE id = ?");
        values.push(bound(number(self.id)));
        connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
        Ok(())
    }

    pub(super) fn delete(&self, connection: &Connection) -> Answer<()> {
        connection.prepare_cached(DELETE)?.execute([self.id])?;
        Ok(())
    }

    /// The parent that the document names.
    pub(super) fn stored_parent(&self) -> Option<i64> {
        self.lost_parent.or((self.parent != 0).then_some(self.parent))
    }

    /// The open blockers.
    pub(super) fn open_blockers(&self) -> Vec<i64> {
        ids_from(&self.open)
    }

    /// Puts in the condition that follows from the status and, while pending, from the rest of the row.
    pub(super) fn set_condition(&mut self, task: &Task, now: Timestamp) {
        self.condition = match task.status() {
            Status::Pending => self.pending_condition(now),
            Status::InProgress => Condition::InProgress,
            Status::Completed => Condition::Completed,
        };
    }

    /// What keeps a pending task.
    fn pending_condition(&self, now: Timestamp) -> Condition {
        let Self { parked, not_before, owner, .. } = *self;
        Pending { is_blocked: !self.open.is_empty(), parked, not_before, owner }.condition(now)
    }
}

/// What decides over the condition of a pending task.
pub(super) struct Pending {
    pub(super) is_blocked: bool,
    pub(super) parked: bool,
    pub(super) not_before: Option<i64>,
    pub(super) owner: i64,
}

impl Pending {
    pub(super) fn condition(&self, now: Timestamp) -> Condition {
        if self.is_blocked {
            Condition::Blocked
        } else if self.parked {
            Condition::Parked
        } else if self.not_before.is_some_and(|at| at > now.as_millis()) {
            Condition::Deferred
        } else if self.owner == 0 {
            Condition::Ready
        } else {
            Condition::Assigned
        }
    }
}

/// A column that is 0 or 1.
fn flag(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<bool> {
    match row.get::<_, i64>(at)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(rusqlite::Error::IntegralValueOutOfRange(at, other)),
    }
}

/// Ids in one text column, with spaces between.
pub(super) fn ids_to(ids: &[i64]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The ids in a text column.
pub(super) fn ids_from(text: &str) -> Vec<i64> {
    text.split(' ').filter_map(|id| id.parse().ok()).collect()
}

fn bound(value: ValueRef<'_>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(value)
}

fn number(value: i64) -> ValueRef<'static> {
    ValueRef::Integer(value)
}

fn optional(value: Option<i64>) -> ValueRef<'static> {
    value.map_or(ValueRef::Null, ValueRef::Integer)
}

fn text(value: &str) -> ValueRef<'_> {
    ValueRef::Text(value.as_bytes())
}
