//! The doctor's look: every revision read again in order, every derived row computed anew from them with the core's own
//! list in memory, and compared with what is stored.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use taskbus_core::board::Board;
use taskbus_core::change::{Change, Kind};
use taskbus_core::id::TaskId;
use taskbus_core::task::Task;

use super::chained::Walk;
use super::error::Answer;
use super::migrate;
use super::row::{Condition, Row, ids_to};
use super::scope::{Scope, as_row_id};
use super::snapshot::revision_from;

/// Differences told one by one; the rest is only counted.
const TOLD_MAX: usize = 100;

const INTEGRITY: &str = "PRAGMA integrity_check";
const SCHEMA: &str = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name";
const MESSAGES: &str = "
    SELECT memory_id, revision, created_at, sender, content, type, note, context, client, previous, seq, list, link
    FROM messages ORDER BY seq";
const ROWS: &str = "SELECT id FROM tasks ORDER BY id";
const EDGES: &str = "SELECT task, CAST(blocker AS TEXT) FROM edges";
const DISORDER: &str = "
    SELECT t.id, b.id FROM edges e JOIN tasks t ON t.id = e.task JOIN tasks b ON b.id = e.blocker
    WHERE b.ord >= t.ord ORDER BY t.id, b.id";
const LABELS: &str = "SELECT task, label || ' of list ' || list FROM task_labels";
const TOMBSTONES: &str = "SELECT id, list || ' ' || seq FROM tombstones";
/// What the revisions say.
#[derive(Default)]
struct Told {
    boards: BTreeMap<i64, Board>,
    /// The newest revision of each task: its list, seq, number and kind.
    newest: BTreeMap<i64, (i64, u64, u64, Kind)>,
}

impl Scope<'_> {
    /// Everything that differs from what the documents say.
    pub(super) fn check_all(&self) -> Answer<Vec<String>> {
        let mut found = Vec::new();
        let whole: Vec<String> = self.all(INTEGRITY, [], |row| row.get(0))?;
        found.extend(whole.into_iter().filter(|line| line != "ok"));
        self.check_schema(&mut found)?;
        let told = self.replay(&mut found)?;
        self.check_rows(&told, &mut found)?;
        self.check_beside(&told, &mut found)?;
        self.check_counters(&mut found)?;
        self.check_bus(told.newest.iter().map(|(id, newest)| (*id, newest.1)), &mut found)?;
        let more = found.len().saturating_sub(TOLD_MAX);
        found.truncate(TOLD_MAX);
        found.extend((more > 0).then(|| format!("and {more} more")));
        Ok(found)
    }

    /// No table, trigger or view that a store of this schema does not have.
    fn check_schema(&self, found: &mut Vec<String>) -> Answer<()> {
        let read = |connection: &Connection| -> Answer<BTreeSet<(String, String, String)>> {
            let mut statement = connection.prepare(SCHEMA)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        let (stored, known) = (read(self.connection)?, read(&migrate::sample()?)?);
        let newer = migrate::version(self.connection)? > migrate::KNOWN;
        found.extend(
            known.difference(&stored).map(|(kind, name, _)| format!("the {kind} {name} is not as it was made")),
        );
        let foreign = stored.difference(&known).filter(|_| !newer);
        found.extend(foreign.map(|(kind, name, _)| format!("the {kind} {name} is not one of a store")));
        Ok(())
    }

    /// Reads every revision, oldest first, and follows the chain of each task.
    fn replay(&self, found: &mut Vec<String>) -> Answer<Told> {
        let mut told = Told::default();
        let mut statement = self.connection.prepare(MESSAGES)?;
        let mut rows = statement.query([])?;
        let mut walk = Walk::begin(self)?;
        while let Some(row) = rows.next()? {
            let (seq, list): (i64, i64) = (row.get(10)?, row.get(11)?);
            if !walk.step(row)? {
                found.push(format!("revision {seq}: its link does not follow from what it says and the one before"));
            }
            let Ok(seq) = u64::try_from(seq) else { continue };
            let (revision, previous) = match revision_from(seq, row) {
                Ok(read) => read,
                Err(fault) => {
                    found.push(format!("revision {seq}: {fault}"));
                    continue;
                }
            };
            let (kind, task) = (revision.kind, revision.task);
            let id = row.get(0)?;
            let (_, last, number, _) = told.newest.get(&id).copied().unwrap_or((list, 0, 0, Kind::Created));
            if (previous, task.revision) != (last, number + 1) {
                let (is, after) = (task.revision, number + 1);
                found.push(format!(
                    "revision {seq} of task {id} is number {is} after {previous}, not {after} after {last}"
                ));
            }
            told.newest.insert(id, (list, seq, task.revision, kind));
            told.boards.entry(list).or_default().put(&Change { kind, task, note: None });
        }
        found.extend(walk.end()?);
        Ok(told)
    }

    fn check_rows(&self, told: &Told, found: &mut Vec<String>) -> Answer<()> {
        let mut stored: BTreeSet<i64> = self.all(ROWS, [], |row| row.get(0))?.into_iter().collect();
        for (&list, board) in &told.boards {
            for (task, depth) in board.in_order() {
                let Some(id) = as_row_id(&task.id) else { continue };
                stored.remove(&id);
                let seq = told.newest.get(&id).map_or(0, |newest| newest.1);
                match Row::read(self.connection, id)? {
                    None => found.push(format!("task {id} has no row")),
                    Some(row) => {
                        let expected = self.expected(list, seq, board, task, depth, &row)?;
                        let differs = row.differences(&expected).into_iter();
                        found.extend(differs.map(|difference| format!("task {id}: {difference}")));
                    }
                }
            }
        }
        found.extend(stored.into_iter().map(|id| format!("the row of task {id} is of no live task")));
        Ok(())
    }

    /// The row that the documents ask for.
    fn expected(&self, list: i64, seq: u64, board: &Board, task: &Task, depth: usize, stored: &Row) -> Answer<Row> {
        let owner = task.owner().map(|owner| self.name_id(owner)).transpose()?.flatten();
        let mut row = Row::bare(list, stored.id, seq, task, owner.unwrap_or(0));
        let parent = task.parent.as_ref().filter(|parent| board.get(parent).is_some());
        if let Some(parent) = parent.and_then(as_row_id) {
            (row.parent, row.lost_parent) = (parent, None);
        }
        row.path = board.path(&task.id).unwrap_or_default().as_bytes().to_vec();
        row.depth = i64::try_from(depth).unwrap_or(i64::MAX);
        row.open = ids_to(&numbers(&board.open_blockers(task)));
        row.has_blockers = !task.blocked_by.is_empty();
        row.ord = stored.ord;
        row.set_condition(task, self.now);
        // Whether a task is due depends on when somebody looked.
        let due = if row.owner == 0 { Condition::Ready } else { Condition::Assigned };
        let either = |condition| condition == due || condition == Condition::Deferred;
        if row.not_before.is_some() && either(row.condition) && either(stored.condition) {
            row.condition = stored.condition;
        }
        Ok(row)
    }

    /// Edges, labels and tombstones.
    fn check_beside(&self, told: &Told, found: &mut Vec<String>) -> Answer<()> {
        let (mut edges, mut labels) = (BTreeSet::new(), BTreeSet::new());
        for (list, board) in &told.boards {
            for task in board.tasks() {
                let id = as_row_id(&task.id).unwrap_or(0);
                edges.extend(task.blocked_by.iter().map(|blocker| (id, blocker.to_string())));
                labels.extend(task.labels.iter().map(|label| (id, format!("{label} of list {list}"))));
            }
        }
        let dead = told.newest.iter().filter(|(_, newest)| newest.3 == Kind::Deleted);
        let dead = dead.map(|(id, (list, seq, ..))| (*id, format!("{list} {seq}"))).collect();
        for (what, sql, expected) in
            [("blocker", EDGES, edges), ("label", LABELS, labels), ("tombstone", TOMBSTONES, dead)]
        {
            let stored: BTreeSet<(i64, String)> =
                self.all(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect();
            found.extend(expected.difference(&stored).map(|(id, item)| format!("task {id}: {what} {item} is missing")));
            found
                .extend(stored.difference(&expected).map(|(id, item)| format!("task {id}: {what} {item} is too many")));
        }
        for (task, blocker) in self.all(DISORDER, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))? {
            found.push(format!("task {task}: in the order of dependencies it does not follow its blocker {blocker}"));
        }
        Ok(())
    }
}

fn numbers(ids: &[TaskId]) -> Vec<i64> {
    ids.iter().filter_map(as_row_id).collect()
}
