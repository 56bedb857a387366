//! A directory, and what tests do in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taskbus::core::id::TaskId;
use taskbus::core::name::Identity;
use taskbus::core::rank::Rank;
use taskbus::core::task::{Stamp, State, Task};
use taskbus::core::text::Subject;
use taskbus::core::time::Timestamp;
use taskbus::store::claude::{ClaudeOptions, ClaudeStore};
use taskbus::store::rows::{RowSet, RowStore as _, Rows};
use taskbus::store::{Abort, StoreError};
use tempfile::TempDir;

/// A directory and a store on it.
pub(crate) struct Place {
    pub(crate) store: Arc<ClaudeStore>,
    keep: TempDir,
}

pub(crate) fn open(path: &Path) -> Arc<ClaudeStore> {
    Arc::new(ClaudeStore::open(path, ClaudeOptions::default()).unwrap())
}

impl Place {
    /// A list that is not there yet.
    pub(crate) fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        Self { store: open(&keep.path().join("list")), keep }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.keep.path().join("list")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file as another program does that knows no protocol.
    pub(crate) fn put(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path()).unwrap();
        fs::write(self.file(name), text).unwrap();
    }

    /// Puts a plain task there.
    pub(crate) fn put_task(&self, id: u64, more: &Value) {
        let mut task = json!({"id": id.to_string(), "subject": format!("task {id}"), "description": "",
            "status": "pending", "blocks": [], "blockedBy": []});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.put(&format!("{id}.json"), &serde_json::to_string_pretty(&task).unwrap());
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    pub(crate) fn json(&self, id: u64) -> Value {
        serde_json::from_str(&self.text(&format!("{id}.json"))).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn rows(&self) -> RowSet {
        self.store.snapshot().unwrap()
    }

    pub(crate) fn live(&self) -> Vec<u64> {
        numbers(self.rows().live.iter().map(|task| &task.id))
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.store.problems().unwrap().iter().map(ToString::to_string).collect()
    }

    pub(crate) fn task(&self, id: u64) -> Task {
        self.rows().live.into_iter().find(|task| task.id == TaskId::Number(id)).unwrap()
    }

    /// Makes a task, waiting for others.
    pub(crate) fn create(&self, subject: &str, blockers: &[u64]) -> u64 {
        write(&self.store, |rows| create(rows, subject, blockers)).unwrap()
    }

    pub(crate) fn change(&self, id: u64, change: impl Fn(&mut Task)) {
        write(&self.store, |rows| {
            let mut task = rows.get(&TaskId::Number(id))?.unwrap();
            change(&mut task);
            Ok(rows.set(&task)?)
        })
        .unwrap();
    }

    pub(crate) fn delete(&self, id: u64) -> bool {
        write(&self.store, |rows| Ok(rows.delete(&TaskId::Number(id))?)).unwrap()
    }
}

/// Runs a transaction and hands its result out.
pub(crate) fn write<T>(store: &ClaudeStore, mut f: impl FnMut(&mut dyn Rows) -> Result<T, Abort>) -> Result<T, Abort> {
    let mut result = None;
    store.transact(&mut |rows| {
        result = Some(f(rows)?);
        Ok(())
    })?;
    Ok(result.unwrap())
}

pub(crate) fn create(rows: &mut dyn Rows, subject: &str, blockers: &[u64]) -> Result<u64, Abort> {
    let id = rows.allocate()?;
    let mut task = task(id.as_number().unwrap(), subject);
    task.blocked_by = blockers.iter().map(|id| TaskId::Number(*id)).collect();
    rows.set(&task)?;
    Ok(id.as_number().unwrap())
}

pub(crate) fn task(id: u64, subject: &str) -> Task {
    let stamp = Stamp { at: Timestamp::from_millis(1_796_054_400_000), by: Some(Identity::new("Zed").unwrap()) };
    Task {
        id: TaskId::Number(id),
        subject: Subject::new(subject).unwrap(),
        description: None,
        active_form: None,
        state: State::Pending { assignee: None },
        parent: None,
        rank: Rank::nth(id),
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

pub(crate) fn numbers<'a>(ids: impl IntoIterator<Item = &'a TaskId>) -> Vec<u64> {
    ids.into_iter().filter_map(TaskId::as_number).collect()
}

/// A store that gives up early.
pub(crate) fn impatient(path: &Path, limit_ms: u64) -> ClaudeStore {
    let options = ClaudeOptions { busy: Duration::from_millis(limit_ms), ..ClaudeOptions::default() };
    ClaudeStore::open(path, options).unwrap()
}

#[track_caller]
pub(crate) fn failed<T: std::fmt::Debug>(result: Result<T, Abort>) -> StoreError {
    match result.unwrap_err() {
        Abort::Failed(error) => error,
        Abort::Refused(refusal) => panic!("{refusal}"),
    }
}
