//! Eight processes, two hundred operations each, and one of them killed without a warning every fifty operations. What
//! was acknowledged is there, no id was given twice, every file can be read. The same storm on a store that takes no
//! locks must be seen to lose something, else it would show nothing.

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
use taskbus::store::Store;
use taskbus::store::claude::{ClaudeOptions, ClaudeStore};
use taskbus::store::rows::RowStore as _;
use taskbus::store::small::Small;

use crate::crew::{Crew, Dice, Orders, orders, path_of, say};
use crate::support::open;
use crate::unlocked::Unlocked;

const WORKERS: u64 = 8;
const OPERATIONS: u64 = 200;
const KILL_EVERY: usize = 50;
/// So many are more than enough to lose something without the locks.
const UNLOCKED_OPERATIONS: u64 = 50;
const PATIENCE: Duration = Duration::from_secs(600);

/// One process of the crew; alone, it works in a directory of its own.
#[test]
fn a_worker() {
    let own = tempfile::tempdir().unwrap();
    let alone = Orders { dir: own.path().join("list"), worker: 1, first: 0, last: 40, locks: true };
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
    rows: Arc<ClaudeStore>,
    me: Identity,
    key: String,
    dice: Dice,
}

impl Worker {
    fn new(orders: &Orders) -> Self {
        let rows = open(&orders.dir);
        let store: Arc<dyn Store> = if orders.locks {
            Arc::new(Small::new(Arc::clone(&rows)).unwrap())
        } else {
            Arc::new(Small::new(Unlocked(Arc::clone(&rows), orders.dir.clone())).unwrap())
        };
        let limits = Limits { writes_per_second: 100_000, write_kib_per_second: 100_000, ..Limits::default() };
        let engine = Engine::new(store, limits);
        let name = format!("worker{}", orders.worker);
        let me = engine.register(&Registration { name, ..Registration::default() }).unwrap().name;
        let dice = Dice::new(orders.worker * 1_000_003 + orders.first);
        Self { engine, rows, me, key: format!("w{}", orders.worker), dice }
    }

    fn run(&self, command: Command) -> Result<Answer, Error> {
        let list = Some(self.rows.list_name());
        self.engine.execute(&Request { caller: self.me.clone(), list, command, key: None })
    }

    fn some_task(&mut self) -> Option<TaskId> {
        let live = self.rows.snapshot().unwrap().live;
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
    /// Ids that were given twice.
    twice: Vec<u64>,
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
            let twice = self.created.insert(id, subject).is_some();
            self.twice.extend(twice.then_some(id));
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

    /// Holds what was said against what is there: how many values were compared, and what is wrong.
    fn check(&self, dir: &Path) -> (usize, Vec<String>) {
        let mut wrongs: Vec<String> = self.twice.iter().map(|id| format!("id {id} was given twice")).collect();
        for (id, subject) in self.created.iter().filter(|(id, _)| !self.maybe_deleted.contains(id)) {
            let found = read(&path_of(dir, *id)).map(|task| task["subject"].clone());
            if found != Some(json!(subject)) {
                wrongs.push(format!("task {id} was acknowledged as {subject} and is {found:?}"));
            }
        }
        let back = self.deleted.iter().filter(|id| path_of(dir, **id).exists());
        wrongs.extend(back.map(|id| format!("the end of task {id} was acknowledged")));
        let mut checked = 0;
        for ((id, key), (last, maybe)) in &self.values {
            let Some(task) = read(&path_of(dir, *id)) else {
                let gone = || format!("task {id} is gone");
                wrongs.extend((!self.maybe_deleted.contains(id)).then(gone));
                continue;
            };
            let found = task["metadata"][key].as_u64();
            if found != *last && found.is_none_or(|found| !maybe.contains(&found)) {
                wrongs.push(format!("task {id} {key}: {found:?}, acknowledged was {last:?}, on their way {maybe:?}"));
            }
            checked += usize::from(last.is_some());
        }
        (checked, wrongs)
    }
}

fn read(path: &PathBuf) -> Option<Value> {
    std::fs::read(path).ok().map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// All workers from start to end: what they said, and how many were killed.
fn blow(dir: &Path, operations: u64, locks: bool) -> (Ledger, usize) {
    let mut crew = Crew::new("storm::a_worker");
    let mut reached: BTreeMap<u64, u64> = BTreeMap::new();
    let orders = |worker, first| Orders { dir: dir.to_owned(), worker, first, last: operations, locks };
    (0..WORKERS).for_each(|worker| crew.start(&orders(worker, 0)));
    let (mut ledger, mut dice, mut kills) = (Ledger::default(), Dice::new(7), 0);
    let (start, mut killed) = (Instant::now(), BTreeSet::new());
    while !crew.workers().is_empty() {
        let said = crew.heard.recv_timeout(PATIENCE.saturating_sub(start.elapsed())).expect("the crew ends in time");
        let Some(line) = said.line else {
            let first = reached.get(&said.worker).copied().unwrap_or(0);
            // A kill may come when all is done and the process has not ended yet.
            assert!(crew.ended(said.worker) || killed.remove(&said.worker), "worker {} failed", said.worker);
            if first < operations {
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
    (ledger, kills)
}

#[test]
fn eight_processes_with_kills_lose_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (dir, start) = (place.path().join("list"), Instant::now());
    let (ledger, kills) = blow(&dir, OPERATIONS, true);
    assert!(kills >= 25, "{kills} kills");
    let store = open(&dir);
    store.transact(&mut |_| Ok(())).unwrap();
    assert_eq!(store.problems().unwrap(), []);
    let (checked, wrongs) = ledger.check(&dir);
    assert_eq!(wrongs, [""; 0]);
    assert!(checked > 50 && ledger.created.len() > 100, "{checked} values, {} tasks", ledger.created.len());
    let left: Vec<String> =
        std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let left: Vec<&String> = left
        .iter()
        .filter(|name| name.contains(".lock.") || name.ends_with(".json.lock") || name.contains("journal"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    eprintln!("{} operations acknowledged, {kills} kills, {:?}", ledger.acknowledged, start.elapsed());
}

#[test]
fn eight_processes_without_the_locks_are_seen_to_lose() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("list");
    let (ledger, _) = blow(&dir, UNLOCKED_OPERATIONS, false);
    let (_, wrongs) = ledger.check(&dir);
    eprintln!("without the locks: {} operations acknowledged, {} wrongs", ledger.acknowledged, wrongs.len());
    assert!(wrongs.iter().any(|wrong| wrong.contains("given twice")), "{wrongs:?}");
    assert!(wrongs.iter().any(|wrong| wrong.contains("acknowledged")), "{wrongs:?}");
}
