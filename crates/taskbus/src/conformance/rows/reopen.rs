//! Reopening: after an end, after a crash.

use std::collections::BTreeSet;

use taskbus_core::id::TaskId;

use super::super::jobs::Worker;
use super::{RowPlace, Verdict, delete, put, put_new, snapshot};

const GONE: Verdict = Verdict::NotApplicable("a store that outlives its process");

pub(super) fn the_rows_are_the_same(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    if !store.abilities().durable {
        return GONE;
    }
    let made: Vec<_> = (0..5).map(|at| put(&*store, &format!("row {at}"))).collect();
    delete(&*store, &made[2].id);
    let before = snapshot(&*store);
    drop(store);
    for _ in 0..2 {
        assert_eq!(snapshot(&*place.open()), before);
    }
    Verdict::Held
}

pub(super) fn no_id_is_given_again(place: &dyn RowPlace) -> Verdict {
    check_fresh(place, false)
}

pub(super) fn no_id_is_given_again_when_all_rows_are_deleted(place: &dyn RowPlace) -> Verdict {
    check_fresh(place, true)
}

fn check_fresh(place: &dyn RowPlace, deleted: bool) -> Verdict {
    if !place.open().abilities().durable {
        return GONE;
    }
    let mut seen: BTreeSet<TaskId> = BTreeSet::new();
    for _ in 0..4 {
        let store = place.open();
        for id in [put_new(&*store), put_new(&*store)] {
            assert!(seen.last().is_none_or(|last| *last < id), "{id} was given after {seen:?} and a reopening");
            seen.insert(id.clone());
            assert!(!deleted || delete(&*store, &id), "the row was there");
        }
    }
    Verdict::Held
}

pub(super) fn a_killed_process_loses_nothing_and_leaves_no_half(place: &dyn RowPlace) -> Verdict {
    let mut acknowledged: BTreeSet<TaskId> = BTreeSet::new();
    for rounds in 1..=4 {
        let Some(command) = place.command() else {
            return Verdict::NotApplicable("other processes that can open the store");
        };
        let mut worker = Worker::start(command, "put 1000000");
        let first: Vec<String> = (0..3 * rounds).map(|_| worker.next().expect("a row is acknowledged")).collect();
        for id in first.into_iter().chain(worker.kill()) {
            let id: TaskId = id.parse().expect("an id");
            assert!(acknowledged.insert(id.clone()), "{id} was given twice");
        }
        let there: BTreeSet<TaskId> = snapshot(&*place.open()).live.into_iter().map(|task| task.id).collect();
        assert!(there.is_superset(&acknowledged), "acknowledged and lost: {:?}", acknowledged.difference(&there));
        acknowledged = there;
    }
    Verdict::Held
}
