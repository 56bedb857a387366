//! What the engine's tests share: a fresh store with a clock that the test moves, and people who act on it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use taskbus::answer::memory::Found;
use taskbus::answer::{Answer, Got, ListPage, Taken, TaskView, Written};
use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::bus::message::{Message, Sort};
use taskbus::core::command::{Command, Draft, LeaseAsk, Next, Patch};
use taskbus::core::id::TaskId;
use taskbus::core::name::{Identity, Key, ListName};
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::refusal::{Conflict, Refusal};
use taskbus::core::text::Subject;
use taskbus::core::time::Timestamp;
use taskbus::engine::{Engine, Error, Limits, ListAsk, Registration, Request, Seams, SearchAsk, Span};
use taskbus::store::bus::{self, NewMessage};
use taskbus::store::memory::MemoryStore;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus::store::verdict::Verdict;
use taskbus::store::{
    Abilities, Abort, Author, Clock, ManualClock, ReadBody, RevisionRow, Store, StoreError, WriteBody, read_with,
    write_with,
};
use tempfile::TempDir;

/// Writes each test once and runs it on every store.
macro_rules! on_every_store {
    ($(fn $name:ident($place:ident) $body:block)*) => {
        $(fn $name($place: $crate::support::Place) $body)*

        mod memory {
            $(#[test]
            fn $name() {
                super::$name($crate::support::memory());
            })*
        }

        mod sqlite {
            $(#[test]
            fn $name() {
                super::$name($crate::support::sqlite());
            })*
        }
    };
}
pub(crate) use on_every_store;

/// A store to test on.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    /// Where the store's file is, for as long as the test runs.
    directory: Option<TempDir>,
}

impl Place {
    /// Another process on the same store, with clocks of its own; none for a store of one process.
    pub(crate) fn another(&self) -> Option<Place> {
        let (store, clock) = sqlite_in(self.directory.as_ref()?.path());
        Some(Place { store, clock, directory: None })
    }
}

/// 2026-11-30, in Unix ms.
const START_MS: i64 = 1_796_000_000_000;

pub(crate) fn memory() -> Place {
    let clock = Arc::new(ManualClock::booted(Timestamp::from_millis(START_MS), 1));
    Place { store: Arc::new(MemoryStore::with_clock(clock.clone())), clock, directory: None }
}

pub(crate) fn sqlite() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let (store, clock) = sqlite_in(directory.path());
    Place { store, clock, directory: Some(directory) }
}

/// As another process sees the store in this directory, on a clock of its own.
pub(crate) fn sqlite_in(directory: &Path) -> (Arc<dyn Store>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::booted(Timestamp::from_millis(START_MS), 1));
    let store = SqliteStore::open(directory.join("taskbus.db"), SqliteOptions::default()).unwrap();
    (Arc::new(store.with_clock(clock.clone())), clock)
}

/// Whatever a test did through engines, the store adds up at its end.
impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let verdict = self.store.verify(&mut |_, _| {}).unwrap();
            assert!(verdict.as_ref().is_none_or(Verdict::is_sound), "{verdict:#?}");
        }
    }
}

impl Place {
    /// A process of its own on the store, which acts under this name on the list `tasks/work`.
    pub(crate) fn person(&self, name: &str) -> Person {
        self.person_with(name, Limits::default())
    }

    pub(crate) fn person_with(&self, name: &str, limits: Limits) -> Person {
        let person = self.join(self.engine(limits), name, Span::Heartbeat);
        person.engine.create_list(&person.name, &list(), ListRules::default()).unwrap();
        person
    }

    /// A command of a person at a terminal: another process with the same name each time.
    pub(crate) fn command(&self, name: &str) -> Person {
        self.join(self.engine(Limits::default()), name, Span::Command)
    }

    pub(crate) fn engine(&self, limits: Limits) -> Arc<Engine> {
        static TOKENS: AtomicU64 = AtomicU64::new(1);
        let token = format!("process-{}", TOKENS.fetch_add(1, Ordering::Relaxed));
        let clock = self.clock.clone();
        let since = move || Duration::from_millis(u64::try_from(clock.now().as_millis() - START_MS).unwrap_or(0));
        let seams = Seams { token, uptime: Box::new(since), ..Seams::default() };
        Arc::new(Engine::with_seams(self.store.clone(), limits, seams))
    }

    pub(crate) fn join(&self, engine: Arc<Engine>, name: &str, span: Span) -> Person {
        let name = engine.register(&wish(name, span)).unwrap().name;
        Person { engine, name }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The revisions of a task, oldest first.
    pub(crate) fn revisions(&self, id: &TaskId) -> Vec<RevisionRow> {
        let mut rows = read_with(&*self.store, Some(&list()), |snapshot| snapshot.history(id, None, 1000)).unwrap();
        rows.reverse();
        rows
    }

    /// The kinds of a task's revisions as words, oldest first.
    pub(crate) fn kinds(&self, id: &TaskId) -> Vec<&'static str> {
        self.revisions(id).iter().map(|row| row.kind.as_str()).collect()
    }

    /// The newest seq of the list.
    pub(crate) fn latest_seq(&self) -> u64 {
        read_with(&*self.store, None, |snapshot| snapshot.list(&list())).unwrap().unwrap().latest_seq
    }

    /// Lets every heartbeat lapse, then keeps these alive again.
    pub(crate) fn silence_all_but(&self, alive: &[&Person]) {
        self.clock.advance(30_001);
        for person in alive {
            person.engine.heartbeat().unwrap();
        }
    }
}

impl Place {
    /// A message as it would be sent now, to be changed and given to [`Place::post`].
    pub(crate) fn draft(&self, channel: &str, content: &str) -> Message {
        Message {
            seq: 0,
            channel: ChannelName::new(channel).unwrap(),
            sender: None,
            context: String::new(),
            created_at: self.now(),
            sort: Sort::default(),
            subject: None,
            content: content.to_owned(),
            reply_to: None,
            metadata: None,
            memory: None,
            tags: Vec::new(),
            matched_tags: Vec::new(),
        }
    }

    /// Waits until something holds that a change of the store may bring about.
    pub(crate) fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let seen = self.store.version().unwrap();
            if holds() {
                return;
            }
            assert!(Instant::now() < deadline, "never: {what}");
            self.store.wait(seen, Duration::from_secs(1)).unwrap();
        }
    }

    /// Puts a message straight into the store; makes its channel.
    pub(crate) fn post(&self, from: &Person, message: &Message) -> u64 {
        self.put(from, message, ChannelKind::Ordinary)
    }

    /// An ordinary message.
    pub(crate) fn say(&self, from: &Person, channel: &str, content: &str) -> u64 {
        self.post(from, &self.draft(channel, content))
    }

    /// A memory; says its id.
    pub(crate) fn remember(&self, from: &Person, message: &Message) -> u64 {
        self.put(from, message, ChannelKind::Memory)
    }

    fn put(&self, from: &Person, message: &Message, kind: ChannelKind) -> u64 {
        let put = write_with(&*self.store, None, |tx| {
            let bus = tx.bus_mut().unwrap();
            if bus.channel(&message.channel)?.is_none() {
                bus.create_channel(&message.channel, kind, self.now())?;
            }
            let is_memory = kind == ChannelKind::Memory;
            let place = if is_memory { bus::Place::NewMemory } else { bus::Place::Ordinary };
            let seq = bus.post(&NewMessage {
                channel: &message.channel,
                sender: Some(&from.name),
                author: &Author::default(),
                at: message.created_at,
                sort: &message.sort,
                subject: message.subject.as_ref(),
                content: &message.content,
                reply_to: message.reply_to,
                metadata: message.metadata.as_ref(),
                tags: &message.tags,
                place,
            })?;
            bus.touch_memories(&[seq][..usize::from(is_memory)], Some(self.now()))?;
            Ok(seq)
        });
        put.unwrap()
    }
}

/// Somebody who acts: an engine and a name registered with it.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) engine: Arc<Engine>,
    pub(crate) name: Identity,
}

impl Person {
    pub(crate) fn send(&self, command: Command, key: Option<&str>) -> Result<Answer, Error> {
        self.engine.execute(&self.request(command, key))
    }

    pub(crate) fn request(&self, command: Command, key: Option<&str>) -> Request {
        let list = (!matches!(command, Command::Update(..) | Command::Restore(_))).then(list);
        Request { caller: self.name.clone(), list, command, key: key.map(|key| Key::new(key).unwrap()) }
    }

    pub(crate) fn draft(&self, draft: Draft) -> TaskId {
        match self.send(Command::Create(Box::new(draft)), None).unwrap() {
            Answer::Created(task) => task.id,
            other => panic!("not created: {other:?}"),
        }
    }

    pub(crate) fn create(&self, subject: &str) -> TaskId {
        self.draft(Draft::new(Subject::new(subject).unwrap()))
    }

    pub(crate) fn update(&self, id: &TaskId, patch: Patch) -> Result<Written, Error> {
        self.update_keyed(id, patch, None)
    }

    pub(crate) fn update_keyed(&self, id: &TaskId, patch: Patch, key: Option<&str>) -> Result<Written, Error> {
        match self.send(Command::Update(id.clone(), Box::new(patch)), key)? {
            Answer::Written(written) => Ok(*written),
            other => panic!("not written: {other:?}"),
        }
    }

    pub(crate) fn claim(&self, id: &TaskId) -> Result<Written, Error> {
        self.update(id, Patch::claim(self.name.clone(), None))
    }

    pub(crate) fn claim_for(&self, id: &TaskId, seconds: u64) -> Result<Written, Error> {
        self.update(id, Patch::claim(self.name.clone(), Some(LeaseAsk::Seconds(seconds))))
    }

    pub(crate) fn complete(&self, id: &TaskId) -> Result<Written, Error> {
        self.update(id, Patch::complete(None))
    }

    pub(crate) fn next(&self, next: Next) -> Taken {
        taken(self.send(Command::Next(Box::new(next)), None).unwrap())
    }

    pub(crate) fn get(&self, id: &TaskId) -> Got {
        self.engine.get(Some(&self.name), id, true).unwrap()
    }

    pub(crate) fn try_search(&self, query: &str) -> Result<Found, Error> {
        self.engine.search(&self.name, &SearchAsk { query: query.to_owned(), ..SearchAsk::default() })
    }

    /// The numbers of what a search by text finds, in order.
    pub(crate) fn search(&self, query: &str) -> Vec<u64> {
        self.found(&SearchAsk { query: query.to_owned(), ..SearchAsk::default() })
    }

    pub(crate) fn found(&self, ask: &SearchAsk) -> Vec<u64> {
        let hits = self.engine.search(&self.name, ask).unwrap().hits;
        let mut seqs: Vec<u64> = hits.iter().map(|hit| hit.message.seq).collect();
        seqs.sort_unstable();
        seqs
    }

    pub(crate) fn page(&self, ask: &ListAsk) -> ListPage {
        self.engine.list(Some(&self.name), &list(), ask).unwrap()
    }
}

pub(crate) fn taken(answer: Answer) -> Taken {
    match answer {
        Answer::Next(taken) => *taken,
        other => panic!("not taken: {other:?}"),
    }
}

pub(crate) fn wish(name: &str, span: Span) -> Registration {
    Registration { name: name.to_owned(), context: format!("{name}'s work"), span, ..Registration::default() }
}

pub(crate) fn list() -> ListName {
    ListName::new("tasks/work").unwrap()
}

/// The refusal in a result.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> Refusal {
    match result {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// Runs both at the same moment.
pub(crate) fn race<T: Send>(a: impl FnOnce() -> T + Send, b: impl FnOnce() -> T + Send) -> (T, T) {
    let start = Barrier::new(2);
    let started = |f: Box<dyn FnOnce() -> T + Send + '_>| {
        start.wait();
        f()
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| started(Box::new(a)));
        let second = started(Box::new(b));
        (first.join().unwrap(), second)
    })
}

/// Who holds a task, from the conflict in a result.
#[track_caller]
pub(crate) fn holder<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match refusal(result) {
        Refusal::Conflict(Conflict::Held { owner, .. }) => owner.to_string(),
        other => panic!("not held: {other:?}"),
    }
}

/// A store that counts its write transactions and can be made to fail them.
pub(crate) struct Watched {
    inner: Arc<dyn Store>,
    pub(crate) writes: AtomicUsize,
    failing_next: AtomicUsize,
    fault: Mutex<Fault>,
    is_deaf: AtomicBool,
}

/// How a write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not at all.
    None,
    /// It never begins.
    Busy,
    /// Its body does everything, and then it is rolled back.
    Late,
    /// Its body does everything and panics.
    Panic,
}

impl Watched {
    pub(crate) fn over(place: &mut Place) -> Arc<Watched> {
        let inner = place.store.clone();
        let watched = Arc::new(Watched {
            inner,
            writes: AtomicUsize::new(0),
            failing_next: AtomicUsize::new(0),
            fault: Mutex::new(Fault::None),
            is_deaf: AtomicBool::new(false),
        });
        place.store = watched.clone();
        watched
    }

    /// Makes every write fail this way while `f` runs.
    pub(crate) fn failing<T>(&self, fault: Fault, f: impl FnOnce() -> T) -> T {
        *self.fault.lock().unwrap() = fault;
        let result = f();
        *self.fault.lock().unwrap() = Fault::None;
        result
    }

    /// From now on no notice of a change comes.
    pub(crate) fn deafen(&self) {
        self.is_deaf.store(true, Ordering::SeqCst);
    }

    /// Lets so many writes fail that come next.
    pub(crate) fn fail_next(&self, count: usize) {
        self.failing_next.store(count, Ordering::SeqCst);
    }

    pub(crate) fn writes_during(&self, f: impl FnOnce()) -> usize {
        let before = self.writes.load(Ordering::SeqCst);
        f();
        self.writes.load(Ordering::SeqCst) - before
    }
}

impl Store for Watched {
    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    fn has_bus(&self) -> bool {
        self.inner.has_bus()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn index_texts(&self) -> Result<(), StoreError> {
        self.inner.index_texts()
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now()
    }

    fn locate(&self, id: &TaskId) -> Result<Option<ListName>, StoreError> {
        self.inner.locate(id)
    }

    fn read(&self, list: Option<&ListName>, f: &mut ReadBody<'_>) -> Result<(), StoreError> {
        self.inner.read(list, f)
    }

    fn write(&self, list: Option<&ListName>, f: &mut WriteBody<'_>) -> Result<(), Abort> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        let fault = *self.fault.lock().unwrap();
        let fails = |left: usize| left.checked_sub(1);
        let next = self.failing_next.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok();
        let fault = if next { Fault::Busy } else { fault };
        let busy = || Err(StoreError::Busy { store: self.describe(), waited_ms: 0 }.into());
        match fault {
            Fault::None => self.inner.write(list, f),
            Fault::Busy => busy(),
            Fault::Late => self.inner.write(list, &mut |tx| f(tx).and_then(|()| busy())),
            Fault::Panic => self.inner.write(list, &mut |tx| {
                f(tx)?;
                panic!("as the test wants")
            }),
        }
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.inner.version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        if self.is_deaf.load(Ordering::SeqCst) {
            std::thread::sleep(timeout);
            return Ok(());
        }
        self.inner.wait(seen, timeout)
    }
}

/// A store in which somebody else writes just before a write.
pub(crate) struct Interrupted {
    inner: Arc<dyn Store>,
    before: Mutex<Option<Interruption>>,
}

type Interruption = Box<dyn FnOnce(&dyn Store) + Send>;

impl Interrupted {
    pub(crate) fn over(place: &mut Place) -> Arc<Interrupted> {
        let interrupted = Arc::new(Interrupted { inner: place.store.clone(), before: Mutex::new(None) });
        place.store = interrupted.clone();
        interrupted
    }

    pub(crate) fn before_the_next_write(&self, f: impl FnOnce(&dyn Store) + Send + 'static) {
        *self.before.lock().unwrap() = Some(Box::new(f));
    }
}

impl Store for Interrupted {
    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now()
    }

    fn locate(&self, id: &TaskId) -> Result<Option<ListName>, StoreError> {
        self.inner.locate(id)
    }

    fn read(&self, list: Option<&ListName>, f: &mut ReadBody<'_>) -> Result<(), StoreError> {
        self.inner.read(list, f)
    }

    fn write(&self, list: Option<&ListName>, f: &mut WriteBody<'_>) -> Result<(), Abort> {
        let before = self.before.lock().unwrap().take();
        if let Some(before) = before {
            before(&*self.inner);
        }
        self.inner.write(list, f)
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.inner.version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.inner.wait(seen, timeout)
    }
}

/// The status and the owner of a task.
pub(crate) fn held_by(task: &TaskView) -> (&str, Option<&str>) {
    (task.status.as_str(), task.owner.as_ref().map(Identity::as_str))
}
