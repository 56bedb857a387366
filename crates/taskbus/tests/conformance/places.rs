//! The places of the stores here, and the process that works at one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taskbus::conformance::{Plant, Planted, RowPlace, StorePlace, jobs};
use taskbus::store::claude::{ClaudeOptions, ClaudeStore};
use taskbus::store::memory::MemoryStore;
use taskbus::store::rows::{RowSet, RowStore, RowsBody};
use taskbus::store::sidecar::{Options, Sidecar};
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus::store::{Abilities, Abort, ManualClock, Store, StoreError};
use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::policy::Policy;
use taskbus_core::time::Timestamp;
use tempfile::TempDir;

/// The variable that says where a worker works.
const PLACE: &str = "TASKBUS_CONFORMANCE_PLACE";

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_millis(1_796_054_400_000)))
}

/// This test program, started again to work.
fn worker(kind: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["worker", "--exact", "--nocapture"]);
    command.env(PLACE, format!("{kind} {}", path.display()));
    command
}

/// Does the work that this process was started for; says whether it was.
pub(crate) fn work() -> bool {
    let Ok(place) = std::env::var(PLACE) else { return false };
    let (kind, path) = place.split_once(' ').unwrap();
    let path = Path::new(path);
    let worked = match kind {
        "sqlite" => {
            let list = ListName::from_short("conformance").unwrap();
            let store = SqliteStore::open(path, SqliteOptions::default()).unwrap();
            jobs::work_on_store(&(Arc::new(store) as _), &list)
        }
        "kin" => jobs::work(Arc::new(Sidecar::at(path, Options::default()).unwrap())),
        "claude" => jobs::work(Arc::new(ClaudeStore::open(path, ClaudeOptions::default()).unwrap())),
        "claude-strict" => jobs::work(Arc::new(Strictly(ClaudeStore::open(path, ClaudeOptions::default()).unwrap()))),
        _ => jobs::work(Arc::new(Strictly(Sidecar::at(path, Options::default()).unwrap()))),
    };
    assert!(worked, "there was a job");
    true
}

pub(crate) struct MemoryPlace(Arc<MemoryStore>, Arc<ManualClock>);

impl MemoryPlace {
    pub(crate) fn new() -> Self {
        let clock = clock();
        Self(Arc::new(MemoryStore::with_clock(Arc::<ManualClock>::clone(&clock))), clock)
    }
}

impl StorePlace for MemoryPlace {
    fn open(&self) -> Arc<dyn Store> {
        Arc::<MemoryStore>::clone(&self.0)
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(Arc::clone(&self.1))
    }
}

pub(crate) struct SqlitePlace(TempDir, Arc<ManualClock>);

impl SqlitePlace {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), clock())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("taskbus.db")
    }
}

impl StorePlace for SqlitePlace {
    fn open(&self) -> Arc<dyn Store> {
        let store = SqliteStore::open(self.path(), SqliteOptions::default()).unwrap();
        Arc::new(store.with_clock(Arc::<ManualClock>::clone(&self.1)))
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(Arc::clone(&self.1))
    }

    fn command(&self) -> Option<Command> {
        Some(worker("sqlite", &self.path()))
    }
}

pub(crate) struct SidecarPlace {
    dir: TempDir,
    clock: Arc<ManualClock>,
    policy: Policy,
}

impl SidecarPlace {
    /// As Kin uses it.
    pub(crate) fn kin() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), clock: clock(), policy: Policy::Kin }
    }

    /// The same file under the strict policy, which asks more of what is kept.
    pub(crate) fn strict() -> Self {
        Self { policy: Policy::Strict, ..Self::kin() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("s1.tasks.json")
    }

    /// Adds a row by hand; says how the file is then.
    fn add(&self, row: Value) -> Vec<u8> {
        let mut file: Value = serde_json::from_slice(&fs::read(self.path()).unwrap()).unwrap();
        file["tasks"].as_array_mut().unwrap().push(row);
        let next = self.dir.path().join("next");
        fs::write(&next, file.to_string()).unwrap();
        fs::rename(next, self.path()).unwrap();
        fs::read(self.path()).unwrap()
    }
}

impl RowPlace for SidecarPlace {
    fn open(&self) -> Arc<dyn RowStore> {
        let options = Options { clock: Arc::<ManualClock>::clone(&self.clock), ..Options::default() };
        let sidecar = Sidecar::at(&self.path(), options).unwrap();
        if self.policy == Policy::Strict { Arc::new(Strictly(sidecar)) } else { Arc::new(sidecar) }
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(Arc::clone(&self.clock))
    }

    fn command(&self) -> Option<Command> {
        let kind = if self.policy == Policy::Strict { "strict" } else { "kin" };
        Some(worker(kind, &self.path()))
    }

    fn plant(&self, plant: Plant) -> Option<Planted> {
        let id = "t_1796054400000_zzzz";
        let status = if plant == Plant::Unreadable { "gone" } else { "pending" };
        let (path, planted) = (self.path(), self.add(json!({"id": id, "content": "planted", "status": status})));
        Some(Planted { id: id.parse().unwrap(), is_intact: Box::new(move || fs::read(&path).unwrap() == planted) })
    }

    fn foreign_id(&self, newest: &TaskId) -> Option<TaskId> {
        let ms: i64 = newest.to_string().split('_').nth(1)?.parse().ok()?;
        format!("t_{:013}_ffff", ms + 5).parse().ok()
    }
}

pub(crate) struct ClaudePlace {
    dir: TempDir,
    clock: Arc<ManualClock>,
    policy: Policy,
}

impl ClaudePlace {
    /// As it is shared with Claude Code.
    pub(crate) fn shared() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), clock: clock(), policy: Policy::Claude }
    }

    /// The same directory under the strict policy, which asks more of what is kept.
    pub(crate) fn strict() -> Self {
        Self { policy: Policy::Strict, ..Self::shared() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("list")
    }
}

impl RowPlace for ClaudePlace {
    fn open(&self) -> Arc<dyn RowStore> {
        let options = ClaudeOptions { clock: Arc::<ManualClock>::clone(&self.clock), ..ClaudeOptions::default() };
        let store = ClaudeStore::open(&self.path(), options).unwrap();
        if self.policy == Policy::Strict { Arc::new(Strictly(store)) } else { Arc::new(store) }
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(Arc::clone(&self.clock))
    }

    fn command(&self) -> Option<Command> {
        let kind = if self.policy == Policy::Strict { "claude-strict" } else { "claude" };
        Some(worker(kind, &self.path()))
    }

    fn plant(&self, plant: Plant) -> Option<Planted> {
        let id = 7;
        let row = match plant {
            Plant::WithoutLists => json!({"id": "7", "subject": "planted", "status": "pending"}).to_string(),
            Plant::Unreadable => "no task".to_owned(),
        };
        let path = self.path().join(format!("{id}.json"));
        fs::write(&path, &row).unwrap();
        let is_intact = Box::new(move || fs::read_to_string(&path).unwrap() == row);
        Some(Planted { id: TaskId::Number(id), is_intact })
    }
}

/// Rows whose list is strict.
pub(crate) struct Strictly<R>(pub(crate) R);

impl<R: RowStore> RowStore for Strictly<R> {
    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn list_name(&self) -> ListName {
        self.0.list_name()
    }

    fn policy(&self) -> Policy {
        Policy::Strict
    }

    fn max_reclaims(&self) -> u32 {
        2
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        self.0.now()
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        self.0.transact(f)
    }

    fn snapshot(&self) -> Result<RowSet, StoreError> {
        self.0.snapshot()
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.0.version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.0.wait(seen, timeout)
    }
}
