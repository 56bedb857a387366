//! Transactions of a whole store: refused, failed and broken ones leave no trace.

use std::panic::{AssertUnwindSafe, catch_unwind};

use taskbus_core::change::{Change, Kind};
use taskbus_core::command::{Command, Patch, Planned};
use taskbus_core::task::Task;
use taskbus_core::text::Subject as Line;

use super::{Crew, StorePlace, Verdict, draft};
use crate::store::{Abort, Author, StoreError, Tx, write_with};

pub(super) fn a_refused_command_leaves_no_trace(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let first = zed.add("first");
    let second = zed.add_waiting("second", &[&first]);
    let before = (zed.everything(), amp.everything(), zed.engine.lists().expect("lists"));
    let circle =
        Patch { subject: Some(Line::new("changed").expect("valid")), add_blocked_by: vec![second], ..Patch::default() };
    zed.update(&first, circle).expect_err("a cycle is refused");
    assert_eq!((zed.everything(), amp.everything(), zed.engine.lists().expect("lists")), before);
    Verdict::Held
}

pub(super) fn a_plan_is_all_or_nothing(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let planned = |at: usize, blocker: &str| Planned {
        key: Some(format!("k{at}")),
        draft: draft("planned"),
        parent: None,
        blocked_by: vec![blocker.to_owned()],
        done: false,
    };
    let good = zed.add("there").to_string();
    let plan = vec![planned(0, &good), planned(1, "k0"), planned(2, "nobody")];
    zed.ask(Command::Plan(plan), None).expect_err("a plan with a name for nothing is refused");
    assert_eq!(zed.order().len(), 1);
    assert_eq!(crew.person_on(&place.open(), "amp").order().len(), 1);
    Verdict::Held
}

/// Changes a task and makes another.
fn spoil(tx: &mut dyn Tx, task: &Task) -> Result<(), StoreError> {
    let changed = Task { revision: task.revision + 1, parked: true, ..task.clone() };
    tx.append(&Change { kind: Kind::Changed, task: changed, note: None }, &Author::default())?;
    let id = tx.mint(1)?.remove(0);
    let made = Task { id, revision: 1, ..task.clone() };
    tx.append(&Change { kind: Kind::Created, task: made, note: None }, &Author::default())?;
    Ok(())
}

/// A body that spoils a task and ends badly leaves everything as it was, also a session that it wrote.
#[track_caller]
fn check_undone(place: &dyn StorePlace, end: fn() -> Result<(), Abort>) {
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let id = zed.add("as it was");
    let before = zed.everything();
    let spoilt = catch_unwind(AssertUnwindSafe(|| {
        write_with(&*crew.store, Some(&crew.list), |tx| {
            let task = tx.task(&id)?.expect("the task is there");
            let mut session = tx.session(&zed.name)?.expect("a session is there");
            session.context = "spoilt".to_owned();
            tx.put_session(&session)?;
            spoil(tx, &task)?;
            end()
        })
    }));
    assert!(!matches!(spoilt, Ok(Ok(()))), "the body ends badly");
    assert_eq!(zed.everything(), before);
    assert_eq!(crew.person_on(&place.open(), "amp").order(), [id], "nothing is there for others");
    let sessions = zed.engine.sessions().expect("sessions");
    assert!(sessions.iter().all(|session| session.context.is_empty()), "{sessions:?}");
    zed.add("the next is kept");
    assert_eq!(zed.order().len(), 2);
}

pub(super) fn a_failed_body_leaves_no_trace(place: &dyn StorePlace) -> Verdict {
    check_undone(place, || Err(StoreError::Moved { store: "a test".to_owned() }.into()));
    Verdict::Held
}

pub(super) fn a_body_that_panicked_leaves_no_trace(place: &dyn StorePlace) -> Verdict {
    check_undone(place, || std::panic::resume_unwind(Box::new("a panic on purpose")));
    Verdict::Held
}

pub(super) fn a_body_sees_what_it_wrote(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let id = crew.person("zed").add("task");
    let written = write_with(&*crew.store, Some(&crew.list), |tx| {
        let task = tx.task(&id)?.expect("the task is there");
        spoil(tx, &task)?;
        let seen = tx.task(&id)?.expect("the task is there");
        assert!(seen.parked && seen.revision == task.revision + 1, "{seen:?}");
        assert_eq!(tx.list(&crew.list)?.expect("the list is there").live, 2);
        Ok(tx.history(&id, None, 10)?.len())
    });
    assert_eq!(written.expect("nothing is wrong"), 2);
    Verdict::Held
}
