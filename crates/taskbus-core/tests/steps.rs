//! Single decisions by name: what one command makes of a small list. The random commands of `rules.rs` show what always
//! holds; these show what comes out.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use taskbus_core::board::Board;
use taskbus_core::command::{Command, Draft, Finish, LeaseAsk, Next, Patch, Place, Planned};
use taskbus_core::decide::{self, Effect, Facts, Outcome, Stop};
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Label};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::policy::Policy;
use taskbus_core::refusal::{Conflict, Invalid, Missing, Refusal};
use taskbus_core::task::{State, Status, Task};
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;

const NOW: i64 = 1_796_054_400_000;

fn id(number: u64) -> TaskId {
    TaskId::Number(number)
}

fn who(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW + millis)
}

fn draft() -> Draft {
    Draft::new(Subject::new("work").unwrap())
}

fn labels(names: &[&str]) -> BTreeSet<Label> {
    names.iter().map(|name| Label::new(*name).unwrap()).collect()
}

/// A list, the people who live, and the time.
struct Desk {
    board: Board,
    now: i64,
}

impl Desk {
    fn new(policy: Policy, max_reclaims: u32) -> Self {
        let mut board = Board::new(ListRules { policy, max_reclaims });
        for name in ["zed", "amp", "jan"] {
            board.set_alive(who(name), Timestamp::from_millis(i64::MAX));
        }
        Self { board, now: 0 }
    }

    fn strict() -> Self {
        Self::new(Policy::Strict, 2)
    }

    fn run(&mut self, by: &str, command: &Command) -> Result<Outcome, Refusal> {
        let facts = Facts { now: at(self.now), caller: Some(who(by)) };
        let mut board = self.board.clone();
        match decide::run(command, &mut board, &facts) {
            Ok(outcome) => {
                self.board = board;
                Ok(outcome)
            }
            Err(Stop::Refused(refusal)) => Err(refusal),
            Err(Stop::Lookup(error)) => panic!("a board always answers: {error}"),
        }
    }

    fn create(&mut self, f: impl FnOnce(&mut Draft)) -> TaskId {
        let mut draft = draft();
        f(&mut draft);
        match self.run("zed", &Command::Create(Box::new(draft))) {
            Ok(Outcome::Created(task)) => task.id,
            other => panic!("{other:?}"),
        }
    }

    fn update(&mut self, by: &str, id: &TaskId, patch: Patch) -> Result<Effect, Refusal> {
        match self.run(by, &Command::Update(id.clone(), Box::new(patch)))? {
            Outcome::Written(effect) => Ok(effect),
            other => panic!("{other:?}"),
        }
    }

    fn claim(&mut self, by: &str, id: &TaskId) -> Task {
        self.update(by, id, Patch::claim(who(by), Some(LeaseAsk::Seconds(60)))).unwrap().task
    }

    fn next(&mut self, by: &str, f: impl FnOnce(&mut Next)) -> Result<(Vec<TaskId>, Option<Effect>), Refusal> {
        let mut next = Next { labels: BTreeSet::new(), parent: None, count: 1, lease: None, complete: None };
        f(&mut next);
        match self.run(by, &Command::Next(Box::new(next)))? {
            Outcome::Taken { tasks, completed } => Ok((tasks.into_iter().map(|task| task.id).collect(), completed)),
            other => panic!("{other:?}"),
        }
    }

    fn plan(&mut self, tasks: Vec<Planned>) -> Result<Vec<TaskId>, Refusal> {
        match self.run("zed", &Command::Plan(tasks))? {
            Outcome::Planned(made) => Ok(made.into_iter().map(|(_, id)| id).collect()),
            other => panic!("{other:?}"),
        }
    }

    fn task(&self, id: &TaskId) -> &Task {
        self.board.get(id).unwrap()
    }
}

fn owner(name: &str) -> Patch {
    Patch { owner: Some(Some(who(name))), ..Patch::default() }
}

#[test]
fn a_lease_stays_with_its_holder() {
    let mut desk = Desk::strict();
    let task = desk.create(|_| {});
    let held = desk.claim("zed", &task);
    assert_eq!((held.leased_until(), held.fence), (Some(at(60_000)), 1));
    let subject = Subject::new("other").unwrap();
    desk.update("zed", &task, Patch { subject: Some(subject), ..Patch::default() }).unwrap();
    assert_eq!(desk.task(&task).leased_until(), Some(at(60_000)), "another subject ends no lease");
    desk.update("zed", &task, owner("amp")).unwrap();
    let handed = desk.task(&task);
    assert_eq!((handed.owner(), handed.leased_until(), handed.fence), (Some(&who("amp")), None, 2));
    desk.update("amp", &task, Patch { lease: Some(LeaseAsk::Until(at(5))), ..Patch::default() }).unwrap();
    assert_eq!(desk.task(&task).leased_until(), Some(at(5)));
    desk.update("amp", &task, Patch { lease: Some(LeaseAsk::Clear), ..Patch::default() }).unwrap();
    assert_eq!(desk.task(&task).leased_until(), None);
}

#[test]
fn releasing_what_is_pending_changes_nothing() {
    let mut desk = Desk::strict();
    let task = desk.create(|_| {});
    desk.update("zed", &task, owner("amp")).unwrap();
    let release = Patch { status: Some(Status::Pending), owner: Some(None), ..Patch::default() };
    assert!(!desk.update("zed", &task, release.clone()).unwrap().written);
    assert_eq!(desk.task(&task).owner(), Some(&who("amp")));
    let unassign = Patch { owner: Some(None), ..Patch::default() };
    assert!(desk.update("zed", &task, unassign).unwrap().written);
    assert_eq!(desk.task(&task).state, State::Pending { assignee: None });
    desk.claim("zed", &task);
    desk.update("zed", &task, release).unwrap();
    assert_eq!(desk.task(&task).state, State::Pending { assignee: None });
}

#[test]
fn who_completes_is_the_owner_of_record() {
    let mut desk = Desk::strict();
    let [pending, held, assigned] = [(); 3].map(|()| desk.create(|_| {}));
    desk.claim("zed", &held);
    desk.update("zed", &assigned, owner("amp")).unwrap();
    for task in [&pending, &held, &assigned] {
        desk.update("zed", task, Patch::complete(None)).unwrap();
        assert_eq!(desk.task(task).completed_at(), Some(at(0)));
    }
    let by = |desk: &Desk, task| desk.task(task).owner().cloned();
    assert_eq!([&pending, &held, &assigned].map(|task| by(&desk, task)), ["zed", "zed", "amp"].map(|n| Some(who(n))));
    desk.now = 9;
    let subject = Subject::new("late").unwrap();
    desk.update("zed", &held, Patch { subject: Some(subject), ..Patch::default() }).unwrap();
    assert_eq!(desk.task(&held).completed_at(), Some(at(0)), "the time of completion stays");
    let restart = desk.update("zed", &held, Patch::claim(who("zed"), None));
    assert_eq!(restart.unwrap_err(), Refusal::Invalid(Invalid::ReopenFirst { id: held.clone() }));
    let reopen = Patch { status: Some(Status::Pending), ..Patch::default() };
    desk.update("zed", &held, reopen).unwrap();
    assert_eq!(desk.task(&held).state, State::Pending { assignee: None });
}

#[test]
fn the_abandoned_go_back_and_are_parked_when_it_happens_too_often() {
    let mut desk = Desk::strict();
    let task = desk.create(|_| {});
    for round in 1..=3 {
        desk.update("amp", &task, Patch::claim(who("amp"), Some(LeaseAsk::Seconds(1)))).unwrap();
        desk.now += 999;
        assert_eq!(desk.next("zed", |_| {}).unwrap().0, []);
        assert_eq!(desk.task(&task).reclaims, round - 1, "a lease lasts to its end");
        desk.now += 1;
        let taken = desk.next("zed", |_| {}).unwrap().0;
        let expected = if round <= 2 { vec![task.clone()] } else { vec![] };
        assert_eq!((taken, desk.task(&task).reclaims, desk.task(&task).parked), (expected, round, round > 2));
        let release = Patch { status: Some(Status::Pending), ..Patch::default() };
        if round <= 2 {
            desk.update("zed", &task, release).unwrap();
        }
    }
    let late = desk.update("amp", &task, Patch { fence: Some(1), ..Patch::complete(None) }).unwrap_err();
    assert!(matches!(late, Refusal::Conflict(Conflict::LeaseLost { sent: 1, .. })), "{late}");
    // Any change by hand takes it out again.
    let subject = Subject::new("smaller").unwrap();
    desk.update("zed", &task, Patch { subject: Some(subject), ..Patch::default() }).unwrap();
    assert_eq!((desk.task(&task).parked, desk.task(&task).reclaims), (false, 0));
}

#[test]
fn next_takes_what_is_assigned_first_and_never_anothers() {
    let mut desk = Desk::strict();
    let [first, mine, others] = [(); 3].map(|()| desk.create(|_| {}));
    desk.update("zed", &mine, owner("amp")).unwrap();
    desk.update("zed", &others, owner("jan")).unwrap();
    assert_eq!(desk.next("amp", |next| next.count = 16).unwrap().0, [mine, first]);
    let refused = [0, 17].map(|count| desk.next("amp", |next| next.count = count).unwrap_err());
    assert!(
        refused.iter().all(|refusal| matches!(refusal, Refusal::Invalid(Invalid::OutOfRange { min: 1, max: 16, .. })))
    );
}

#[test]
fn next_takes_only_what_the_worker_can_do() {
    let mut desk = Desk::strict();
    // More than one batch that does not fit in front of the one that does.
    for _ in 0..40 {
        desk.create(|draft| draft.labels = labels(&["gpu", "linux"]));
    }
    let fits = desk.create(|draft| draft.labels = labels(&["linux"]));
    let plain = desk.create(|_| {});
    assert_eq!(desk.next("amp", |next| next.labels = labels(&["linux", "mac"])).unwrap().0, [fits]);
    assert_eq!(desk.next("amp", |_| {}).unwrap().0, [plain]);
    assert_eq!(desk.next("amp", |_| {}).unwrap().0, []);
    assert_eq!(desk.next("amp", |next| next.labels = labels(&["gpu", "linux"])).unwrap().0, [id(1)]);
}

#[test]
fn next_keeps_apart_what_touches_the_same_files() {
    let mut desk = Desk::strict();
    let paths = |text: &str| [PathGlob::new(text).unwrap()].into();
    let one = desk.create(|draft| draft.paths = paths("src/**"));
    desk.create(|draft| draft.paths = paths("src/main.rs"));
    let apart = desk.create(|draft| draft.paths = paths("docs/**"));
    assert_eq!(desk.next("zed", |_| {}).unwrap().0, std::slice::from_ref(&one));
    assert_eq!(desk.next("amp", |next| next.count = 3).unwrap().0, [apart]);
    let (taken, completed) = desk
        .next("zed", |next| next.complete = Some(Finish { id: one.clone(), result: None, fence: Some(1) }))
        .unwrap();
    assert_eq!((taken, completed.unwrap().task.id), (vec![id(2)], one));
}

#[test]
fn next_below_a_task_stays_below_it() {
    let mut desk = Desk::strict();
    let root = desk.create(|_| {});
    let child = desk.create(|draft| draft.parent = Some(root.clone()));
    assert_eq!(desk.next("zed", |next| next.parent = Some(root)).unwrap().0, [child]);
    let gone = desk.next("zed", |next| next.parent = Some(id(99))).unwrap_err();
    assert_eq!(gone, Refusal::NotFound(Missing::Task { id: id(99) }));
}

fn planned(key: &str, parent: Option<&str>, blocked_by: &[&str]) -> Planned {
    let key = (!key.is_empty()).then(|| key.to_owned());
    let blocked_by = blocked_by.iter().map(ToString::to_string).collect();
    Planned { key, draft: draft(), parent: parent.map(str::to_owned), blocked_by, done: false }
}

#[test]
fn a_plan_is_made_whole_in_its_order() {
    let mut desk = Desk::strict();
    let outside = desk.create(|_| {});
    let done = Planned { done: true, ..planned("", None, &[]) };
    // The first is blocked by the last, and below one that comes later.
    let made =
        desk.plan(vec![planned("a", Some("b"), &["c", "1"]), planned("b", None, &[]), done, planned("c", None, &[])]);
    let made = made.unwrap();
    let [a, b, finished, c] = made.as_slice() else { panic!("{made:?}") };
    assert_eq!((&desk.task(a).parent, &desk.task(a).blocked_by), (&Some(b.clone()), &vec![c.clone(), outside]));
    assert_eq!(
        [b, c, finished].map(|id| desk.task(id).status()),
        [Status::Pending, Status::Pending, Status::Completed]
    );
    let roots: Vec<_> =
        desk.board.in_order().into_iter().filter(|(_, depth)| *depth == 0).map(|(t, _)| &t.id).collect();
    assert_eq!(roots, [&id(1), b, finished, c]);
}

#[test]
fn a_plan_that_runs_in_a_circle_is_told_with_the_circle() {
    let mut desk = Desk::strict();
    let refused = |desk: &mut Desk, tasks| match desk.plan(tasks).unwrap_err() {
        Refusal::Invalid(invalid) => invalid,
        other => panic!("{other}"),
    };
    let path = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    // In front of the circle lies one that is none of it.
    let tasks = vec![
        planned("x", None, &["a"]),
        planned("a", None, &["b"]),
        planned("b", None, &["c"]),
        planned("c", None, &["a"]),
    ];
    let cycle = Invalid::PlanCycle { field: "blocked_by", path: path(&["a", "b", "c", "a"]) };
    assert_eq!(refused(&mut desk, tasks), cycle);
    let itself = Invalid::PlanCycle { field: "blocked_by", path: path(&["a", "a"]) };
    assert_eq!(refused(&mut desk, vec![planned("a", None, &["a"])]), itself);
    let parents = vec![planned("a", Some("b"), &[]), planned("b", Some("a"), &[])];
    let cycle = Invalid::PlanCycle { field: "parent", path: path(&["a", "b", "a"]) };
    assert_eq!(refused(&mut desk, parents), cycle);
    // Two ways to one task are no circle.
    let diamond = vec![
        planned("a", None, &["b", "c"]),
        planned("b", None, &["d"]),
        planned("c", None, &["d"]),
        planned("d", None, &[]),
    ];
    assert_eq!(desk.plan(diamond).unwrap().len(), 4);
}

#[test]
fn a_plan_names_only_what_there_is_and_no_two_things_alike() {
    let mut desk = Desk::strict();
    desk.create(|_| {});
    let told = |desk: &mut Desk, tasks| desk.plan(tasks).unwrap_err();
    let unknown = Invalid::PlanReference { field: "blocked_by", reference: "b".to_owned() };
    assert_eq!(told(&mut desk, vec![planned("a", None, &["b"])]), Refusal::Invalid(unknown));
    let gone = Invalid::PlanReference { field: "parent", reference: "99".to_owned() };
    assert_eq!(told(&mut desk, vec![planned("a", Some("99"), &[])]), Refusal::Invalid(gone));
    let both = Invalid::PlanAmbiguous { field: "blocked_by", reference: "1".to_owned(), id: id(1) };
    assert_eq!(told(&mut desk, vec![planned("1", None, &[]), planned("a", None, &["1"])]), Refusal::Invalid(both));
    let twice = Invalid::PlanKeyTwice { key: "a".to_owned() };
    assert_eq!(told(&mut desk, vec![planned("a", None, &[]), planned("a", None, &[])]), Refusal::Invalid(twice));
    assert_eq!(desk.board.tasks().count(), 1, "a refused plan leaves nothing");
}

#[test]
fn a_task_goes_where_one_puts_it() {
    let mut desk = Desk::strict();
    let [a, b, c] = [(); 3].map(|()| desk.create(|_| {}));
    let put = |place| Patch { place: Some(place), ..Patch::default() };
    let order = |desk: &Desk| desk.board.in_order().into_iter().map(|(task, _)| task.id.clone()).collect::<Vec<_>>();
    desk.update("zed", &c, put(Place::Before(a.clone()))).unwrap();
    assert_eq!(order(&desk), [c.clone(), a.clone(), b.clone()]);
    desk.update("zed", &c, put(Place::After(a.clone()))).unwrap();
    assert_eq!(order(&desk), [a.clone(), c.clone(), b.clone()]);
    let first = desk.create(|draft| draft.place = Some(Place::Before(a.clone())));
    assert_eq!(order(&desk), [first.clone(), a.clone(), c.clone(), b.clone()]);
    assert!(!desk.update("zed", &c, put(Place::After(a.clone()))).unwrap().written, "it is there already");
    let itself = desk.update("zed", &c, put(Place::After(c.clone()))).unwrap_err();
    assert!(matches!(itself, Refusal::Invalid(_)), "{itself}");
    let child = desk.create(|draft| draft.parent = Some(a.clone()));
    let other = desk.update("zed", &b, put(Place::After(child.clone()))).unwrap_err();
    assert!(matches!(other, Refusal::Invalid(Invalid::NotASibling { .. })), "{other}");
    let moved = Patch { parent: Some(Some(a)), place: Some(Place::Before(child.clone())), ..Patch::default() };
    desk.update("zed", &b, moved).unwrap();
    assert_eq!(order(&desk)[1..], [id(1), b, child, c]);
}

#[test]
fn the_open_blockers_keep_a_task_from_starting_and_the_last_one_frees_it() {
    let mut desk = Desk::strict();
    let [one, two] = [(); 2].map(|()| desk.create(|_| {}));
    let waiting = desk.create(|draft| draft.blocked_by = vec![id(1), id(2)]);
    let refused = desk.update("zed", &waiting, Patch::claim(who("zed"), None)).unwrap_err();
    let blocked = Conflict::Blocked { id: waiting.clone(), blockers: vec![id(1), id(2)] };
    assert_eq!(refused, Refusal::Conflict(blocked));
    assert_eq!(desk.update("zed", &one, Patch::complete(None)).unwrap().unblocked, []);
    assert_eq!(desk.update("zed", &two, Patch::complete(None)).unwrap().unblocked, std::slice::from_ref(&waiting));
    desk.claim("zed", &waiting);
    let circle = Patch { add_blocked_by: vec![waiting.clone()], ..Patch::default() };
    let told = desk.update("zed", &two, circle).unwrap_err();
    let path = vec![two.clone(), waiting.clone(), two];
    assert_eq!(told, Refusal::Invalid(Invalid::Cycle { field: "add_blocked_by", path }));
    // In the manner of Claude Code it may start, and is warned.
    let mut desk = Desk::new(Policy::Claude, 0);
    desk.create(|_| {});
    let waiting = desk.create(|draft| draft.blocked_by = vec![id(1)]);
    let started = desk.update("zed", &waiting, Patch::claim(who("zed"), None)).unwrap();
    assert_eq!(started.task.status(), Status::InProgress);
}

#[test]
fn what_is_deferred_waits_for_its_time() {
    let mut desk = Desk::strict();
    let task = desk.create(|draft| draft.not_before = Some(at(5)));
    let early = desk.update("zed", &task, Patch::claim(who("zed"), None)).unwrap_err();
    assert_eq!(early, Refusal::Conflict(Conflict::Deferred { id: task.clone(), until: at(5) }));
    desk.now = 5;
    desk.claim("zed", &task);
}

#[test]
fn a_deleted_task_comes_back_as_it_was_but_for_its_holder() {
    let mut desk = Desk::strict();
    let blocker = desk.create(|_| {});
    let task = desk.create(|_| {});
    desk.update("zed", &blocker, Patch { add_blocked_by: vec![task.clone()], ..Patch::default() }).unwrap();
    desk.claim("zed", &task);
    let gone = desk.update("zed", &task, Patch::delete()).unwrap();
    assert!(gone.deleted && gone.written && desk.board.get(&task).is_none());
    assert_eq!(
        desk.update("zed", &task, Patch::delete()).unwrap_err(),
        Refusal::NotFound(Missing::Task { id: task.clone() })
    );
    let back = desk.run("amp", &Command::Restore(task.clone())).unwrap();
    let Outcome::Restored(back) = back else { panic!("{back:?}") };
    assert_eq!((back.state, back.fence, back.revision), (State::Pending { assignee: None }, 2, 4));
    assert!(
        matches!(desk.run("amp", &Command::Restore(task.clone())), Ok(Outcome::Restored(again)) if again.revision == 4)
    );
    let never = desk.run("amp", &Command::Restore(id(99))).unwrap_err();
    assert_eq!(never, Refusal::NotFound(Missing::Tombstone { id: id(99) }));
    let parent = desk.create(|_| {});
    let child = desk.create(|draft| draft.parent = Some(parent.clone()));
    let kept = desk.update("zed", &parent, Patch::delete()).unwrap_err();
    assert_eq!(kept, Refusal::Conflict(Conflict::Children { id: parent, children: vec![child] }));
    let parent = desk.create(|_| {});
    for _ in 0..=64 {
        desk.create(|draft| draft.parent = Some(parent.clone()));
    }
    let told = desk.update("zed", &parent, Patch::delete()).unwrap_err().to_string();
    assert!(told.contains("and more; move or delete those first"), "{told}");
}
