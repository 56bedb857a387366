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
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let id = zed.add("task");
    amp.lease(&id, 60).expect("a free task can be leased");
    for _ in 0..3 {
        if !crew.pass(59, &[&zed, &amp]) {
            return NO_CLOCK;
        }
        assert!(matches!(conflict(zed.claim(&id)), Conflict::Held { until: Some(_), .. }));
        let renewed = amp.lease(&id, 60).expect("a lease can be renewed").task;
        assert_eq!(renewed.fence, 1, "a renewed claim is the same claim");
    }
    Verdict::Held
}

pub(super) fn an_ended_lease_gives_the_task_back(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let (read, ticked) = (zed.add("read"), zed.add("ticked"));
    amp.lease(&read, 60).expect("a free task can be leased");
    amp.lease(&ticked, 60).expect("a free task can be leased");
    if !crew.pass(60, &[&zed, &amp]) {
        return NO_CLOCK;
    }
    let task = zed.task(&read);
    assert_eq!((task.status, task.owner, task.fence), (Status::Pending, None, 2), "whoever reads it gives it back");
    let claimed = zed.claim(&read).expect("what was given back can be claimed").task;
    assert_eq!(claimed.fence, 3);
    assert_eq!(zed.engine.tick().expect("the tick runs").reclaimed, 1, "the tick finds the other");
    assert_eq!(amp.task(&ticked).status, Status::Pending);
    assert_eq!(zed.engine.tick().expect("the tick runs").reclaimed, 0, "and finds it once");
    Verdict::Held
}

pub(super) fn a_late_holder_changes_nothing(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let id = zed.add("task");
    let fence = amp.lease(&id, 60).expect("a free task can be leased").task.fence;
    if !crew.pass(61, &[&zed, &amp]) {
        return NO_CLOCK;
    }
    let late = || amp.update(&id, Patch { fence: Some(fence), ..Patch::complete(None) });
    assert!(matches!(conflict(late()), Conflict::LeaseLost { .. }), "given back");
    zed.claim(&id).expect("what was given back can be claimed");
    assert!(matches!(conflict(late()), Conflict::LeaseLost { .. }), "held by somebody else");
    conflict(amp.complete(&id));
    assert_eq!((zed.task(&id).status, zed.task(&id).owner), (Status::InProgress, Some(zed.name.clone())));
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
    let (zed, amp) = (crew.person("zed"), crew.person("amp"));
    let id = zed.add("task");
    amp.claim(&id).expect("a free task can be claimed");
    if !crew.pass(29, &[&zed]) {
        return NO_CLOCK;
    }
    assert!(matches!(conflict(zed.claim(&id)), Conflict::Held { .. }), "dead for 29 s is alive");
    assert!(crew.pass(1, &[&zed]));
    assert_eq!(zed.claim(&id).expect("what the dead held can be claimed").task.fence, 3);
    Verdict::Held
}

pub(super) fn who_is_not_known_to_be_dead_keeps_its_tasks(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (zed, amp) = (crew.person("zed"), crew.person("amp"));
    let id = zed.add("task");
    amp.claim(&id).expect("a free task can be claimed");
    for _ in 0..4 {
        if !crew.pass(25, &[&zed, &amp]) {
            return NO_CLOCK;
        }
        assert_eq!(zed.task(&id).owner, Some(amp.name.clone()), "its holder is alive");
        assert_eq!(zed.engine.tick().expect("the tick runs").reclaimed, 0);
    }
    Verdict::Held
}
