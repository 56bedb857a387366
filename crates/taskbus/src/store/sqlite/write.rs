//! The verbs of a write transaction. [`Scope::put`] is the one place where a revision becomes rows: the message, the
//! task's own row, its edges and labels, and then everything that follows from it, kept by the same few steps
//! whatever the change was:
//!
//! ```text
//!  message ─▶ row before / row after ─▶ edges, labels ─▶ openness changed?  dependents gain or lose a blocker
//!                                                     ─▶ place changed?     the subtree's paths follow
//!                                                     ─▶ came or went?      children attach or come loose
//!                                                     ─▶ edges changed?     the order of dependencies gives way
//!                                                     ─▶ condition changed? counters
//! ```

use rusqlite::params;
use taskbus_core::change::{Change, Kind};
use taskbus_core::document;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;
use taskbus_core::tree::TreePath;

use super::error::{Answer, Fault};
use super::row::{Row, ids_to};
use super::scope::{NO_LIST, Scope, as_row_id, task_id};
use super::sum::{self, Rest};
use crate::store::bus::BusTx;
use crate::store::chain::Entry;
use crate::store::{Appended, Author, ReceiptRow, SessionRow, StoreError, Tx};

const MESSAGE: &str = "
    INSERT INTO messages
          (seq, list, memory_id, revision, previous, type, sender, context, client, created_at, note, link, sum,
           content)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
const TOMBSTONE_SEQ: &str = "SELECT seq FROM tombstones WHERE id = ?1 AND list = ?2";
const BURY: &str = "INSERT INTO tombstones (id, list, seq) VALUES (?1, ?2, ?3)";
const RAISE: &str = "DELETE FROM tombstones WHERE id = ?1";
const CREATE_LIST: &str = "INSERT INTO lists (name, policy, max_reclaims, created_at) VALUES (?1, ?2, ?3, ?4)";
const CREATE_COUNTERS: &str = "INSERT INTO counters (id) VALUES (?1)";

impl Tx for Scope<'_> {
    fn bus_mut(&mut self) -> Option<&mut dyn BusTx> {
        Some(self)
    }

    fn mint(&mut self, count: usize) -> Result<Vec<TaskId>, StoreError> {
        self.told(self.fresh_ids(count))
    }

    fn append(&mut self, change: &Change, author: &Author) -> Result<Appended, StoreError> {
        self.told(self.put(change, author))
    }

    fn create_list(&mut self, name: &ListName, rules: ListRules, now: Timestamp) -> Result<(), StoreError> {
        self.told(self.make_list(name.as_str(), rules, now))
    }

    fn put_session(&mut self, session: &SessionRow) -> Result<(), StoreError> {
        self.told(self.keep_session(session))
    }

    fn extend_sessions(&mut self, token: &str, alive_until: Timestamp) -> Result<usize, StoreError> {
        self.told(self.extend(token, alive_until))
    }

    fn end_sessions(&mut self, token: &str) -> Result<(), StoreError> {
        self.told(self.end(token))
    }

    fn put_receipt(&mut self, sender: &Identity, key: &Key, receipt: &ReceiptRow) -> Result<(), StoreError> {
        self.told(self.keep_receipt(sender, key, receipt))
    }

    fn drop_receipts(&mut self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.told(self.drop_expired(now, limit))
    }
}

/// What stood in the store before a change.
struct Before {
    row: Option<Row>,
    /// The revision that the new one follows; 0 for none.
    seq: u64,
}

impl Scope<'_> {
    fn fresh_ids(&self, count: usize) -> Answer<Vec<TaskId>> {
        let first = self.seq.get() + 1;
        (first..).take(count).map(|id| task_id(i64::try_from(id).unwrap_or(-1))).collect()
    }

    fn make_list(&self, name: &str, rules: ListRules, now: Timestamp) -> Answer<()> {
        let policy = super::lists::policy_word(rules.policy);
        self.run(CREATE_LIST, (name, policy, rules.max_reclaims, now.as_millis()))?;
        self.run(CREATE_COUNTERS, [self.connection.last_insert_rowid()])?;
        Ok(())
    }

    /// Writes one revision and everything that follows from it.
    fn put(&self, change: &Change, author: &Author) -> Answer<Appended> {
        let list = self.list()?;
        if list == NO_LIST {
            return Err(Fault::Misuse("BUG: wrote to a list that does not exist".to_owned()));
        }
        let id = as_row_id(&change.task.id)
            .ok_or_else(|| Fault::Misuse(format!("BUG: {} was not minted here", change.task.id)))?;
        self.forget_tasks();
        let before = self.before(list, id, change.kind)?;
        let seq = self.seq.get() + 1;
        if change.kind == Kind::Created && u64::try_from(id) != Ok(seq) {
            return Err(Fault::Misuse(format!("BUG: task {id} was created out of turn, at {seq}")));
        }
        let bytes = self.write_message(list, id, seq, before.seq, change, author)?;
        self.seq.set(seq);
        let mut fits = true;
        let after = match change.kind {
            Kind::Deleted => None,
            Kind::Created | Kind::Changed | Kind::Reclaimed | Kind::Forced | Kind::Restored | Kind::Reranked => {
                let (row, same_edges) = self.row_after(list, id, seq, &change.task, before.row.as_ref())?;
                fits = same_edges;
                Some(row)
            }
        };
        if change.kind == Kind::Restored {
            self.run(RAISE, [id])?;
        }
        self.settle(id, before.row.as_ref(), after.as_ref(), &change.task)?;
        if let Some(row) = after.as_ref().filter(|_| !fits) {
            self.fit_blockers(id, row.ord)?;
        }
        self.count(list, before.row.map(|row| row.condition), after.map(|row| row.condition));
        Ok(Appended { seq, replaced: before.seq, bytes })
    }

    /// What is there must fit the change: a task is created once, changed while live, restored when deleted.
    fn before(&self, list: i64, id: i64, kind: Kind) -> Answer<Before> {
        let row = Row::read(self.connection, id)?.filter(|row| row.list == list);
        let buried = match &row {
            Some(_) => None,
            // A fresh id has no past.
            None if u64::try_from(id).is_ok_and(|id| id > self.seq.get()) => None,
            None => self.one(TOMBSTONE_SEQ, (id, list), |row| row.get::<_, u64>(0))?,
        };
        let fits = match kind {
            Kind::Created => row.is_none() && buried.is_none(),
            Kind::Restored => buried.is_some(),
            Kind::Changed | Kind::Reclaimed | Kind::Forced | Kind::Deleted | Kind::Reranked => row.is_some(),
        };
        if !fits {
            return Err(Fault::Misuse(format!("BUG: task {id} cannot be {kind:?}")));
        }
        let seq = row.as_ref().map(|row| row.seq.cast_unsigned()).or(buried).unwrap_or(0);
        Ok(Before { row, seq })
    }

    /// Says how long the document is.
    fn write_message(
        &self,
        list: i64,
        id: i64,
        seq: u64,
        previous: u64,
        change: &Change,
        author: &Author,
    ) -> Answer<usize> {
        let task = &change.task;
        let sender = change.by().map(Identity::as_str);
        let note = change.note.as_ref().map(taskbus_core::text::Note::as_str);
        let (at, content) = (task.updated.at.as_millis(), document::encode(task));
        let Author { context, client } = author;
        let kind = change.kind.as_str();
        let revision = task.revision;
        let link = self.link(&Entry {
            seq,
            list: self.list_in_scope().map_or("", ListName::as_str),
            task: id.cast_unsigned(),
            revision,
            previous,
            kind,
            sender,
            context,
            client,
            at,
            note,
            content: &content,
        })?;
        let link = link.as_bytes();
        let rest = Rest { seq, kind, note, context, client, previous };
        let sum = sum::joined(sum::of_document(id, revision, at, sender, &content), rest.sum());
        let values =
            params![seq, list, id, revision, previous, kind, sender, context, client, at, note, link, sum, content];
        self.run(MESSAGE, values)?;
        Ok(content.len())
    }

    /// The row that a task has from now on, its edges being put in place; and whether they already were.
    fn row_after(&self, list: i64, id: i64, seq: u64, task: &Task, before: Option<&Row>) -> Answer<(Row, bool)> {
        let blockers: Vec<i64> = task.blocked_by.iter().filter_map(as_row_id).collect();
        let same_edges = self.put_edges(id, &blockers, before.is_some_and(|row| row.has_blockers))?;
        let open = match before.filter(|_| same_edges) {
            Some(row) => {
                let open = row.open_blockers();
                blockers.iter().copied().filter(|blocker| open.contains(blocker)).collect()
            }
            None => self.open_among(list, &blockers)?,
        };
        let owner = task.owner().map(|owner| self.name_id_or_new(owner)).transpose()?;
        let mut row = Row::bare(list, id, seq, task, owner.unwrap_or(0));
        row.open = ids_to(&open);
        row.has_blockers = !blockers.is_empty();
        row.ord = before.map_or(row.ord, |old| old.ord);
        row.set_condition(task, self.due_by());
        match before.filter(|old| old.rank == row.rank && old.stored_parent() == row.lost_parent) {
            Some(old) => {
                (row.parent, row.lost_parent, row.depth) = (old.parent, old.lost_parent, old.depth);
                row.path.clone_from(&old.path);
            }
            None => self.place(&mut row, task, before)?,
        }
        Ok((row, same_edges))
    }

    /// Finds the effective parent. A parent below the task itself (damaged data only) counts as lost.
    fn place(&self, row: &mut Row, task: &Task, before: Option<&Row>) -> Answer<()> {
        let spot = row.lost_parent.map(|parent| self.spot(parent)).transpose()?.flatten();
        let spot = spot.filter(|spot| before.is_none_or(|old| !spot.path.as_bytes().starts_with(&old.path)));
        let (above, depth) = match spot {
            Some(spot) => {
                row.parent = row.lost_parent.take().unwrap_or(0);
                (spot.path, spot.depth + 1)
            }
            None => (TreePath::root(), 0),
        };
        row.path = above.child(&task.rank, &task.id).as_bytes().to_vec();
        row.depth = depth;
        Ok(())
    }

    /// Writes the row and what follows from the difference.
    fn settle(&self, id: i64, before: Option<&Row>, after: Option<&Row>, task: &Task) -> Answer<()> {
        self.count_ord(id, before.map(|row| row.ord), after.map(|row| row.ord));
        match (before, after) {
            (Some(old), Some(new)) => new.update(self.connection, old)?,
            (None, Some(new)) => new.insert(self.connection)?,
            (Some(old), None) => {
                old.delete(self.connection)?;
                self.put_edges(id, &[], old.has_blockers)?;
                self.run(BURY, params![id, old.list, self.seq.get()])?;
            }
            (None, None) => {}
        }
        self.put_labels(before, after)?;
        self.move_subtree(before, after, task)?;
        let (was_open, is_open) = (before.is_some_and(|row| !row.done), after.is_some_and(|row| !row.done));
        let waiting = if was_open != is_open {
            self.tell_dependents(id, is_open)?
        } else if before.is_none() {
            self.waiting_for(id)?
        } else {
            Vec::new()
        };
        if before.is_none() {
            self.fit_waiting(id, &waiting)?;
        }
        Ok(())
    }
}
