//! What runs below the shim: threads that make tasks and change them, each under a key, and write down every answer in a
//! file beside the store. A call that fails is sent again under its key, as an agent would.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskbus::answer::Answer;
use taskbus::engine::{Engine, Error, Limits, Registration, Request, Span};
use taskbus::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbus::store::{Snapshot, Store as _, StoreError, write_with};
use taskbus_core::command::{Command, Draft, Patch};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Key, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::text::{Body, Note, Subject};
use taskbus_core::time::Timestamp;

/// What a process is told by its environment.
pub(crate) const ORDERS: &str = "TASKBUS_TEST_FAULTS";
/// The store, and the answers, in their directory.
pub(crate) const STORE: &str = "taskbus.db";
pub(crate) const ACKS: &str = "acks.log";
/// What a workload says when all of it is done.
const END: &str = "end";
/// How often a call is sent, at most.
const TRIES: usize = 6;
/// A text that fills some thirty pages.
const LONG: usize = 60_000;

/// How much is done, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders {
    /// So many threads, each with a handle of its own.
    pub(crate) threads: usize,
    /// Calls of each.
    pub(crate) calls: usize,
    /// When a change is acknowledged.
    pub(crate) durability: Durability,
    /// Long texts, which fill the log until it is written back into the file.
    pub(crate) long: bool,
    /// What it is called, so that a second workload on a store can be told from the first.
    pub(crate) name: char,
}

/// One workload of the usual kind.
pub(crate) const USUAL: Orders = Orders { threads: 1, calls: 8, durability: Durability::Full, long: false, name: 'a' };

impl Orders {
    pub(crate) fn text(&self, dir: &Path) -> String {
        let relaxed = self.durability == Durability::Relaxed;
        format!("{}\n{}\n{}\n{relaxed}\n{}\n{}", dir.display(), self.threads, self.calls, self.long, self.name)
    }

    fn read(text: &str) -> (PathBuf, Self) {
        let words: Vec<&str> = text.lines().collect();
        let durability = if words[3] == "true" { Durability::Relaxed } else { Durability::Full };
        let (threads, calls) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        let name = words[5].chars().next().unwrap();
        (words[0].into(), Self { threads, calls, durability, long: words[4] == "true", name })
    }
}

/// One process; without orders it has nothing to do. It ends without closing anything, as one that is killed does.
#[test]
fn worker() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let (dir, orders) = Orders::read(&orders);
    // Nothing is closed before the process is gone.
    let workers: Vec<Worker<'_>> = (0..orders.threads).map(|thread| Worker::new(&dir, orders, thread)).collect();
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter().map(|worker| scope.spawn(|| worker.work())).collect();
        threads.into_iter().all(|thread| thread.join().unwrap())
    });
    if all {
        say(&dir, END);
    }
    std::process::exit(0);
}

struct Worker<'a> {
    dir: &'a Path,
    orders: Orders,
    thread: usize,
    engine: Engine,
}

/// Writes a line in one piece.
fn say(dir: &Path, line: &str) {
    let mut file = File::options().create(true).append(true).open(dir.join(ACKS)).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn list() -> ListName {
    ListName::new("tasks/faults").unwrap()
}

impl<'a> Worker<'a> {
    fn new(dir: &'a Path, orders: Orders, thread: usize) -> Self {
        let options = SqliteOptions { durability: orders.durability, ..SqliteOptions::default() };
        let store = Arc::new(SqliteStore::lazy(dir.join(STORE), options));
        let limits = Limits { writes_per_second: u32::MAX, write_kib_per_second: u32::MAX, ..Limits::default() };
        Self { dir, orders, thread, engine: Engine::new(store, limits) }
    }

    /// Whether everything was done in the end.
    fn work(&self) -> bool {
        let name = format!("{}{}", self.orders.name, self.thread);
        let wish = Registration { name, span: Span::Command, ..Registration::default() };
        let Some(caller) = self.insist(|| self.engine.register(&wish)).map(|registered| registered.name) else {
            return false;
        };
        if self.insist(|| self.engine.create_list(&caller, &list(), ListRules::default())).is_none() {
            return false;
        }
        let mut last = None;
        (0..self.orders.calls).all(|call| {
            let mark = format!("{}{}.{call}", self.orders.name, self.thread);
            let request = Request {
                caller: caller.clone(),
                list: Some(list()),
                command: self.command(&mark, last.as_ref()),
                key: Some(Key::new(&mark).unwrap()),
            };
            let answer = self.insist(|| self.engine.execute(&request));
            let told = answer.as_ref().map(told);
            if let Some((id, revision)) = &told {
                say(self.dir, &format!("ack {mark} {id} {revision}"));
                last = (call % 2 == 0).then(|| id.clone());
            }
            told.is_some()
        })
    }

    /// Makes a task, and then changes it.
    fn command(&self, mark: &str, last: Option<&TaskId>) -> Command {
        let text = if self.orders.long { "x".repeat(LONG) } else { "y".repeat(mark.len() * 37 % 900) };
        let description = Some(Body::new(text).unwrap());
        match last {
            None => Command::Create(Box::new(Draft { description, ..Draft::new(Subject::new(mark).unwrap()) })),
            Some(id) => {
                let note = Some(Note::new(mark).unwrap());
                Command::Update(
                    id.clone(),
                    Box::new(Patch { note, description: Some(description), ..Patch::default() }),
                )
            }
        }
    }

    /// Sends a call again as long as the store fails, but not for ever.
    fn insist<T>(&self, mut call: impl FnMut() -> Result<T, Error>) -> Option<T> {
        for _ in 0..TRIES {
            match call() {
                Ok(answer) => return Some(answer),
                Err(Error::Store(error)) => say(self.dir, &format!("err {error}")),
                Err(Error::Refused(refusal)) => panic!("{refusal}"),
            }
        }
        None
    }
}

fn told(answer: &Answer) -> (TaskId, u64) {
    match answer {
        Answer::Created(task) => (task.id.clone(), task.revision),
        Answer::Written(written) => (written.task.id.clone(), written.task.revision),
        other => panic!("{other:?}"),
    }
}

/// Something that was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ack {
    mark: String,
    id: u64,
    revision: u64,
}

/// What stands in the file of answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acks {
    /// What was acknowledged.
    pub(crate) all: BTreeSet<Ack>,
    /// Calls that failed.
    pub(crate) failed: usize,
    /// Whether the workload came to its end.
    pub(crate) ended: bool,
}

impl Acks {
    /// Reads whole lines.
    pub(crate) fn read(text: &str) -> Self {
        let mut acks = Acks::default();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["ack", mark, id, revision] => {
                    let (id, revision) = (id.parse().unwrap(), revision.parse().unwrap());
                    acks.all.insert(Ack { mark: mark.to_owned(), id, revision });
                }
                ["err", ..] => acks.failed += 1,
                _ => acks.ended |= line == END,
            }
        }
        acks
    }

    /// Those of a workload in this directory.
    pub(crate) fn of(dir: &Path) -> Self {
        Self::read(&std::fs::read_to_string(dir.join(ACKS)).unwrap_or_default())
    }
}

/// What is wrong with the store in a directory, where this was acknowledged.
pub(crate) fn wrongs(dir: &Path, acks: &Acks) -> Vec<String> {
    let store = match SqliteStore::open(dir.join(STORE), SqliteOptions::default()) {
        Ok(store) => store,
        Err(error) => return vec![format!("it cannot be opened: {error}")],
    };
    let mut wrongs = store.check().unwrap_or_else(|error| vec![format!("it cannot be checked: {error}")]);
    let read = store.read(Some(&list()), &mut |snapshot| {
        for ack in &acks.all {
            if !is_there(snapshot, ack)? {
                wrongs.push(format!("lost: {ack:?}"));
            }
        }
        Ok(())
    });
    wrongs.extend(read.err().map(|error| format!("it cannot be read: {error}")));
    let written = write_with(&store, None, |tx| Ok(tx.drop_receipts(Timestamp::from_millis(0), 1)?));
    wrongs.extend(written.err().map(|error| format!("it cannot be written: {error}")));
    wrongs
}

fn is_there(snapshot: &dyn Snapshot, ack: &Ack) -> Result<bool, StoreError> {
    if snapshot.list(&list())?.is_none() {
        return Ok(false);
    }
    let rows = snapshot.history(&TaskId::Number(ack.id), None, 1_000)?;
    let row = rows.into_iter().find(|row| row.task.revision == ack.revision);
    Ok(row.is_some_and(|row| match &row.note {
        Some(note) => note.as_str() == ack.mark,
        None => row.task.subject.as_str() == ack.mark,
    }))
}
