//! What the tests share: a store in a directory of its own, and tasks and changes made by hand.

use std::path::PathBuf;

use taskbus::core::change::{Change, Kind};
use taskbus::core::id::TaskId;
use taskbus::core::name::{Identity, ListName};
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::rank::Rank;
use taskbus::core::task::{Stamp, State, Task};
use taskbus::core::text::Subject;
use taskbus::core::time::Timestamp;
use taskbus::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbus::store::{Abort, Author, Store, StoreError, write_with};
use tempfile::TempDir;

/// A directory, and the path of a store in it.
pub(crate) struct Home {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taskbus.db");
        Self { directory, path }
    }

    pub(crate) fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path, relaxed()).unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::open(&self.path, relaxed())
    }

    /// An open store with a list.
    pub(crate) fn with_list(&self) -> SqliteStore {
        let store = self.open();
        write_with(&store, None, |tx| Ok(tx.create_list(&list(), ListRules::default(), at(0))?)).unwrap();
        store
    }
}

pub(crate) fn relaxed() -> SqliteOptions {
    SqliteOptions { durability: Durability::Relaxed, ..SqliteOptions::default() }
}

pub(crate) fn list() -> ListName {
    ListName::new("tasks/work").unwrap()
}

pub(crate) fn who(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A pending task with nothing special about it.
pub(crate) fn task(id: TaskId) -> Task {
    let stamp = Stamp { at: at(1), by: Some(who("Amp")) };
    Task {
        id,
        subject: Subject::new("Do it").unwrap(),
        description: None,
        active_form: None,
        state: State::Pending { assignee: None },
        parent: None,
        rank: Rank::first(),
        blocked_by: Vec::new(),
        not_before: None,
        labels: Default::default(),
        paths: Default::default(),
        metadata: Default::default(),
        result: None,
        created: stamp.clone(),
        updated: stamp,
        revision: 1,
        fence: 0,
        reclaims: 0,
        parked: false,
        extra: Default::default(),
    }
}

/// The next revision of a task.
pub(crate) fn revised(task: &Task, kind: Kind, f: impl FnOnce(&mut Task)) -> Change {
    let mut task = task.clone();
    f(&mut task);
    task.revision += 1;
    Change { kind, task, note: None }
}

/// Creates a task in a transaction of its own.
pub(crate) fn create(store: &dyn Store, f: impl Fn(&mut Task)) -> Task {
    try_create(store, f).unwrap()
}

pub(crate) fn try_create(store: &dyn Store, f: impl Fn(&mut Task)) -> Result<Task, Abort> {
    write_with(store, Some(&list()), |tx| {
        let mut task = task(tx.mint(1)?.remove(0));
        f(&mut task);
        tx.append(&Change { kind: Kind::Created, task: task.clone(), note: None }, &Author::default())?;
        Ok(task)
    })
}

/// Writes the next revision of a task in a transaction of its own.
pub(crate) fn change(store: &dyn Store, task: &Task, kind: Kind, f: impl Fn(&mut Task)) -> Task {
    let change = revised(task, kind, f);
    write_with(store, Some(&list()), |tx| Ok(tx.append(&change, &Author::default())?)).unwrap();
    change.task
}
