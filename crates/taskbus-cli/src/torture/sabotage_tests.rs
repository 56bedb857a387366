//! Sabotages: a client that goes wrong in a way that other products have gone wrong, and a short torture that must find it
//! out. They stand in the tests only, beside the product and not inside it, so that no switch for them ever ships.
//!
//! The same short torture without any must find nothing. Those about the disk are in `crates/taskbus/tests/faults`.

use std::process::Command;
use std::time::{Duration, Instant};

use taskbus::store::{Author, read_with, write_with};
use taskbus_core::change::{Change, Kind as Why};
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::task::{Stamp, State, Status, Task};
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;

use super::checker::{Kind, Violation, check};
use super::collect;
use super::deed::Deed;
use super::hand::library::Library;
use super::hand::{Gone, Hand};
use super::mind::now_ms;
use super::place::{Place, name};
use super::race::{Course, hold};
use super::record::Number;
use super::storm::{RULES, STORM, Size, blow};
use super::told::{Seen, Told};
use super::worker::{Orders, work_with};

/// What a process is told by its environment.
const ORDERS: &str = "TASKBUS_TEST_TORTURE";
const SABOTAGE: &str = "TASKBUS_TEST_SABOTAGE";
/// A torture that has not found anything by then has missed it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between a check and what follows from it: long enough for somebody else to come between.
const GAP: Duration = Duration::from_millis(2);

/// How a client goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sabotage {
    None,
    NoFence,
    ReclaimById,
    CheckThenClaim,
    CheckThenBlock,
    IdsAgain,
    AckBeforeWrite,
}

impl Sabotage {
    const ALL: [Sabotage; 7] = [
        Sabotage::None,
        Sabotage::NoFence,
        Sabotage::ReclaimById,
        Sabotage::CheckThenClaim,
        Sabotage::CheckThenBlock,
        Sabotage::IdsAgain,
        Sabotage::AckBeforeWrite,
    ];

    fn named(word: &str) -> Self {
        *Self::ALL.iter().find(|sabotage| format!("{sabotage:?}") == word).unwrap()
    }
}

/// A process of a sabotaged torture; without orders it has nothing to do.
#[test]
fn worker() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let orders: Orders = serde_json::from_str(&orders).unwrap();
    let library = Library::open(&orders.store, &orders.name).unwrap();
    let how = Sabotage::named(&std::env::var(SABOTAGE).unwrap());
    let hand = Saboteur { library, how, judged: Vec::new(), put_off: Vec::new() };
    work_with(hand, &orders).unwrap();
}

/// A library in the wrong hands.
struct Saboteur {
    library: Library,
    how: Sabotage,
    /// Tasks that looked abandoned the last time it looked.
    judged: Vec<TaskId>,
    /// What it has said to be done, and has not done yet.
    put_off: Vec<(Number, Deed)>,
}

impl Hand for Saboteur {
    fn caller(&self) -> &Identity {
        self.library.caller()
    }

    fn act(&mut self, number: Number, deed: &Deed, key: Option<&str>) -> Result<Told, Gone> {
        let wrong = match (self.how, deed) {
            (Sabotage::NoFence, Deed::Done { id, .. }) => {
                return self.library.act(number, &Deed::Done { id: id.clone(), fence: None }, key);
            }
            (Sabotage::NoFence, Deed::Edit { id, force, .. }) => {
                return self.library.act(number, &Deed::Edit { id: id.clone(), fence: None, force: *force }, key);
            }
            (Sabotage::ReclaimById, Deed::Next { .. }) => {
                self.reclaim_by_id();
                None
            }
            (Sabotage::CheckThenClaim, Deed::Claim { id, until, .. }) => self.claim(id, *until),
            (Sabotage::CheckThenBlock, Deed::Block { id, on }) => self.block(id, on, number),
            (Sabotage::IdsAgain, Deed::Add { .. }) => self.add_again(number),
            (Sabotage::AckBeforeWrite, Deed::Edit { id, .. }) => self.put_off(number, deed, id),
            _ => None,
        };
        match wrong {
            Some(told) => Ok(told),
            None => self.library.act(number, deed, key),
        }
    }

    fn look(&mut self, status: Status, limit: usize) -> Result<Vec<(TaskId, Option<Identity>)>, Gone> {
        self.library.look(status, limit)
    }
}

impl Saboteur {
    fn task(&self, id: &TaskId) -> Option<Task> {
        read_with(self.library.engine.store(), Some(&self.library.list), |snapshot| Ok(snapshot.task(id)?)).unwrap()
    }

    /// Writes a task as somebody else left it, changed, whatever the rules say of that.
    fn write(&self, id: &TaskId, kind: Why, note: Option<&str>, change: impl Fn(&mut Task)) -> Option<Task> {
        let (store, list) = (self.library.engine.store(), &self.library.list);
        let note = note.map(|note| taskbus_core::text::Note::new(note).unwrap());
        let written = write_with(store, Some(list), |tx| {
            let Some(mut task) = tx.task(id)?.or(tx.tombstone(id)?) else { return Ok(None) };
            task.revision += 1;
            task.updated = Stamp { at: store.now()?, by: Some(self.library.caller.clone()) };
            change(&mut task);
            tx.append(&Change { kind, task: task.clone(), note: note.clone() }, &Author::default())?;
            Ok(Some(task))
        });
        written.ok().flatten()
    }

    /// Judges at one time, and acts on it at the next, by the id alone.
    fn reclaim_by_id(&mut self) {
        for id in std::mem::take(&mut self.judged) {
            self.write(&id, Why::Reclaimed, None, |task| {
                task.state = State::Pending { assignee: None };
                task.fence += 1;
                task.reclaims += 1;
            });
        }
        let (store, list) = (self.library.engine.store(), &self.library.list);
        let now = Timestamp::from_millis(now_ms());
        self.judged = read_with(store, Some(list), |snapshot| Ok(snapshot.suspects(now, 4)?)).unwrap();
    }

    fn claim(&self, id: &TaskId, until: i64) -> Option<Told> {
        let task = self.task(id)?;
        if task.status() != Status::Pending || task.owner().is_some() || !task.blocked_by.is_empty() {
            return None;
        }
        std::thread::sleep(GAP);
        let (owner, lease) = (Some(self.library.caller.clone()), Some(Timestamp::from_millis(until)));
        let task = self.write(id, Why::Changed, None, |task| {
            task.state = State::InProgress { owner: owner.clone(), lease };
            task.fence += 1;
        })?;
        Some(Told::Wrote(vec![seen(&task)]))
    }

    fn block(&self, id: &TaskId, on: &TaskId, number: Number) -> Option<Told> {
        let (store, list) = (self.library.engine.store(), &self.library.list);
        let way = read_with(store, Some(list), |snapshot| Ok(snapshot.way(on, id)?)).unwrap();
        if way.is_some() || self.task(id)?.blocked_by.contains(on) {
            return None;
        }
        std::thread::sleep(GAP);
        let task = self.write(id, Why::Changed, Some(&number.mark()), |task| task.blocked_by.push(on.clone()))?;
        Some(Told::Wrote(vec![seen(&task)]))
    }

    /// The highest id there is may be one that was deleted; it is given to the next task.
    fn add_again(&self, number: Number) -> Option<Told> {
        let (store, list) = (self.library.engine.store(), &self.library.list);
        let (deleted, _) = read_with(store, Some(list), |snapshot| snapshot.deleted(1)).unwrap();
        let id = deleted.first()?.id.clone();
        let task = self.write(&id, Why::Restored, None, |task| {
            task.subject = Subject::new(number.mark()).unwrap();
            task.state = State::Pending { assignee: None };
        })?;
        Some(Told::Wrote(vec![seen(&task)]))
    }

    /// Says that it is done, and does it a little later.
    fn put_off(&mut self, number: Number, deed: &Deed, id: &TaskId) -> Option<Told> {
        let task = self.task(id)?;
        self.put_off.push((number, deed.clone()));
        if self.put_off.len() > 5 {
            for (number, deed) in std::mem::take(&mut self.put_off) {
                let _told = self.library.act(number, &deed, None);
            }
        }
        Some(Told::Wrote(vec![Seen { revision: task.revision + 1, ..seen(&task) }]))
    }
}

fn seen(task: &Task) -> Seen {
    Seen {
        id: task.id.clone(),
        revision: task.revision,
        status: task.status(),
        fence: Some(task.fence),
        owner: task.owner().map(ToString::to_string),
        leased_until: task.leased_until().map(Timestamp::as_millis),
    }
}

/// A place whose processes are this test again, in the wrong hands.
fn place(how: Sabotage, seed: u64) -> Place {
    let start = move |orders: &Orders| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["torture::sabotage_tests::worker", "--exact", "--nocapture"]);
        command.env(ORDERS, serde_json::to_string(orders)?).env(SABOTAGE, format!("{how:?}"));
        Ok(command)
    };
    Place::below(&std::env::temp_dir(), seed, Box::new(start)).unwrap()
}

/// A short storm, and what is found wrong with it.
fn storm(how: Sabotage, seed: u64) -> Vec<Violation> {
    let place = place(how, seed);
    let size = Size { libraries: 4, servers: 0, sleepers: 4, time: Duration::from_secs(2), kills: 0, freezes: 0 };
    blow(&place, &size, &|_| {}).unwrap();
    let names: Vec<Identity> = (0..size.libraries).map(name).collect();
    let history = collect::history(place.path(), &place.store(STORM), RULES, &names).unwrap();
    let found = check(&history);
    assert!(found.counted("revisions") > 20, "{:?}", found.counts);
    found.violations
}

/// Storms, until one of them finds this.
#[track_caller]
fn is_found(how: Sabotage, kinds: &[Kind]) {
    let since = Instant::now();
    for seed in 1.. {
        let violations = storm(how, seed);
        if violations.iter().any(|violation| kinds.contains(&violation.kind)) {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{how:?} was not found out: {violations:?}");
    }
}

/// Short races, and what is found wrong with them.
fn races(how: Sabotage) -> Vec<String> {
    let most = Duration::from_secs(20);
    let course = Course { racers: 8, races: 20, rings: 20, most, load: Duration::ZERO };
    hold(&place(how, 1), &course).unwrap().wrongs
}

#[test]
fn without_sabotage_nothing_is_found() {
    assert_eq!(storm(Sabotage::None, 1), []);
    assert_eq!(races(Sabotage::None), [""; 0]);
}

#[test]
fn no_fence_is_found_out() {
    is_found(Sabotage::NoFence, &[Kind::Stale]);
}

#[test]
fn reclaim_by_id_only_is_found_out() {
    is_found(Sabotage::ReclaimById, &[Kind::Owner]);
}

#[test]
fn check_then_claim_is_found_out() {
    let wrongs = races(Sabotage::CheckThenClaim);
    assert!(wrongs.iter().any(|wrong| wrong.contains("race")), "{wrongs:?}");
}

#[test]
fn a_cycle_check_outside_the_transaction_is_found_out() {
    let wrongs = races(Sabotage::CheckThenBlock);
    assert!(wrongs.iter().any(|wrong| wrong.contains("ring")), "{wrongs:?}");
}

#[test]
fn an_id_that_is_given_again_is_found_out() {
    is_found(Sabotage::IdsAgain, &[Kind::Lost, Kind::Unexpected]);
}

#[test]
fn an_answer_before_the_write_is_found_out() {
    is_found(Sabotage::AckBeforeWrite, &[Kind::Lost]);
}
