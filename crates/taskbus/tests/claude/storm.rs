//! Eight processes, two hundred operations each, and one of them killed without a warning every fifty operations. What
//! was acknowledged is there, no id was given twice, every file can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskbus::answer::Answer;
use taskbus::core::command::{Command, Draft, Patch};
use taskbus::core::id::TaskId;
use taskbus::core::name::Identity;
use taskbus::core::task::Status;
use taskbus::core::text::Subject;
use taskbus::engine::{Engine, Error, Limits, Registration, Request};
use taskbus::store::claude::{ClaudeOptions, ClaudeStore};
use taskbus::store::rows::RowStore as _;
use taskbus::store::small::Small;

use crate::crew::{Crew, Dice, Orders, orders, path_of, say};
use crate::support::open;

const WORKERS: u64 = 8;
const OPERATIONS: u64 = 200;
const KILL_EVERY: usize = 50;
const PATIENCE: Duration = Duration::from_secs(600);

/// One process of the crew; alone, it works in a directory of its own.
#[test]
fn a_worker() {
    let own = tempfile::tempdir().unwrap();
    let alone = Orders { dir: own.path().join("list"), worker: 1, first: 0, last: 40 };
    let orders = orders().unwrap_or(alone);
    let mut worker = Worker::new(&orders);
    for number in orders.first..orders.last {
        worker.step(number);
    }
    let problems = ClaudeStore::open(&orders.dir, ClaudeOptions::default()).unwrap().problems().unwrap();
    assert!(orders.last > 40 || problems.is_empty(), "{problems:?}");
}

struct Worker {
    engine: Engine,
    store: Arc<Small<ClaudeStore>>,
    me: Identity,
    key: String,
    dice: Dice,
}

impl Worker {
    fn new(orders: &Orders) -> Self {
        let rows = ClaudeStore::open(&orders.dir, ClaudeOptions::default()).unwrap();
        let store = Arc::new(Small::new(rows).unwrap());
        let limits = Limits { writes_per_second: 100_000, write_kib_per_second: 100_000, ..Limits::default() };
        let engine = Engine::new(Arc::clone(&store) as _, limits);
        let name = format!("worker{}", orders.worker);
        let me = engine.register(&Registration { name, ..Registration::default() }).unwrap().name;
        let dice = Dice::new(orders.worker * 1_000_003 + orders.first);
        Self { engine, store, me, key: format!("w{}", orders.worker), dice }
    }

    fn run(&self, command: Command) -> Result<Answer, Error> {
        let list = Some(self.store.rows().list_name());
        self.engine.execute(&Request { caller: self.me.clone(), list, command, key: None })
    }

    fn some_task(&mut self) -> Option<TaskId> {
        let live = self.store.rows().snapshot().unwrap().live;
        let at = self.dice.below(live.len() as u64);
        live.get(usize::try_from(at).unwrap()).map(|task| task.id.clone())
    }

    /// One operation, told before and after. Only what the rules refuse may fail.
    fn step(&mut self, number: u64) {
        let (say_before, command) = self.choose(number);
        say(&json!({"n": number, "wants": say_before}));
        let done = match self.run(command) {
            Ok(Answer::Created(task)) => json!({"created": task.id}),
            Ok(_) => json!(say_before),
            Err(Error::Refused(_)) => Value::Null,
            Err(error) => panic!("{error}"),
        };
        say(&json!({"n": number, "done": done}));
    }

    fn choose(&mut self, number: u64) -> (Value, Command) {
        let kind = self.dice.below(10);
        let target = if kind < 3 { None } else { self.some_task() };
        let Some(id) = target else {
            let mut draft = Draft::new(Subject::new(format!("{} {number}", self.key)).unwrap());
            draft.blocked_by = (0..self.dice.below(3)).filter_map(|_| self.some_task()).collect();
            draft.blocked_by.dedup();
            return (json!({"create": draft.subject}), Command::Create(Box::new(draft)));
        };
        let update = |what: Value, patch: Patch| (what, Command::Update(id.clone(), Box::new(patch)));
        match kind {
            3..=5 => {
                let metadata = BTreeMap::from([(self.key.clone(), Some(json!(number)))]);
                update(json!({"set": id, "to": number}), Patch { metadata, ..Patch::default() })
            }
            6 => update(json!({}), Patch::claim(self.me.clone(), None)),
            7 => update(json!({}), Patch { status: Some(Status::Completed), ..Patch::default() }),
            8 => update(json!({"delete": id}), Patch::delete()),
            _ => (json!({}), Command::Next(Box::default())),
        }
    }
}

/// What the processes said.
#[derive(Default)]
struct Ledger {
    created: BTreeMap<u64, String>,
    maybe_deleted: BTreeSet<u64>,
    deleted: BTreeSet<u64>,
    /// Per task and key: the last value acknowledged, and those that were on their way when a process died.
    values: BTreeMap<(u64, String), (Option<u64>, BTreeSet<u64>)>,
    on_their_way: BTreeMap<u64, Value>,
    acknowledged: usize,
}

impl Ledger {
    fn hear(&mut self, worker: u64, line: &Value) {
        if let Some(wants) = line.get("wants") {
            self.on_their_way.insert(worker, wants.clone());
            self.maybe_deleted.extend(wants["delete"].as_u64());
            if let Some(id) = wants["set"].as_u64() {
                let value = wants["to"].as_u64().unwrap();
                self.values.entry((id, format!("w{worker}"))).or_default().1.insert(value);
            }
            return;
        }
        self.acknowledged += 1;
        let (wants, done) = (self.on_their_way.remove(&worker).unwrap(), &line["done"]);
        if let Some(id) = done["created"].as_u64() {
            let subject = wants["create"].as_str().unwrap().to_owned();
            let twice = self.created.insert(id, subject);
            assert_eq!(twice, None, "id {id} was given twice");
        }
        self.deleted.extend(done["delete"].as_u64());
        if let Some(id) = wants["set"].as_u64() {
            let value = wants["to"].as_u64().unwrap();
            let (last, maybe) = self.values.get_mut(&(id, format!("w{worker}"))).unwrap();
            maybe.remove(&value);
            if !done.is_null() {
                *last = Some(value);
                maybe.clear();
            }
        }
    }

    /// Holds what was said against what is there.
    fn check(&self, dir: &Path) {
        for (id, subject) in self.created.iter().filter(|(id, _)| !self.maybe_deleted.contains(id)) {
            assert_eq!(read(&path_of(dir, *id)).unwrap()["subject"], json!(subject), "task {id} was acknowledged");
        }
        for id in &self.deleted {
            assert!(!path_of(dir, *id).exists(), "the end of task {id} was acknowledged");
        }
        let mut checked = 0;
        for ((id, key), (last, maybe)) in &self.values {
            let Some(task) = read(&path_of(dir, *id)) else {
                assert!(self.maybe_deleted.contains(id), "task {id} is gone");
                continue;
            };
            let found = task["metadata"][key].as_u64();
            let may_be = found == *last || found.is_some_and(|found| maybe.contains(&found));
            assert!(may_be, "task {id} {key}: {found:?}, acknowledged was {last:?}, on their way {maybe:?}");
            checked += usize::from(last.is_some());
        }
        assert!(checked > 50 && self.created.len() > 100, "{checked} values, {} tasks", self.created.len());
    }
}

fn read(path: &PathBuf) -> Option<Value> {
    std::fs::read(path).ok().map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

#[test]
fn eight_processes_with_kills_lose_nothing() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("list");
    let mut crew = Crew::new("storm::a_worker");
    let mut reached: BTreeMap<u64, u64> = BTreeMap::new();
    let orders = |worker, first| Orders { dir: dir.clone(), worker, first, last: OPERATIONS };
    (0..WORKERS).for_each(|worker| crew.start(&orders(worker, 0)));
    let (mut ledger, mut dice, mut kills) = (Ledger::default(), Dice::new(7), 0);
    let (start, mut killed) = (Instant::now(), BTreeSet::new());
    while !crew.workers().is_empty() {
        let said = crew.heard.recv_timeout(PATIENCE.saturating_sub(start.elapsed())).expect("the crew ends in time");
        let Some(line) = said.line else {
            let first = reached.get(&said.worker).copied().unwrap_or(0);
            // A kill may come when all is done and the process has not ended yet.
            assert!(crew.ended(said.worker) || killed.remove(&said.worker), "worker {} failed", said.worker);
            if first < OPERATIONS {
                ledger.on_their_way.remove(&said.worker);
                crew.start(&orders(said.worker, first));
                killed.remove(&said.worker);
            }
            continue;
        };
        reached.insert(said.worker, line["n"].as_u64().unwrap() + 1);
        ledger.hear(said.worker, &line);
        if ledger.acknowledged / KILL_EVERY > kills {
            kills += 1;
            let workers = crew.workers();
            let victim = workers[usize::try_from(dice.below(workers.len() as u64)).unwrap()];
            killed.insert(victim);
            crew.kill(victim);
        }
    }
    assert!(kills >= 25, "{kills} kills");
    let store = open(&dir);
    store.transact(&mut |_| Ok(())).unwrap();
    assert_eq!(store.problems().unwrap(), []);
    ledger.check(&dir);
    let left: Vec<String> =
        std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let left: Vec<&String> = left
        .iter()
        .filter(|name| name.contains(".lock.") || name.ends_with(".json.lock") || name.contains("journal"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    eprintln!("{} operations acknowledged, {kills} kills, {:?}", ledger.acknowledged, start.elapsed());
}
