//! The verbs of a transaction, on a view of the directory; nothing is written yet. What it comes to is a plan: which
//! files change, with both ends of every edge.

use std::collections::{BTreeMap, BTreeSet};

use taskbus_core::id::TaskId;
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;

use super::eye::{Row, View};
use super::file::{self, TaskFile};
use super::journal::Write;
use super::names;
use crate::store::StoreError;
use crate::store::rows::{RowSet, Rows};

/// What a transaction wants to write.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The files, in the order of their ids.
    pub(super) writes: Vec<Write>,
    /// What the mark has to say before anything is removed.
    pub(super) mark: Option<u64>,
    /// The tasks whose files go.
    pub(super) removed: BTreeSet<TaskId>,
}

/// A transaction that has not been written.
pub(super) struct Draft<'a> {
    store: &'a str,
    view: &'a View,
    /// What was touched, as its file will read; none for one that goes.
    touched: BTreeMap<TaskId, Option<TaskFile>>,
    /// The highest number handed out; 0 for none.
    minted: u64,
}

impl<'a> Draft<'a> {
    /// An empty one.
    pub(super) fn new(store: &'a str, view: &'a View) -> Self {
        Self { store, view, touched: BTreeMap::new(), minted: 0 }
    }

    /// What has to be written.
    pub(super) fn plan(&self) -> Plan {
        let blocks = self.new_blocks();
        let ids: BTreeSet<&TaskId> = self.touched.keys().chain(blocks.keys()).collect();
        let writes = ids.into_iter().filter_map(|id| self.write(id, blocks.get(id))).collect();
        let gone = |(id, file): (&TaskId, &Option<TaskFile>)| file.is_none().then(|| id.clone());
        let removed: BTreeSet<TaskId> = self.touched.iter().filter_map(gone).collect();
        let unused = self.minted > 0 && !self.touched.contains_key(&TaskId::Number(self.minted));
        let mark = Some(self.view.top.max(self.minted)).filter(|_| unused || !removed.is_empty());
        Plan { writes, mark: mark.filter(|mark| self.view.mark.is_none_or(|old| old < *mark)), removed }
    }

    fn write(&self, id: &TaskId, blocks: Option<&Vec<TaskId>>) -> Option<Write> {
        let row = self.row(id);
        let old = row.and_then(|row| row.content.as_ref().ok());
        let before = row.map(|row| row.bytes.clone());
        let name = row.map_or_else(|| names::file_of(id), |row| Some(row.name.clone()))?;
        let new = match self.touched.get(id) {
            Some(None) => return before.map(|before| Write { name, before: Some(before), after: None }),
            Some(Some(file)) => file,
            None => old?,
        };
        let after = file::write(old, &new.task, blocks.unwrap_or(&new.blocks));
        (before.as_ref() != Some(&after)).then_some(Write { name, before, after: Some(after) })
    }

    /// What each task blocks from now on, where that is not what its file says: the other end of the edges that this
    /// transaction made or took away. What others wrote stays.
    fn new_blocks(&self) -> BTreeMap<TaskId, Vec<TaskId>> {
        let mut blocks: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        let none = Vec::new();
        for (waiting, new) in &self.touched {
            let old = self.row(waiting).and_then(|row| row.live()).map_or(&none, |file| &file.task.blocked_by);
            let new = new.as_ref().map_or(&none, |file| &file.task.blocked_by);
            for blocker in old.iter().filter(|id| !new.contains(id)) {
                self.edit(&mut blocks, blocker, |list| list.retain(|id| id != waiting));
            }
            for blocker in new.iter().filter(|id| !old.contains(id)) {
                self.edit(&mut blocks, blocker, |list| add(list, waiting));
            }
        }
        for (id, file) in &self.touched {
            match file {
                Some(_) if self.row(id).is_none() => self.waiting_already(id, &mut blocks),
                Some(_) => {}
                None => self.forget(id, &mut blocks),
            }
        }
        blocks
    }

    /// A new task may be one that others waited for before it was there.
    fn waiting_already(&self, id: &TaskId, blocks: &mut BTreeMap<TaskId, Vec<TaskId>>) {
        let waiting: Vec<TaskId> =
            self.current().filter(|file| file.task.blocked_by.contains(id)).map(|file| file.task.id.clone()).collect();
        self.edit(blocks, id, |list| waiting.iter().for_each(|waiting| add(list, waiting)));
    }

    /// A task that goes is no longer waiting for anything.
    fn forget(&self, id: &TaskId, blocks: &mut BTreeMap<TaskId, Vec<TaskId>>) {
        let naming = self.current().filter(|file| file.blocks.contains(id)).map(|file| file.task.id.clone());
        for blocker in naming.collect::<Vec<_>>() {
            self.edit(blocks, &blocker, |list| list.retain(|waiting| waiting != id));
        }
    }

    /// Changes what a task blocks, if it is one that can be written.
    fn edit(&self, blocks: &mut BTreeMap<TaskId, Vec<TaskId>>, id: &TaskId, change: impl FnOnce(&mut Vec<TaskId>)) {
        let Some(file) = self.file(id) else { return };
        change(blocks.entry(id.clone()).or_insert_with(|| file.blocks.clone()));
    }

    /// Every live task as it will be.
    fn current(&self) -> impl Iterator<Item = &TaskFile> {
        let untouched = self.view.rows.iter().filter(|(id, _)| !self.touched.contains_key(*id));
        let kept = untouched.filter_map(|(_, row)| row.live());
        kept.chain(self.touched.values().flatten())
    }

    /// A live task as it will be.
    fn file(&self, id: &TaskId) -> Option<&TaskFile> {
        match self.touched.get(id) {
            Some(file) => file.as_ref(),
            None => self.row(id)?.live(),
        }
    }

    fn row(&self, id: &TaskId) -> Option<&Row> {
        self.view.rows.get(id).map(|row| &**row)
    }

    fn check_readable(&self, id: &TaskId) -> Result<(), StoreError> {
        match self.row(id).map(|row| (&row.name, &row.content)) {
            Some((name, Err(fault))) => Err(StoreError::Damaged {
                store: self.store.to_owned(),
                reason: format!("{name}: {fault}"),
                next: "mend or move that file by hand; its id stays taken and what waits for it stays blocked",
            }),
            Some((_, Ok(_))) | None => Ok(()),
        }
    }

    fn stage(&mut self, task: &Task) -> Result<(), StoreError> {
        let old = self.row(&task.id).and_then(|row| row.content.as_ref().ok());
        let blocks = old.map_or(&[][..], |file| &file.blocks);
        let bytes = file::write(old, task, blocks);
        let staged =
            TaskFile::read(&task.id, &bytes, Timestamp::from_millis(0)).map_err(|fault| self.refused(fault))?;
        self.touched.insert(task.id.clone(), Some(staged));
        Ok(())
    }

    fn refused(&self, cause: impl std::error::Error + Send + Sync + 'static) -> StoreError {
        StoreError::Failed { store: self.store.to_owned(), source: Box::new(cause) }
    }
}

impl Rows for Draft<'_> {
    fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        self.check_readable(id)?;
        Ok(self.file(id).map(|file| file.task.clone()))
    }

    fn set(&mut self, task: &Task) -> Result<(), StoreError> {
        self.check_readable(&task.id)?;
        if names::file_of(&task.id).is_none() {
            return Err(self.refused(NoFileName { id: task.id.clone() }));
        }
        self.stage(task)
    }

    fn delete(&mut self, id: &TaskId) -> Result<bool, StoreError> {
        self.check_readable(id)?;
        if self.file(id).is_none() {
            return Ok(false);
        }
        self.touched.insert(id.clone(), None);
        let waiting: Vec<Task> =
            self.current().map(|file| &file.task).filter(|task| task.blocked_by.contains(id)).cloned().collect();
        for mut task in waiting {
            task.blocked_by.retain(|blocker| blocker != id);
            self.stage(&task)?;
        }
        Ok(true)
    }

    fn list(&self) -> Result<RowSet, StoreError> {
        let mut view = self.view.rows.clone();
        view.retain(|id, _| !self.touched.contains_key(id));
        let mut set = super::rows_of(view.values().map(|row| &**row));
        set.live.extend(self.touched.values().flatten().map(|file| file.task.clone()));
        set.live.sort_by(|a, b| a.id.cmp(&b.id));
        super::parents::cut_loops(&mut set.live);
        Ok(set)
    }

    fn allocate(&mut self) -> Result<TaskId, StoreError> {
        let next = self.view.top.max(self.minted) + 1;
        let id = TaskId::number(next).map_err(|error| self.refused(error))?;
        self.minted = next;
        Ok(id)
    }
}

/// Such an id cannot be a file.
#[derive(Debug, thiserror::Error)]
#[error("{id} cannot be the name of a task file here; ids begin with neither '.' nor '_'")]
struct NoFileName {
    id: TaskId,
}

fn add(list: &mut Vec<TaskId>, id: &TaskId) {
    if !list.contains(id) {
        list.push(id.clone());
    }
}
