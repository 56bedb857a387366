//! Random verbs of the bus, among changes of tasks, go into a SQLite store and into a memory store. Inside every
//! transaction and after it both answer alike; now and then every question is asked, and the file is opened anew.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::bus::message::{Headline, MemoryRef, Message, Metadata, Sort};
use taskbus::core::bus::tag::{self, TagSet};
use taskbus::core::change::{Change, Kind};
use taskbus::core::name::{Identity, Label, ListName};
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::task::Task;
use taskbus::core::text::{Body, Note, Subject};
use taskbus::store::bus::{
    BusTx, MessageQuery, NewMessage, NoticeKind, Pending, Place, Source, SubscriptionRow, TagSetRow,
};
use taskbus::store::memory::MemoryStore;
use taskbus::store::sqlite::SqliteStore;
use taskbus::store::{Abort, Author, Harness, ManualClock, SessionRow, Store, StoreError, Tx, read_with, write_with};

use crate::bus_questions::{CHANNELS, Lines, MODELS, NAMES, channel, everything, searches, summary};
use crate::support::{Home, at, revised, task, who};

const WORDS: [&str; 12] =
    ["red", "green", "blue", "fox", "quick", "brown", "Straße", "STRASSE", "été", "note", "x", "quick-brown fox"];

/// Numbers without a pattern, the same for each seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(usize::try_from(self.below(of.len() as u64)).unwrap()) }
    }

    fn words(&mut self, most: u64) -> String {
        let count = self.below(most) + 1;
        (0..count).map(|_| *self.one(&WORDS).unwrap()).collect::<Vec<_>>().join(" ")
    }
}

/// What one call does, with everything decided before.
type Verb = Box<dyn Fn(&mut dyn Tx) -> Result<String, StoreError>>;

struct Pair {
    home: Home,
    sqlite: SqliteStore,
    memory: MemoryStore,
    dice: Dice,
    now: i64,
    tasks: BTreeMap<u64, (ListName, Task, bool)>,
}

fn bus(tx: &mut dyn Tx) -> &mut dyn BusTx {
    tx.bus_mut().unwrap()
}

fn open(home: &Home) -> SqliteStore {
    home.open().with_clock(Arc::new(ManualClock::at(at(500))))
}

impl Pair {
    fn new(seed: u64) -> Self {
        let home = Home::new();
        let sqlite = open(&home);
        let (memory, dice, tasks) = (MemoryStore::new(), Dice(seed), BTreeMap::new());
        let mut pair = Self { home, sqlite, memory, dice, now: 0, tasks };
        pair.found_lists();
        pair
    }

    fn found_lists(&mut self) {
        for name in ["tasks/work", "tasks/other"] {
            let name = ListName::new(name).unwrap();
            if read_with(&self.memory, None, |snapshot| snapshot.list(&name)).unwrap().is_none() {
                self.write(
                    None,
                    &[Box::new(move |tx| {
                        tx.create_list(&name, ListRules::default(), at(1))?;
                        Ok(String::new())
                    })],
                );
            }
        }
    }

    fn stores(&self) -> [&dyn Store; 2] {
        [&self.sqlite, &self.memory]
    }

    /// The same verbs in one transaction on both; what each answers and what is seen after it must agree.
    fn write(&self, list: Option<&ListName>, verbs: &[Verb]) {
        let run = |tx: &mut dyn Tx| -> Result<Lines, Abort> {
            let mut lines = Vec::new();
            for verb in verbs {
                lines.push(verb(tx)?);
                lines.extend(summary(tx.bus().unwrap(), &tx.lists()?));
            }
            Ok(lines)
        };
        let [sqlite, memory] = self.stores().map(|store| write_with(store, list, run).unwrap());
        same(&sqlite, &memory);
    }

    /// The same, and then the transaction fails: nothing of it is left.
    fn fail(&self, list: Option<&ListName>, verbs: &[Verb], part: usize) {
        for store in self.stores() {
            let look = || read_with(store, None, |snapshot| Ok(everything(snapshot, part))).unwrap();
            let before = look();
            let failed = store.write(list, &mut |tx| {
                for verb in verbs {
                    verb(tx)?;
                }
                Err(Abort::Failed(StoreError::Moved { store: String::new() }))
            });
            assert!(matches!(failed, Err(Abort::Failed(StoreError::Moved { .. }))), "{failed:?}");
            same(&look(), &before);
        }
    }

    fn step(&mut self, at_step: usize) {
        self.now += i64::try_from(self.dice.below(4)).unwrap();
        match self.dice.below(250) {
            0 => return self.reopen(),
            1 => return self.reset(),
            2..8 => return self.sqlite.index_texts().unwrap(),
            _ => {}
        }
        if let Some((list, verb, kept)) = self.task_verb() {
            self.write(Some(&list), &[verb]);
            let id = kept.0.id.as_number().unwrap();
            self.tasks.insert(id, (list, kept.0, kept.1));
            return;
        }
        let count = self.dice.below(3) + 1;
        let verbs: Vec<Verb> = (0..count).filter_map(|_| self.verb()).collect();
        if self.dice.below(60) == 0 {
            self.fail(None, &verbs, at_step);
        } else {
            self.write(None, &verbs);
        }
        self.found_lists();
        let homes = |id: u64| self.memory.locate(&taskbus::core::id::TaskId::number(id).unwrap()).unwrap();
        let gone: Vec<u64> = self.tasks.keys().copied().filter(|id| homes(*id).is_none()).collect();
        gone.iter().for_each(|id| drop(self.tasks.remove(id)));
    }

    fn reopen(&mut self) {
        self.sqlite = open(&self.home);
    }

    fn reset(&mut self) {
        if self.dice.below(4) == 0 {
            self.write(None, &[verb(|tx| bus(tx).reset())]);
            self.tasks.clear();
            self.found_lists();
        }
    }

    fn ask<T>(&self, f: impl Fn(&dyn taskbus::store::bus::BusSnapshot) -> Result<T, StoreError>) -> T {
        read_with(&self.memory, None, |snapshot| f(snapshot.bus().unwrap())).unwrap()
    }

    /// Any number up to the newest, mostly a late one.
    fn seq(&mut self) -> u64 {
        let newest = self.ask(|bus| bus.latest_seq());
        let back = self.dice.below(12);
        if self.dice.below(4) == 0 { self.dice.below(newest + 1) } else { newest.saturating_sub(back) }
    }

    fn channels(&self, kind: ChannelKind) -> Vec<ChannelName> {
        let rows = self.ask(|bus| bus.channels());
        let rows = rows.into_iter().filter(|row| row.kind == kind && row.name.list().is_none());
        rows.map(|row| row.name).collect()
    }

    /// A live memory, mostly a late one.
    fn memory(&mut self) -> Option<Message> {
        let channel = self.dice.one(&self.channels(ChannelKind::Memory))?.clone();
        let query = MessageQuery { newest_first: true, ..MessageQuery::of(&channel, 0, 12) };
        let ids = self.ask(|bus| bus.messages(&query)).into_iter().filter_map(|message| message.memory);
        let ids: Vec<u64> = ids.map(|memory| memory.id).collect();
        let id = *self.dice.one(&ids)?;
        self.ask(|bus| bus.memory(id))
    }

    /// A change of a task, and what it is then and whether it lives.
    fn task_verb(&mut self) -> Option<(ListName, Verb, (Task, bool))> {
        if self.dice.below(4) > 0 {
            return None;
        }
        let old = if self.dice.below(3) == 0 { None } else { self.some_task() };
        let Some((list, old, live)) = old else { return Some(self.new_task()) };
        let kind = match (live, self.dice.below(5)) {
            (false, _) => Kind::Restored,
            (true, 0) => Kind::Deleted,
            (true, 1) => Kind::Reclaimed,
            (true, _) => Kind::Changed,
        };
        let (what, text) = (self.dice.below(6), self.dice.words(6));
        let mut change = revised(&old, kind, |task| edit(task, what, &text));
        change.task.updated.at = at(self.now);
        change.note = (what == 5).then(|| Note::new(format!("note {text}")).unwrap());
        let kept = (change.task.clone(), kind != Kind::Deleted);
        Some((list, append(change), kept))
    }

    fn some_task(&mut self) -> Option<(ListName, Task, bool)> {
        let ids: Vec<u64> = self.tasks.keys().copied().collect();
        self.dice.one(&ids).map(|id| self.tasks[id].clone())
    }

    fn new_task(&mut self) -> (ListName, Verb, (Task, bool)) {
        let list = ListName::new(*self.dice.one(&["tasks/work", "tasks/other"]).unwrap()).unwrap();
        let id = self.ask(|bus| bus.latest_seq()) + 1;
        let mut task = task(taskbus::core::id::TaskId::number(id).unwrap());
        let (what, text) = (self.dice.below(5), self.dice.words(6));
        edit(&mut task, what, &text);
        task.updated.at = at(self.now);
        task.updated.by = self.name();
        (list, append(Change { kind: Kind::Created, task: task.clone(), note: None }), (task, true))
    }

    fn name(&mut self) -> Option<Identity> {
        self.dice.one(&[Some("Amp"), Some("Jan"), Some("Poe"), None]).copied().flatten().map(who)
    }

    fn tags(&mut self) -> Vec<Label> {
        let known = ["a", "b", "b:c", "b:d", "c"];
        let tags: Vec<&str> = known.into_iter().filter(|_| self.dice.below(4) == 0).collect();
        tag::normalize(&tags).unwrap()
    }

    fn verb(&mut self) -> Option<Verb> {
        Some(match self.dice.below(30) {
            0..9 => self.post_ordinary()?,
            9..12 => self.post_memory()?,
            12..14 => self.revise()?,
            14 => self.delete_memory()?,
            15 | 16 => self.subscribe(),
            17 => self.follow_tags(),
            18..21 => self.embed()?,
            21 => self.read_memory()?,
            22 => self.remove()?,
            23 => self.sessions(),
            24 => self.say(),
            25 => self.drop_channel(),
            _ => self.make_channel(),
        })
    }

    fn make_channel(&mut self) -> Verb {
        let name = channel(self.dice.one(&CHANNELS[..7]).unwrap());
        let kind = name.implied_kind().unwrap_or(ChannelKind::Ordinary);
        let now = at(self.now);
        let evicted = self.dice.below(100);
        verb(move |tx| {
            bus(tx).create_channel(&name, kind, now)?;
            if evicted < 20 { bus(tx).set_evicted_before(&name, evicted) } else { Ok(()) }
        })
    }

    fn drop_channel(&mut self) -> Verb {
        let name = channel(self.dice.one(&CHANNELS).unwrap());
        let often = self.dice.below(3) == 0;
        verb(move |tx| {
            if often {
                bus(tx).delete_channel(&name)
            } else {
                bus(tx).end_subscription(&who("Amp"), &Source::Channel(name.clone()))
            }
        })
    }

    fn letter(&mut self, channel: ChannelName, place: Place) -> Letter {
        Letter {
            channel,
            sender: self.name(),
            author: Author { context: self.dice.words(2), client: "test 1".to_owned() },
            at: at(self.now),
            sort: Sort::new(["", "report"][usize::try_from(self.dice.below(2)).unwrap()]).unwrap(),
            subject: if self.dice.below(2) == 0 { Headline::new(&self.dice.words(3)).unwrap() } else { None },
            content: self.dice.words(12),
            reply_to: (self.dice.below(3) == 0).then(|| self.seq()),
            metadata: (self.dice.below(3) == 0).then(|| [("k".to_owned(), self.dice.words(1))].into()),
            tags: self.tags(),
            place,
        }
    }

    fn post_ordinary(&mut self) -> Option<Verb> {
        let channel = self.dice.one(&self.channels(ChannelKind::Ordinary))?.clone();
        let letter = self.letter(channel, Place::Ordinary);
        Some(Box::new(move |tx| letter.post(tx)))
    }

    fn post_memory(&mut self) -> Option<Verb> {
        let channel = self.dice.one(&self.channels(ChannelKind::Memory))?.clone();
        let letter = self.letter(channel, Place::NewMemory);
        let (now, watched) = (at(self.now), self.dice.below(3) > 0);
        Some(Box::new(move |tx| {
            let seq = letter.post(tx)?;
            if watched {
                bus(tx).touch_memories(&[seq.parse().unwrap()], Some(now))?;
            }
            Ok(seq)
        }))
    }

    fn revise(&mut self) -> Option<Verb> {
        let old = self.memory()?;
        let memory = old.memory?;
        let letter = self.letter(old.channel, Place::Revision(MemoryRef { revision: memory.revision + 1, ..memory }));
        let now = at(self.now);
        Some(Box::new(move |tx| {
            if tx.bus().unwrap().channel(&letter.channel)?.is_none() {
                return Ok(String::new());
            }
            bus(tx).bury(old.seq, now)?;
            letter.post(tx)
        }))
    }

    fn delete_memory(&mut self) -> Option<Verb> {
        let old = self.memory()?;
        let letter = self.letter(old.channel, Place::Deletion(old.memory?));
        let now = at(self.now);
        Some(Box::new(move |tx| {
            if tx.bus().unwrap().channel(&letter.channel)?.is_none() {
                return Ok(String::new());
            }
            bus(tx).bury(old.seq, now)?;
            bus(tx).touch_memories(&[old.memory.unwrap().id], None)?;
            letter.post(tx)
        }))
    }

    fn subscribe(&mut self) -> Verb {
        let source = match self.dice.below(10) {
            9 => Source::Tags,
            _ => Source::Channel(channel(self.dice.one(&CHANNELS).unwrap())),
        };
        let pending =
            (self.dice.below(2) == 0).then(|| Pending { token: self.dice.words(1), end: self.now.unsigned_abs() });
        let who = who(self.dice.one(&NAMES).unwrap());
        let row = SubscriptionRow { who, source, cursor: self.dice.below(100), last_activity: at(self.now), pending };
        let ends = self.dice.below(4) == 0;
        verb(
            move |tx| {
                if ends { bus(tx).end_subscription(&row.who, &row.source) } else { bus(tx).put_subscription(&row) }
            },
        )
    }

    fn follow_tags(&mut self) -> Verb {
        let sets: [&[&str]; 4] = [&["a"], &["b*", "a"], &["c", "b:c"], &["b*"]];
        let set = TagSet::new(self.dice.one(&sets).unwrap()).unwrap();
        let (row, who) = (TagSetRow { set, since_seq: self.dice.below(50) }, who(self.dice.one(&NAMES).unwrap()));
        let ends = self.dice.below(3) == 0;
        verb(move |tx| if ends { bus(tx).end_tag_set(&who, &row.set) } else { bus(tx).put_tag_set(&who, &row) })
    }

    fn embed(&mut self) -> Option<Verb> {
        let seq = if self.dice.below(4) == 0 { self.seq() } else { self.memory()?.seq };
        let model = *self.dice.one(&MODELS).unwrap();
        let (what, vector) = (self.dice.below(12), vec![self.dice.below(9) as f32 / 8.0, -0.5, f32::MIN_POSITIVE]);
        let now = at(self.now);
        Some(Box::new(move |tx| match what {
            0 => Ok(format!("{}", bus(tx).keep_model(model)?)),
            1..4 => done(bus(tx).put_embedding_failure(seq, model, "too long", now)),
            _ => done(bus(tx).put_vector(seq, model, &vector)),
        }))
    }

    fn read_memory(&mut self) -> Option<Verb> {
        let ids = [self.memory()?.memory?.id, self.seq()];
        let time = (self.dice.below(5) > 0).then(|| at(self.now));
        Some(verb(move |tx| bus(tx).touch_memories(&ids, time)))
    }

    fn remove(&mut self) -> Option<Verb> {
        let now = at(self.now);
        let limit = usize::try_from(self.dice.below(6)).unwrap();
        let mut seqs = self.ask(|bus| bus.buried(now, limit));
        seqs.extend(self.ask(|bus| bus.evictable(None, limit)).into_iter().map(|(seq, _)| seq));
        seqs.push(self.seq());
        Some(verb(move |tx| bus(tx).remove(&seqs)))
    }

    fn sessions(&mut self) -> Verb {
        let name = who(self.dice.one(&NAMES).unwrap());
        let harness = (self.dice.below(2) == 0).then(|| Harness { pid: 7, start: u64::MAX - self.dice.below(3) });
        let until = at(self.now + 100);
        let row = SessionRow {
            token: format!("of {name}"),
            name,
            alive_until: until,
            registered_at: at(self.now),
            context: String::new(),
            client: String::new(),
            pid: 7,
            harness,
        };
        let (before, limit) = (at(self.now), usize::try_from(self.dice.below(3)).unwrap());
        let drops = self.dice.below(3) == 0;
        Box::new(move |tx| {
            let dropped = if drops { bus(tx).drop_sessions(before, limit)? } else { 0 };
            tx.put_session(&row)?;
            Ok(format!("{dropped} {:?} {:?}", tx.session(&row.name)?, tx.sessions(at(0))?.len()))
        })
    }

    fn say(&mut self) -> Verb {
        let kind = *self.dice.one(&[NoticeKind::Capacity, NoticeKind::Embedding]).unwrap();
        let (text, now, lease) = (self.dice.words(2), at(self.now), self.dice.below(3));
        verb(move |tx| match lease {
            0 => bus(tx).put_maintainer(&text, now),
            1 => bus(tx).put_notice(kind, None, now),
            _ => bus(tx).put_notice(kind, Some(&text), now),
        })
    }

    /// Every question, also after the texts were indexed and inside a transaction.
    fn compare(&self, part: usize) {
        let [sqlite, memory] =
            self.stores().map(|store| read_with(store, None, |snapshot| Ok(everything(snapshot, part))).unwrap());
        same(&sqlite, &memory);
        self.stores().into_iter().for_each(|store| store.index_texts().unwrap());
        let search =
            |store: &dyn Store| read_with(store, None, |snapshot| Ok(searches(snapshot.bus().unwrap(), part))).unwrap();
        let [sqlite, memory] = self.stores().map(search);
        same(&sqlite.0, &memory.0);
        for (sqlite, memory) in sqlite.1.iter().zip(&memory.1) {
            assert!((sqlite - memory).abs() <= 1e-9 * memory.abs(), "{sqlite} {memory}");
        }
        self.write(None, &[Box::new(move |tx| Ok(everything(tx, part).join("\n")))]);
        assert_eq!(self.sqlite.check().unwrap(), Vec::<String>::new());
    }
}

/// A message with everything it owns.
struct Letter {
    channel: ChannelName,
    sender: Option<Identity>,
    author: Author,
    at: taskbus::core::time::Timestamp,
    sort: Sort,
    subject: Option<Headline>,
    content: String,
    reply_to: Option<u64>,
    metadata: Option<Metadata>,
    tags: Vec<Label>,
    place: Place,
}

impl Letter {
    /// Sends it, unless the same transaction has removed its channel.
    fn post(&self, tx: &mut dyn Tx) -> Result<String, StoreError> {
        if tx.bus().unwrap().channel(&self.channel)?.is_none() {
            return Ok("0".to_owned());
        }
        let message = NewMessage {
            channel: &self.channel,
            sender: self.sender.as_ref(),
            author: &self.author,
            at: self.at,
            sort: &self.sort,
            subject: self.subject.as_ref(),
            content: &self.content,
            reply_to: self.reply_to,
            metadata: self.metadata.as_ref(),
            tags: &self.tags,
            place: self.place,
        };
        Ok(bus(tx).post(&message)?.to_string())
    }
}

fn edit(task: &mut Task, what: u64, text: &str) {
    match what {
        0 => task.subject = Subject::new(text).unwrap(),
        1 => task.description = Some(Body::new(text).unwrap()),
        2 => task.result = Some(Note::new(text).unwrap()),
        3 => task.parked = !task.parked,
        _ => {}
    }
}

fn append(change: Change) -> Verb {
    Box::new(move |tx| {
        if change.kind == Kind::Created {
            assert_eq!(tx.mint(1)?[0], change.task.id);
        }
        let author = Author { context: "here".to_owned(), client: "test 1".to_owned() };
        Ok(format!("{:?}", tx.append(&change, &author)?))
    })
}

fn verb(f: impl Fn(&mut dyn Tx) -> Result<(), StoreError> + 'static) -> Verb {
    Box::new(move |tx| done(f(tx)))
}

fn done<T: Debug>(result: Result<T, StoreError>) -> Result<String, StoreError> {
    result.map(|answer| format!("{answer:?}"))
}

#[track_caller]
fn same(one: &Lines, other: &Lines) {
    for (one, other) in one.iter().zip(other) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
}

fn run(seed: u64, steps: usize) {
    let mut pair = Pair::new(seed);
    for step in 1..=steps {
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pair.step(step);
            if step % 100 == 0 {
                pair.compare(step / 100 + seed as usize);
            }
        }));
        if let Err(panic) = ran {
            eprintln!("seed {seed}, step {step}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Ten thousand verbs in all: two in a transaction, on the average.
#[test]
fn the_bus_of_sqlite_answers_as_the_model_does() {
    let runs = 20;
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..runs).map(|seed| scope.spawn(move || run(seed, 5_000 / usize::try_from(runs).unwrap()))).collect();
        runs.into_iter().for_each(|run| run.join().unwrap());
    });
}
