//! Races: threads and processes that write at the same time.

use std::collections::BTreeSet;

use serde_json::json;
use taskbus_core::id::TaskId;

use super::super::jobs::Worker;
use super::{RowPlace, RowStore, Verdict, add_one, counted, handles, ids, put_counter, put_new, snapshot};

const WRITERS: usize = 4;
const TIMES: usize = 10;

/// What is missing when no other process can open the store.
const PROCESSES: Verdict = Verdict::NotApplicable("other processes that can open the store");

pub(super) fn ids_given_at_once_do_not_collide(place: &dyn RowPlace) -> Verdict {
    let handles = handles(place, WRITERS);
    let given: Vec<TaskId> = std::thread::scope(|scope| {
        let put_some = |store: &dyn RowStore| (0..TIMES).map(|_| put_new(store)).collect::<Vec<_>>();
        let writers: Vec<_> = handles.iter().map(|store| scope.spawn(move || put_some(&**store))).collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer ends well")).collect()
    });
    check_given(place, given);
    Verdict::Held
}

#[track_caller]
fn check_given(place: &dyn RowPlace, mut given: Vec<TaskId>) {
    let distinct: BTreeSet<TaskId> = given.iter().cloned().collect();
    assert_eq!(distinct.len(), given.len(), "an id was given twice");
    given.sort();
    let mut there = ids(&snapshot(&*place.open()).live);
    there.sort();
    assert_eq!(there, given, "every acknowledged row is there, and no other");
}

pub(super) fn no_update_is_lost_between_threads(place: &dyn RowPlace) -> Verdict {
    let handles = handles(place, WRITERS);
    put_counter(&*handles[0]);
    std::thread::scope(|scope| {
        for store in &handles {
            scope.spawn(move || (0..TIMES).for_each(|_| add_one(&**store)));
        }
    });
    assert_eq!(counted(&*place.open()), json!(WRITERS * TIMES));
    Verdict::Held
}

pub(super) fn no_update_is_lost_between_processes(place: &dyn RowPlace) -> Verdict {
    let Some(workers) = workers(place, "count") else { return PROCESSES };
    for worker in workers {
        worker.finish();
    }
    assert_eq!(counted(&*place.open()), json!(WRITERS * TIMES));
    Verdict::Held
}

pub(super) fn ids_given_by_processes_do_not_collide(place: &dyn RowPlace) -> Verdict {
    let Some(workers) = workers(place, "put") else { return PROCESSES };
    let given = workers.into_iter().flat_map(Worker::finish).map(|id| id.parse().expect("an id"));
    let counter = ids(&snapshot(&*place.open()).live)[0].clone();
    check_given(place, given.chain([counter]).collect());
    Verdict::Held
}

/// Processes that all do the same job on a store with a counter.
fn workers(place: &dyn RowPlace, job: &str) -> Option<Vec<Worker>> {
    place.command()?;
    put_counter(&*place.open());
    let start = || Some(Worker::start(place.command()?, &format!("{job} {TIMES}")));
    (0..WRITERS).map(|_| start()).collect()
}
