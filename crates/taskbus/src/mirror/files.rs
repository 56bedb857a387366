//! The directory's side: rows, changed only while they still say what was decided on.

use std::collections::BTreeMap;

use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::rank::Rank;
use taskbus_core::task::{Stamp, Status, Task};

use super::action::Texts;
use super::fields::{self, Fields, Half, Hold, SHARED_ID, SideTask};
use super::plan::SideView;
use crate::store::rows::{RowStore, Rows};
use crate::store::{Abort, StoreError};

/// The directory's side.
pub(super) struct Files<'a, R> {
    pub(super) rows: &'a R,
    pub(super) list: &'a ListName,
    pub(super) me: Identity,
}

/// A change of one file.
pub(super) struct FileChange<'a> {
    /// It must still say this.
    pub(super) was: &'a Fields,
    pub(super) texts: &'a Texts,
    pub(super) hold: Option<&'a Hold>,
    /// Blockers of the directory to add or to take away.
    pub(super) edges: Vec<(bool, TaskId)>,
}

impl<R: RowStore> Files<'_, R> {
    pub(super) fn view(&self) -> Result<SideView, StoreError> {
        let set = self.rows.snapshot()?;
        let tasks: BTreeMap<TaskId, SideTask> =
            set.live.iter().map(|task| (task.id.clone(), self.side(task))).collect();
        Ok(SideView { tasks, others: set.unreadable.into_iter().collect() })
    }

    fn side(&self, task: &Task) -> SideTask {
        fields::file(task, self.list, &self.me)
    }

    /// Makes the file of a shared task; none if there is one.
    pub(super) fn make(&self, shared: &TaskId, wanted: &Fields) -> Result<Option<TaskId>, StoreError> {
        self.write(|rows| {
            if rows.list()?.live.iter().any(|task| self.side(task).half == Half::Here(shared.clone())) {
                return Ok(None);
            }
            let id = rows.allocate()?;
            let mut task = self.new_task(id.clone(), wanted)?;
            task.extra.insert(SHARED_ID.to_owned(), fields::shared_id(self.list, shared).into());
            rows.set(&task)?;
            Ok(Some(id))
        })
    }

    /// Lets a file name its shared task; false if it is not there or names another.
    pub(super) fn link(&self, file: &TaskId, shared: &TaskId) -> Result<bool, StoreError> {
        self.write(|rows| {
            let Some(mut task) = rows.get(file)?.filter(|task| self.side(task).half == Half::None) else {
                return Ok(false);
            };
            task.extra.insert(SHARED_ID.to_owned(), fields::shared_id(self.list, shared).into());
            rows.set(&task)?;
            Ok(true)
        })
    }

    /// Changes a file; false if it says something else by now.
    pub(super) fn change(&self, file: &TaskId, change: &FileChange<'_>) -> Result<bool, StoreError> {
        self.write(|rows| {
            let Some(task) = rows.get(file)?.filter(|task| self.side(task).fields == *change.was) else {
                return Ok(false);
            };
            rows.set(&self.changed(task, change)?)?;
            Ok(true)
        })
    }

    /// Removes the file of a deleted task; false if it is not that any more.
    pub(super) fn remove(&self, file: &TaskId, shared: &TaskId) -> Result<bool, StoreError> {
        self.write(|rows| {
            let is_its = rows.get(file)?.is_some_and(|task| self.side(&task).half == Half::Here(shared.clone()));
            Ok(is_its && rows.delete(file)?)
        })
    }

    fn changed(&self, mut task: Task, change: &FileChange<'_>) -> Result<Task, StoreError> {
        let Texts { subject, description, active_form, metadata } = change.texts.clone();
        task.subject = subject.unwrap_or(task.subject);
        task.description = description.unwrap_or(task.description);
        task.active_form = active_form.unwrap_or(task.active_form);
        for (key, value) in metadata {
            match value {
                Some(value) => drop(task.metadata.insert(key, value)),
                None => drop(task.metadata.shift_remove(&key)),
            }
        }
        for (add, blocker) in &change.edges {
            task.blocked_by.retain(|id| id != blocker);
            task.blocked_by.extend(add.then(|| blocker.clone()));
        }
        let now = self.rows.now()?;
        if let Some(hold) = change.hold {
            task.state = fields::state(hold, now);
            task.fence += u64::from(hold.status == Status::InProgress);
        }
        task.updated = Stamp { at: now, by: Some(self.me.clone()) };
        task.revision += 1;
        Ok(task)
    }

    fn new_task(&self, id: TaskId, wanted: &Fields) -> Result<Task, StoreError> {
        let now = self.rows.now()?;
        let stamp = Stamp { at: now, by: Some(self.me.clone()) };
        Ok(Task {
            rank: Rank::nth(id.as_number().unwrap_or(1)),
            id,
            subject: wanted.subject.clone(),
            description: wanted.description.clone(),
            active_form: wanted.active_form.clone(),
            state: fields::state(&wanted.hold, now),
            parent: None,
            blocked_by: wanted.blockers.clone(),
            not_before: None,
            labels: Default::default(),
            paths: Default::default(),
            metadata: wanted.metadata.clone(),
            result: None,
            created: stamp.clone(),
            updated: stamp,
            revision: 1,
            fence: 0,
            reclaims: 0,
            parked: false,
            extra: Default::default(),
        })
    }

    fn write<T>(&self, mut f: impl FnMut(&mut dyn Rows) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut result = None;
        let done = self.rows.transact(&mut |rows| {
            result = Some(f(rows)?);
            Ok(())
        });
        match done {
            Ok(()) => Ok(result.expect("BUG: a transaction that returned Ok ran its body")),
            Err(Abort::Failed(error)) => Err(error),
            Err(Abort::Refused(_)) => unreachable!("BUG: rows refuse nothing"),
        }
    }
}
