//! Histories made by hand: true ones, which must pass, and one forged in each way that the checker is there to see.

use taskbus::store::RevisionRow;
use taskbus_core::board::Board;
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Message, Sort};
use taskbus_core::change::{Change, Kind as Why};
use taskbus_core::decide::{self, Facts, Outcome};
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::task::{State, Task};
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;

use super::{Act, Findings, History, Kind, check};
use crate::torture::deed::Deed;
use crate::torture::record::{Begin, Number};
use crate::torture::told::{Seen, Told};

/// Every call begins and ends in a slot of its own of so many nanoseconds and so many milliseconds of the store's clock.
const SLOT: u64 = 10;
const FOREVER: Timestamp = Timestamp::from_millis(i64::MAX);

/// A story under way: what is done is stored and told as the product would.
struct Tale {
    history: History,
    board: Board,
    slot: u64,
}

/// A list on which what is changed is written down.
struct Written<'a> {
    board: &'a mut Board,
    rows: Vec<Change>,
    minted: u64,
}

impl decide::World for Written<'_> {
    fn mint(&mut self, count: usize) -> taskbus_core::neighbourhood::Look<Vec<TaskId>> {
        Ok((1..=count as u64).map(|ahead| TaskId::Number(self.minted + ahead)).collect())
    }

    fn apply(&mut self, change: Change) -> taskbus_core::neighbourhood::Look<()> {
        self.board.put(&change);
        self.rows.push(change);
        Ok(())
    }
}

super::replay::ask_board!(Written);

fn zed() -> Identity {
    Identity::new("Zed").unwrap()
}

fn amp() -> Identity {
    Identity::new("Amp").unwrap()
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

impl Tale {
    fn new() -> Self {
        let mut board = Board::new(ListRules::default());
        [zed(), amp()].into_iter().for_each(|who| board.set_alive(who, FOREVER));
        Self { history: History::default(), board, slot: 0 }
    }

    fn seq(&self) -> u64 {
        (self.history.revisions.len() + self.history.messages.len()) as u64
    }

    fn now(&self) -> i64 {
        1_700_000_000_000 + i64::try_from(self.slot * SLOT).unwrap()
    }

    /// Somebody begins something; nobody has been told yet.
    fn tries(&mut self, who: &Identity, deed: Deed) -> &mut Act {
        self.slot += 1;
        let client = u64::from(*who == amp());
        let number = Number { client, life: 0, deed: self.slot };
        let begin = Begin { number, at: self.slot * SLOT, caller: who.clone(), deed, key: None, is_wrong: false };
        self.history.acts.push(Act { begin, answers: Vec::new() });
        self.history.acts.last_mut().unwrap()
    }

    /// It is stored, if the rules allow it; what it came to.
    fn happens(&mut self) -> Option<Outcome> {
        let act = self.history.acts.last().unwrap();
        let command = act.begin.deed.command(&act.begin.caller, &act.begin.number.mark()).unwrap().unwrap();
        let facts = Facts { now: Timestamp::from_millis(self.now()), caller: Some(act.begin.caller.clone()) };
        let minted = self.seq();
        let mut world = Written { board: &mut self.board, rows: Vec::new(), minted };
        let outcome = decide::run(&command, &mut world, &facts).ok();
        let rows = world.rows;
        rows.into_iter().for_each(|change| self.stores(change.kind, change.task, change.note));
        outcome
    }

    /// Somebody looks, at the time of the last call, and what is abandoned goes back.
    fn looks(&mut self, who: &Identity, id: &TaskId) {
        let facts = Facts { now: Timestamp::from_millis(self.now()), caller: Some(who.clone()) };
        let minted = self.seq();
        let mut world = Written { board: &mut self.board, rows: Vec::new(), minted };
        assert!(decide::reclaim_one(id, &mut world, &facts).unwrap());
        let rows = world.rows;
        rows.into_iter().for_each(|change| self.stores(change.kind, change.task, change.note));
    }

    /// A revision is stored, whether the rules allow it or not.
    fn stores(&mut self, kind: Why, task: Task, note: Option<taskbus_core::text::Note>) {
        let seq = self.seq() + 1;
        self.board.put(&Change { kind, task: task.clone(), note: note.clone() });
        let (context, client) = (String::new(), String::new());
        self.history.revisions.push(RevisionRow { seq, kind, task, note, context, client });
    }

    fn told(&mut self, told: Told) {
        let at = self.slot * SLOT + SLOT / 2;
        self.history.acts.last_mut().unwrap().answers.push((at, told));
    }

    /// Tried, stored and told.
    fn does(&mut self, who: &Identity, deed: Deed) -> Option<Task> {
        self.tries(who, deed);
        let outcome = self.happens();
        let (told, task) = match outcome {
            Some(Outcome::Created(task) | Outcome::Restored(task)) => (Told::Wrote(vec![seen(&task)]), Some(task)),
            Some(Outcome::Written(effect)) => {
                let seen = vec![seen(&effect.task)];
                (if effect.written { Told::Wrote(seen) } else { Told::Nothing(seen) }, Some(effect.task))
            }
            Some(Outcome::Planned(made)) => (Told::Made(made.into_iter().map(|(_, id)| id).collect()), None),
            Some(Outcome::Taken { tasks, .. }) => {
                (Told::Wrote(tasks.iter().map(seen).collect()), tasks.into_iter().next())
            }
            None => (Told::Refused { code: "conflict lease_lost".to_owned(), words: String::new() }, None),
        };
        self.told(told);
        task
    }

    fn adds(&mut self) -> TaskId {
        self.does(&zed(), add()).unwrap().id
    }

    fn claims(&mut self, who: &Identity, id: &TaskId, lease_ms: i64) -> Option<Task> {
        let until = self.now() + lease_ms;
        self.does(who, Deed::Claim { id: id.clone(), until, force: false })
    }

    /// The task with something changed, as its next revision, stored under somebody's name without asking the rules.
    fn forges(&mut self, kind: Why, who: &Identity, id: &TaskId, change: impl FnOnce(&mut Task)) {
        let mut task = self.board.get(id).unwrap().clone();
        task.revision += 1;
        task.updated.by = Some(who.clone());
        task.updated.at = Timestamp::from_millis(self.now());
        change(&mut task);
        let note = self.history.acts.last().map(|act| taskbus_core::text::Note::new(act.begin.number.mark()).unwrap());
        self.stores(kind, task, note);
    }

    fn sends(&mut self, to: &str) -> u64 {
        let mark = self.tries(&zed(), Deed::Send { channel: to.to_owned() }).begin.number.mark();
        let seq = self.seq() + 1;
        self.history.messages.push(message(seq, to, &mark));
        self.told(Told::Sent(seq));
        seq
    }

    fn receives(&mut self, ack: Option<&str>, seqs: &[u64], batch: &str) {
        self.tries(&amp(), Deed::Receive { ack: ack.map(str::to_owned) });
        let batch = Some(batch.to_owned());
        self.told(Told::Received { seqs: seqs.to_vec(), batch, again: false, ack_ignored: false });
    }

    fn reads(&mut self, task: Seen) {
        self.tries(&zed(), Deed::Get { id: task.id.clone() });
        self.told(Told::Read(task));
    }

    fn found(&self) -> Findings {
        check(&self.history)
    }

    #[track_caller]
    fn holds(&self) -> Findings {
        let found = self.found();
        assert_eq!(found.violations, [], "a true story");
        found
    }

    #[track_caller]
    fn breaks(&self, kind: Kind, words: &str) {
        let found = self.found().violations;
        let told = found.iter().any(|violation| violation.kind == kind && violation.words.contains(words));
        assert!(told, "no {kind:?} with {words:?} in {found:#?}");
    }
}

fn add() -> Deed {
    Deed::Add { parent: None, blocked_by: Vec::new(), before: None }
}

fn message(seq: u64, channel: &str, content: &str) -> Message {
    Message {
        seq,
        channel: ChannelName::new(channel).unwrap(),
        sender: Some(zed()),
        context: String::new(),
        created_at: Timestamp::from_millis(1),
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

#[test]
fn true_stories_hold() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.does(&zed(), Deed::Plan { tasks: 4 });
    let held = tale.claims(&zed(), &id, 45).unwrap();
    assert!(tale.claims(&amp(), &id, 50).is_none(), "it is held");
    tale.slot += 5;
    let until = tale.now() + 500;
    let taken = tale.does(&amp(), Deed::Next { count: 2, until, complete: None }).unwrap();
    assert_eq!(taken.id, id, "it was given back");
    assert!(tale.does(&zed(), Deed::Done { id: id.clone(), fence: Some(held.fence) }).is_none());
    tale.does(&amp(), Deed::Done { id: id.clone(), fence: Some(taken.fence) }).unwrap();
    tale.does(&amp(), Deed::Edit { id: id.clone(), fence: None, force: false }).unwrap();
    let read = tale.does(&zed(), Deed::Delete { id: id.clone() }).unwrap();
    tale.does(&zed(), Deed::Restore { id }).unwrap();
    assert!(read.revision > 3);
    let seq = tale.sends("dm/Amp");
    tale.receives(None, &[seq], "b1");
    tale.receives(Some("b1"), &[], "b2");
    tale.history.unread.insert(amp(), Vec::new());
    let found = tale.holds();
    assert_eq!((found.counted("sent"), found.counted("refused")), (1, 2));
    assert!(found.counted("acknowledged") >= 8, "{:?}", found.counts);
}

/// Two transactions of one name may be of the same millisecond.
#[test]
fn a_look_before_a_deed_is_no_part_of_it() {
    for deed in [add(), Deed::Next { count: 1, until: 1_700_000_009_000, complete: None }] {
        let mut tale = Tale::new();
        let id = tale.adds();
        tale.claims(&amp(), &id, 15).unwrap();
        tale.slot += 5;
        tale.tries(&zed(), deed);
        tale.looks(&zed(), &id);
        assert!(tale.happens().is_some());
        tale.holds();
    }
}

#[test]
fn what_nobody_was_told_of_may_have_happened_or_not() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.tries(&zed(), Deed::Edit { id: id.clone(), fence: None, force: false });
    tale.happens().unwrap();
    tale.tries(&zed(), Deed::Delete { id: id.clone() });
    tale.does(&zed(), Deed::Plan { tasks: 2 });
    tale.tries(&zed(), Deed::Delete { id });
    let found = tale.holds();
    assert_eq!((found.counted("recovered"), found.counted("came to nothing")), (1, 2));
}

#[test]
fn a_lost_change_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.does(&amp(), Deed::Edit { id, fence: None, force: false });
    tale.history.revisions.pop();
    tale.breaks(Kind::Lost, "deed 1.0.2");
}

#[test]
fn a_lost_change_is_seen_under_later_ones() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.tries(&amp(), Deed::Edit { id: id.clone(), fence: None, force: false });
    let task = tale.board.get(&id).unwrap().clone();
    tale.told(Told::Wrote(vec![Seen { revision: 2, ..seen(&task) }]));
    tale.does(&zed(), Deed::Edit { id, fence: None, force: false });
    tale.breaks(Kind::Lost, "deed 1.0.2");
}

#[test]
fn a_change_of_nobody_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.forges(Why::Changed, &amp(), &id, |task| task.subject = Subject::new("forged").unwrap());
    tale.breaks(Kind::Unexpected, "who did no such thing");
}

#[test]
fn another_change_than_the_rules_give_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.tries(&amp(), Deed::Edit { id: id.clone(), fence: None, force: false });
    tale.forges(Why::Changed, &amp(), &id, |task| task.subject = Subject::new("another").unwrap());
    tale.breaks(Kind::Unruly, "the rules give");
}

#[test]
fn half_a_transaction_is_seen() {
    let mut tale = Tale::new();
    tale.does(&zed(), Deed::Plan { tasks: 3 });
    tale.history.revisions.pop();
    tale.breaks(Kind::Unruly, "part of it is missing");
}

#[test]
fn two_owners_are_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.claims(&zed(), &id, 5_000).unwrap();
    let until = tale.now() + 5_000;
    tale.tries(&amp(), Deed::Claim { id: id.clone(), until, force: false });
    tale.forges(Why::Changed, &amp(), &id, |task| {
        task.state = State::InProgress { owner: Some(amp()), lease: Some(Timestamp::from_millis(until)) };
        task.fence += 1;
    });
    tale.breaks(Kind::Owner, "the rules refuse it");
    tale.breaks(Kind::Owner, "changed it while");
}

#[test]
fn a_fence_that_does_not_rise_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    let until = tale.now() + 5_000;
    tale.tries(&amp(), Deed::Claim { id: id.clone(), until, force: false });
    tale.forges(Why::Changed, &amp(), &id, |task| {
        task.state = State::InProgress { owner: Some(amp()), lease: Some(Timestamp::from_millis(until)) };
    });
    tale.breaks(Kind::Order, "fence 0");
}

#[test]
fn taking_from_the_living_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.claims(&zed(), &id, 5_000).unwrap();
    tale.forges(Why::Reclaimed, &amp(), &id, |task| {
        task.state = State::Pending { assignee: None };
        task.fence += 1;
        task.reclaims += 1;
    });
    tale.breaks(Kind::Owner, "before its lease ended");
    tale.breaks(Kind::Unruly, "would not give it back");
}

#[test]
fn giving_back_what_is_done_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.does(&zed(), Deed::Done { id: id.clone(), fence: None });
    tale.forges(Why::Reclaimed, &amp(), &id, |task| task.state = State::Pending { assignee: None });
    tale.breaks(Kind::Owner, "given back while completed");
}

#[test]
fn a_late_writer_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    let held = tale.claims(&zed(), &id, 15).unwrap();
    tale.slot += 5;
    tale.claims(&amp(), &id, 15).unwrap();
    tale.slot += 5;
    let until = tale.now() + 500;
    tale.does(&amp(), Deed::Next { count: 1, until, complete: None }).unwrap();
    tale.tries(&zed(), Deed::Done { id: id.clone(), fence: Some(held.fence) }).begin.is_wrong = true;
    tale.forges(Why::Changed, &zed(), &id, |task| {
        task.state = State::Completed { by: Some(zed()), at: task.updated.at }
    });
    let stored = seen(tale.board.get(&id).unwrap());
    tale.told(Told::Wrote(vec![stored]));
    tale.breaks(Kind::Stale, "the rules refuse it");
    tale.breaks(Kind::Stale, "had to be refused");
}

#[test]
fn an_id_that_is_given_again_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.does(&zed(), Deed::Delete { id: id.clone() });
    tale.tries(&amp(), add());
    let mark = tale.history.acts.last().unwrap().begin.number.mark();
    let mut task = tale.board.get_tombstone(&id).unwrap().clone();
    (task.revision, task.subject, task.updated.by) = (1, Subject::new(mark).unwrap(), Some(amp()));
    tale.stores(Why::Created, task, None);
    tale.breaks(Kind::Twice, "a second time");
}

#[test]
fn a_circle_is_seen() {
    let mut tale = Tale::new();
    let (a, b) = (tale.adds(), tale.adds());
    tale.does(&zed(), Deed::Block { id: a.clone(), on: b.clone() }).unwrap();
    tale.tries(&amp(), Deed::Block { id: b.clone(), on: a.clone() });
    tale.forges(Why::Changed, &amp(), &b, |task| task.blocked_by.push(a));
    tale.breaks(Kind::Unruly, "the rules refuse it");
    tale.breaks(Kind::Unruly, "in a circle");
}

#[test]
fn a_missing_number_is_seen() {
    let mut tale = Tale::new();
    tale.adds();
    tale.adds();
    tale.history.revisions[1].seq = 3;
    tale.breaks(Kind::Order, "number 3 stands where 2 should");
}

#[test]
fn two_answers_to_one_call_are_seen() {
    let mut tale = Tale::new();
    tale.adds();
    let (at, told) = tale.history.acts[0].answers[0].clone();
    tale.history.acts[0].answers.push((at, told));
    assert_eq!(tale.holds().counted("answers repeated"), 1);
    tale.told(Told::Wrote(vec![]));
    tale.breaks(Kind::Twice, "and then");
}

#[test]
fn an_answer_that_is_not_stored_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    let stored = seen(tale.board.get(&id).unwrap());
    tale.reads(Seen { fence: Some(9), ..stored.clone() });
    tale.breaks(Kind::Answer, "read");
    let mut tale = Tale::new();
    tale.adds();
    tale.history.acts[0].answers[0].1 = Told::Wrote(vec![Seen { revision: 2, ..stored }]);
    tale.breaks(Kind::Answer, "not stored so");
}

#[test]
fn reading_the_past_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    let first = seen(tale.board.get(&id).unwrap());
    tale.reads(first.clone());
    tale.does(&zed(), Deed::Edit { id, fence: None, force: false });
    tale.holds();
    tale.reads(first);
    tale.breaks(Kind::Time, "had been replaced before it asked");
}

#[test]
fn reading_and_writing_against_the_clock_is_seen() {
    let mut tale = Tale::new();
    let id = tale.adds();
    tale.reads(seen(tale.board.get(&id).unwrap()));
    tale.history.acts[1].begin.at = 0;
    tale.history.acts[1].answers[0].0 = 1;
    tale.breaks(Kind::Time, "before anybody wrote it");
    let mut tale = Tale::new();
    tale.adds();
    tale.does(&amp(), add());
    tale.history.acts[0].begin.at = 1_000;
    tale.breaks(Kind::Time, "began after 2 was answered");
}

#[test]
fn a_failed_call_is_seen() {
    let mut tale = Tale::new();
    tale.tries(&zed(), add());
    tale.told(Told::Failed("store_busy: …".to_owned()));
    tale.breaks(Kind::Failed, "store_busy");
}

#[test]
fn lost_and_doubled_mail_is_seen() {
    let mut tale = Tale::new();
    tale.sends("general");
    tale.history.messages.clear();
    tale.breaks(Kind::Lost, "which is not there");
    let mut tale = Tale::new();
    tale.sends("general");
    let twin = Message { seq: 2, ..tale.history.messages[0].clone() };
    tale.history.messages.push(twin);
    tale.breaks(Kind::Twice, "was sent as 1 and as 2");
    let mut tale = Tale::new();
    tale.history.messages.push(message(1, "general", "nobody's"));
    tale.breaks(Kind::Mail, "which nobody sent so");
}

#[test]
fn mail_that_comes_again_or_never_is_seen() {
    let mut tale = Tale::new();
    let seq = tale.sends("dm/Amp");
    tale.history.unread.insert(amp(), Vec::new());
    tale.breaks(Kind::Mail, "never came");
    tale.receives(None, &[seq], "b1");
    tale.receives(None, &[seq], "b1");
    tale.holds();
    tale.receives(Some("b1"), &[seq], "b2");
    tale.breaks(Kind::Mail, "again after it was acknowledged");
    let mut tale = Tale::new();
    let (first, second) = (tale.sends("dm/Amp"), tale.sends("dm/Amp"));
    tale.receives(None, &[second, first], "b1");
    tale.breaks(Kind::Mail, "messages came as");
}
