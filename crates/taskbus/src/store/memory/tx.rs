//! The verbs of a write to a memory store. Each notes first how to take itself back.

use taskbus_core::change::Change;
use taskbus_core::document;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::time::Timestamp;

use super::List;
use super::desk::{Desk, Undo, Was, Work, one_list_only, out_of_scope};
use crate::store::bus::BusTx;
use crate::store::{Appended, Author, ReceiptRow, RevisionRow, SessionRow, StoreError, Tx};

impl Tx for Desk<'_, '_> {
    fn bus_mut(&mut self) -> Option<&mut dyn BusTx> {
        if self.state().one_list { None } else { Some(self) }
    }

    fn mint(&mut self, count: usize) -> Result<Vec<TaskId>, StoreError> {
        if let Some(rows) = &mut self.rows {
            return (0..count).map(|_| rows.allocate()).collect();
        }
        let next = self.state().seq + 1;
        Ok((next..next + count as u64).map(TaskId::Number).collect())
    }

    fn append(&mut self, change: &Change, author: &Author) -> Result<Appended, StoreError> {
        let Some(name) = self.scope.clone() else { return Err(out_of_scope()) };
        self.work.append(&name, change, author)
    }

    fn create_list(&mut self, name: &ListName, rules: ListRules, now: Timestamp) -> Result<(), StoreError> {
        if self.state().one_list {
            return Err(one_list_only(name));
        }
        self.work.state.lists.insert(name.clone(), List::new(rules, now));
        self.work.undo.push(Undo::List(name.clone()));
        Ok(())
    }

    fn put_session(&mut self, session: &SessionRow) -> Result<(), StoreError> {
        let name = &session.name;
        if self.work.state.known.insert(name.clone()) {
            self.work.undo.push(Undo::Known(name.clone()));
        }
        let old = self.work.state.sessions.insert(name.clone(), session.clone());
        self.work.undo.push(Undo::Session(name.clone(), old));
        Ok(())
    }

    fn extend_sessions(&mut self, token: &str, alive_until: Timestamp) -> Result<usize, StoreError> {
        let (state, undo) = (&mut *self.work.state, &mut self.work.undo);
        let mut count = 0;
        for (name, row) in state.sessions.iter_mut().filter(|(_, row)| row.token == token) {
            count += 1;
            if row.alive_until < alive_until {
                undo.push(Undo::Session(name.clone(), Some(row.clone())));
                row.alive_until = alive_until;
            }
        }
        Ok(count)
    }

    fn end_sessions(&mut self, token: &str) -> Result<(), StoreError> {
        let (state, undo) = (&mut *self.work.state, &mut self.work.undo);
        for (name, row) in state.sessions.extract_if(.., |_, row| row.token == token) {
            undo.push(Undo::Session(name, Some(row)));
        }
        Ok(())
    }

    fn put_receipt(&mut self, sender: &Identity, key: &Key, receipt: &ReceiptRow) -> Result<(), StoreError> {
        let key = (sender.clone(), key.clone());
        let old = self.work.state.receipts.insert(key.clone(), receipt.clone());
        self.work.undo.push(Undo::Receipt(key, old));
        Ok(())
    }

    fn drop_receipts(&mut self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let (state, undo) = (&mut *self.work.state, &mut self.work.undo);
        let expired = state.receipts.extract_if(.., |_, receipt| receipt.expires_at <= now).take(limit);
        let before = undo.len();
        undo.extend(expired.map(|(key, receipt)| Undo::Receipt(key, Some(receipt))));
        Ok(undo.len() - before)
    }
}

impl Work<'_> {
    /// The next number in the one order of everything.
    pub(super) fn next_seq(&mut self) -> u64 {
        self.undo.push(Undo::Seq(self.state.seq));
        self.state.seq += 1;
        self.state.seq
    }

    /// Writes one revision of a task of this list.
    pub(super) fn append(&mut self, name: &ListName, change: &Change, author: &Author) -> Result<Appended, StoreError> {
        if !self.state.lists.contains_key(name) {
            return Err(out_of_scope());
        }
        let seq = self.next_seq();
        let state = &mut *self.state;
        let Some(list) = state.lists.get_mut(name) else { return Err(out_of_scope()) };
        let id = &change.task.id;
        let (was, live, latest_seq) = (list.was(id), list.board.get(id).is_some(), list.latest_seq);
        let row = RevisionRow {
            seq,
            kind: change.kind,
            task: change.task.clone(),
            note: change.note.clone(),
            context: author.context.clone(),
            client: author.client.clone(),
        };
        state.log.insert(seq, (name.clone(), row));
        list.board.put(change);
        list.live = list.live + u64::from(list.board.get(id).is_some()) - u64::from(live);
        list.latest_seq = seq;
        let seqs = list.revisions.entry(id.clone()).or_default();
        let replaced = seqs.last().copied().unwrap_or(0);
        seqs.push(seq);
        state.homes.insert(id.clone(), name.clone());
        self.undo.push(Undo::Revision(name.clone(), id.clone(), was, latest_seq));
        Ok(Appended { seq, replaced, bytes: document::encode(&change.task).len() })
    }
}

impl List {
    fn was(&self, id: &TaskId) -> Was {
        match (self.board.get(id), self.board.get_tombstone(id)) {
            (Some(task), _) => Was::Live(Box::new(task.clone())),
            (None, Some(task)) => Was::Deleted(Box::new(task.clone())),
            (None, None) => Was::Absent,
        }
    }
}
