//! The world that a seed decides: who acts, what fails, how time goes on. One step after the other; behind each of them
//! the store is looked at, and so is what the agent was told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use taskbus::answer::{Answer, TaskView};
use taskbus::core::id::TaskId;
use taskbus::core::name::{Identity, Key, ListName};
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::refusal::{NotRegistered, Refusal};
use taskbus::core::task::Status;
use taskbus::core::time::Timestamp;
use taskbus::engine::{Engine, Error, Limits, ReceiveAsk, Registration, Seams};
use taskbus::store::memory::MemoryStore;
use taskbus::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbus::store::verdict::Verdict;
use taskbus::store::{Clock as _, ManualClock, Store};
use tempfile::TempDir;

use crate::agent::{Agent, Came, Deed, Hand, Open};
use crate::sabotage::{Broken, Sabotage};
use crate::seam::{Fault, Seam};
use crate::watch::Watch;

const START_MS: i64 = 1_796_054_400_000;
const STEPS: usize = 250;
const WISHES: [&str; 4] = ["Zed", "Amp", "Jan", "Poe"];
/// The one who reads letters.
const BOSS: &str = "Roo";
const LAST_STEPS: usize = 25;

pub(crate) fn list() -> ListName {
    ListName::new("tasks/work").unwrap()
}

/// Random numbers that one seed decides.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap()
    }
}

/// Which store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Sqlite,
}

/// What came up, and the whole history in one number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) history: u64,
    pub(crate) claimed: u64,
    pub(crate) completed: u64,
    pub(crate) reclaimed: u64,
    /// Calls under a claim that was no longer good.
    pub(crate) late: u64,
    /// Calls that had been committed, and were sent again.
    pub(crate) repeated: u64,
    pub(crate) failed: u64,
    pub(crate) crashed: u64,
    pub(crate) delivered: u64,
}

impl Told {
    pub(crate) fn add(&mut self, other: &Told) {
        let both = [
            (&mut self.claimed, other.claimed),
            (&mut self.completed, other.completed),
            (&mut self.reclaimed, other.reclaimed),
            (&mut self.late, other.late),
            (&mut self.repeated, other.repeated),
            (&mut self.failed, other.failed),
            (&mut self.crashed, other.crashed),
            (&mut self.delivered, other.delivered),
        ];
        both.into_iter().for_each(|(sum, more)| *sum += more);
    }
}

/// The one who reads: what was sent, what came, what is acknowledged.
#[derive(Default)]
struct Letters {
    sent: BTreeSet<u64>,
    came: BTreeSet<u64>,
    acked: BTreeSet<u64>,
    /// The batch that is being read.
    batch: Option<(String, Vec<u64>)>,
}

pub(crate) struct World {
    dice: Dice,
    clock: Arc<ManualClock>,
    place: Place,
    directory: Option<TempDir>,
    seam: Arc<Seam>,
    agents: Vec<Agent>,
    boss: Agent,
    letters: Letters,
    /// What was acknowledged as made.
    made: BTreeMap<String, TaskId>,
    watch: Watch,
    tokens: Arc<AtomicU64>,
    calls: u64,
    history: DefaultHasher,
    last: VecDeque<String>,
    told: Told,
    pub(crate) step: usize,
}

impl World {
    pub(crate) fn new(seed: u64, place: Place, sabotage: Sabotage) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(START_MS)));
        let directory = (place == Place::Sqlite).then(|| tempfile::tempdir().unwrap());
        let mut store = open(place, directory.as_ref(), &clock);
        if sabotage != Sabotage::None {
            store = Arc::new(Broken { store, sabotage, writes: AtomicU64::new(0) });
        }
        let seam = Seam::over(store);
        let tokens = Arc::new(AtomicU64::new(1));
        let join = |wish| join(&seam, &clock, &tokens, wish);
        let boss = join(BOSS);
        boss.engine.create_list(&boss.name, &list(), ListRules { max_reclaims: 0, ..ListRules::default() }).unwrap();
        let agents = WISHES.into_iter().map(join).collect();
        Self {
            dice: Dice(seed),
            clock,
            place,
            directory,
            seam,
            agents,
            boss,
            letters: Letters::default(),
            made: BTreeMap::new(),
            watch: Watch::default(),
            tokens,
            calls: 0,
            history: DefaultHasher::new(),
            last: VecDeque::new(),
            told: Told::default(),
            step: 0,
        }
    }

    /// Every step of the seed, and then everything is done: faults have ended, and somebody stays awake.
    pub(crate) fn run(&mut self) {
        for step in 0..STEPS {
            self.step = step;
            self.pass();
            self.watched(Self::happen);
        }
        self.drain();
        let verdict = self.seam.inner().verify(&mut |_, _| {}).unwrap();
        assert!(verdict.as_ref().is_none_or(Verdict::is_sound), "{verdict:#?}");
    }

    pub(crate) fn told(&self) -> Told {
        let Watch { claimed, completed, reclaimed, .. } = self.watch;
        Told { history: self.history.finish(), claimed, completed, reclaimed, ..self.told.clone() }
    }

    pub(crate) fn last_steps(&self) -> String {
        self.last.iter().map(|line| format!("  {line}\n")).collect()
    }

    fn note(&mut self, line: &str) {
        line.hash(&mut self.history);
        let line = format!("{:4} +{} ms {line}", self.step, self.now().as_millis() - START_MS);
        if std::env::var_os("TASKBUS_SEED").is_some() {
            println!("{line}");
        }
        self.last.push_back(line);
        if self.last.len() > LAST_STEPS {
            self.last.pop_front();
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Time goes on, mostly a little.
    fn pass(&mut self) {
        let millis = match self.dice.below(40) {
            0 => 31_000,
            1..=3 => 8_000,
            _ => self.dice.below(1_500),
        };
        self.clock.advance(i64::try_from(millis).unwrap());
    }

    /// Something happens, and what it wrote is looked at.
    fn watched(&mut self, happens: fn(&mut Self)) {
        self.watch.before(&self.seam.inner());
        happens(self);
        self.seam.arm(None);
        self.look();
    }

    fn look(&mut self) -> usize {
        let (store, now) = (self.seam.inner(), self.now());
        self.watch.after(&store, now)
    }

    fn happen(&mut self) {
        match self.dice.below(100) {
            0..=4 => self.crash(),
            5..=7 => self.reopen(),
            8..=12 => self.tick(),
            13..=22 => self.read_letters(),
            23..=26 => {
                let (at, steps) = (self.dice.below(WISHES.len()), 5 + self.dice.below(30));
                self.agents[at].asleep = steps;
                self.note(&format!("{} falls asleep for {steps} of its turns", self.agents[at].name));
            }
            _ => self.act(),
        }
    }

    /// An agent is gone without a word; its name is wished for again by another process.
    fn crash(&mut self) {
        let at = self.dice.below(WISHES.len());
        let wish = self.agents[at].wish;
        self.agents[at] = join(&self.seam, &self.clock, &self.tokens, wish);
        self.told.crashed += 1;
        self.note(&format!("{wish} crashes and comes back as {}", self.agents[at].name));
    }

    /// The store is opened anew, under everybody's feet.
    fn reopen(&mut self) {
        if self.place == Place::Sqlite {
            let (place, directory, clock) = (self.place, self.directory.as_ref(), &self.clock);
            self.seam.reopen(|| open(place, directory, clock));
        }
        self.note("the store is opened anew");
    }

    fn tick(&mut self) {
        let at = self.dice.below(WISHES.len());
        self.arm();
        let ticked = self.agents[at].engine.tick().map_err(|error| error.to_string());
        self.note(&format!("{} ticks: {ticked:?}", self.agents[at].name));
    }

    /// Now and then the next write fails.
    fn arm(&mut self) -> Option<Fault> {
        let fault = [Fault::Busy, Fault::Before, Fault::Behind].get(self.dice.below(18)).copied();
        self.seam.arm(fault);
        fault
    }

    /// An agent has its turn: a heartbeat now and then, and a call, new or repeated.
    fn act(&mut self) {
        let at = self.dice.below(WISHES.len());
        if self.agents[at].asleep > 0 {
            self.agents[at].asleep -= 1;
            return;
        }
        if self.dice.below(3) == 0 {
            self.agents[at].engine.heartbeat().unwrap();
            self.watch.before(&self.seam.inner());
        }
        let open = self.agents[at].open.take().unwrap_or_else(|| self.next_call(at));
        self.send(at, open);
    }

    fn next_call(&mut self, at: usize) -> Open {
        self.calls += 1;
        let made: Vec<TaskId> = self.watch.tasks.keys().cloned().collect();
        let deed = self.agents[at].choose(&mut self.dice, &made, self.calls);
        Open { deed, key: Key::new(format!("key {}", self.calls)).unwrap(), wrote: false }
    }

    fn send(&mut self, at: usize, mut open: Open) {
        let (name, now) = (self.agents[at].name.clone(), self.now());
        let good = open.deed.hand().map(|hand| self.watch.holds(&name, hand, now));
        let fault = self.arm();
        let came = self.agents[at].send(&open);
        let is_lost = fault == Some(Fault::Behind) && self.seam.has_fired();
        let wrote = self.look() > 0 || matches!((&open.deed, is_lost), (Deed::Tell(_), true));
        self.note(&format!("{name} {:?}{}: {}", open.deed, if open.wrote { " again" } else { "" }, shown(&came)));
        if open.wrote && !is_lost {
            let is_gone = matches!(&came, Came::Failed(error) if is_taken_over(error));
            let is_answered = !matches!(came, Came::Failed(_));
            assert!(fault.is_some() || is_gone || is_answered, "what was committed is answered when it is repeated");
            assert!(!wrote, "what was committed is not done again");
            self.told.repeated += u64::from(!matches!(came, Came::Failed(_)));
        }
        match &came {
            Came::Failed(error) if matches!(**error, Error::Store(_)) => {
                self.told.failed += 1;
                open.wrote |= is_lost && wrote;
                self.agents[at].open = Some(open);
            }
            Came::Failed(error) => self.refused(at, &open, error, good),
            Came::Sent(seq) => drop(self.letters.sent.insert(*seq)),
            Came::Answered(answer) => {
                assert!(
                    open.wrote || good != Some(false),
                    "a claim that is over was good for something: {:?}",
                    open.deed
                );
                self.answered(at, &open, answer);
            }
        }
    }

    /// A refusal is one that the state explains.
    fn refused(&mut self, at: usize, open: &Open, error: &Error, good: Option<bool>) {
        if is_taken_over(error) {
            let wish = self.agents[at].wish;
            self.agents[at] = join(&self.seam, &self.clock, &self.tokens, wish);
            return;
        }
        assert_eq!(good, Some(false), "refused without a reason: {:?}: {error}", open.deed);
        self.told.late += 1;
        self.agents[at].hand = None;
    }

    fn answered(&mut self, at: usize, open: &Open, answer: &Answer) {
        let agent = &mut self.agents[at];
        match (&open.deed, answer) {
            (Deed::Create { subject, .. }, Answer::Created(task)) => {
                self.made.insert(subject.clone(), task.id.clone());
            }
            (Deed::Take { .. }, Answer::Next(taken)) => {
                agent.hand = taken.tasks.first().map(hand);
                let name = agent.name.clone();
                taken.tasks.iter().for_each(|task| self.taken(&name, task, open.wrote));
            }
            (Deed::Renew(hand, _), Answer::Written(written)) => assert_eq!(written.task.fence, hand.fence),
            (Deed::Complete(hand) | Deed::Release(hand), Answer::Written(written)) => {
                assert_eq!(written.task.id, hand.id);
                agent.hand = None;
            }
            other => panic!("another answer than was asked for: {other:?}"),
        }
        self.check_made();
    }

    /// Who is told that it has a task has it, and nobody else.
    fn taken(&self, name: &Identity, told: &TaskView, again: bool) {
        let task = &self.watch.tasks[&told.id];
        let is_so = task.status() == Status::InProgress && task.owner() == Some(name) && task.fence == told.fence;
        assert!(is_so || (again && task.fence >= told.fence), "{name} was told {told:?}, and it is {task:?}");
    }

    /// Every task that was acknowledged is there once, and what nobody was told of at most once.
    fn check_made(&self) {
        for (subject, id) in &self.made {
            assert_eq!((self.watch.named(subject), self.watch.tasks.contains_key(id)), (1, true), "{subject}");
        }
    }

    /// Reads what came, acknowledges what was read, and forgets neither.
    fn read_letters(&mut self) {
        self.boss.engine.heartbeat().unwrap();
        let acks = self.letters.batch.take().filter(|_| self.dice.below(3) > 0);
        let ask = ReceiveAsk { ack: acks.as_ref().map(|(token, _)| token.clone()), ..ReceiveAsk::default() };
        self.arm();
        let received = self.boss.engine.receive(&self.boss.name, &ask, &|| false);
        self.note(&format!("{BOSS} reads: {:?}", received.as_ref().map_err(ToString::to_string)));
        let Ok(received) = received else {
            // Whether the acknowledgement was kept is not known; the next one says so.
            self.letters.batch = acks;
            self.told.failed += 1;
            return;
        };
        if let Some((_, seqs)) = acks {
            self.letters.acked.extend(seqs);
        }
        let seqs: Vec<u64> = received.messages.iter().map(|message| message.seq).collect();
        assert!(seqs.is_sorted(), "letters come in order: {seqs:?}");
        assert!(
            seqs.iter().all(|seq| !self.letters.acked.contains(seq)),
            "never again behind the acknowledgement: {seqs:?}"
        );
        self.told.delivered += seqs.len() as u64;
        self.letters.came.extend(&seqs);
        self.letters.batch = received.batch.map(|token| (token, seqs));
    }

    /// Nothing fails any more: one agent that stays awake does all that is left, and all letters are read.
    fn drain(&mut self) {
        self.step = STEPS;
        self.clock.advance(60_000);
        let last = join(&self.seam, &self.clock, &self.tokens, "Last");
        self.agents.push(last);
        let (at, most) = (self.agents.len() - 1, 3 * self.watch.tasks.len() + 3);
        for round in 0..most {
            self.clock.advance(1);
            let finish = self.agents[at].hand.clone();
            let key = Key::new(format!("last {round}")).unwrap();
            self.watch.before(&self.seam.inner());
            self.send_well(at, &Open { deed: Deed::Take { seconds: None, finish }, key, wrote: false });
            self.look();
            if self.agents[at].hand.is_none() {
                break;
            }
        }
        let open: Vec<_> = self.watch.tasks.values().filter(|task| task.status() != Status::Completed).collect();
        assert!(open.is_empty(), "not everything is done in the end: {open:#?}");
        self.read_all();
    }

    fn send_well(&mut self, at: usize, open: &Open) {
        match self.agents[at].send(open) {
            Came::Answered(answer) => {
                self.look();
                self.answered(at, open, &answer);
            }
            other => panic!("nothing fails any more: {other:?}"),
        }
    }

    fn read_all(&mut self) {
        let mut ack = None;
        let came = &mut self.letters.came;
        loop {
            let ask = ReceiveAsk { ack, ..ReceiveAsk::default() };
            let received = self.boss.engine.receive(&self.boss.name, &ask, &|| false).unwrap();
            came.extend(received.messages.iter().map(|message| message.seq));
            ack = received.batch;
            if ack.is_none() {
                break;
            }
        }
        assert!(came.is_superset(&self.letters.sent), "a letter never came: {came:?} of {:?}", self.letters.sent);
    }
}

fn is_taken_over(error: &Error) -> bool {
    matches!(error, Error::Refused(Refusal::NotRegistered(NotRegistered::TakenOver { .. })))
}

fn shown(came: &Came) -> String {
    match came {
        Came::Failed(error) => format!("{error}"),
        Came::Answered(answer) => serde_json::to_string(answer).unwrap(),
        Came::Sent(seq) => format!("sent as {seq}"),
    }
}

fn hand(task: &TaskView) -> Hand {
    Hand { id: task.id.clone(), fence: task.fence }
}

fn open(place: Place, directory: Option<&TempDir>, clock: &Arc<ManualClock>) -> Arc<dyn Store> {
    let clock = Arc::<ManualClock>::clone(clock);
    let Some(directory) = directory else { return Arc::new(MemoryStore::with_clock(clock)) };
    assert_eq!(place, Place::Sqlite);
    // What a power cut leaves is not tried here, so nothing waits for the disk.
    let options = SqliteOptions { durability: Durability::Relaxed, ..SqliteOptions::default() };
    Arc::new(SqliteStore::open(directory.path().join("taskbus.db"), options).unwrap().with_clock(clock))
}

/// A process of its own with everything that is random or goes by a clock in the hands of the seed.
fn join(seam: &Arc<Seam>, clock: &Arc<ManualClock>, tokens: &Arc<AtomicU64>, wish: &'static str) -> Agent {
    let token = |tokens: &AtomicU64| format!("token {}", tokens.fetch_add(1, Ordering::Relaxed));
    let (clock, more) = (Arc::clone(clock), Arc::clone(tokens));
    let uptime = move || Duration::from_millis(u64::try_from(clock.now().as_millis() - START_MS).unwrap());
    let seams = Seams { token: token(tokens), uptime: Box::new(uptime), random: Box::new(move || token(&more)) };
    let limits = Limits { writes_per_second: 1_000_000, ..Limits::default() };
    let engine = Engine::with_seams(Arc::clone(seam) as Arc<dyn Store>, limits, seams);
    let name = engine.register(&Registration { name: wish.to_owned(), ..Registration::default() }).unwrap().name;
    Agent { engine, name, hand: None, open: None, asleep: 0, wish }
}
