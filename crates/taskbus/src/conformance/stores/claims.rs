//! Claims: one owner at a time.

use taskbus_core::command::{Command, Patch};
use taskbus_core::refusal::Conflict;
use taskbus_core::task::Status;

use super::{Crew, Error, Refusal, StorePlace, Verdict, conflict, draft, to};

pub(super) fn one_holds_a_task_and_the_others_are_told_who(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let id = zed.add("task");
    let claimed = amp.claim(&id).expect("a free task can be claimed").task;
    assert_eq!((claimed.owner.as_ref(), claimed.fence), (Some(&amp.name), 1));
    let told = conflict(zed.claim(&id));
    assert!(matches!(&told, Conflict::Held { owner, .. } if *owner == amp.name), "{told:?}");
    assert_eq!(zed.task(&id).owner, Some(amp.name.clone()));
    let again = amp.claim(&id).expect("a claim may be repeated").task;
    assert_eq!((again.fence, again.revision), (claimed.fence, claimed.revision), "a repeated claim changes nothing");
    Verdict::Held
}

pub(super) fn only_the_holder_completes_or_releases(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (zed, amp) = (crew.person("zed"), crew.person("amp"));
    let id = zed.add("task");
    amp.claim(&id).expect("a free task can be claimed");
    for patch in [Patch::complete(None), Patch::release(), Patch::delete()] {
        conflict(zed.update(&id, patch));
    }
    amp.update(&id, Patch::release()).expect("its holder gives it back");
    assert_eq!((zed.task(&id).status, zed.task(&id).owner), (Status::Pending, None));
    zed.claim(&id).expect("what was given back can be claimed");
    assert_eq!(zed.complete(&id).expect("its holder completes it").task.owner, Some(zed.name.clone()));
    Verdict::Held
}

pub(super) fn next_hands_out_each_task_once(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let made: Vec<_> = (0..6).map(|at| zed.add(&format!("task {at}"))).collect();
    let mut taken = Vec::new();
    for at in 0..6 {
        let next = if at % 2 == 0 { zed.next() } else { amp.next() };
        taken.extend(next.tasks.into_iter().map(|task| task.id));
    }
    assert_eq!(taken, made, "in order, each once");
    assert!(amp.next().idle.is_some_and(|idle| idle.in_progress == 6), "nothing is left");
    Verdict::Held
}

pub(super) fn a_blocked_task_is_not_claimed(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let blocker = zed.add("first");
    let waits = zed.add_waiting("then", &[&blocker]);
    assert!(zed.task(&waits).blocked);
    if crew.rules.policy.blocked_may_start() {
        let started = zed.claim(&waits).expect("here a blocked task may start");
        assert!(started.warnings.iter().any(|warning| warning.contains(&blocker.to_string())), "with a warning");
        return Verdict::Held;
    }
    let told = conflict(zed.claim(&waits));
    assert_eq!(told, Conflict::Blocked { id: waits.clone(), blockers: vec![blocker.clone()] });
    let done = zed.complete(&blocker).expect("a task can be completed");
    assert_eq!(done.unblocked, std::slice::from_ref(&waits));
    zed.claim(&waits).expect("an unblocked task can be claimed");
    Verdict::Held
}

pub(super) fn a_repeated_key_gives_the_first_answer(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let create = |subject: &str| Command::Create(Box::new(draft(subject)));
    let first = zed.ask(create("once"), Some("key")).expect("a task is made");
    assert_eq!(zed.ask(create("once"), Some("key")).expect("the same answer"), first);
    let other = zed.ask(create("another"), Some("key"));
    assert!(matches!(other, Err(Error::Refused(Refusal::Conflict(Conflict::KeyReused { .. })))), "{other:?}");
    assert_eq!(zed.order().len(), 1);
    Verdict::Held
}

pub(super) fn without_owners_anybody_changes_anything(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if crew.without_owners().is_none() {
        return Verdict::NotApplicable("a list that keeps no owners");
    }
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let id = zed.add("task");
    for status in [Status::InProgress, Status::Completed, Status::InProgress, Status::Pending, Status::Completed] {
        amp.update(&id, to(status)).expect("any status follows any other");
        assert_eq!(zed.task(&id).status, status);
        zed.update(&id, Patch { metadata: [("k".to_owned(), Some(1.into()))].into(), ..Patch::default() })
            .expect("and anybody changes it");
    }
    Verdict::Held
}
