//! Reopening a whole store: a list goes on where it was.

use taskbus_core::command::{Command, Draft, Patch, Place};

use super::{Crew, Person, StorePlace, Verdict, draft};

/// Makes a list with a bit of everything.
fn furnish(zed: &Person) {
    let first = zed.add("first");
    let waits = zed.add_waiting("waits", &[&first]);
    let child = zed.create(Draft { parent: Some(waits), ..draft("child") }).id;
    zed.add("moved");
    zed.update(&first, Patch { place: Some(Place::After(zed.order()[2].clone())), ..Patch::default() })
        .expect_err("a child is no sibling");
    let last = zed.add("last");
    zed.update(&last, Patch { place: Some(Place::Before(first.clone())), ..Patch::default() }).expect("a task moves");
    zed.complete(&first).expect("a task can be completed");
    zed.lease(&child, 3_600).expect("a task can be leased");
    let gone = zed.add("gone");
    zed.update(&gone, Patch::delete()).expect("a task can be deleted");
}

/// A place whose store outlives its process; none if it does not.
fn lasting(place: &dyn StorePlace) -> Option<Crew> {
    Some(Crew::at(place)).filter(|crew| crew.store.abilities().durable)
}

const GONE: Verdict = Verdict::NotApplicable("a store that outlives its process");

pub(super) fn every_task_is_as_it_was(place: &dyn StorePlace) -> Verdict {
    let Some(crew) = lasting(place) else { return GONE };
    let zed = crew.person("zed");
    furnish(&zed);
    let seen = |person: &Person| {
        let all = person.order().into_iter();
        all.map(|id| person.get(&id).expect("a listed task is there"))
            .map(|got| (got.task, got.ready))
            .collect::<Vec<_>>()
    };
    let before = seen(&zed);
    drop((zed, crew));
    let crew = Crew::at(place);
    let amp = crew.person("amp");
    assert_eq!(seen(&amp), before);
    Verdict::Held
}

pub(super) fn ids_go_on(place: &dyn StorePlace) -> Verdict {
    let Some(crew) = lasting(place) else { return GONE };
    let mut last = crew.person("zed").add("first");
    drop(crew);
    for _ in 0..4 {
        let zed = Crew::at(place).person("zed");
        let id = zed.add("next");
        assert!(last < id, "{id} was given after {last} and a reopening");
        zed.update(&id, Patch::delete()).expect("a task can be deleted");
        zed.engine.close().expect("a session ends");
        last = id;
    }
    Verdict::Held
}

pub(super) fn holders_keep_their_tasks(place: &dyn StorePlace) -> Verdict {
    let Some(crew) = lasting(place) else { return GONE };
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let zed = crew.person("zed");
    let id = zed.add("held");
    let fence = zed.lease(&id, 600).expect("a free task can be leased").task.fence;
    let later = Crew::at(place);
    let amp = later.person("amp");
    super::conflict(amp.claim(&id));
    assert_eq!((amp.task(&id).owner, amp.task(&id).fence), (Some(zed.name.clone()), fence));
    zed.complete(&id).expect("its holder completes it");
    Verdict::Held
}

pub(super) fn a_repeated_key_is_answered_after_reopening(place: &dyn StorePlace) -> Verdict {
    let Some(crew) = lasting(place) else { return GONE };
    if !crew.store.abilities().liveness {
        return Verdict::NotApplicable("sessions and receipts that outlive the process");
    }
    let create = || Command::Create(Box::new(draft("once")));
    let zed = crew.person("zed");
    let first = zed.ask(create(), Some("key")).expect("a task is made");
    zed.engine.close().expect("a session ends");
    drop((zed, crew));
    let zed = Crew::at(place).person("zed");
    assert_eq!(zed.ask(create(), Some("key")).expect("the same answer"), first);
    assert_eq!(zed.order().len(), 1);
    Verdict::Held
}
