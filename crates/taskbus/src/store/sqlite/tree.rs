//! Questions about parents, children and siblings. Siblings sort by (rank, id), which is the order of the index on
//! (list, parent, rank): the row id comes last in every index.

use taskbus_core::id::TaskId;
use taskbus_core::neighbourhood::Sibling;
use taskbus_core::rank::Rank;
use taskbus_core::tree::TreePath;

use super::error::Answer;
use super::scope::{Scope, as_row_id, task_id, task_ids};

const CHILDREN: &str = "
    SELECT id FROM tasks INDEXED BY tasks_children
    WHERE list = ?1 AND parent = ?2 ORDER BY rank, id LIMIT ?3";
const OPEN_CHILDREN: &str = "
    SELECT id FROM tasks INDEXED BY tasks_open_children
    WHERE parent = ?2 AND done = 0 AND parent <> 0 AND list = ?1 ORDER BY rank, id LIMIT ?3";
const SIBLINGS: &str = "
    SELECT rank, id FROM tasks INDEXED BY tasks_children WHERE list = ?1 AND parent = ?2 ORDER BY rank, id";
const LAST: &str = "
    SELECT rank, id FROM tasks INDEXED BY tasks_children
    WHERE list = ?1 AND parent = ?2 ORDER BY rank DESC, id DESC LIMIT 1";
const BEFORE: &str = "
    SELECT rank, id FROM tasks INDEXED BY tasks_children
    WHERE list = ?1 AND parent = ?2 AND (rank, id) < (?3, ?4) ORDER BY rank DESC, id DESC LIMIT 1";
const AFTER: &str = "
    SELECT rank, id FROM tasks INDEXED BY tasks_children
    WHERE list = ?1 AND parent = ?2 AND (rank, id) > (?3, ?4) ORDER BY rank, id LIMIT 1";
const PLACE: &str = "SELECT path, depth FROM tasks WHERE id = ?1 AND list = ?2";
const DEEPEST: &str = "
    SELECT max(depth) FROM tasks INDEXED BY tasks_tree WHERE list = ?1 AND path > ?2 AND path < ?3";

/// Where a task is: the bytes of its path, and its depth.
pub(super) struct Spot {
    pub(super) path: TreePath,
    pub(super) depth: i64,
}

impl Scope<'_> {
    /// Where a live task of the list in scope is.
    pub(super) fn spot(&self, id: i64) -> Answer<Option<Spot>> {
        self.one(PLACE, (id, self.list()?), |row| {
            Ok(Spot { path: TreePath::from_bytes(row.get(0)?), depth: row.get(1)? })
        })
    }

    pub(super) fn children_of(&self, parent: &TaskId, open_only: bool, limit: usize) -> Answer<Vec<TaskId>> {
        let Some(parent) = as_row_id(parent) else { return Ok(Vec::new()) };
        let sql = if open_only { OPEN_CHILDREN } else { CHILDREN };
        let ids = self.all(sql, (self.list()?, parent, as_limit(limit)), |row| row.get(0))?;
        task_ids(&ids)
    }

    pub(super) fn last_below(&self, parent: Option<&TaskId>) -> Answer<Option<Sibling>> {
        let Some(parent) = group(parent) else { return Ok(None) };
        self.one(LAST, (self.list()?, parent), sibling)?.map(checked).transpose()
    }

    pub(super) fn next_before(&self, parent: Option<&TaskId>, place: &Sibling) -> Answer<Option<Sibling>> {
        self.neighbour(BEFORE, parent, place)
    }

    pub(super) fn next_after(&self, parent: Option<&TaskId>, place: &Sibling) -> Answer<Option<Sibling>> {
        self.neighbour(AFTER, parent, place)
    }

    fn neighbour(&self, sql: &'static str, parent: Option<&TaskId>, place: &Sibling) -> Answer<Option<Sibling>> {
        let Some(parent) = group(parent) else { return Ok(None) };
        // Text ids sort behind all numbers; this store has none of them.
        let id = as_row_id(&place.id).unwrap_or(i64::MAX);
        let found = self.one(sql, (self.list()?, parent, place.rank.as_str(), id), sibling)?;
        found.map(checked).transpose()
    }

    pub(super) fn all_below(&self, parent: Option<&TaskId>) -> Answer<Vec<Sibling>> {
        let Some(parent) = group(parent) else { return Ok(Vec::new()) };
        let rows = self.all(SIBLINGS, (self.list()?, parent), sibling)?;
        rows.into_iter().map(checked).collect()
    }

    pub(super) fn depth_of(&self, id: &TaskId) -> Answer<usize> {
        let spot = as_row_id(id).map(|id| self.spot(id)).transpose()?.flatten();
        Ok(spot.map_or(0, |spot| usize::try_from(spot.depth).unwrap_or(0)))
    }

    pub(super) fn height_of(&self, id: &TaskId) -> Answer<usize> {
        let spot = as_row_id(id).map(|id| self.spot(id)).transpose()?.flatten();
        let Some(Spot { path, depth }) = spot else { return Ok(0) };
        let end = path.subtree_end();
        let deepest: Option<Option<i64>> =
            self.one(DEEPEST, (self.list()?, path.as_bytes(), end.as_bytes()), |row| row.get(0))?;
        Ok(deepest.flatten().map_or(0, |deepest| usize::try_from(deepest - depth).unwrap_or(0)))
    }
}

/// The number of a sibling group; none for a parent that this store cannot have.
fn group(parent: Option<&TaskId>) -> Option<i64> {
    parent.map_or(Some(0), as_row_id)
}

fn sibling(row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, i64)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn checked((rank, id): (String, i64)) -> Answer<Sibling> {
    Ok(Sibling { rank: Rank::from_stored(rank), id: task_id(id)? })
}

/// A count as SQLite takes it.
pub(super) fn as_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
