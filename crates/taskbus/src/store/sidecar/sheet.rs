//! The six verbs on a sidecar in memory. What they did is written afterwards, whole or not at all.

use std::collections::{BTreeSet, HashMap};

use taskbus_core::id::TaskId;
use taskbus_core::task::{Stamp, Task};
use taskbus_core::time::Timestamp;

use super::form::Form;
use super::ids;
use super::row::{Row, RowError};
use super::times::Style;
use crate::store::StoreError;
use crate::store::rows::{RowSet, Rows};

/// A sidecar that is being changed.
pub(super) struct Sheet {
    form: Form,
    places: HashMap<TaskId, usize>,
    /// Every id that is there or was handed out by this sheet.
    taken: BTreeSet<TaskId>,
    style: Style,
    now: Timestamp,
    is_changed: bool,
}

impl Sheet {
    pub(super) fn new(form: Form, now: Timestamp) -> Self {
        let places: HashMap<TaskId, usize> =
            form.rows.iter().enumerate().map(|(place, row)| (row.task.id.clone(), place)).collect();
        let taken = places.keys().cloned().collect();
        let style = form.style();
        Self { form, places, taken, style, now, is_changed: false }
    }

    /// The sidecar as it is now, if anything was changed.
    pub(super) fn into_changed(self) -> Option<Form> {
        self.is_changed.then_some(self.form)
    }

    fn row(&self, id: &TaskId) -> Option<&Row> {
        self.places.get(id).map(|place| &self.form.rows[*place])
    }

    fn put(&mut self, task: &Task, deleted: bool) -> Result<(), StoreError> {
        let known = self.places.get(&task.id).copied();
        let place = known.unwrap_or(self.form.rows.len());
        let row = match self.row(&task.id) {
            Some(row) if row.deleted == deleted && row.task == *task => return Ok(()),
            Some(row) => row.with(task, deleted, place, self.style),
            None => Row::new(task, deleted, place, self.style),
        };
        let row = row.map_err(|error| unwritable(&task.id, &error))?;
        self.is_changed = true;
        if known.is_some() {
            self.form.rows[place] = row;
        } else {
            self.form.rows.push(row);
            self.places.insert(task.id.clone(), place);
            self.taken.insert(task.id.clone());
        }
        Ok(())
    }
}

fn unwritable(id: &TaskId, error: &RowError) -> StoreError {
    let source = format!("task {id} cannot be written: {error}");
    StoreError::Failed { store: "of a sidecar".to_owned(), source: source.into() }
}

impl Rows for Sheet {
    fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.row(id).filter(|row| !row.deleted).map(|row| row.task.clone()))
    }

    fn set(&mut self, task: &Task) -> Result<(), StoreError> {
        self.put(task, false)
    }

    fn delete(&mut self, id: &TaskId) -> Result<bool, StoreError> {
        let Some(mut task) = self.get(id)? else { return Ok(false) };
        task.revision += u64::from(task.revision > 0);
        task.updated = Stamp { at: self.now, by: None };
        self.put(&task, true)?;
        Ok(true)
    }

    fn bury(&mut self, task: &Task) -> Result<bool, StoreError> {
        let there = self.get(&task.id)?.is_some();
        self.put(task, true)?;
        Ok(there)
    }

    fn list(&self) -> Result<RowSet, StoreError> {
        Ok(row_set(&self.form))
    }

    fn allocate(&mut self) -> Result<TaskId, StoreError> {
        let id = ids::mint(self.now, &self.taken);
        self.taken.insert(id.clone());
        Ok(id)
    }
}

/// The rows of a sidecar, by id.
pub(super) fn row_set(form: &Form) -> RowSet {
    let mut rows: Vec<&Row> = form.rows.iter().collect();
    rows.sort_by(|a, b| a.task.id.cmp(&b.task.id));
    let (deleted, live): (Vec<&Row>, Vec<&Row>) = rows.into_iter().partition(|row| row.deleted);
    let tasks = |rows: Vec<&Row>| rows.into_iter().map(|row| row.task.clone()).collect();
    RowSet { live: tasks(live), deleted: tasks(deleted), unreadable: Vec::new() }
}
