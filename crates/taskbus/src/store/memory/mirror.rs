//! What a store of rows needs of the memory beyond a store's own verbs: to follow rows that others changed, and to
//! say which tasks a write touched.

use std::collections::BTreeSet;

use taskbus_core::change::{Change, Kind};
use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::task::Task;

use super::desk::{Desk, Undo, Work};
use crate::store::rows::Rows;
use crate::store::{Author, StoreError};

impl<'a> Desk<'a, '_> {
    /// The same desk over these rows, which mint its ids.
    pub(in crate::store) fn over(self, rows: &mut dyn Rows) -> Desk<'a, '_> {
        Desk { work: self.work, scope: self.scope, rows: Some(rows) }
    }

    /// The list that a task belongs to.
    pub(in crate::store) fn home(&self, id: &TaskId) -> Option<ListName> {
        self.state().homes.get(id).cloned()
    }
}

impl Work<'_> {
    /// The live task with this id.
    pub(in crate::store) fn live(&self, list: &ListName, id: &TaskId) -> Option<Task> {
        self.state.lists.get(list)?.board.get(id).cloned()
    }

    /// The task with this id, live or deleted.
    pub(in crate::store) fn any(&self, list: &ListName, id: &TaskId) -> Option<Task> {
        let board = &self.state.lists.get(list)?.board;
        board.get(id).or_else(|| board.get_tombstone(id)).cloned()
    }

    /// The tasks written to since the last commit.
    pub(in crate::store) fn touched(&self) -> BTreeSet<TaskId> {
        let revisions = self.undo.iter().filter_map(|step| match step {
            Undo::Revision(_, id, _, _) => Some(id.clone()),
            Undo::List(_) | Undo::Session(_, _) | Undo::Known(_) | Undo::Receipt(_, _) => None,
            // Rows have no bus.
            Undo::Seq(_) | Undo::ListGone(_, _, _) | Undo::Bus(_) | Undo::All(_) => None,
        });
        revisions.collect()
    }

    /// Writes the revision that somebody else made of a task: nobody says who it was.
    ///
    /// # Errors
    /// [`StoreError`] when there is no such list.
    pub(in crate::store) fn learn(&mut self, list: &ListName, task: Task, deleted: bool) -> Result<(), StoreError> {
        let kind = match (self.any(list, &task.id), deleted) {
            (_, true) => Kind::Deleted,
            (None, false) => Kind::Created,
            (Some(_), false) if self.live(list, &task.id).is_none() => Kind::Restored,
            (Some(_), false) => Kind::Changed,
        };
        self.append(list, &Change { kind, task, note: None }, &Author::default()).map(drop)
    }

    /// Takes out of sight the tasks whose rows cannot be read, and says that they are there.
    pub(in crate::store) fn hide(&mut self, list: &ListName, ids: &[TaskId]) {
        let Some(list) = self.state.lists.get_mut(list) else { return };
        for id in ids {
            list.live -= u64::from(list.board.get(id).is_some());
            list.board.forget(id);
        }
        list.board.set_unreadable(ids.iter().cloned());
    }

    /// Puts a task in place of what is there, without a revision.
    pub(in crate::store) fn replace(&mut self, list: &ListName, task: Task, deleted: bool) {
        let kind = if deleted { Kind::Deleted } else { Kind::Changed };
        if let Some(list) = self.state.lists.get_mut(list) {
            list.board.put(&Change { kind, task, note: None });
        }
    }
}
