//! What follows from a change of one task for the rows of others, and for the tables beside its own row. Kept by the
//! store alike for every kind of change; [`verify`](super::verify) recomputes it all from the documents.

use rusqlite::{Row as SqlRow, params};
use taskbus_core::neighbourhood::Dependent;
use taskbus_core::rank::Rank;
use taskbus_core::task::{Status, Task};
use taskbus_core::time::Timestamp;
use taskbus_core::tree::TreePath;

use super::error::Answer;
use super::row::{Condition, Pending, Row, ids_from, ids_to};
use super::scope::{Scope, as_row_id, task_id};

const BLOCKERS: &str = "SELECT blocker FROM edges INDEXED BY edges_by_task WHERE task = ?1";
const ADD_EDGE: &str = "INSERT OR IGNORE INTO edges (blocker, task) VALUES (?1, ?2)";
const DROP_EDGE: &str = "DELETE FROM edges WHERE blocker = ?1 AND task = ?2";
const IS_OPEN: &str = "SELECT 1 FROM tasks WHERE id = ?1 AND list = ?2 AND done = 0";
const WAITING: &str = "
    SELECT t.id, t.list, t.condition, t.owner, t.not_before, t.parked, t.open
    FROM edges e CROSS JOIN tasks t ON t.id = e.task WHERE e.blocker = ?1 ORDER BY e.task";
const SET_OPEN: &str = "UPDATE tasks SET open = ?2 WHERE id = ?1";
const SET_OPEN_AND_CONDITION: &str = "UPDATE tasks SET open = ?2, condition = ?3 WHERE id = ?1";
const ADD_LABEL: &str = "INSERT INTO task_labels (list, label, task) VALUES (?1, ?2, ?3)";
const DROP_LABEL: &str = "DELETE FROM task_labels WHERE list = ?1 AND label = ?2 AND task = ?3";
/// A subtree's paths begin with its top's. Concatenation makes text of the bytes, the cast makes bytes of it again.
const REBASE: &str = "
    UPDATE tasks SET path = CAST(?3 || substr(path, ?4) AS BLOB), depth = depth + ?5
    WHERE list = ?1 AND path > ?2 AND path < ?6";
const CHILDREN: &str = "SELECT id FROM tasks INDEXED BY tasks_children WHERE list = ?1 AND parent = ?2";
const ORPHANS: &str = "
    SELECT id FROM tasks INDEXED BY tasks_orphans WHERE lost_parent = ?2 AND lost_parent IS NOT NULL AND list = ?1";

/// A task that names a blocker: what of its row depends on that.
struct Waiting {
    id: i64,
    list: i64,
    condition: Condition,
    owner: i64,
    not_before: Option<i64>,
    parked: bool,
    open: String,
}

impl Waiting {
    fn from_sql(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            list: row.get(1)?,
            condition: row.get(2)?,
            owner: row.get(3)?,
            not_before: row.get(4)?,
            parked: row.get(5)?,
            open: row.get(6)?,
        })
    }

    fn condition_with(&self, open: &[i64], now: Timestamp) -> Condition {
        if self.condition.status() != Status::Pending {
            return self.condition;
        }
        let Self { parked, not_before, owner, .. } = *self;
        Pending { is_blocked: !open.is_empty(), parked, not_before, owner }.condition(now)
    }

    fn dependent(&self, open_blockers: usize) -> Answer<Dependent> {
        let (id, status, parked) = (task_id(self.id)?, self.condition.status(), self.parked);
        Ok(Dependent { id, status, open_blockers, not_before: self.not_before.map(Timestamp::from_millis), parked })
    }
}

/// The ids in a text column, without one.
fn without(ids: &str, gone: i64) -> Vec<i64> {
    ids_from(ids).into_iter().filter(|id| *id != gone).collect()
}

impl Scope<'_> {
    /// Makes these the task's edges; says whether they already were.
    pub(super) fn put_edges(&self, task: i64, blockers: &[i64], had_any: bool) -> Answer<bool> {
        let stored: Vec<i64> = if had_any { self.all(BLOCKERS, [task], |row| row.get(0))? } else { Vec::new() };
        let dropped: Vec<&i64> = stored.iter().filter(|blocker| !blockers.contains(blocker)).collect();
        let added: Vec<&i64> = blockers.iter().filter(|blocker| !stored.contains(blocker)).collect();
        for blocker in &dropped {
            self.run(DROP_EDGE, (blocker, task))?;
        }
        for blocker in &added {
            self.run(ADD_EDGE, (blocker, task))?;
        }
        Ok(dropped.is_empty() && added.is_empty())
    }

    /// Of these tasks, those that are live in the list and not completed.
    pub(super) fn open_among(&self, list: i64, ids: &[i64]) -> Answer<Vec<i64>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached(IS_OPEN)?;
        let mut open = Vec::new();
        for &id in ids {
            if statement.exists((id, list))? {
                open.push(id);
            }
        }
        Ok(open)
    }

    /// Adds or removes a blocker in the rows of those that wait for it; says who they are.
    pub(super) fn tell_dependents(&self, blocker: i64, is_open: bool) -> Answer<Vec<i64>> {
        let waiting = self.all(WAITING, [blocker], Waiting::from_sql)?;
        let mut dependents = Vec::with_capacity(waiting.len());
        for one in &waiting {
            let open = if is_open { self.open_blockers_of(one)? } else { without(&one.open, blocker) };
            let condition = one.condition_with(&open, self.due_by());
            if condition == one.condition {
                self.run(SET_OPEN, (one.id, ids_to(&open)))?;
            } else {
                self.run(SET_OPEN_AND_CONDITION, (one.id, ids_to(&open), condition.number()))?;
                self.count(one.list, Some(one.condition), Some(condition));
            }
            dependents.push(one.dependent(open.len())?);
        }
        if waiting.iter().all(|one| self.list().is_ok_and(|list| list == one.list)) {
            self.dependents.replace(Some((blocker, dependents)));
        }
        Ok(waiting.into_iter().map(|one| one.id).collect())
    }

    /// The order is that of the document, which only this rare case has to read.
    fn open_blockers_of(&self, waiting: &Waiting) -> Answer<Vec<i64>> {
        let task = self.live_task(&task_id(waiting.id)?)?;
        let named: Vec<i64> = task.iter().flat_map(|task| &task.blocked_by).filter_map(as_row_id).collect();
        self.open_among(waiting.list, &named)
    }

    pub(super) fn put_labels(&self, before: Option<&Row>, after: Option<&Row>) -> Answer<()> {
        let labels = |row: Option<&Row>| row.map_or_else(String::new, |row| row.labels.clone());
        let (old, new) = (labels(before), labels(after));
        let Some(row) = after.or(before).filter(|_| old != new) else { return Ok(()) };
        for label in old.split_whitespace().filter(|label| !new.split_whitespace().any(|kept| kept == *label)) {
            self.run(DROP_LABEL, params![row.list, label, row.id])?;
        }
        for label in new.split_whitespace().filter(|label| !old.split_whitespace().any(|had| had == *label)) {
            self.run(ADD_LABEL, params![row.list, label, row.id])?;
        }
        Ok(())
    }

    /// After a task has come, gone or moved: those below it follow.
    pub(super) fn move_subtree(&self, before: Option<&Row>, after: Option<&Row>, task: &Task) -> Answer<()> {
        match (before, after) {
            (Some(old), Some(new)) => self.rebase(old, new),
            (None, Some(new)) => self.adopt(new, task),
            (Some(old), None) => self.release(old),
            (None, None) => Ok(()),
        }
    }

    /// Gives everything below a moved task its new paths.
    fn rebase(&self, old: &Row, new: &Row) -> Answer<()> {
        if old.path == new.path {
            return Ok(());
        }
        let end = TreePath::from_bytes(old.path.clone()).subtree_end();
        let rest = i64::try_from(old.path.len() + 1).unwrap_or(i64::MAX);
        let deeper = new.depth - old.depth;
        self.run(REBASE, params![old.list, old.path, new.path, rest, deeper, end.as_bytes()])?;
        Ok(())
    }

    /// Puts those that name a task as their parent below it, now that it is there. One above it (damaged data only)
    /// stays where it is.
    fn adopt(&self, parent: &Row, task: &Task) -> Answer<()> {
        let above = TreePath::from_bytes(parent.path.clone());
        for id in self.all(ORPHANS, (parent.list, as_row_id(&task.id)), |row| row.get(0))? {
            let Some(stored) = Row::read(self.connection, id)? else { continue };
            if parent.path.starts_with(&stored.path) {
                continue;
            }
            let mut row = Row { parent: parent.id, lost_parent: None, depth: parent.depth + 1, ..stored.clone() };
            row.path = above.child(&Rank::from_stored(&row.rank), &task_id(id)?).as_bytes().to_vec();
            row.update(self.connection, &stored)?;
            self.rebase(&stored, &row)?;
        }
        Ok(())
    }

    /// Makes roots of the children of a task that is gone.
    fn release(&self, parent: &Row) -> Answer<()> {
        for id in self.all(CHILDREN, (parent.list, parent.id), |row| row.get(0))? {
            let Some(stored) = Row::read(self.connection, id)? else { continue };
            let mut row = Row { parent: 0, lost_parent: Some(parent.id), depth: 0, ..stored.clone() };
            row.path = TreePath::root().child(&Rank::from_stored(&row.rank), &task_id(id)?).as_bytes().to_vec();
            row.update(self.connection, &stored)?;
            self.rebase(&stored, &row)?;
        }
        Ok(())
    }
}
