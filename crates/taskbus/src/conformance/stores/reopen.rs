//! Reopening a whole store: a list goes on where it was.

use taskbus_core::command::{Command, Draft, Patch, Place};

use super::{Crew, Person, StorePlace, Verdict, draft};

/// Makes a list with a bit of everything.
fn furnish(sam: &Person) {
    let first = sam.add("first");
    let waits = sam.add_waiting("waits", &[&first]);
    let child = sam.create(Draft { parent: Some(waits), ..draft("child") }).id;
    sam.add("moved");
    sam.update(&first, Patch { place: Some(Place::After(sam.order()[2].clone())), ..Patch::default() })
        .expect_err("a child is no sibling");
    let last = sam.add("last");
    sam.update(&last, Patch { place: Some(Place::Before(first.clone())), ..Patch::default() }).expect("a task moves");
    sam.complete(&first).expect("a task can be completed");
    sam.lease(&child, 3_600).expect("a task can be leased");
    let gone = sam.add("gone");
    sam.update(&gone, Patch::delete()).expect("a task can be deleted");
}

/// A place whose store outlives its process; none if it does not.
fn lasting(place: &dyn StorePlace) -> Option<Crew> {
    Some(Crew::at(place)).filter(|crew| crew.store.abilities().durable)
}

const GONE: Verdict = Verdict::NotApplicable("a store that outlives its process");

pub(super) fn every_task_is_as_it_was(place: &dyn StorePlace) -> Verdict {
    let Some(crew) = lasting(place) else { return GONE };
    let sam = crew.person("sam");
    furnish(&sam);
    let seen = |person: &Person| {
        let all = person.order().into_iter();
        all.map(|id| person.get(&id).expect("a listed task is there"))
            .map(|got| (got.task, got.ready))
            .collect::<Vec<_>>()
    };
    let before = seen(&sam);
    drop((sam, crew));
    let crew = Crew::at(place);
    let kim = crew.person("kim");
    assert_eq!(seen(&kim), before);
    Verdict::Held
}

pub(super) fn ids_go_on(place: &dyn StorePlace) -> Verdict {
    let Some(crew) = lasting(place) else { return GONE };
    let mut last = crew.person("sam").add("first");
    drop(crew);
    for _ in 0..4 {
        let sam = Crew::at(place).person("sam");
        let id = sam.add("next");
        assert!(last < id, "{id} was given after {last} and a reopening");
        sam.update(&id, Patch::delete()).expect("a task can be deleted");
        sam.engine.close().expect("a session ends");
        last = id;
    }
    Verdict::Held
}

pub(super) fn holders_keep_their_tasks(place: &dyn StorePlace) -> Verdict {
    let Some(crew) = lasting(place) else { return GONE };
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let sam = crew.person("sam");
    let id = sam.add("held");
    let fence = sam.lease(&id, 600).expect("a free task can be leased").task.fence;
    let later = Crew::at(place);
    let kim = later.person("kim");
    super::conflict(kim.claim(&id));
    assert_eq!((kim.task(&id).owner, kim.task(&id).fence), (Some(sam.name.clone()), fence));
    sam.complete(&id).expect("its holder completes it");
    Verdict::Held
}

pub(super) fn a_repeated_key_is_answered_after_reopening(place: &dyn StorePlace) -> Verdict {
    let Some(crew) = lasting(place) else { return GONE };
    if !crew.store.abilities().liveness {
        return Verdict::NotApplicable("sessions and receipts that outlive the process");
    }
    let create = || Command::Create(Box::new(draft("once")));
    let sam = crew.person("sam");
    let first = sam.ask(create(), Some("key")).expect("a task is made");
    sam.engine.close().expect("a session ends");
    drop((sam, crew));
    let sam = Crew::at(place).person("sam");
    assert_eq!(sam.ask(create(), Some("key")).expect("the same answer"), first);
    assert_eq!(sam.order().len(), 1);
    Verdict::Held
}
