//! Random changes go into a SQLite store and into a memory store. Afterwards, and inside every transaction, both give the
//! same answer to every question, and the SQLite store finds nothing wrong with itself.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use proptest::prelude::*;
use taskbus::core::change::{Change, Kind};
use taskbus::core::id::TaskId;
use taskbus::core::name::{Key, Label};
use taskbus::core::neighbourhood::{ListRules, ReadyScan, Sibling};
use taskbus::core::rank::Rank;
use taskbus::core::task::{State, Status, Task};
use taskbus::core::text::Note;
use taskbus::core::time::Timestamp;
use taskbus::store::memory::MemoryStore;
use taskbus::store::sqlite::SqliteStore;
use taskbus::store::{
    Abort, Author, ManualClock, PageQuery, ReceiptRow, SessionRow, Snapshot, Store, StoreError, Tx, View, read_with,
    write_with,
};

use crate::support::{Home, at, create, list, revised, task, who};

/// One random step: what, and three random numbers to choose by.
type Step = (u8, u16, u16, u16);

const NAMES: [&str; 3] = ["Amp", "Jan", "Poe"];
/// Times at which both are asked; changes happen at 500.
const TIMES: [i64; 3] = [100, 500, 900];

struct Pair {
    sqlite: SqliteStore,
    memory: MemoryStore,
    /// Every task ever made, as last seen; and whether it is live.
    tasks: Vec<(Task, bool)>,
}

impl Pair {
    fn new(home: &Home) -> Self {
        // Some tasks come due only later than changes are made.
        let sqlite = home.open().with_clock(Arc::new(ManualClock::at(at(500))));
        let pair = Self { sqlite, memory: MemoryStore::new(), tasks: Vec::new() };
        pair.write(|tx| {
            tx.create_list(&list(), ListRules { max_reclaims: 2, ..ListRules::default() }, at(1))?;
            for (name, until) in NAMES.iter().zip([1000, 400]) {
                tx.put_session(&session(name, until))?;
            }
            Ok(())
        });
        pair
    }

    fn stores(&self) -> [&dyn Store; 2] {
        [&self.sqlite, &self.memory]
    }

    /// The same write on both; the answers must agree.
    fn write<T: PartialEq + Debug>(&self, f: impl Fn(&mut dyn Tx) -> Result<T, StoreError>) -> T {
        let f = |tx: &mut dyn Tx| Ok((f(tx)?, summary(tx)));
        let [sqlite, memory] =
            self.stores().map(|store| write_with(store, Some(&list()), |tx| f(tx).map_err(Abort::Failed)).unwrap());
        same(&sqlite.1, &memory.1);
        assert_eq!(sqlite.0, memory.0);
        sqlite.0
    }

    fn take(&mut self, step: Step) {
        let (what, a, b, c) = step;
        let Some(change) = self.change_for(what, a, b, c) else { return };
        let author = Author { context: format!("context {a}"), client: "test 1".to_owned() };
        if what >= 250 {
            self.abort(&change, &author);
            return;
        }
        self.write(|tx| {
            if change.kind == Kind::Created {
                assert_eq!(tx.mint(1)?[0], change.task.id);
            }
            // As the rules do before they add a blocker.
            for blocker in &change.task.blocked_by {
                tx.way(blocker, &change.task.id)?;
            }
            tx.append(&change, &author)
        });
        self.tasks.retain(|(task, _)| task.id != change.task.id);
        self.tasks.push((change.task, change.kind != Kind::Deleted));
    }

    /// A transaction that is refused leaves no trace.
    fn abort(&self, change: &Change, author: &Author) {
        for store in self.stores() {
            let before = read_with(store, Some(&list()), |snapshot| Ok(summary(snapshot))).unwrap();
            let result = store.write(Some(&list()), &mut |tx| {
                tx.append(change, author)?;
                Err(Abort::Failed(StoreError::Busy { store: "test".to_owned(), waited_ms: 0 }))
            });
            assert!(matches!(result, Err(Abort::Failed(StoreError::Busy { .. }))));
            let after = read_with(store, Some(&list()), |snapshot| Ok(summary(snapshot))).unwrap();
            assert_eq!(before, after);
        }
    }

    fn change_for(&self, what: u8, a: u16, b: u16, c: u16) -> Option<Change> {
        let live: Vec<&Task> = self.tasks.iter().filter(|(_, live)| *live).map(|(task, _)| task).collect();
        let dead: Vec<&Task> = self.tasks.iter().filter(|(_, live)| !*live).map(|(task, _)| task).collect();
        let chosen = |tasks: &[&Task]| tasks.get(usize::from(a) % tasks.len().max(1)).map(|task| (*task).clone());
        match what % 16 {
            0..=4 => {
                let next = self.sqlite_seq() + 1;
                let mut task = task(TaskId::number(next).unwrap());
                self.edit(&mut task, a, b, c);
                self.edit(&mut task, b, c, a);
                Some(Change { kind: Kind::Created, task, note: None })
            }
            5 | 6 => Some(revised(&chosen(&live)?, Kind::Deleted, |_| {})),
            7 | 8 => {
                let change = revised(&chosen(&dead)?, Kind::Restored, |_| {});
                let closes = change.task.blocked_by.iter().any(|blocker| self.is_way(blocker, &change.task.id));
                (!closes).then_some(change)
            }
            9 => Some(revised(&chosen(&live)?, Kind::Reranked, |task| task.rank = rank(b))),
            kind => {
                let kind = if kind == 10 { Kind::Reclaimed } else { Kind::Changed };
                let mut change = revised(&chosen(&live)?, kind, |task| self.edit(task, b, c, a));
                change.note = c.is_multiple_of(3).then(|| Note::new("why").unwrap());
                Some(change)
            }
        }
    }

    /// The rules let no circle of dependencies come about, so neither does the model.
    fn is_way(&self, from: &TaskId, to: &TaskId) -> bool {
        read_with(&self.memory, Some(&list()), |snapshot| Ok(snapshot.way(from, to)?)).unwrap().is_some()
    }

    fn sqlite_seq(&self) -> u64 {
        read_with(&self.sqlite, None, |snapshot| snapshot.list(&list())).unwrap().unwrap().latest_seq
    }

    fn edit(&self, task: &mut Task, what: u16, a: u16, b: u16) {
        let name = |n: u16| NAMES.get(usize::from(n) % 4).map(|name| who(name));
        let time = |n: u16| (!n.is_multiple_of(3)).then(|| at(i64::from(n % 10 + 1) * 100));
        match what % 9 {
            0 => task.state = State::Pending { assignee: name(a) },
            1 => task.state = State::InProgress { owner: name(a), lease: time(b) },
            2 => task.state = State::Completed { by: name(a), at: at(3) },
            3 => task.rank = rank(a),
            4 => task.parent = self.parent_for(task, a),
            5 => task.blocked_by = self.blockers_for(task, a, b),
            6 => task.not_before = time(a),
            7 => {
                let labels = ["a", "b", "b:c"].iter().enumerate().filter(|(at, _)| a >> at & 1 == 1);
                task.labels = labels.map(|(_, label)| Label::new(*label).unwrap()).collect();
                task.parked = b.is_multiple_of(4);
            }
            _ => {
                task.paths = a.is_multiple_of(2).then(|| "src/*".to_owned().try_into().unwrap()).into_iter().collect();
                task.metadata.insert("k".to_owned(), b.into());
            }
        }
    }

    /// Any task, live, deleted or not made yet, that is not below this one by name.
    fn parent_for(&self, task: &Task, a: u16) -> Option<TaskId> {
        let parent = self.any_id(a)?;
        let named =
            |id: &TaskId| self.tasks.iter().find(|(task, _)| task.id == *id).and_then(|(task, _)| task.parent.clone());
        let mut above = std::iter::successors(Some(parent.clone()), named);
        // An id of the future could close a loop once it is made.
        let known = |id: &TaskId| self.tasks.iter().any(|(task, _)| task.id == *id);
        let safe = above.all(|id| id != task.id && known(&id));
        safe.then_some(parent)
    }

    fn blockers_for(&self, task: &Task, a: u16, b: u16) -> Vec<TaskId> {
        let mut blockers = Vec::new();
        for n in [a, b, a ^ b].into_iter().take(usize::from(a % 4)) {
            match self.any_id(n) {
                Some(id) if !self.is_way(&id, &task.id) && !blockers.contains(&id) => blockers.push(id),
                _ => {}
            }
        }
        blockers
    }

    /// An id that exists, existed, or will perhaps.
    fn any_id(&self, n: u16) -> Option<TaskId> {
        let count = self.tasks.len();
        match usize::from(n) % (count + 2) {
            at if at < count => Some(self.tasks[at].0.id.clone()),
            at if at == count => TaskId::number(self.sqlite_seq() + u64::from(n % 5) + 2).ok(),
            _ => None,
        }
    }

    /// Every question, on both; then again in a writing transaction, which also promotes what has become due.
    fn compare(&self) {
        let ids: Vec<TaskId> = self.tasks.iter().map(|(task, _)| task.id.clone()).collect();
        let ask = |store| read_with(store, Some(&list()), |snapshot| Ok(details(snapshot, &ids))).unwrap();
        let [sqlite, memory] = self.stores().map(ask);
        same(&sqlite, &memory);
        self.write(|tx| Ok(details(tx, &ids)));
        for id in self.tasks.iter().map(|(task, _)| &task.id) {
            let [sqlite, memory] = self.stores().map(|store| store.locate(id).unwrap());
            assert_eq!(sqlite, memory);
        }
        assert_eq!(self.sqlite.check().unwrap(), Vec::<String>::new());
    }
}

fn session(name: &str, until: i64) -> SessionRow {
    SessionRow {
        name: who(name),
        token: format!("token of {name}"),
        alive_until: at(until),
        registered_at: at(1),
        context: "here".to_owned(),
        client: "test 1".to_owned(),
        pid: 7,
        harness: None,
    }
}

fn rank(n: u16) -> Rank {
    Rank::evenly(6)[usize::from(n) % 6].clone()
}

/// A line for each question, with its answer.
type Lines = Vec<String>;

macro_rules! ask {
    ($lines:ident, $what:expr, $answer:expr) => {
        $lines.push(format!("{:?}: {:?}", $what, $answer))
    };
}

/// What one look at the list shows.
fn summary(snapshot: &dyn Snapshot) -> Lines {
    let mut lines = Vec::new();
    for query in queries(2).into_iter().filter(|query| query.now == at(500)) {
        ask!(lines, query, snapshot.page(&query).unwrap());
    }
    for now in TIMES {
        ask!(lines, ("tally", now), snapshot.tally(at(now)).unwrap());
    }
    ask!(lines, "lists", snapshot.lists().unwrap());
    ask!(lines, "ready", ready(snapshot, None));
    lines
}

fn details(snapshot: &dyn Snapshot, ids: &[TaskId]) -> Lines {
    let mut lines = summary(snapshot);
    let set = |ids: Vec<(TaskId, _)>| ids.into_iter().collect::<BTreeSet<_>>();
    for query in queries(100) {
        ask!(lines, query, snapshot.page(&query).unwrap());
    }
    ask!(lines, "held", snapshot.held(3).unwrap());
    ask!(lines, "paths in use", set(snapshot.paths_in_use().unwrap()));
    for now in TIMES {
        ask!(lines, ("ready with paths", now), set(snapshot.ready_with_paths(at(now)).unwrap()));
        let suspects: BTreeSet<TaskId> = snapshot.suspects(at(now), 100).unwrap().into_iter().collect();
        ask!(lines, ("suspects", now), suspects);
    }
    for name in NAMES {
        ask!(lines, ("held by", name), snapshot.held_by(&who(name)).unwrap());
        ask!(lines, ("known", name), snapshot.is_known(&who(name)).unwrap());
    }
    for id in ids {
        lines.extend(about(snapshot, id, ids).into_iter().map(|line| format!("{id} {line}")));
    }
    lines
}

/// Everything about one task.
fn about(snapshot: &dyn Snapshot, id: &TaskId, ids: &[TaskId]) -> Lines {
    let mut lines = Vec::new();
    for parent in [None, Some(id)] {
        let siblings = snapshot.siblings(parent).unwrap();
        for place in siblings.iter().chain([&Sibling { rank: rank(2), id: id.clone() }]) {
            ask!(lines, ("before", parent, place), snapshot.sibling_before(parent, place).unwrap());
            ask!(lines, ("after", parent, place), snapshot.sibling_after(parent, place).unwrap());
        }
        ask!(lines, ("last", parent), snapshot.last_sibling(parent).unwrap());
        ask!(lines, ("siblings", parent), siblings);
    }
    for (open, limit) in [(false, 100), (true, 100), (true, 1)] {
        ask!(lines, ("children", open, limit), snapshot.children(id, open, limit).unwrap());
    }
    for query in queries(2) {
        let query = PageQuery { below: Some(id.clone()), ..query };
        ask!(lines, query, snapshot.page(&query).unwrap());
    }
    let one = std::slice::from_ref(id);
    ask!(lines, "task", (snapshot.task(id).unwrap(), snapshot.tombstone(id).unwrap(), snapshot.seq(id).unwrap()));
    ask!(lines, "live, open", (snapshot.live_of(one).unwrap(), snapshot.open_of(one).unwrap()));
    ask!(lines, "dependents", snapshot.dependents(id).unwrap());
    ask!(lines, "ready below", ready(snapshot, Some(id)));
    ask!(lines, "depth, height", (snapshot.depth(id).unwrap(), snapshot.height(id).unwrap()));
    let history = snapshot.history(id, None, 100).unwrap();
    for before in history.iter().map(|row| row.seq).chain([3]) {
        ask!(lines, ("history", before), snapshot.history(id, Some(before), 2).unwrap());
    }
    ask!(lines, "history", history);
    ask!(lines, "ways", ids.iter().map(|to| is_way(snapshot, id, to)).collect::<Vec<_>>());
    lines
}

#[track_caller]
fn same(sqlite: &Lines, memory: &Lines) {
    for (sqlite, memory) in sqlite.iter().zip(memory) {
        assert_eq!(sqlite, memory);
    }
    assert_eq!(sqlite.len(), memory.len());
}

/// Whether there is a way; if so it must be one, whichever.
fn is_way(snapshot: &dyn Snapshot, from: &TaskId, to: &TaskId) -> bool {
    let Some(way) = snapshot.way(from, to).unwrap() else { return false };
    assert_eq!((&way[0], &way[way.len() - 1]), (from, to));
    for step in way.windows(2) {
        assert!(snapshot.task(&step[0]).unwrap().unwrap().blocked_by.contains(&step[1]), "{way:?}");
    }
    true
}

/// The queue at every time, for everybody and nobody, in one go and task by task.
fn ready(snapshot: &dyn Snapshot, below: Option<&TaskId>) -> Vec<Vec<TaskId>> {
    let mut found = Vec::new();
    for now in TIMES {
        for assigned_to in [None, Some(who("Amp")), Some(who("Jan")), Some(who("nobody"))] {
            let scan = ReadyScan { assigned_to, below: below.cloned(), now: at(now), behind: None, limit: 100 };
            let all: Vec<TaskId> = snapshot.ready(&scan).unwrap().into_iter().map(|task| task.id).collect();
            let mut one_by_one = Vec::new();
            while let Some(task) = snapshot
                .ready(&ReadyScan { behind: one_by_one.last().cloned(), limit: 1, ..scan.clone() })
                .unwrap()
                .pop()
            {
                one_by_one.push(task.id);
            }
            assert_eq!(all, one_by_one);
            found.push(all);
        }
    }
    found
}

fn queries(limit: usize) -> Vec<PageQuery> {
    let all = |now: i64| PageQuery::all(limit, at(now));
    let mut queries = Vec::new();
    for now in TIMES {
        for view in [View::Tree, View::Ready, View::Blocked] {
            for status in [None, Some(Status::Pending), Some(Status::InProgress), Some(Status::Completed)] {
                queries.push(PageQuery { view, status, ..all(now) });
            }
            queries.push(PageQuery { view, owner: Some(who("Amp")), ..all(now) });
            queries.push(PageQuery { view, label: Some(Label::new("b").unwrap()), ..all(now) });
            queries.push(PageQuery {
                view,
                label: Some(Label::new("a").unwrap()),
                owner: Some(who("Jan")),
                ..all(now)
            });
        }
    }
    queries
}

/// A few dozen on every run; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn both_stores_answer_alike(steps in prop::collection::vec(any::<Step>(), 1..60)) {
        let home = Home::new();
        let mut pair = Pair::new(&home);
        for step in steps {
            pair.take(step);
        }
        pair.compare();
    }
}

/// The rules never let one come about; but a file may be damaged, and then nothing may hang.
#[test]
fn a_circle_of_dependencies_is_told_and_hangs_nothing() {
    let home = Home::new();
    let store = home.with_list();
    let ids: Vec<TaskId> = (1..=4).map(|n| TaskId::number(n).unwrap()).collect();
    for n in 0..4_usize {
        create(&store, |task| task.blocked_by = vec![ids[(n + 1) % 4].clone()]);
    }
    for from in &ids {
        for to in &ids {
            read_with(&store, Some(&list()), |snapshot| Ok(snapshot.way(from, to)?)).unwrap();
        }
    }
    let found = store.check().unwrap();
    assert!(found.iter().any(|line| line.contains("order of dependencies")), "{found:?}");
}

/// New edges against the order of creation, one after the other: the stored order follows, and the answers with it.
#[test]
fn the_order_of_dependencies_follows_every_edge() {
    for asked in [false, true] {
        follows_every_edge(asked);
    }
}

/// With the search that the rules make before they add a blocker, or without it.
fn follows_every_edge(asked: bool) {
    let home = Home::new();
    let store = home.with_list();
    let ids: Vec<TaskId> = (1..=40).map(|_| create(&store, |_| {}).id).collect();
    // 1 waits for 2, 2 for 3 and so on, from the back, from the front, and across.
    let links = (20..39).rev().chain(0..20).map(|n| (n, n + 1)).chain([(0, 39), (5, 30)]);
    for (task, blocker) in links {
        let task = read_with(&store, Some(&list()), |snapshot| Ok(snapshot.task(&ids[task])?)).unwrap().unwrap();
        let change = revised(&task, Kind::Changed, |task| task.blocked_by.push(ids[blocker].clone()));
        let write = |tx: &mut dyn Tx| {
            let way = if asked { tx.way(&ids[blocker], &change.task.id)? } else { None };
            tx.append(&change, &Author::default())?;
            Ok(way)
        };
        assert_eq!(write_with(&store, Some(&list()), write).unwrap(), None);
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let way = |from: usize, to: usize| {
        read_with(&store, Some(&list()), |snapshot| Ok(is_way(snapshot, &ids[from], &ids[to]))).unwrap()
    };
    for n in 0..39 {
        assert!(way(n, n + 1) && way(0, n + 1) && way(n, 39) && !way(n + 1, n) && !way(39, n), "{n}");
    }
}

/// Few tasks in progress are looked at one by one, many owner by owner.
#[test]
fn what_is_abandoned_is_found_among_few_and_among_many() {
    let home = Home::new();
    let pair = Pair::new(&home);
    for count in [30, 300] {
        pair.write(|tx| (0..count).try_for_each(|number| hold(tx, number)));
        for (now, limit) in TIMES.into_iter().flat_map(|now| [(now, 1000), (now, 7)]) {
            let [sqlite, memory] = pair.stores().map(|store| {
                let suspects = |snapshot: &dyn Snapshot| Ok(snapshot.suspects(at(now), limit)?);
                read_with(store, Some(&list()), suspects).unwrap().into_iter().collect::<BTreeSet<_>>()
            });
            assert_eq!(sqlite.len(), memory.len(), "{count} at {now}");
            assert!(limit == 7 || sqlite == memory, "{count} at {now}");
        }
    }
}

/// Adds a task that somebody holds, or nobody, with one lease or another.
fn hold(tx: &mut dyn Tx, number: usize) -> Result<(), StoreError> {
    let mut task = task(tx.mint(1)?.remove(0));
    let lease = [None, Some(at(300)), Some(at(600)), Some(at(900))][number % 4];
    task.state = State::InProgress { owner: NAMES.get(number % 7).map(|name| who(name)), lease };
    tx.append(&Change { kind: Kind::Created, task, note: None }, &Author::default()).map(drop)
}

/// Pages in a row are the whole list, each row once.
#[test]
fn pages_follow_each_other_without_a_gap() {
    let home = Home::new();
    let mut pair = Pair::new(&home);
    for n in 0..80_u16 {
        pair.take((0, n.wrapping_mul(31), n.wrapping_mul(17), n.wrapping_mul(7)));
    }
    for query in queries(3) {
        let [sqlite, memory] = pair.stores().map(|store| {
            let mut rows = Vec::new();
            let mut after = None;
            loop {
                let query = PageQuery { after: after.clone(), ..query.clone() };
                let page = read_with(store, Some(&list()), |snapshot| snapshot.page(&query)).unwrap();
                after = page.rows.last().map(|row| row.path.clone());
                rows.extend(page.rows);
                if !page.more {
                    assert_eq!(rows.len() as u64, page.total);
                    return rows;
                }
            }
        });
        assert_eq!(sqlite, memory);
    }
}

#[test]
fn receipts_and_sessions_are_kept_alike() {
    let home = Home::new();
    let pair = Pair::new(&home);
    let key = |n: usize| Key::new(format!("key {n}")).unwrap();
    let receipt = |n: usize, ends: Timestamp| ReceiptRow {
        fingerprint: format!("f{n}"),
        answer: "{}".to_owned(),
        expires_at: ends,
    };
    pair.write(|tx| {
        for n in 0..6 {
            tx.put_receipt(&who("Amp"), &key(n), &receipt(n, at(100 * n as i64)))?;
        }
        tx.put_receipt(&who("Amp"), &key(5), &receipt(50, at(1000)))
    });
    let known =
        |tx: &dyn Snapshot| (0..6).map(|n| tx.receipt(&who("Amp"), &key(n), at(250)).unwrap()).collect::<Vec<_>>();
    let kept =
        pair.write(|tx| Ok((known(tx), tx.receipt(&who("Jan"), &key(5), at(0))?, tx.has_expired_receipts(at(0))?)));
    assert_eq!((kept.0.iter().flatten().count(), kept.1, kept.2), (3, None, true));
    let dropped = pair
        .write(|tx| Ok([tx.drop_receipts(at(250), 2)?, tx.drop_receipts(at(250), 9)?, tx.drop_receipts(at(250), 9)?]));
    assert_eq!(dropped, [2, 1, 0]);
    pair.write(|tx| Ok((known(tx), tx.has_expired_receipts(at(250))?)));

    let alive = |tx: &dyn Snapshot| {
        let names = NAMES.map(|name| (tx.session(&who(name)).unwrap(), tx.is_alive(&who(name), at(600)).unwrap()));
        (names, tx.sessions(at(399)).unwrap(), tx.sessions(at(400)).unwrap())
    };
    let before = pair.write(|tx| Ok(alive(tx)));
    assert_eq!((before.1.len(), before.2.len()), (2, 1));
    let moved = pair.write(|tx| {
        let amp = tx.extend_sessions("token of Amp", at(5))?;
        let jan = tx.extend_sessions("token of Jan", at(700))?;
        Ok((amp, jan, tx.extend_sessions("of nobody", at(700))?, alive(tx)))
    });
    assert_eq!((moved.0, moved.1, moved.2), (1, 1, 0));
    let gone = pair.write(|tx| {
        tx.end_sessions("token of Amp")?;
        Ok((tx.extend_sessions("token of Amp", at(9000))?, alive(tx), tx.is_known(&who("Amp"))?))
    });
    assert_eq!((gone.0, gone.2), (0, true));
}
