//! Leases: holds that end, and what a late holder may still do.

use taskbus_core::command::Patch;
use taskbus_core::refusal::Conflict;
use taskbus_core::task::Status;

use super::{Crew, NO_CLOCK, StorePlace, Verdict, conflict};

pub(super) fn a_live_lease_is_kept(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (sam, kim) = (crew.person("sam"), crew.person_on(&place.open(), "kim"));
    let id = sam.add("task");
    kim.lease(&id, 60).expect("a free task can be leased");
    for _ in 0..3 {
        if !crew.pass(59, &[&sam, &kim]) {
            return NO_CLOCK;
        }
        assert!(matches!(conflict(sam.claim(&id)), Conflict::Held { until: Some(_), .. }));
        let renewed = kim.lease(&id, 60).expect("a lease can be renewed").task;
        assert_eq!(renewed.fence, 1, "a renewed claim is the same claim");
    }
    Verdict::Held
}

pub(super) fn an_ended_lease_gives_the_task_back(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (sam, kim) = (crew.person("sam"), crew.person_on(&place.open(), "kim"));
    let (read, ticked) = (sam.add("read"), sam.add("ticked"));
    kim.lease(&read, 60).expect("a free task can be leased");
    kim.lease(&ticked, 60).expect("a free task can be leased");
    if !crew.pass(60, &[&sam, &kim]) {
        return NO_CLOCK;
    }
    let task = sam.task(&read);
    assert_eq!((task.status, task.owner, task.fence), (Status::Pending, None, 2), "whoever reads it gives it back");
    let claimed = sam.claim(&read).expect("what was given back can be claimed").task;
    assert_eq!(claimed.fence, 3);
    assert_eq!(sam.engine.tick().expect("the tick runs").reclaimed, 1, "the tick finds the other");
    assert_eq!(kim.task(&ticked).status, Status::Pending);
    assert_eq!(sam.engine.tick().expect("the tick runs").reclaimed, 0, "and finds it once");
    Verdict::Held
}

pub(super) fn a_late_holder_changes_nothing(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (sam, kim) = (crew.person("sam"), crew.person_on(&place.open(), "kim"));
    let id = sam.add("task");
    let fence = kim.lease(&id, 60).expect("a free task can be leased").task.fence;
    if !crew.pass(61, &[&sam, &kim]) {
        return NO_CLOCK;
    }
    let late = || kim.update(&id, Patch { fence: Some(fence), ..Patch::complete(None) });
    assert!(matches!(conflict(late()), Conflict::LeaseLost { .. }), "given back");
    sam.claim(&id).expect("what was given back can be claimed");
    assert!(matches!(conflict(late()), Conflict::LeaseLost { .. }), "held by somebody else");
    conflict(kim.complete(&id));
    assert_eq!((sam.task(&id).status, sam.task(&id).owner), (Status::InProgress, Some(sam.name.clone())));
    Verdict::Held
}

pub(super) fn a_dead_session_gives_its_tasks_back(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    if !crew.store.abilities().liveness {
        return Verdict::NotApplicable("sessions, by which the dead are known");
    }
    let (sam, kim) = (crew.person("sam"), crew.person("kim"));
    let id = sam.add("task");
    kim.claim(&id).expect("a free task can be claimed");
    if !crew.pass(29, &[&sam]) {
        return NO_CLOCK;
    }
    assert!(matches!(conflict(sam.claim(&id)), Conflict::Held { .. }), "dead for 29 s is alive");
    assert!(crew.pass(1, &[&sam]));
    assert_eq!(sam.claim(&id).expect("what the dead held can be claimed").task.fence, 3);
    Verdict::Held
}

pub(super) fn who_is_not_known_to_be_dead_keeps_its_tasks(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (sam, kim) = (crew.person("sam"), crew.person("kim"));
    let id = sam.add("task");
    kim.claim(&id).expect("a free task can be claimed");
    for _ in 0..4 {
        if !crew.pass(25, &[&sam, &kim]) {
            return NO_CLOCK;
        }
        assert_eq!(sam.task(&id).owner, Some(kim.name.clone()), "its holder is alive");
        assert_eq!(sam.engine.tick().expect("the tick runs").reclaimed, 0);
    }
    Verdict::Held
}
