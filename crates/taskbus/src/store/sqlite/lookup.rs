//! The questions of [`Neighbourhood`], each answered from an index. What belongs to an idea of its own (the graph,
//! the tree, the queue) is in that idea's file.

use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::{Dependent, ListRules, Look, Neighbourhood, ReadyScan, Sibling, Tally};
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;

use super::error::Answer;
use super::row::{Condition, ids_from};
use super::scope::{Scope, as_row_id, task_id};

const IS_LIVE: &str = "SELECT 1 FROM tasks WHERE id = ?1 AND list = ?2";
const IS_OPEN: &str = "SELECT 1 FROM tasks WHERE id = ?1 AND list = ?2 AND done = 0";
const DEPENDENTS: &str = "
    SELECT t.id, t.condition, t.open, t.not_before, t.parked
    FROM edges e CROSS JOIN tasks t ON t.id = e.task
    WHERE e.blocker = ?1 AND t.list = ?2 ORDER BY e.task";
const PATHS_IN_USE: &str = "
    SELECT id FROM tasks INDEXED BY tasks_with_paths WHERE list = ?1 AND condition = 5 AND has_paths = 1";
const READY_WITH_PATHS: &str = "
    SELECT id FROM tasks INDEXED BY tasks_with_paths
    WHERE list = ?1 AND condition IN (0, 1, 4) AND has_paths = 1 AND (not_before IS NULL OR not_before <= ?2)
    ORDER BY path";

impl Neighbourhood for Scope<'_> {
    fn rules(&self) -> Look<ListRules> {
        Ok(self.told(self.rules_in_scope())?)
    }

    fn task(&self, id: &TaskId) -> Look<Option<Task>> {
        Ok(self.told(self.live_task(id))?)
    }

    fn tombstone(&self, id: &TaskId) -> Look<Option<Task>> {
        Ok(self.told(self.dead_task(id))?)
    }

    fn is_known(&self, who: &Identity) -> Look<bool> {
        Ok(self.told(self.is_registered(who))?)
    }

    fn is_alive(&self, who: &Identity, now: Timestamp) -> Look<bool> {
        Ok(self.told(self.has_live_session(who, now))?)
    }

    fn live_of(&self, ids: &[TaskId]) -> Look<Vec<TaskId>> {
        Ok(self.told(self.those(IS_LIVE, ids))?)
    }

    fn open_of(&self, ids: &[TaskId]) -> Look<Vec<TaskId>> {
        Ok(self.told(self.those(IS_OPEN, ids))?)
    }

    fn children(&self, parent: &TaskId, open_only: bool, limit: usize) -> Look<Vec<TaskId>> {
        Ok(self.told(self.children_of(parent, open_only, limit))?)
    }

    fn last_sibling(&self, parent: Option<&TaskId>) -> Look<Option<Sibling>> {
        Ok(self.told(self.last_below(parent))?)
    }

    fn sibling_before(&self, parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>> {
        Ok(self.told(self.next_before(parent, place))?)
    }

    fn sibling_after(&self, parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>> {
        Ok(self.told(self.next_after(parent, place))?)
    }

    fn siblings(&self, parent: Option<&TaskId>) -> Look<Vec<Sibling>> {
        Ok(self.told(self.all_below(parent))?)
    }

    fn depth(&self, id: &TaskId) -> Look<usize> {
        Ok(self.told(self.depth_of(id))?)
    }

    fn height(&self, id: &TaskId) -> Look<usize> {
        Ok(self.told(self.height_of(id))?)
    }

    fn way(&self, from: &TaskId, to: &TaskId) -> Look<Option<Vec<TaskId>>> {
        Ok(self.told(self.way_between(from, to))?)
    }

    fn dependents(&self, blocker: &TaskId) -> Look<Vec<Dependent>> {
        Ok(self.told(self.dependents_of(blocker))?)
    }

    fn suspects(&self, now: Timestamp, limit: usize) -> Look<Vec<TaskId>> {
        Ok(self.told(self.suspects_at(now, limit))?)
    }

    fn paths_in_use(&self) -> Look<Vec<(TaskId, Vec<PathGlob>)>> {
        Ok(self.told(self.paths_of_held())?)
    }

    fn ready(&self, scan: &ReadyScan) -> Look<Vec<Task>> {
        Ok(self.told(self.ready_tasks(scan))?)
    }

    fn held(&self, limit: usize) -> Look<Vec<Task>> {
        Ok(self.told(self.held_tasks(limit))?)
    }

    fn tally(&self, now: Timestamp) -> Look<Tally> {
        Ok(self.told(self.tally_at(now))?)
    }
}

impl Scope<'_> {
    /// Of `ids`, those for which the query finds a row, in the given order.
    fn those(&self, sql: &'static str, ids: &[TaskId]) -> Answer<Vec<TaskId>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let list = self.list()?;
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found = Vec::new();
        for id in ids {
            let Some(row) = as_row_id(id) else { continue };
            if statement.exists((row, list))? {
                found.push(id.clone());
            }
        }
        Ok(found)
    }

    fn dependents_of(&self, blocker: &TaskId) -> Answer<Vec<Dependent>> {
        let Some(blocker) = as_row_id(blocker) else { return Ok(Vec::new()) };
        if let Some((_, known)) = self.dependents.borrow().as_ref().filter(|(of, _)| *of == blocker) {
            return Ok(known.clone());
        }
        let rows = self.all(DEPENDENTS, (blocker, self.list()?), |row| {
            let (id, condition, open): (i64, Condition, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let not_before = row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis);
            Ok((id, condition.status(), ids_from(&open).len(), not_before, row.get(4)?))
        })?;
        let dependent = |(id, status, open_blockers, not_before, parked)| {
            Ok(Dependent { id: task_id(id)?, status, open_blockers, not_before, parked })
        };
        rows.into_iter().map(dependent).collect()
    }

    fn paths_of_held(&self) -> Answer<Vec<(TaskId, Vec<PathGlob>)>> {
        let ids = self.all(PATHS_IN_USE, [self.list()?], |row| row.get(0))?;
        self.paths_of(&ids)
    }

    /// The ready tasks that declare paths, in tree order.
    pub(super) fn paths_of_ready(&self, now: Timestamp) -> Answer<Vec<(TaskId, Vec<PathGlob>)>> {
        let ids = self.all(READY_WITH_PATHS, (self.list()?, now.as_millis()), |row| row.get(0))?;
        self.paths_of(&ids)
    }

    fn paths_of(&self, ids: &[i64]) -> Answer<Vec<(TaskId, Vec<PathGlob>)>> {
        let tasks = self.live_tasks(ids)?;
        Ok(tasks.into_iter().map(|task| (task.id, task.paths.into_iter().collect())).collect())
    }
}
