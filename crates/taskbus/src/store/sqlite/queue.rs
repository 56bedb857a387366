//! Questions about what can be taken, what is held, and by whom.

use rusqlite::params;
use taskbus_core::id::TaskId;
use taskbus_core::neighbourhood::ReadyScan;
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;
use taskbus_core::tree::TreePath;

use super::error::Answer;
use super::scope::{Scope, as_row_id, task_id};
use super::tree::as_limit;

const FREE: &str = "
    SELECT path, id FROM tasks INDEXED BY tasks_pending
    WHERE list = ?1 AND condition = 0 AND condition <= 4 AND path > ?3 AND path < ?4
      AND (not_before IS NULL OR not_before <= ?5)
    ORDER BY path LIMIT ?6";
const ASSIGNED: &str = "
    SELECT path, id FROM tasks INDEXED BY tasks_assigned
    WHERE list = ?1 AND condition = 1 AND condition <= 4 AND owner = ?2 AND owner <> 0 AND path > ?3 AND path < ?4
      AND (not_before IS NULL OR not_before <= ?5)
    ORDER BY path LIMIT ?6";
const DUE: &str = "
    SELECT path, id FROM tasks INDEXED BY tasks_timed
    WHERE list = ?1 AND condition = 4 AND not_before <= ?5 AND owner = ?2 AND path > ?3 AND path < ?4
    ORDER BY path LIMIT ?6";
const HELD: &str = "
    SELECT id FROM tasks INDEXED BY tasks_active WHERE list = ?1 AND condition = 5 ORDER BY lease, id LIMIT ?2";
/// Those of the held tasks that look abandoned, each looked at.
const SUSPECTS: &str = "
    SELECT t.id FROM tasks t INDEXED BY tasks_active LEFT JOIN sessions s ON s.name = t.owner
    WHERE t.list = ?1 AND t.condition = 5 AND (t.lease <= ?2 OR (s.alive_until > ?2) IS NOT TRUE)";
/// Held tasks by owner, for each owner those whose lease ends first in front, and until when the owner is alive.
const HELD_FROM: &str = "
    SELECT t.owner, t.lease, t.id, s.alive_until
    FROM tasks t INDEXED BY tasks_active LEFT JOIN sessions s ON s.name = t.owner
    WHERE t.list = ?1 AND t.condition = 5 AND t.owner >= ?2 ORDER BY t.owner, t.lease";
const HELD_BY: &str = "
    SELECT t.list, t.id FROM counters c CROSS JOIN tasks t INDEXED BY tasks_active
    ON t.list = c.id AND t.condition = 5 AND t.owner = ?1
    WHERE c.in_progress > 0 AND c.id > 0 ORDER BY t.id";

/// Rows of one live owner looked at before the rest of them is jumped over: most hold one task or two, and beginning anew
/// behind an owner costs as much as two rows.
const ROWS_BEFORE_JUMP: usize = 2;
/// Held tasks that are looked at one by one inside a single statement: that is twice as fast as going from owner to
/// owner, which pays only where some hold very many.
const HELD_BY_EACH_MAX: i64 = 256;

/// A range of places: behind the first, before the second.
pub(super) struct Span {
    pub(super) behind: TreePath,
    pub(super) before: TreePath,
}

impl Scope<'_> {
    /// The range below a task, and behind a place in it; none if there is no such task.
    pub(super) fn span(&self, below: Option<&TaskId>, behind: Option<TreePath>) -> Answer<Option<Span>> {
        let top = match below {
            None => TreePath::root(),
            Some(id) => {
                let spot = as_row_id(id).map(|id| self.spot(id)).transpose()?.flatten();
                let Some(spot) = spot else { return Ok(None) };
                spot.path
            }
        };
        let before = top.subtree_end();
        Ok(Some(Span { behind: behind.map_or(top.clone(), |place| place.max(top)), before }))
    }

    pub(super) fn ready_tasks(&self, scan: &ReadyScan) -> Answer<Vec<Task>> {
        let (sql, owner) = match &scan.assigned_to {
            None => (FREE, 0),
            Some(owner) => match self.name_id(owner)? {
                Some(id) => (ASSIGNED, id),
                None => return Ok(Vec::new()),
            },
        };
        let behind = match &scan.behind {
            None => None,
            Some(id) => match as_row_id(id).map(|id| self.spot(id)).transpose()?.flatten() {
                Some(spot) => Some(spot.path),
                None => return Ok(Vec::new()),
            },
        };
        let Some(span) = self.span(scan.below.as_ref(), behind)? else { return Ok(Vec::new()) };
        let sources: &[&str] = if self.promote(scan.now)? { &[sql] } else { &[sql, DUE] };
        let mut found: Vec<(Vec<u8>, i64)> = Vec::new();
        for source in sources {
            let (behind, before) = (span.behind.as_bytes(), span.before.as_bytes());
            let values = params![self.list()?, owner, behind, before, scan.now.as_millis(), as_limit(scan.limit)];
            found.extend(self.all(source, values, |row| Ok((row.get(0)?, row.get(1)?)))?);
        }
        found.sort();
        let ids: Vec<i64> = found.into_iter().map(|(_, id)| id).take(scan.limit).collect();
        let tasks = self.live_tasks(&ids)?;
        if let [task] = &tasks[..] {
            self.keep_ahead(task);
        }
        Ok(tasks)
    }

    pub(super) fn held_tasks(&self, limit: usize) -> Answer<Vec<Task>> {
        let ids = self.all(HELD, (self.list()?, as_limit(limit)), |row| row.get(0))?;
        self.live_tasks(&ids)
    }

    pub(super) fn suspects_at(&self, now: Timestamp, limit: usize) -> Answer<Vec<TaskId>> {
        if self.in_progress > HELD_BY_EACH_MAX {
            return self.suspects_by_owner(now, limit);
        }
        let mut statement = self.connection.prepare_cached(SUSPECTS)?;
        let rows = statement.query_map((self.list()?, now.as_millis()), |row| row.get(0))?;
        rows.take(limit).map(|id| task_id(id?)).collect()
    }

    /// Walks the held tasks owner by owner; once a live owner's leases are all in the future, jumps to the next owner.
    fn suspects_by_owner(&self, now: Timestamp, limit: usize) -> Answer<Vec<TaskId>> {
        let now = now.as_millis();
        let list = self.list()?;
        let mut found = Vec::new();
        let mut from = Some(0);
        let mut statement = self.connection.prepare_cached(HELD_FROM)?;
        while let Some(start) = from.take() {
            let mut rows = statement.query((list, start))?;
            let (mut of, mut fine) = (start, 0);
            while let Some(row) = rows.next()? {
                let (owner, lease, id): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let alive_until: Option<i64> = row.get(3)?;
                if owner != of {
                    (of, fine) = (owner, 0);
                }
                if lease <= now || alive_until.is_none_or(|until| until <= now) {
                    if found.len() == limit {
                        return Ok(found);
                    }
                    found.push(task_id(id)?);
                } else {
                    fine += 1;
                    if fine > ROWS_BEFORE_JUMP {
                        from = Some(owner + 1);
                        break;
                    }
                }
            }
        }
        Ok(found)
    }

    /// The in-progress tasks of an identity in every list: list and id.
    pub(super) fn held_by_name(&self, owner: i64) -> Answer<Vec<(i64, i64)>> {
        self.flush()?;
        self.all(HELD_BY, [owner], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}
