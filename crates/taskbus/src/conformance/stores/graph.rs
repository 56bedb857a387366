//! Graph: blockers and parents, neither of which closes on itself.

use taskbus_core::command::{Command, Draft, Patch, Planned};
use taskbus_core::id::TaskId;
use taskbus_core::refusal::{Invalid, Refusal};

use super::{Crew, Error, Person, StorePlace, Verdict, draft};
use crate::answer::{Answer, Written};

fn blocked_by(blockers: &[&TaskId]) -> Patch {
    Patch { add_blocked_by: blockers.iter().map(|id| (*id).clone()).collect(), ..Patch::default() }
}

#[track_caller]
fn cycle(result: Result<Written, Error>) -> Vec<TaskId> {
    match result {
        Err(Error::Refused(Refusal::Invalid(Invalid::Cycle { path, .. }))) => path,
        other => panic!("a cycle is refused: {other:?}"),
    }
}

pub(super) fn cycles_are_refused_with_their_path(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let a = zed.add("a");
    let b = zed.add_waiting("b", &[&a]);
    let c = zed.add_waiting("c", &[&b]);
    assert_eq!(cycle(zed.update(&a, blocked_by(&[&c]))), [a.clone(), c.clone(), b.clone(), a.clone()]);
    assert_eq!(cycle(zed.update(&a, blocked_by(&[&b]))), [a.clone(), b.clone(), a.clone()]);
    let itself = zed.update(&a, blocked_by(&[&a]));
    assert!(matches!(itself, Err(Error::Refused(Refusal::Invalid(Invalid::Itself { .. })))), "{itself:?}");
    zed.update(&c, blocked_by(&[&a])).expect("a second way is no cycle");
    zed.update(&b, Patch { remove_blocked_by: vec![a.clone()], ..Patch::default() }).expect("a link can be removed");
    zed.update(&c, Patch { remove_blocked_by: vec![a.clone()], ..Patch::default() }).expect("a link can be removed");
    zed.update(&a, blocked_by(&[&c])).expect("what was a cycle is none any more");
    Verdict::Held
}

pub(super) fn a_task_waits_for_all_its_blockers(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let (a, b) = (zed.add("a"), zed.add("b"));
    let waits = zed.add_waiting("waits", &[&a, &b]);
    assert_eq!(zed.task(&waits).open_blockers, [a.clone(), b.clone()]);
    assert_eq!((zed.task(&a).blocks, zed.task(&b).blocks), (vec![waits.clone()], vec![waits.clone()]));
    assert_eq!(zed.complete(&a).expect("a task can be completed").unblocked, []);
    assert_eq!(zed.task(&waits).open_blockers, std::slice::from_ref(&b));
    assert_eq!(zed.complete(&b).expect("a task can be completed").unblocked, std::slice::from_ref(&waits));
    let got = zed.get(&waits).expect("the task is there");
    assert!(got.ready && !got.task.blocked, "{:?}", got.not_ready);
    Verdict::Held
}

pub(super) fn a_deleted_blocker_blocks_nothing(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let blocker = zed.add("blocker");
    let waits = zed.add_waiting("waits", &[&blocker]);
    let deleted = zed.update(&blocker, Patch::delete()).expect("a task can be deleted");
    assert_eq!(deleted.unblocked, std::slice::from_ref(&waits));
    assert!(zed.get(&waits).expect("the task is there").ready);
    assert_eq!(zed.next().tasks.iter().map(|task| &task.id).collect::<Vec<_>>(), [&waits]);
    Verdict::Held
}

pub(super) fn only_tasks_that_are_there_can_be_named(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let id = zed.add("task");
    let nobody: TaskId =
        if id.as_number().is_some() { "999999" } else { "t_0000000000001_0000" }.parse().expect("an id");
    for patch in [blocked_by(&[&nobody]), Patch { parent: Some(Some(nobody.clone())), ..Patch::default() }] {
        let refused = zed.update(&id, patch);
        assert!(matches!(refused, Err(Error::Refused(Refusal::Invalid(Invalid::NotLive { .. })))), "{refused:?}");
    }
    let made = zed.ask(Command::Create(Box::new(Draft { blocked_by: vec![nobody], ..draft("new") })), None);
    assert!(matches!(made, Err(Error::Refused(Refusal::Invalid(Invalid::NotLive { .. })))), "{made:?}");
    assert_eq!(zed.order(), [id]);
    Verdict::Held
}

/// A chain of blockers that would overflow a stack that walks it one call deep for each.
pub(super) fn long_chains_are_walked(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let chain = chain(&zed, 400);
    let path = cycle(zed.update(&chain[0], blocked_by(&[&chain[399]])));
    assert_eq!(path.len(), 401);
    zed.update(&chain[399], blocked_by(&[&chain[0]])).expect("a short cut is no cycle");
    Verdict::Held
}

fn chain(person: &Person, count: usize) -> Vec<TaskId> {
    let planned = |at: usize| Planned {
        key: Some(format!("k{at}")),
        draft: draft("link"),
        parent: None,
        blocked_by: if at > 0 { vec![format!("k{}", at - 1)] } else { Vec::new() },
        done: false,
    };
    match person.ask(Command::Plan((0..count).map(planned).collect()), None) {
        Ok(Answer::Planned(tasks)) => tasks.into_iter().map(|task| task.id).collect(),
        other => panic!("a plan is made: {other:?}"),
    }
}

pub(super) fn parents_form_a_tree(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let below = |parent: &TaskId| Patch { parent: Some(Some(parent.clone())), ..Patch::default() };
    let (a, b, c) = (zed.add("a"), zed.add("b"), zed.add("c"));
    zed.update(&b, below(&a)).expect("a task goes below another");
    zed.update(&c, below(&b)).expect("a task goes below another");
    assert_eq!(cycle(zed.update(&a, below(&c))).first(), Some(&a));
    let open = zed.complete(&a).expect("a parent may be completed").open_children;
    assert_eq!(open, std::slice::from_ref(&b));
    zed.update(&a, blocked_by(&[&b])).expect("a parent may wait for its child");
    Verdict::Held
}
