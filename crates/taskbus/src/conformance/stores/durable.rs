//! Hearing of what others did, through the store.

use std::time::{Duration, Instant};

use taskbus_core::command::Command;

use super::{Crew, StorePlace, Verdict};
use crate::answer::Answer;
use crate::engine::Request;

/// Longer than any wake-up may take.
const LONG: Duration = Duration::from_secs(40);

pub(super) fn the_version_differs_after_a_change_by_anybody(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let id = zed.add("task");
    let mut seen = vec![crew.store.version().expect("a version")];
    for step in 0..4 {
        match step {
            0 => drop(amp.claim(&id).expect("a task can be claimed")),
            1 => drop(amp.complete(&id).expect("a task can be completed")),
            2 => drop(amp.add("another")),
            _ => drop(zed.add("a third")),
        }
        let now = crew.store.version().expect("a version");
        assert!(!seen.contains(&now), "the version is {now} again after step {step}");
        seen.push(now);
    }
    Verdict::Held
}

pub(super) fn who_waits_for_work_gets_it_when_it_comes(place: &dyn StorePlace) -> Verdict {
    let crew = Crew::at(place);
    let (zed, amp) = (crew.person("zed"), crew.person_on(&place.open(), "amp"));
    let command = Command::Next(Box::default());
    let request = Request { caller: amp.name.clone(), list: Some(crew.list.clone()), command, key: None };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let since = Instant::now();
            (amp.engine.next_waiting(&request, LONG, &|| false), since.elapsed())
        });
        let id = zed.add("work");
        let (answer, waited) = waiter.join().expect("the waiter ends");
        let Ok(Answer::Next(taken)) = answer else { panic!("next answers: {answer:?}") };
        assert_eq!(taken.tasks.iter().map(|task| &task.id).collect::<Vec<_>>(), [&id]);
        assert!(waited < LONG / 2, "work was there for {waited:?}");
    });
    Verdict::Held
}
