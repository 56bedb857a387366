//! Random commands by several people on one list, with time passing and sessions ending: what must hold after each.
//!
//! The list is a [`Board`] that logs every change; a refused command is dropped with its copy of the board, as a
//! store drops its transaction.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use taskbus_core::board::Board;
use taskbus_core::change::{Change, Kind};
use taskbus_core::command::{Command, Draft, Finish, LeaseAsk, Next, Patch, Place};
use taskbus_core::decide::{self, Facts, Outcome, Stop, World};
use taskbus_core::document;
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::lineage;
use taskbus_core::name::{Identity, Label};
use taskbus_core::neighbourhood::{Dependent, ListRules, Look, Neighbourhood, ReadyScan, Sibling, Tally};
use taskbus_core::policy::Policy;
use taskbus_core::task::{Status, Task};
use taskbus_core::text::{Body, Note, Subject};
use taskbus_core::time::Timestamp;

const START: i64 = 1_796_054_400_000;

/// A board that remembers what was applied to it.
#[derive(Clone, Default)]
struct Logged {
    board: Board,
    log: Vec<Change>,
}

macro_rules! delegate {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        impl Neighbourhood for Logged {
            $(fn $name(&self, $($arg: $type),*) -> Look<$out> { self.board.$name($($arg),*) })*
        }
    };
}

delegate! {
    rules() -> ListRules;
    task(id: &TaskId) -> Option<Task>;
    tombstone(id: &TaskId) -> Option<Task>;
    is_known(who: &Identity) -> bool;
    is_alive(who: &Identity, now: Timestamp) -> bool;
    live_of(ids: &[TaskId]) -> Vec<TaskId>;
    open_of(ids: &[TaskId]) -> Vec<TaskId>;
    children(parent: &TaskId, open_only: bool, limit: usize) -> Vec<TaskId>;
    last_sibling(parent: Option<&TaskId>) -> Option<Sibling>;
    sibling_before(parent: Option<&TaskId>, place: &Sibling) -> Option<Sibling>;
    sibling_after(parent: Option<&TaskId>, place: &Sibling) -> Option<Sibling>;
    siblings(parent: Option<&TaskId>) -> Vec<Sibling>;
    depth(id: &TaskId) -> usize;
    height(id: &TaskId) -> usize;
    way(from: &TaskId, to: &TaskId) -> Option<Vec<TaskId>>;
    dependents(blocker: &TaskId) -> Vec<Dependent>;
    suspects(now: Timestamp, limit: usize) -> Vec<TaskId>;
    paths_in_use() -> Vec<(TaskId, Vec<PathGlob>)>;
    ready(scan: &ReadyScan) -> Vec<Task>;
    held(limit: usize) -> Vec<Task>;
    tally(now: Timestamp) -> Tally;
}

impl World for Logged {
    fn mint(&mut self, count: usize) -> Look<Vec<TaskId>> {
        self.board.mint(count)
    }

    fn apply(&mut self, change: Change) -> Look<()> {
        self.log.push(change.clone());
        self.board.apply(change)
    }
}

#[derive(Clone, Debug)]
enum Act {
    Create { parent: Option<usize>, blockers: Vec<usize>, place: Option<(bool, usize)> },
    Update(usize, Box<Change2>),
    Claim { task: usize, lease: Option<u64>, stale_fence: bool },
    Release(usize),
    Complete(usize),
    Delete { task: usize, force: bool },
    Restore(usize),
    Next { count: usize, complete: Option<usize> },
    Pass(i64),
    Die(usize),
    Return(usize),
}

/// A change of links, place, owner or text.
#[derive(Clone, Debug, Default)]
struct Change2 {
    status: Option<Status>,
    owner: Option<Option<usize>>,
    parent: Option<Option<usize>>,
    place: Option<(bool, usize)>,
    add: Vec<usize>,
    remove: Vec<usize>,
    subject: bool,
    note: bool,
    force: bool,
}

fn changes() -> impl Strategy<Value = Change2> {
    let rare = |n: u32| prop::bool::weighted(1.0 / f64::from(n));
    (
        prop::option::weighted(0.3, prop::sample::select(Status::ALL.to_vec())),
        prop::option::weighted(0.2, prop::option::of(0..3_usize)),
        prop::option::weighted(0.3, prop::option::of(0..12_usize)),
        prop::option::weighted(0.3, (any::<bool>(), 0..12_usize)),
        prop::collection::vec(0..12_usize, 0..3),
        prop::collection::vec(0..12_usize, 0..2),
        (rare(4), rare(6), rare(6)),
    )
        .prop_map(|(status, owner, parent, place, add, remove, (subject, note, force))| Change2 {
            status,
            owner,
            parent,
            place,
            add,
            remove,
            subject,
            note,
            force,
        })
}

fn acts() -> impl Strategy<Value = Act> {
    let task = 0..12_usize;
    prop_oneof![
        4 => (prop::option::of(task.clone()), prop::collection::vec(task.clone(), 0..3), prop::option::weighted(0.3, (any::<bool>(), task.clone())))
            .prop_map(|(parent, blockers, place)| Act::Create { parent, blockers, place }),
        6 => (task.clone(), changes()).prop_map(|(task, change)| Act::Update(task, Box::new(change))),
        4 => (task.clone(), prop::option::of(1..100_u64), prop::bool::weighted(0.1)).prop_map(|(task, lease, stale_fence)| Act::Claim { task, lease, stale_fence }),
        1 => task.clone().prop_map(Act::Release),
        3 => task.clone().prop_map(Act::Complete),
        2 => (task.clone(), any::<bool>()).prop_map(|(task, force)| Act::Delete { task, force }),
        1 => task.clone().prop_map(Act::Restore),
        3 => (1..4_usize, prop::option::of(task)).prop_map(|(count, complete)| Act::Next { count, complete }),
        2 => (0..120_000_i64).prop_map(Act::Pass),
        1 => (0..3_usize).prop_map(Act::Die),
        1 => (0..3_usize).prop_map(Act::Return),
    ]
}

struct Run {
    world: Logged,
    now: i64,
    ids: Vec<TaskId>,
}

fn person(at: usize) -> Identity {
    Identity::new(["zed", "amp", "jan"][at % 3]).unwrap()
}

impl Run {
    fn new() -> Self {
        let mut world =
            Logged { board: Board::new(ListRules { policy: Policy::Strict, max_reclaims: 3 }), log: Vec::new() };
        (0..3).for_each(|at| world.board.set_alive(person(at), Timestamp::from_millis(i64::MAX)));
        Self { world, now: START, ids: Vec::new() }
    }

    fn id(&self, at: usize) -> TaskId {
        self.ids.get(at % self.ids.len().max(1)).cloned().unwrap_or(TaskId::Number(1))
    }

    fn place(&self, place: Option<(bool, usize)>) -> Option<Place> {
        place.map(|(before, at)| if before { Place::Before(self.id(at)) } else { Place::After(self.id(at)) })
    }

    fn command(&self, act: &Act, caller: &Identity) -> Option<Command> {
        Some(match act {
            Act::Create { parent, blockers, place } => Command::Create(Box::new(Draft {
                parent: parent.map(|at| self.id(at)).filter(|_| !self.ids.is_empty()),
                blocked_by: blockers.iter().filter(|_| !self.ids.is_empty()).map(|at| self.id(*at)).collect(),
                place: self.place(*place),
                ..Draft::new(Subject::new("work").unwrap())
            })),
            Act::Update(at, change) => Command::Update(self.id(*at), Box::new(self.patch(change))),
            Act::Claim { task, lease, stale_fence } => {
                let fence = stale_fence.then_some(0);
                let lease = lease.map(LeaseAsk::Seconds);
                Command::Update(self.id(*task), Box::new(Patch { fence, ..Patch::claim(caller.clone(), lease) }))
            }
            Act::Release(at) => Command::Update(self.id(*at), Box::new(Patch::release())),
            Act::Complete(at) => Command::Update(self.id(*at), Box::new(Patch::complete(None))),
            Act::Delete { task, force } => {
                Command::Update(self.id(*task), Box::new(Patch { force: *force, ..Patch::delete() }))
            }
            Act::Restore(at) => Command::Restore(self.id(*at)),
            Act::Next { count, complete } => Command::Next(Box::new(Next {
                count: *count,
                complete: complete.map(|at| Finish { id: self.id(at), result: None, fence: None }),
                ..Next::default()
            })),
            Act::Pass(_) | Act::Die(_) | Act::Return(_) => return None,
        })
    }

    fn patch(&self, change: &Change2) -> Patch {
        Patch {
            status: change.status,
            owner: change.owner.map(|owner| owner.map(person)),
            parent: change.parent.map(|parent| parent.map(|at| self.id(at))),
            place: self.place(change.place),
            add_blocked_by: change.add.iter().map(|at| self.id(*at)).collect(),
            remove_blocked_by: change.remove.iter().map(|at| self.id(*at)).collect(),
            description: change.subject.then(|| Some(Body::new(format!("at {}", self.now)).unwrap())),
            note: change.note.then(|| Note::new("seen").unwrap()),
            force: change.force,
            ..Patch::default()
        }
    }

    /// Runs one act by one person and checks what must hold.
    fn step(&mut self, by: usize, act: &Act) {
        self.now += 1;
        match act {
            Act::Pass(millis) => self.now += millis,
            Act::Die(at) => self.world.board.set_alive(person(*at), Timestamp::from_millis(self.now)),
            Act::Return(at) => self.world.board.set_alive(person(*at), Timestamp::from_millis(i64::MAX)),
            _ => {}
        }
        let caller = person(by);
        let Some(command) = self.command(act, &caller) else { return };
        let facts = Facts { now: Timestamp::from_millis(self.now), caller: Some(caller) };
        let before = self.world.board.clone();
        let mut after = Logged { board: before.clone(), log: Vec::new() };
        match decide::run(&command, &mut after, &facts) {
            Ok(outcome) => {
                check_log(&before, &after, &command, &outcome, &facts);
                check_board(&after.board, &facts);
                check_order(&before, &after);
                self.ids.extend(after.log.iter().filter(|c| c.kind == Kind::Created).map(|c| c.task.id.clone()));
                self.world.board = after.board;
                self.world.log.extend(after.log);
            }
            Err(Stop::Refused(refusal)) => assert!(!refusal.to_string().is_empty() && !refusal.code().is_empty()),
            Err(Stop::Lookup(error)) => panic!("a board always answers: {error}"),
        }
    }
}

/// What each single change may do.
fn check_log(before: &Board, after: &Logged, command: &Command, outcome: &Outcome, facts: &Facts) {
    let mut board = before.clone();
    for change in &after.log {
        check_lineage(change, &board, after);
        let (task, old) = (&change.task, board.get(&change.task.id).or(board.get_tombstone(&change.task.id)).cloned());
        assert_eq!(task.revision, old.as_ref().map_or(1, |old| old.revision + 1), "one revision for each change");
        if let Some(old) = &old {
            assert!(task.fence >= old.fence, "fences never fall");
            let starts = old.status() != Status::InProgress && task.status() == Status::InProgress;
            if starts && change.kind != Kind::Restored {
                assert!(task.fence > old.fence, "a claim raises the fence");
                assert!(board.open_blockers(task).is_empty(), "blocked tasks never start");
            }
            check_ownership(change, old, &board, facts);
            if old.status() == Status::Completed && task.status() != Status::Completed {
                let reopened = matches!(command, Command::Update(_, patch) if patch.status == Some(Status::Pending));
                assert!(reopened, "completed stays completed unless it is reopened");
            }
        }
        if change.kind == Kind::Deleted {
            assert!(board.children(&task.id, false, 1).unwrap().is_empty(), "no delete with children");
        }
        board.put(change);
    }
    if let Outcome::Written(effect) = outcome {
        let own = after.log.iter().filter(|c| !matches!(c.kind, Kind::Reclaimed | Kind::Reranked)).count();
        assert_eq!(effect.written, own > 0, "a no-op writes no revision");
        let ready = |id: &TaskId| board.open_blockers(board.get(id).unwrap()).is_empty();
        assert!(effect.unblocked.iter().all(ready), "unblocked tasks are free");
    }
    assert_eq!(board.in_order(), after.board.in_order(), "replaying the changes leads to the same list");
}

/// A replay that knows nothing but the two revisions finds each step lawful, in the form in which it is stored too.
fn check_lineage(change: &Change, board: &Board, after: &Logged) {
    let id = &change.task.id;
    let last =
        after.log.iter().take_while(|earlier| !std::ptr::eq(*earlier, change)).filter(|c| c.task.id == *id).last();
    let live = board.get(id).map(|task| (task, last.map_or(Kind::Changed, |last| last.kind)));
    let before = live.or(board.get_tombstone(id).map(|task| (task, Kind::Deleted)));
    let stored = |task: &Task| {
        let text = document::encode(task);
        document::decode(task.id.clone(), task.revision, task.updated.clone(), &text).unwrap()
    };
    let before = before.map(|(task, kind)| (stored(task), kind));
    let before = before.as_ref().map(|(task, kind)| (task, *kind));
    assert_eq!(lineage::follows(before, change.kind, &stored(&change.task), Policy::Strict), Ok(()), "{change:?}");
}

/// A live hold is changed by its owner, by force, or not at all.
fn check_ownership(change: &Change, old: &Task, board: &Board, facts: &Facts) {
    if old.status() != Status::InProgress || matches!(change.kind, Kind::Reranked | Kind::Restored) {
        return;
    }
    let abandoned = decide::is_abandoned(old, board, facts).unwrap();
    assert_eq!(change.kind == Kind::Reclaimed, abandoned, "the abandoned are reclaimed first, the live never");
    if !abandoned && old.owner() != facts.caller.as_ref() {
        let forced_before_delete = change.kind == Kind::Deleted && change.task.fence > 0;
        assert!(change.kind == Kind::Forced || forced_before_delete, "only the owner changes a live hold");
    }
}

/// What holds in every state.
fn check_board(board: &Board, facts: &Facts) {
    let tasks: BTreeMap<&TaskId, &Task> = board.tasks().map(|task| (&task.id, task)).collect();
    check_acyclic(&tasks, |task| task.blocked_by.clone());
    check_acyclic(&tasks, |task| task.parent.clone().into_iter().collect());
    assert_eq!(board.in_order().len(), tasks.len(), "every task is in the tree once");
    assert_eq!(board.tally(facts.now).unwrap().total(), tasks.len() as u64);
    for task in tasks.values() {
        assert!(task.status() != Status::InProgress || task.owner().is_some(), "somebody holds what is in progress");
        assert_eq!(task.blocked_by.len(), task.blocked_by.iter().collect::<BTreeSet<_>>().len());
        for blocker in &task.blocked_by {
            let dependents = board.dependents(blocker).unwrap();
            assert!(dependents.iter().any(|d| d.id == task.id), "blocks is the inverse of blocked_by");
        }
    }
    let paths: Vec<_> = board.in_order().iter().map(|(task, _)| board.path(&task.id).unwrap()).collect();
    assert!(paths.is_sorted_by(|a, b| a < b), "paths sort in tree order");
}

/// Removes what has no open way on, again and again; what remains is a cycle.
fn check_acyclic(tasks: &BTreeMap<&TaskId, &Task>, next: impl Fn(&Task) -> Vec<TaskId>) {
    let mut left: BTreeSet<&TaskId> = tasks.keys().copied().collect();
    loop {
        let free: Vec<&TaskId> =
            left.iter().copied().filter(|id| next(tasks[*id]).iter().all(|to| !left.contains(to))).collect();
        if free.is_empty() {
            break;
        }
        left.retain(|id| !free.contains(id));
    }
    assert!(left.is_empty(), "a cycle among {left:?}");
}

/// Siblings that were not moved keep their order among themselves.
fn check_order(before: &Board, after: &Logged) {
    let moved: BTreeSet<&TaskId> = after
        .log
        .iter()
        .filter(|c| {
            let old = before.get(&c.task.id);
            c.kind != Kind::Reranked && old.is_none_or(|old| old.rank != c.task.rank || old.parent != c.task.parent)
        })
        .map(|c| &c.task.id)
        .collect();
    let kept = |board: &Board| -> Vec<(Option<TaskId>, TaskId)> {
        let rows = board.in_order();
        let rows = rows.iter().map(|(task, _)| (task.parent.clone(), task.id.clone()));
        let mut rows: Vec<_> = rows.filter(|(_, id)| !moved.contains(id)).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows
    };
    let (mut old, new) = (kept(before), kept(&after.board));
    old.retain(|row| new.contains(row));
    let new: Vec<_> = new.into_iter().filter(|row| old.contains(row)).collect();
    let gone = after.log.iter().any(|c| matches!(c.kind, Kind::Deleted | Kind::Restored));
    assert!(gone || old == new, "unmoved siblings never swap:\n{old:?}\n{new:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_must_hold_holds_after_every_command(steps in prop::collection::vec((0..3_usize, acts()), 1..60)) {
        let mut run = Run::new();
        for (by, act) in &steps {
            run.step(*by, act);
        }
        let mut replayed = Board::default();
        run.world.log.iter().for_each(|change| replayed.put(change));
        prop_assert_eq!(replayed.in_order(), run.world.board.in_order());
    }

    /// Deleting and restoring brings the same task back, but for its hold and its counters.
    #[test]
    fn delete_then_restore_is_undo(steps in prop::collection::vec((0..3_usize, acts()), 1..30), at in 0..12_usize) {
        let mut run = Run::new();
        steps.iter().for_each(|(by, act)| run.step(*by, act));
        let facts = Facts { now: Timestamp::from_millis(run.now + 1), caller: Some(person(0)) };
        let id = run.id(at);
        let Some(before) = run.world.board.get(&id).cloned() else { return Ok(()) };
        let force = Patch { force: true, ..Patch::delete() };
        if decide::run(&Command::Update(id.clone(), Box::new(force)), &mut run.world, &facts).is_err() {
            return Ok(());
        }
        prop_assert!(run.world.board.get(&id).is_none());
        decide::run(&Command::Restore(id.clone()), &mut run.world, &facts).unwrap();
        let after = run.world.board.get(&id).unwrap();
        prop_assert_eq!((&after.subject, &after.parent, &after.rank), (&before.subject, &before.parent, &before.rank));
        prop_assert_eq!(after.status() == Status::Completed, before.status() == Status::Completed);
        prop_assert!(after.revision > before.revision);
    }
}

fn facts(caller: usize) -> Facts {
    Facts { now: Timestamp::from_millis(START), caller: Some(person(caller)) }
}

fn create(world: &mut Logged, draft: Draft) -> TaskId {
    match decide::run(&Command::Create(Box::new(draft)), world, &facts(0)).unwrap() {
        Outcome::Created(task) => task.id,
        other => panic!("{other:?}"),
    }
}

fn draft() -> Draft {
    Draft::new(Subject::new("work").unwrap())
}

#[track_caller]
fn refused(world: &Logged, command: &Command) -> (&'static str, serde_json::Map<String, serde_json::Value>) {
    let mut copy = world.clone();
    match decide::run(command, &mut copy, &facts(0)) {
        Err(Stop::Refused(refusal)) => (refusal.code(), refusal.facts()),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn a_chain_of_a_hundred_thousand_blockers_is_legal_and_its_cycle_is_found() {
    let mut world = Run::new().world;
    let first = create(&mut world, draft());
    let mut last = first.clone();
    for _ in 1..100_000 {
        last = create(&mut world, Draft { blocked_by: vec![last], ..draft() });
    }
    let close = Patch { add_blocked_by: vec![last], ..Patch::default() };
    let (code, facts) = refused(&world, &Command::Update(first, Box::new(close)));
    assert_eq!((code, facts["cycle"].as_array().unwrap().len()), ("validation", 64));
}

#[test]
fn parents_nest_a_thousand_deep_and_no_deeper() {
    let mut world = Run::new().world;
    let mut last = create(&mut world, draft());
    for _ in 1..1000 {
        last = create(&mut world, Draft { parent: Some(last), ..draft() });
    }
    assert_eq!(world.board.depth(&last).unwrap(), 999);
    let (code, facts) = refused(&world, &Command::Create(Box::new(Draft { parent: Some(last), ..draft() })));
    assert_eq!((code, facts["field"].as_str()), ("validation", Some("parent")));
}

#[test]
fn sixty_four_blockers_fit_and_one_more_does_not() {
    let mut world = Run::new().world;
    let ids: Vec<TaskId> = (0..65).map(|_| create(&mut world, draft())).collect();
    create(&mut world, Draft { blocked_by: ids[..64].to_vec(), ..draft() });
    create(&mut world, Draft { blocked_by: [&ids[..64], &ids[..64]].concat(), ..draft() });
    let (code, facts) = refused(&world, &Command::Create(Box::new(Draft { blocked_by: ids, ..draft() })));
    assert_eq!((code, facts["max"].as_u64()), ("validation", Some(64)));
}

#[test]
fn the_document_limit_holds_at_the_edge() {
    let world = Run::new().world;
    let with = |bytes: usize| Draft { description: Some(Body::new("x".repeat(bytes)).unwrap()), ..draft() };
    let spare = {
        let mut copy = world.clone();
        create(&mut copy, with(1));
        let task = copy.board.tasks().next().unwrap().clone();
        64 * 1024 - taskbus_core::document::encode(&task).len() + 1
    };
    create(&mut world.clone(), with(spare));
    let (code, facts) = refused(&world, &Command::Create(Box::new(with(spare + 1))));
    assert_eq!((code, facts["max"].as_u64()), ("validation", Some(64 * 1024)));
}

#[test]
fn equal_ranks_still_honour_before() {
    let mut world = Run::new().world;
    let [a, b, c, d] = [0; 4].map(|_| create(&mut world, draft()));
    for id in [&a, &b, &c, &d] {
        let mut task = world.board.get(id).unwrap().clone();
        task.rank = taskbus_core::rank::Rank::from_stored("V");
        world.board.put(&Change { kind: Kind::Changed, task, note: None });
    }
    let new = create(&mut world, Draft { place: Some(Place::Before(d.clone())), ..draft() });
    let order: Vec<TaskId> = world.board.in_order().iter().map(|(task, _)| task.id.clone()).collect();
    assert_eq!(order, [a, b, c, new, d]);
}

#[test]
fn a_task_that_moves_says_so_also_when_all_get_new_keys() {
    let mut world = Run::new().world;
    let first = create(&mut world, draft());
    decide::run(&Command::Update(first.clone(), Box::new(Patch::delete())), &mut world, &facts(0)).unwrap();
    let second = create(&mut world, draft());
    // It comes back with the key that the second got meanwhile.
    decide::run(&Command::Restore(first.clone()), &mut world, &facts(0)).unwrap();
    let [third, fourth, fifth] = [0; 3].map(|_| create(&mut world, draft()));
    let between = Patch { place: Some(Place::Before(second.clone())), ..Patch::default() };
    let moved = decide::run(&Command::Update(third.clone(), Box::new(between)), &mut world, &facts(0)).unwrap();
    assert!(matches!(moved, Outcome::Written(effect) if effect.written), "its new key is another than its old one");
    let order: Vec<TaskId> = world.board.in_order().iter().map(|(task, _)| task.id.clone()).collect();
    assert_eq!(order, [first, third, second, fourth, fifth]);
}

#[test]
fn zigzag_inserts_rerank_and_keep_the_order() {
    let mut world = Run::new().world;
    let (mut left, mut right) = (create(&mut world, draft()), create(&mut world, draft()));
    let mut expected = vec![left.clone(), right.clone()];
    for round in 0..200 {
        let new = create(&mut world, Draft { place: Some(Place::After(left.clone())), ..draft() });
        let at = expected.iter().position(|id| *id == left).unwrap();
        expected.insert(at + 1, new.clone());
        if round % 2 == 0 {
            left = new;
        } else {
            right = new;
        }
        assert!(expected.iter().position(|id| *id == left) < expected.iter().position(|id| *id == right));
    }
    let order: Vec<TaskId> = world.board.in_order().iter().map(|(task, _)| task.id.clone()).collect();
    assert_eq!(order, expected);
    assert!(world.log.iter().any(|c| c.kind == Kind::Reranked), "200 zig-zag inserts must re-rank");
    assert!(world.board.tasks().all(|task| task.rank.as_str().len() <= 48));
}

#[test]
fn labels_and_paths_decide_who_gets_what() {
    let mut world = Run::new().world;
    let label = |text: &str| Label::new(text).unwrap();
    let paths = |text: &str| BTreeSet::from([PathGlob::new(text).unwrap()]);
    create(&mut world, Draft { labels: BTreeSet::from([label("gpu")]), ..draft() });
    let first = create(&mut world, Draft { paths: paths("src/**"), ..draft() });
    create(&mut world, Draft { paths: paths("src/lib.rs"), ..draft() });
    let free = create(&mut world, Draft { paths: paths("docs/*"), ..draft() });
    let next = Command::Next(Box::new(Next { count: 4, ..Next::default() }));
    let Outcome::Taken { tasks, .. } = decide::run(&next, &mut world, &facts(0)).unwrap() else { panic!() };
    assert_eq!(tasks.iter().map(|task| task.id.clone()).collect::<Vec<_>>(), [first, free]);
}

#[test]
fn a_blocker_that_cannot_be_read_blocks_and_stays_named() {
    let mut world = Logged { board: Board::new(ListRules::default()), log: Vec::new() };
    world.board.set_unreadable([TaskId::Number(40)]);
    let (other, hidden) = (create(&mut world, draft()), TaskId::Number(40));
    let id = create(&mut world, Draft { blocked_by: vec![hidden.clone(), other], ..draft() });
    let claim = Command::Update(id.clone(), Box::new(Patch::claim(person(0), None)));
    assert_eq!(refused(&world, &claim).0, "conflict");
    let touch = Patch { remove_blocked_by: vec![TaskId::Number(1)], ..Patch::default() };
    decide::run(&Command::Update(id.clone(), Box::new(touch)), &mut world, &facts(0)).unwrap();
    assert_eq!(world.task(&id).unwrap().unwrap().blocked_by, [hidden]);
}
