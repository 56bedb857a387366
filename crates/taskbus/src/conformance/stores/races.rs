//! Races of those who work on one list at the same moment.

use std::collections::BTreeSet;
use std::sync::Barrier;

use taskbus_core::command::Patch;
use taskbus_core::id::TaskId;

use super::super::jobs::Worker;
use super::{Crew, Person, StorePlace, Verdict};
use crate::engine::Error;

const MANY: usize = 6;

fn people(place: &dyn StorePlace, crew: &Crew) -> Vec<Person> {
    (0..MANY).map(|at| crew.person_on(&place.open(), &format!("person {at}"))).collect()
}

/// Everybody does the same thing at the same moment.
fn all_at_once<T: Send>(people: &[Person], act: impl Fn(&Person) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(people.len());
    std::thread::scope(|scope| {
        let act = |person| {
            start.wait();
            act(person)
        };
        let runs: Vec<_> = people.iter().map(|person| scope.spawn(move || act(person))).collect();
        runs.into_iter().map(|run| run.join().expect("a thread ends well")).collect()
    })
}

pub(super) fn one_of_many_claims_wins(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    if let Some(lack) = crew.without_owners() {
        return lack;
    }
    let (zed, people) = (crew.person("zed"), people(place, &crew));
    for _ in 0..5 {
        let id = zed.add("wanted");
        let results = all_at_once(&people, |person| person.claim(&id));
        let winners: Vec<_> = results.iter().flatten().filter_map(|written| written.task.owner.clone()).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        assert_eq!(zed.task(&id).owner.as_ref(), winners.first());
        let refused = |result: &&Result<_, Error>| matches!(result, Err(Error::Refused(_)));
        assert_eq!(results.iter().filter(refused).count(), MANY - 1, "the others are told");
    }
    Verdict::Held
}

pub(super) fn tasks_made_at_once_are_all_there(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let people = people(place, &crew);
    let made = all_at_once(&people, |person| (0..5).map(|_| person.add("made")).collect::<Vec<_>>());
    check_all(&crew.person("zed"), made.concat());
    Verdict::Held
}

#[track_caller]
fn check_all(person: &Person, made: Vec<TaskId>) {
    let (count, distinct) = (made.len(), made.into_iter().collect::<BTreeSet<_>>());
    assert_eq!(distinct.len(), count, "an id was given twice");
    assert_eq!(person.order().into_iter().collect::<BTreeSet<_>>(), distinct);
}

pub(super) fn one_of_two_closing_edges_is_refused(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let two = [crew.person_on(&place.open(), "amp"), crew.person_on(&place.open(), "jan")];
    for _ in 0..10 {
        let (a, b) = (zed.add("a"), zed.add("b"));
        let results = all_at_once(&two, |person| {
            let (from, to) = if person.name.as_str() == "amp" { (&a, &b) } else { (&b, &a) };
            person.update(from, Patch { add_blocked_by: vec![to.clone()], ..Patch::default() })
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        let edges = zed.task(&a).blocked_by.len() + zed.task(&b).blocked_by.len();
        assert_eq!(edges, 1, "no cycle");
    }
    Verdict::Held
}

pub(super) fn next_hands_out_each_task_once_to_many(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let (zed, people) = (crew.person("zed"), people(place, &crew));
    let made: BTreeSet<TaskId> = (0..MANY * 3).map(|_| zed.add("work")).collect();
    let taken =
        all_at_once(&people, |person| (0..3).flat_map(|_| person.next().tasks).map(|task| task.id).collect::<Vec<_>>());
    let taken = taken.concat();
    assert_eq!(taken.len(), made.len(), "each once");
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), made);
    Verdict::Held
}

pub(super) fn tasks_made_by_processes_are_all_there(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let start = |_| Some(Worker::start(place.command()?, "add 5"));
    let Some(workers) = (0..MANY).map(start).collect::<Option<Vec<_>>>() else {
        return Verdict::NotApplicable("other processes that can open the store");
    };
    let made = workers.into_iter().flat_map(Worker::finish).map(|id| id.parse().expect("an id"));
    check_all(&zed, made.collect());
    Verdict::Held
}
