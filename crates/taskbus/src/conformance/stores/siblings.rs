//! Siblings: their order, and how they are moved.

use taskbus_core::command::{Draft, Patch, Place};
use taskbus_core::id::TaskId;

use super::{Crew, StorePlace, Verdict, draft};

fn at(place: Place) -> Patch {
    Patch { place: Some(place), ..Patch::default() }
}

/// The order is the same for everybody.
#[track_caller]
fn check_order(place: &dyn StorePlace, expected: &[&TaskId]) {
    let crew = Crew::at(place);
    for store in [&crew.store, &place.open()] {
        assert_eq!(crew.person_on(store, "jan").order().iter().collect::<Vec<_>>(), expected);
    }
}

pub(super) fn tasks_are_appended(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let made: Vec<TaskId> = (0..70).map(|at| zed.add(&format!("task {at}"))).collect();
    check_order(place, &made.iter().collect::<Vec<_>>());
    Verdict::Held
}

pub(super) fn tasks_go_before_and_after_others(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let (a, b, c) = (zed.add("a"), zed.add("b"), zed.add("c"));
    zed.update(&c, at(Place::Before(a.clone()))).expect("a task goes before another");
    check_order(place, &[&c, &a, &b]);
    zed.update(&c, at(Place::After(a.clone()))).expect("a task goes after another");
    check_order(place, &[&a, &c, &b]);
    zed.update(&b, at(Place::Before(c.clone()))).expect("a task goes before another");
    check_order(place, &[&a, &b, &c]);
    let d = zed.create(Draft { place: Some(Place::After(a.clone())), ..draft("d") }).id;
    check_order(place, &[&a, &d, &b, &c]);
    let stays = zed.update(&d, at(Place::Before(b.clone()))).expect("where it is already");
    assert_eq!(stays.replaced, 0, "a task that is there already is not moved");
    zed.update(&a, Patch::delete()).expect("a task can be deleted");
    let e = zed.add("e");
    check_order(place, &[&d, &b, &c, &e]);
    Verdict::Held
}

pub(super) fn children_stand_below_their_parents(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let (a, b) = (zed.add("a"), zed.add("b"));
    let child =
        |parent: &TaskId, subject: &str| zed.create(Draft { parent: Some(parent.clone()), ..draft(subject) }).id;
    let (b1, a1, a2) = (child(&b, "b1"), child(&a, "a1"), child(&a, "a2"));
    check_order(place, &[&a, &a1, &a2, &b, &b1]);
    zed.update(&a1, Patch { parent: Some(Some(b.clone())), ..Patch::default() }).expect("a task moves");
    check_order(place, &[&a, &a2, &b, &b1, &a1]);
    zed.update(&b1, Patch { parent: Some(None), ..at(Place::Before(a.clone())) }).expect("a task becomes a root");
    check_order(place, &[&b1, &a, &a2, &b, &a1]);
    Verdict::Held
}

pub(super) fn many_inserts_at_one_spot_keep_their_order(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let (first, last) = (zed.add("first"), zed.add("last"));
    let mut inner: Vec<TaskId> = Vec::new();
    for step in 0..60 {
        let spot = if step % 2 == 0 { Place::After(first.clone()) } else { Place::Before(last.clone()) };
        let id = zed.create(Draft { place: Some(spot), ..draft("between") }).id;
        if step % 2 == 0 { inner.insert(0, id) } else { inner.push(id) }
    }
    let expected: Vec<&TaskId> = std::iter::once(&first).chain(&inner).chain([&last]).collect();
    check_order(place, &expected);
    Verdict::Held
}
