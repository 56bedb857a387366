//! Eight processes work on one sidecar, 200 operations each, and one of them is killed every 50 operations. Nothing that
//! was acknowledged is lost, no id is given twice, and whoever reads the file at any moment can parse it.
//!
//! A worker changes only tasks that its name made, so what it was told last is what the file must say in the end. It
//! says `Try` before each operation and `Ack` with the task's new state after it; a killed one has a successor that
//! goes on with the next operation.
//!
//! The same storm on a store that takes no lock must be seen to lose something, else it would show nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use taskbus::answer::{Answer, TaskView};
use taskbus::engine::{Engine, Error, Limits, ListAsk, Registration, Request};
use taskbus::store::Store;
use taskbus::store::rows::RowStore as _;
use taskbus::store::sidecar::{Options, Sidecar};
use taskbus::store::small::Small;
use taskbus_core::command::{Command, Draft, Patch};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::task::{Status, Task};
use taskbus_core::text::Subject;

use crate::unlocked::Unlocked;

const WORKERS: usize = 8;
const OPERATIONS: usize = 200;
const KILL_EVERY: usize = 50;
/// So many are more than enough to lose something without the lock.
const UNLOCKED_OPERATIONS: usize = 30;
/// Tasks that one worker makes at most; the more there are, the longer each writing takes.
const OWN_TASKS_MAX: usize = 16;
/// A reader looks at least so often.
const LOOK: Duration = Duration::from_millis(20);
/// Nobody is silent for so long.
const PATIENCE: Duration = Duration::from_secs(300);

const SIGKILL: i32 = 9;

/// What a worker is told: the file, which one it is, its first operation, the one after its last, and which lock it is
/// to take; one a line.
const ORDERS: &str = "TASKBUS_TEST_STORM";

/// Which lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Locking {
    Kernel,
    Stolen,
    None,
}

/// A task as somebody was told it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    id: TaskId,
    content: String,
    status: String,
    blocked_by: Vec<TaskId>,
    revision: u64,
}

/// What a worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Said {
    /// It begins this operation, on this task or to make one.
    Try(usize, Option<TaskId>),
    /// It was told that this is so; whether the task is new.
    Ack(Seen, bool),
    /// The rules refused it.
    Refused,
}

// The worker.

struct Worker {
    engine: Engine,
    caller: Identity,
    list: ListName,
    mark: String,
    dice: u64,
}

/// One process; without orders it has nothing to do.
#[test]
fn worker() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let words: Vec<&str> = orders.lines().collect();
    let [worker, first, last] = [1, 2, 3].map(|at| words[at].parse::<usize>().unwrap());
    let known = [Locking::Kernel, Locking::Stolen, Locking::None];
    let locking = known.into_iter().find(|locking| format!("{locking:?}") == words[4]).unwrap();
    let mut worker = Worker::new(worker as u64, first as u64, store(Path::new(words[0]), locking));
    for number in first..last {
        worker.operate(number);
    }
}

fn store(path: &Path, locking: Locking) -> Arc<dyn Store> {
    let sidecar = Sidecar::at(path, Options::default()).unwrap();
    match locking {
        Locking::Kernel => Arc::new(Small::new(sidecar).unwrap()),
        other => Arc::new(Small::new(Unlocked { sidecar, steals: other == Locking::Stolen }).unwrap()),
    }
}

/// Says something in one piece.
fn say(what: &Said) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n~{}\n", serde_json::to_string(what).unwrap()).as_bytes()).unwrap();
    out.flush().unwrap();
}

impl Worker {
    fn new(worker: u64, first: u64, store: Arc<dyn Store>) -> Self {
        let limits = Limits { writes_per_second: 1_000_000, write_kib_per_second: 1_000_000, ..Limits::default() };
        let engine = Engine::new(store, limits);
        let list = engine.lists().unwrap().remove(0).name;
        let wish = Registration { name: format!("worker {worker}"), ..Registration::default() };
        let caller = engine.register(&wish).unwrap().name;
        Self { engine, caller, list, mark: format!("w{worker} "), dice: worker * 1_000_003 + first }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.dice >> 33) % bound as u64).unwrap()
    }

    fn subject(&self, what: &str, number: usize) -> Subject {
        Subject::new(format!("{}{what} in operation {number}", self.mark)).unwrap()
    }

    /// The tasks that this worker made, and all.
    fn tasks(&self) -> (Vec<TaskId>, Vec<TaskId>) {
        let ask = ListAsk { limit: Some(200), ..ListAsk::default() };
        let page = self.engine.list(None, &self.list, &ask).unwrap().tasks;
        let own = page.iter().filter(|task| task.subject.as_str().starts_with(&self.mark));
        (own.map(|task| task.id.clone()).collect(), page.iter().map(|task| task.id.clone()).collect())
    }

    fn operate(&mut self, number: usize) {
        let (own, all) = self.tasks();
        let dice = self.below(100);
        if own.is_empty() || (dice < 35 && own.len() < OWN_TASKS_MAX) {
            let blocker = all.get(self.below(all.len() + 1)).cloned();
            let draft = Draft { blocked_by: blocker.into_iter().collect(), ..Draft::new(self.subject("made", number)) };
            say(&Said::Try(number, None));
            return self.run(Command::Create(Box::new(draft)));
        }
        let (id, other) = (own[self.below(own.len())].clone(), all[self.below(all.len())].clone());
        let to = |status| Patch { status: Some(status), ..Patch::default() };
        let patch = match dice {
            0..50 => Patch { subject: Some(self.subject("written", number)), ..Patch::default() },
            50..60 => to(Status::InProgress),
            60..70 => to(Status::Completed),
            70..78 => to(Status::Pending),
            78..94 => Patch { add_blocked_by: vec![other], ..Patch::default() },
            _ => Patch::delete(),
        };
        say(&Said::Try(number, Some(id.clone())));
        self.run(Command::Update(id, Box::new(patch)));
    }

    fn run(&self, command: Command) {
        let request = Request { caller: self.caller.clone(), list: Some(self.list.clone()), command, key: None };
        match self.engine.execute(&request) {
            Ok(Answer::Created(task)) => say(&Said::Ack(told(&task, false), true)),
            Ok(Answer::Written(written)) => say(&Said::Ack(told(&written.task, written.deleted), false)),
            Err(Error::Refused(_)) => say(&Said::Refused),
            other => panic!("{other:?}"),
        }
    }
}

/// A deleted task is answered as it was; its row is one revision on.
fn told(task: &TaskView, deleted: bool) -> Seen {
    Seen {
        id: task.id.clone(),
        content: task.subject.to_string(),
        status: if deleted { "deleted" } else { task.status.as_str() }.to_owned(),
        blocked_by: task.blocked_by.clone(),
        revision: task.revision + u64::from(deleted),
    }
}

// The storm around the workers.

/// Something that a worker said; none when it ended.
type Heard = (usize, Option<Said>);

struct Storm {
    path: PathBuf,
    operations: usize,
    locking: Locking,
    tell: Sender<Heard>,
    children: Vec<Child>,
    dice: usize,
}

impl Storm {
    /// Starts a worker; a thread passes on what it says.
    fn start(&self, worker: usize, first: usize) -> Child {
        let mut child = Process::new(std::env::current_exe().unwrap())
            .args(["storm::worker", "--exact", "--nocapture"])
            .env(ORDERS, self.orders(worker, first))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            // The last line of a killed worker may be cut.
            let said = lines.filter_map(|line| serde_json::from_str(line.strip_prefix('~')?).ok());
            said.map(Some).chain([None]).for_each(|said| tell.send((worker, said)).unwrap());
        });
        child
    }

    fn orders(&self, worker: usize, first: usize) -> String {
        format!("{}\n{worker}\n{first}\n{}\n{:?}", self.path.display(), self.operations, self.locking)
    }

    fn kill_somebody(&mut self) {
        self.dice = (self.dice * 5 + 3) % 64;
        self.children[self.dice / 8].kill().unwrap();
    }
}

/// What was said.
#[derive(Default)]
struct Told {
    acknowledged: usize,
    refused: usize,
    killed: usize,
    /// The ids of new tasks, as they were acknowledged.
    new: Vec<TaskId>,
    /// What was last acknowledged of each task.
    last: BTreeMap<TaskId, Seen>,
    /// Tasks that somebody was changing when it was killed, how many were making one, and how many both are.
    changing: BTreeSet<TaskId>,
    making: usize,
    unheard: usize,
}

/// Where a worker is: its next operation, and the task of the one before as long as that is open.
#[derive(Clone, Default)]
struct At {
    next: usize,
    open: Option<Option<TaskId>>,
}

/// All workers from start to end, and how many reads saw a whole file meanwhile.
fn blow(path: &Path, operations: usize, locking: Locking) -> (Told, usize) {
    let (tell, hear) = channel();
    let mut storm = Storm { path: path.to_owned(), operations, locking, tell, children: Vec::new(), dice: 0 };
    storm.children = (0..WORKERS).map(|worker| storm.start(worker, 0)).collect();
    let done = AtomicBool::new(false);
    let (told, reads) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_until(path, &done));
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| weather(&mut storm, &hear)));
        done.store(true, Ordering::SeqCst);
        (told, reader.join().unwrap())
    });
    (told.unwrap(), reads)
}

#[test]
fn eight_processes_that_are_killed_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s1.tasks.json");
    let (told, reads) = blow(&path, OPERATIONS, Locking::Kernel);
    println!(
        "{} operations acknowledged, {} refused, {} processes killed, {} tasks made; {reads} reads saw a whole file",
        told.acknowledged,
        told.refused,
        told.killed,
        told.new.len()
    );
    assert_eq!(told.acknowledged + told.refused + told.unheard, WORKERS * OPERATIONS);
    assert!(told.acknowledged * 10 > WORKERS * OPERATIONS * 7 && told.killed >= 20 && reads > 100);
    assert_eq!(wrongs(&path, &told), [""; 0]);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.len() <= 3, "beside the file and its lock at most what the last killed writer left: {left:?}");
}

#[track_caller]
fn loses(locking: Locking) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s1.tasks.json");
    let (told, _) = blow(&path, UNLOCKED_OPERATIONS, locking);
    let wrongs = wrongs(&path, &told);
    let acknowledged = wrongs.iter().any(|wrong| wrong.contains("was acknowledged"));
    assert!(acknowledged, "{locking:?}: of {} acknowledged operations none was lost: {wrongs:?}", told.acknowledged);
}

#[test]
fn eight_processes_without_the_lock_are_seen_to_lose() {
    loses(Locking::None);
}

#[test]
fn eight_processes_that_steal_the_lock_are_seen_to_lose() {
    loses(Locking::Stolen);
}

/// Listens until every worker has done its operations, and kills one now and then.
fn weather(storm: &mut Storm, hear: &Receiver<Heard>) -> Told {
    let mut told = Told::default();
    let (mut at, mut running) = (vec![At::default(); WORKERS], WORKERS);
    while running > 0 {
        let (worker, said) = hear.recv_timeout(PATIENCE).unwrap();
        match said {
            Some(Said::Try(number, id)) => at[worker] = At { next: number + 1, open: Some(id) },
            Some(Said::Ack(seen, is_new)) => {
                at[worker].open = None;
                told.acknowledged += 1;
                told.new.extend(is_new.then(|| seen.id.clone()));
                told.last.insert(seen.id.clone(), seen);
                if told.acknowledged.is_multiple_of(KILL_EVERY) {
                    storm.kill_somebody();
                }
            }
            Some(Said::Refused) => {
                at[worker].open = None;
                told.refused += 1;
            }
            None => running -= usize::from(!ended(storm, worker, &mut at[worker], &mut told)),
        }
    }
    told
}

/// A worker ended: by itself when all was done, or killed. Then another goes on; says whether there is one.
fn ended(storm: &mut Storm, worker: usize, at: &mut At, told: &mut Told) -> bool {
    let status = storm.children[worker].wait().unwrap();
    assert!(status.success() || status.signal() == Some(SIGKILL), "worker {worker} failed: {status}");
    told.killed += usize::from(!status.success());
    told.unheard += usize::from(at.open.is_some());
    match at.open.take() {
        Some(Some(id)) => drop(told.changing.insert(id)),
        Some(None) => told.making += 1,
        None => {}
    }
    if at.next < storm.operations {
        storm.children[worker] = storm.start(worker, at.next);
    }
    at.next < storm.operations
}

fn read_until(path: &Path, done: &AtomicBool) -> usize {
    let (mut reads, sidecar) = (0, Sidecar::at(path, Options::default()).unwrap());
    while !done.load(Ordering::SeqCst) {
        if let Ok(bytes) = std::fs::read(path) {
            let file: Value = serde_json::from_slice(&bytes).expect("the file is whole at any moment");
            assert!(file["tasks"].is_array());
            reads += 1;
        }
        sidecar.wait(sidecar.version().unwrap(), LOOK).unwrap();
    }
    reads
}

/// What is not as it was acknowledged, nor as the operation left it in which a worker was killed.
fn wrongs(path: &Path, told: &Told) -> Vec<String> {
    let rows = Sidecar::at(path, Options::default()).unwrap().snapshot().unwrap();
    let row = |task: &Task, status: &str| Seen {
        id: task.id.clone(),
        content: task.subject.to_string(),
        status: status.to_owned(),
        blocked_by: task.blocked_by.clone(),
        revision: task.revision,
    };
    let live = rows.live.iter().map(|task| row(task, task.status().as_str()));
    let there: BTreeMap<TaskId, Seen> =
        live.chain(rows.deleted.iter().map(|task| row(task, "deleted"))).map(|seen| (seen.id.clone(), seen)).collect();
    let mut wrongs: Vec<String> = told.last.values().filter_map(|last| told.wrong(last, there.get(&last.id))).collect();
    if told.new.iter().collect::<BTreeSet<_>>().len() != told.new.len() {
        wrongs.push("an id was given twice".to_owned());
    }
    if there.len() > told.new.len() + told.making {
        wrongs.push(format!("{} tasks that nobody made", there.len() - told.new.len()));
    }
    wrongs
}

impl Told {
    fn wrong(&self, last: &Seen, there: Option<&Seen>) -> Option<String> {
        let Some(row) = there else { return Some(format!("{} was acknowledged and is gone: {last:?}", last.id)) };
        let unheard = self.changing.contains(&last.id) && row.revision == last.revision + 1;
        let wrong = row != last && !unheard;
        wrong.then(|| format!("{} was acknowledged as {last:?} and is {row:?}", last.id))
    }
}
