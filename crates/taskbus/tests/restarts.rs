//! Random calls on every store, in lockstep with a model in memory, and restarts of everything in between: the store is
//! dropped and opened anew, sometimes without a word of goodbye. Every answer must be the same, to the letter.
//!
//! The model of a store of files is a map of rows that forgets nothing. What files do not keep is stated where their places
//! are made, and forgotten by the map too; what no store of rows keeps (sessions, receipts, the history before this
//! process) is lost by both. The model of SQLite is the memory store, which no restart touches.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use taskbus::conformance::lockstep::{Random, Seen, step};
use taskbus::conformance::{Driver, EngineDriver};
use taskbus::store::claude::{ClaudeOptions, ClaudeStore};
use taskbus::store::memory::MemoryStore;
use taskbus::store::rows::{RowSet, RowStore, Rows, RowsBody};
use taskbus::store::sidecar::{Options, Sidecar};
use taskbus::store::small::Small;
use taskbus::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbus::store::{Abilities, Abort, Clock as _, ManualClock, Store, StoreError};
use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::policy::Policy;
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;

const STEPS: usize = 200;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_millis(1_796_054_400_000)))
}

fn times() -> u64 {
    std::env::var("TASKBUS_TEST_TIMES").ok().map_or(1, |text| text.parse().expect("TASKBUS_TEST_TIMES is a number"))
}

/// Opens a store anew.
type Opener<'a> = Box<dyn Fn() -> Arc<dyn Store> + 'a>;

/// People on a store, who all start again when it does.
struct People<'a> {
    driver: EngineDriver,
    clock: Arc<ManualClock>,
    rules: Option<(ListName, ListRules)>,
    open: Opener<'a>,
}

impl<'a> People<'a> {
    fn new(clock: Arc<ManualClock>, rules: Option<(ListName, ListRules)>, open: Opener<'a>) -> Self {
        let driver = driver(open(), &clock, rules.as_ref());
        Self { driver, clock, rules, open }
    }

    /// Everything starts again. Whoever says goodbye ends the sessions first.
    fn restart(&mut self, says_goodbye: bool) {
        if says_goodbye {
            self.driver.restart((self.open)());
        } else {
            self.driver = driver((self.open)(), &self.clock, self.rules.as_ref());
        }
    }
}

fn driver(store: Arc<dyn Store>, clock: &Arc<ManualClock>, rules: Option<&(ListName, ListRules)>) -> EngineDriver {
    let clock = Arc::clone(clock);
    match rules {
        Some((list, rules)) => EngineDriver::on_list(store, clock, list.clone(), *rules),
        None => EngineDriver::new(store, clock),
    }
}

impl Driver for People<'_> {
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let answer = self.driver.call(actor, tool, arguments);
        println!("{actor} {tool} {}: {answer:?}", Value::Object(arguments.clone()));
        // Of several circles that a link would close, each store may name the one that it met.
        answer.map_err(|mut refusal| {
            if let Some(object) = refusal.as_object_mut().filter(|object| object.contains_key("cycle")) {
                ["cycle", "message"].iter().for_each(|field| drop(object.remove(*field)));
            }
            refusal
        })
    }

    fn pass(&mut self, seconds: u64) -> bool {
        self.driver.pass(seconds)
    }

    /// Also where everybody counts as alive.
    fn kill(&mut self, actor: &str) -> bool {
        self.driver.kill(actor);
        true
    }
}

/// Runs one seed on both.
fn compare(seed: u64, store: &mut People<'_>, model: &mut People<'_>) -> Seen {
    let (mut random, mut ids, mut seen) = (Random::new(seed), Vec::new(), Seen::default());
    for at in 0..STEPS {
        if random.below(30) == 0 {
            let says_goodbye = random.below(2) == 0;
            println!("seed {seed}, call {at}: everything starts again, goodbye: {says_goodbye}");
            store.restart(says_goodbye);
            model.restart(says_goodbye);
            // Names of sessions that nobody ended are free again after 30 s.
            assert!(store.pass(31) && model.pass(31));
        }
        step(&mut random, &mut ids, &mut seen, store, model);
    }
    assert!(seen.done * 4 > STEPS && seen.refused * 20 > STEPS, "seed {seed} saw too little: {seen:?}");
    seen
}

#[test]
fn sqlite_answers_as_the_model_over_restarts() {
    for seed in 1..=6 * times() {
        let place = tempfile::tempdir().unwrap();
        let (ours, theirs) = (clock(), clock());
        let open = || -> Arc<dyn Store> {
            let options = SqliteOptions { durability: Durability::Relaxed, ..SqliteOptions::default() };
            let store = SqliteStore::open(place.path().join("taskbus.db"), options).unwrap();
            Arc::new(store.with_clock(Arc::<ManualClock>::clone(&ours)))
        };
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(Arc::<ManualClock>::clone(&theirs)));
        let mut store = People::new(Arc::clone(&ours), None, Box::new(open));
        let mut model = People::new(theirs, None, Box::new(move || Arc::clone(&memory)));
        compare(seed, &mut store, &mut model);
        drop(store);
        assert_eq!(
            SqliteStore::open(place.path().join("taskbus.db"), SqliteOptions::default()).unwrap().check().unwrap(),
            [""; 0]
        );
    }
}

/// A sidecar keeps everything, tombstones too.
#[test]
fn a_sidecar_answers_as_the_model_over_restarts() {
    for (seed, policy) in (1..=4 * times()).flat_map(|seed| [(seed, Policy::Kin), (seed, Policy::Strict)]) {
        let place = tempfile::tempdir_in(scratch()).unwrap();
        let clocks = [clock(), clock()];
        let open = |clock: &Arc<ManualClock>| {
            let clock = Arc::<ManualClock>::clone(clock);
            Sidecar::at(&place.path().join("s1.tasks.json"), Options { clock, ..Options::default() }).unwrap()
        };
        on_rows(seed, policy, &clocks, true, &open);
    }
}

/// A directory of Claude Code forgets what was deleted: its file goes, and its id from the blockers of all others.
#[test]
fn a_task_directory_answers_as_the_model_over_restarts() {
    for (seed, policy) in (1..=2 * times()).flat_map(|seed| [(seed, Policy::Claude), (seed, Policy::Strict)]) {
        let place = tempfile::tempdir_in(scratch()).unwrap();
        let clocks = [clock(), clock()];
        let open = |clock: &Arc<ManualClock>| {
            let clock = Arc::<ManualClock>::clone(clock);
            ClaudeStore::open(&place.path().join("list"), ClaudeOptions { clock, ..ClaudeOptions::default() }).unwrap()
        };
        on_rows(seed, policy, &clocks, false, &open);
    }
}

/// What survives is not asked here, so a place in memory will do.
fn scratch() -> std::path::PathBuf {
    let memory = std::path::PathBuf::from("/dev/shm");
    if tempfile::tempdir_in(&memory).is_ok() { memory } else { std::env::temp_dir() }
}

/// Rows in files against rows in a map.
fn on_rows<R: RowStore + 'static>(
    seed: u64,
    policy: Policy,
    clocks: &[Arc<ManualClock>; 2],
    buries: bool,
    open: &dyn Fn(&Arc<ManualClock>) -> R,
) {
    let ids = Arc::new(Mutex::new(VecDeque::new()));
    let list = open(&clocks[0]).list_name();
    let rules = Some((list.clone(), ListRules { policy, max_reclaims: MAX_RECLAIMS }));
    let shelf = Arc::new(Shelf::new(list, policy, buries, Arc::clone(&clocks[1]), Arc::clone(&ids)));
    let files = || -> Arc<dyn Store> {
        Arc::new(Small::new(Told { rows: open(&clocks[0]), policy, ids: Arc::clone(&ids) }).unwrap())
    };
    let mut store = People::new(Arc::clone(&clocks[0]), rules.clone(), Box::new(files));
    let map = || -> Arc<dyn Store> { Arc::new(Small::new(Arc::clone(&shelf)).unwrap()) };
    let mut model = People::new(Arc::clone(&clocks[1]), rules, Box::new(map));
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| compare(seed, &mut store, &mut model))) {
        let [kept, meant] = [open(&clocks[0]).snapshot(), shelf.snapshot()].map(Result::unwrap);
        for (kept, meant) in kept.live.iter().zip(&meant.live).filter(|(kept, meant)| kept != meant) {
            println!("kept  {kept:?}\nmeant {meant:?}");
        }
        resume_unwind(panic);
    }
}

/// A store that keeps no sessions takes nobody for dead: who comes back goes on with what the name held.
#[test]
fn a_name_that_comes_back_to_a_strict_store_of_rows_goes_on() {
    let (clock, ids) = (clock(), Ids::default());
    let list = ListName::from_short("work").unwrap();
    let shelf = Arc::new(Shelf::new(list.clone(), Policy::Strict, true, Arc::clone(&clock), Arc::clone(&ids)));
    ids.lock().unwrap().push_back(TaskId::Number(1));
    let rules = Some((list, ListRules { policy: Policy::Strict, max_reclaims: MAX_RECLAIMS }));
    let map = || -> Arc<dyn Store> { Arc::new(Small::new(Arc::clone(&shelf)).unwrap()) };
    let mut people = People::new(clock, rules, Box::new(map));
    let call = |people: &mut People<'_>, tool: &str, arguments: Value| {
        people.call("zed", tool, arguments.as_object().unwrap()).unwrap()
    };
    call(&mut people, "task_create", json!({"subject": "work"}));
    call(&mut people, "task_claim", json!({"task_id": 1}));
    people.restart(false);
    let done = call(&mut people, "task_update", json!({"task_id": 1, "status": "completed"}));
    assert_eq!((&done["task"]["status"], &done["task"]["owner"]), (&json!("completed"), &json!("zed")));
}

const MAX_RECLAIMS: u32 = 2;

/// Ids that the files gave out and the map has not taken yet: those of a sidecar are random.
type Ids = Arc<Mutex<VecDeque<TaskId>>>;

/// Rows in files under a policy that is given, which tell the ids that they give out.
struct Told<R> {
    rows: R,
    policy: Policy,
    ids: Ids,
}

struct TellingRows<'a> {
    rows: &'a mut dyn Rows,
    ids: &'a Ids,
}

impl<R: RowStore> RowStore for Told<R> {
    fn abilities(&self) -> Abilities {
        self.rows.abilities()
    }

    fn list_name(&self) -> ListName {
        self.rows.list_name()
    }

    fn policy(&self) -> Policy {
        self.policy
    }

    fn max_reclaims(&self) -> u32 {
        MAX_RECLAIMS
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        self.rows.now()
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        self.rows.transact(&mut |rows| f(&mut TellingRows { rows, ids: &self.ids }))
    }

    fn snapshot(&self) -> Result<RowSet, StoreError> {
        self.rows.snapshot()
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.rows.version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.rows.wait(seen, timeout)
    }
}

impl Rows for TellingRows<'_> {
    fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        self.rows.get(id)
    }

    fn set(&mut self, task: &Task) -> Result<(), StoreError> {
        self.rows.set(task)
    }

    fn delete(&mut self, id: &TaskId) -> Result<bool, StoreError> {
        self.rows.delete(id)
    }

    fn bury(&mut self, task: &Task) -> Result<bool, StoreError> {
        self.rows.bury(task)
    }

    fn list(&self) -> Result<RowSet, StoreError> {
        self.rows.list()
    }

    fn allocate(&mut self) -> Result<TaskId, StoreError> {
        let id = self.rows.allocate()?;
        self.ids.lock().unwrap().push_back(id.clone());
        Ok(id)
    }
}

/// The model: rows in a map that outlives whoever opened it.
struct Shelf {
    list: ListName,
    policy: Policy,
    buries: bool,
    clock: Arc<ManualClock>,
    ids: Ids,
    rows: Mutex<Books>,
    version: AtomicU64,
}

#[derive(Clone, Default, PartialEq)]
struct Books {
    live: BTreeMap<TaskId, Task>,
    deleted: BTreeMap<TaskId, Task>,
}

struct Hands<'a> {
    books: Books,
    shelf: &'a Shelf,
}

impl Shelf {
    fn new(list: ListName, policy: Policy, buries: bool, clock: Arc<ManualClock>, ids: Ids) -> Self {
        Self { list, policy, buries, clock, ids, rows: Mutex::default(), version: AtomicU64::new(0) }
    }
}

impl Books {
    fn set(&self) -> RowSet {
        let all = |rows: &BTreeMap<TaskId, Task>| rows.values().cloned().collect();
        RowSet { live: all(&self.live), deleted: all(&self.deleted), unreadable: Vec::new() }
    }
}

impl RowStore for Shelf {
    fn abilities(&self) -> Abilities {
        Abilities { durable: true, shared_across_processes: true, liveness: false }
    }

    fn list_name(&self) -> ListName {
        self.list.clone()
    }

    fn policy(&self) -> Policy {
        self.policy
    }

    fn max_reclaims(&self) -> u32 {
        MAX_RECLAIMS
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        let mut rows = self.rows.lock().unwrap();
        let mut hands = Hands { books: rows.clone(), shelf: self };
        f(&mut hands)?;
        if hands.books != *rows {
            *rows = hands.books;
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn snapshot(&self) -> Result<RowSet, StoreError> {
        Ok(self.rows.lock().unwrap().set())
    }

    fn version(&self) -> Result<u64, StoreError> {
        Ok(self.version.load(Ordering::SeqCst))
    }
}

impl Rows for Hands<'_> {
    fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.books.live.get(id).cloned())
    }

    fn set(&mut self, task: &Task) -> Result<(), StoreError> {
        self.books.deleted.remove(&task.id);
        self.books.live.insert(task.id.clone(), task.clone());
        Ok(())
    }

    fn delete(&mut self, id: &TaskId) -> Result<bool, StoreError> {
        let task = self.books.live.remove(id);
        Ok(task.is_some())
    }

    fn bury(&mut self, task: &Task) -> Result<bool, StoreError> {
        let was = self.books.live.remove(&task.id).is_some();
        if self.shelf.buries {
            self.books.deleted.insert(task.id.clone(), task.clone());
        } else {
            self.books.live.values_mut().for_each(|other| other.blocked_by.retain(|blocker| *blocker != task.id));
        }
        Ok(was)
    }

    fn list(&self) -> Result<RowSet, StoreError> {
        Ok(self.books.set())
    }

    fn allocate(&mut self) -> Result<TaskId, StoreError> {
        Ok(self.shelf.ids.lock().unwrap().pop_front().expect("the files gave one out first"))
    }
}
