//! Deletes of tasks, and how they are undone.

use taskbus_core::command::{Command, Draft, Patch};
use taskbus_core::refusal::Conflict;

use super::{Crew, StorePlace, Verdict, conflict, draft, is_missing};
use crate::answer::Answer;

pub(super) fn a_deleted_task_is_gone_and_comes_back_whole(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let metadata = [("k".to_owned(), 1.into())].into();
    let made = zed.create(Draft { metadata, ..draft("short-lived") });
    assert!(zed.update(&made.id, Patch::delete()).expect("a task can be deleted").deleted);
    let shown = zed.engine.overview(None, &zed.list, 10).expect("the list can be read");
    assert_eq!((shown.deleted_total, &shown.deleted[0].subject), (1, &made.subject));
    for person in [&zed, &amp] {
        is_missing(&person.get(&made.id));
        assert_eq!(person.order(), []);
    }
    let Ok(Answer::Restored(back)) = zed.ask(Command::Restore(made.id.clone()), None) else { panic!("it comes back") };
    assert_eq!((&back.subject, &back.metadata, &back.status), (&made.subject, &made.metadata, &made.status));
    assert!(back.revision > made.revision);
    assert_eq!(amp.order(), [made.id]);
    Verdict::Held
}

pub(super) fn a_task_with_children_stays(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let parent = zed.add("parent");
    let child = zed.create(Draft { parent: Some(parent.clone()), ..draft("child") }).id;
    for force in [false, true] {
        let told = conflict(zed.update(&parent, Patch { force, ..Patch::delete() }));
        assert_eq!(told, Conflict::Children { id: parent.clone(), children: vec![child.clone()] });
    }
    zed.update(&child, Patch::delete()).expect("a task can be deleted");
    zed.update(&parent, Patch::delete()).expect("and then its parent");
    assert_eq!(zed.order(), []);
    Verdict::Held
}

pub(super) fn deleting_twice_is_said(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let id = zed.add("short-lived");
    let delete = || zed.ask(Command::Update(id.clone(), Box::new(Patch::delete())), Some("key"));
    let first = delete().expect("a task can be deleted");
    assert_eq!(delete().expect("the same call again"), first);
    let again = zed.update(&id, Patch::delete());
    if crew.rules.policy.keeps_deleted() {
        let again = again.expect("here a deleted task is a row");
        assert!(again.deleted && again.replaced == 0, "{again:?}");
    } else {
        is_missing(&again);
    }
    Verdict::Held
}
