//! The questions of [`Snapshot`], and the history of a task.

use rusqlite::Row as SqlRow;
use taskbus_core::change::Kind;
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::task::Task;
use taskbus_core::text::Note;
use taskbus_core::time::Timestamp;

use super::error::{Answer, Fault};
use super::scope::{Scope, as_row_id, task_from, task_id, text_or_none, valid};
use super::sum::{self, Rest};
use super::tree::as_limit;
use crate::store::bus::BusSnapshot;
use crate::store::{ListRow, Page, PageQuery, ReceiptRow, RevisionRow, SessionRow, Snapshot, StoreError};

const SEQ: &str = "
    SELECT seq FROM tasks WHERE id = ?1 AND list = ?2
    UNION ALL SELECT seq FROM tombstones WHERE id = ?1 AND list = ?2";
const REVISION: &str = "
    SELECT memory_id, revision, created_at, sender, content, sum, type, note, context, client, previous
    FROM messages WHERE seq = ?1";
const DELETED: &str = "
    SELECT t.id, m.revision, m.created_at, m.sender, m.content, m.sum
    FROM tombstones t INDEXED BY tombstones_by_list CROSS JOIN messages m ON m.seq = t.seq
    WHERE t.list = ?1 ORDER BY t.id DESC LIMIT ?2";
const COUNT_DELETED: &str = "SELECT count(*) FROM tombstones WHERE list = ?1";
const HOME: &str = "
    SELECT name FROM lists WHERE id = coalesce(
        (SELECT list FROM tasks WHERE id = ?1), (SELECT list FROM tombstones WHERE id = ?1))";

impl Snapshot for Scope<'_> {
    fn bus(&self) -> Option<&dyn BusSnapshot> {
        Some(self)
    }

    fn lists(&self) -> Result<Vec<ListRow>, StoreError> {
        self.told(self.list_rows())
    }

    fn list(&self, name: &ListName) -> Result<Option<ListRow>, StoreError> {
        self.told(self.list_row(name))
    }

    fn seq(&self, id: &TaskId) -> Result<Option<u64>, StoreError> {
        self.told(self.newest(id))
    }

    fn page(&self, query: &PageQuery) -> Result<Page, StoreError> {
        self.told(self.page_of(query))
    }

    fn ready_with_paths(&self, now: Timestamp) -> Result<Vec<(TaskId, Vec<PathGlob>)>, StoreError> {
        self.told(self.paths_of_ready(now))
    }

    fn deleted(&self, limit: usize) -> Result<(Vec<Task>, u64), StoreError> {
        self.told(self.dead_tasks(limit))
    }

    fn history(&self, id: &TaskId, before: Option<u64>, limit: usize) -> Result<Vec<RevisionRow>, StoreError> {
        self.told(self.revisions(id, before, limit))
    }

    fn session(&self, name: &Identity) -> Result<Option<SessionRow>, StoreError> {
        self.told(self.session_of(name))
    }

    fn sessions(&self, now: Timestamp) -> Result<Vec<SessionRow>, StoreError> {
        self.told(self.live_sessions(now))
    }

    fn held_by(&self, owner: &Identity) -> Result<Vec<(ListName, TaskId)>, StoreError> {
        self.told(self.holdings(owner))
    }

    fn has_expired_receipts(&self, now: Timestamp) -> Result<bool, StoreError> {
        self.told(self.any_expired_receipt(now))
    }

    fn receipt(&self, sender: &Identity, key: &Key, now: Timestamp) -> Result<Option<ReceiptRow>, StoreError> {
        self.told(self.receipt_of(sender, key, now))
    }
}

impl Scope<'_> {
    /// The list that a task belongs to, live or deleted.
    pub(super) fn home(&self, id: &TaskId) -> Answer<Option<ListName>> {
        let Some(id) = as_row_id(id) else { return Ok(None) };
        let name: Option<String> = self.one(HOME, [id], |row| row.get(0))?;
        name.map(|name| valid(ListName::new(name), "list")).transpose()
    }

    fn newest(&self, id: &TaskId) -> Answer<Option<u64>> {
        let Some(id) = as_row_id(id) else { return Ok(None) };
        self.one(SEQ, (id, self.list()?), |row| row.get(0))
    }

    fn dead_tasks(&self, limit: usize) -> Answer<(Vec<Task>, u64)> {
        let list = self.list()?;
        let count = self.one(COUNT_DELETED, [list], |row| row.get(0))?.unwrap_or(0);
        let mut statement = self.connection.prepare_cached(DELETED)?;
        let mut rows = statement.query((list, as_limit(limit)))?;
        let mut tasks = Vec::new();
        while let Some(row) = rows.next()? {
            tasks.push(task_from(row)?);
        }
        Ok((tasks, count))
    }

    fn holdings(&self, owner: &Identity) -> Answer<Vec<(ListName, TaskId)>> {
        let Some(owner) = self.name_id(owner)? else { return Ok(Vec::new()) };
        let rows = self.held_by_name(owner)?.into_iter();
        let mut held: Vec<(ListName, TaskId)> =
            rows.map(|(list, id)| Ok((self.list_name(list)?, task_id(id)?))).collect::<Answer<_>>()?;
        held.sort();
        Ok(held)
    }

    /// Walks back along `previous`, from `before` if that is one of the task's revisions, else from the newest.
    fn revisions(&self, id: &TaskId, before: Option<u64>, limit: usize) -> Answer<Vec<RevisionRow>> {
        let mut at = self.newest(id)?.unwrap_or(0);
        if let Some(before) = before
            && at > before
            && let Some((revision, previous)) = self.revision(before)?
            && revision.task.id == *id
        {
            at = previous;
        }
        let mut found = Vec::new();
        while at > 0 && found.len() < limit {
            let (revision, previous) =
                self.revision(at)?.ok_or_else(|| Fault::Damaged(format!("revision {at} of task {id} is missing")))?;
            if previous >= at {
                return Err(Fault::Damaged(format!("revision {at} of task {id} follows {previous}")));
            }
            at = previous;
            if before.is_none_or(|before| revision.seq < before) {
                found.push(revision);
            }
        }
        Ok(found)
    }

    /// A revision of a task, and the seq of the one before.
    fn revision(&self, seq: u64) -> Answer<Option<(RevisionRow, u64)>> {
        let mut statement = self.connection.prepare_cached(REVISION)?;
        let mut rows = statement.query([seq])?;
        rows.next()?.map(|row| revision_from(seq, row)).transpose()
    }
}

/// Reads a revision from the columns of `REVISION`.
pub(super) fn revision_from(seq: u64, row: &SqlRow<'_>) -> Answer<(RevisionRow, u64)> {
    let text = |at| row.get_ref(at)?.as_str().map_err(rusqlite::Error::from);
    let (kind, note, context, client) = (text(6)?, text_or_none(row, 7)?, text(8)?, text(9)?);
    let previous: u64 = row.get(10)?;
    let (_, stored) = sum::halves(row.get(5)?);
    let rest = Rest { seq, kind, note, context, client, previous };
    sum::check(stored, rest.sum(), || format!("revision {seq}"))?;
    let revision = RevisionRow {
        seq,
        kind: kind_from(kind, previous)?,
        task: task_from(row)?,
        note: note.map(|note| valid(Note::new(note.to_owned()), "note")).transpose()?,
        context: context.to_owned(),
        client: client.to_owned(),
    };
    Ok((revision, previous))
}

/// The word of a created and of a changed task is the same: empty. Only a created one follows nothing.
pub(super) fn kind_from(word: &str, previous: u64) -> Answer<Kind> {
    if word.is_empty() {
        return Ok(if previous == 0 { Kind::Created } else { Kind::Changed });
    }
    let found = Kind::ALL.into_iter().find(|kind| kind.as_str() == word);
    found.ok_or_else(|| Fault::Damaged(format!("a revision has the unknown type {word:?}")))
}
