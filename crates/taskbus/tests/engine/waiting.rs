//! Waiting for work: woken by others, by time, or not at all, and never by writing.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use taskbus::answer::Taken;
use taskbus::core::command::{Command, Finish, LeaseAsk, Next, Patch};
use taskbus::core::task::Status;

use crate::support::{Person, Watched, on_every_store, taken};

const LONG: Duration = Duration::from_secs(40);
const SHORT: Duration = Duration::from_millis(30);
/// A look every second, and what a busy machine adds to that.
const SOON: Duration = Duration::from_secs(3);

fn wait(person: &Person, next: Next, key: Option<&str>, wait: Duration) -> Taken {
    let request = person.request(Command::Next(Box::new(next)), key);
    taken(person.engine.next_waiting(&request, wait, &|| false).unwrap())
}

/// A wait asks whether it is cancelled after its first look, before it sleeps, and when it is about to.
const BEGINS: u32 = 1;
const SLEEPS: u32 = 3;

/// Waits in another thread, runs `f` when it does, and gives what came of it.
fn while_waiting(person: &Person, next: Next, f: impl FnOnce()) -> Taken {
    once_asked(BEGINS, person, next, f)
}

fn once_asked(times: u32, person: &Person, next: Next, f: impl FnOnce()) -> Taken {
    let asked = AtomicU32::new(0);
    let request = person.request(Command::Next(Box::new(next)), None);
    let seen = || {
        asked.fetch_add(1, Ordering::SeqCst);
        false
    };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| person.engine.next_waiting(&request, LONG, &seen));
        let deadline = Instant::now() + LONG;
        while asked.load(Ordering::SeqCst) < times {
            assert!(Instant::now() < deadline, "it never waited");
            std::thread::yield_now();
        }
        f();
        taken(waiter.join().unwrap().unwrap())
    })
}

on_every_store! {
    fn a_waiter_gets_what_another_creates(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let start = Instant::now();
        let taken = while_waiting(&amp, Next::default(), || drop(zed.create("at last")));
        assert_eq!(taken.tasks[0].subject.as_str(), "at last");
        assert!(start.elapsed() < LONG / 2);
    }

    fn a_waiter_whose_notice_is_lost_gets_it_within_a_second(place) {
        let mut place = place;
        Watched::over(&mut place).deafen();
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let mut written = Instant::now();
        let taken = once_asked(SLEEPS, &amp, Next::default(), || {
            zed.create("at last");
            written = Instant::now();
        });
        assert_eq!(taken.tasks[0].subject.as_str(), "at last");
        assert!(written.elapsed() < SOON, "{:?}", written.elapsed());
    }

    fn a_waiter_gets_what_another_lets_lapse(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("lapsing");
        zed.claim_for(&id, 20).unwrap();
        let taken = while_waiting(&amp, Next::default(), || place.clock.advance(20_000));
        assert_eq!(taken.tasks[0].id, id);
    }

    fn a_wait_that_finds_nothing_says_why_and_writes_nothing(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("taken");
        zed.claim(&id).unwrap();
        let seq = place.latest_seq();
        let writes = watched.writes_during(|| {
            let idle = wait(&amp, Next::default(), None, SHORT).idle.unwrap();
            assert_eq!((idle.in_progress, idle.holders.len()), (1, 1));
        });
        assert_eq!((writes, place.latest_seq()), (2, seq), "the first try and the last");
    }

    fn a_cancelled_wait_takes_nothing(place) {
        let zed = place.person("Zed");
        let request = zed.request(Command::Next(Box::default()), None);
        let asked = AtomicBool::new(false);
        let cancelled = || {
            if !asked.swap(true, Ordering::SeqCst) {
                zed.create("too late");
            }
            true
        };
        let taken = taken(zed.engine.next_waiting(&request, LONG, &cancelled).unwrap());
        assert!(taken.tasks.is_empty() && taken.idle.is_some());
        assert_eq!(zed.engine.tally(&crate::support::list()).unwrap().ready, 1);
    }

    fn what_was_completed_before_waiting_is_told_with_what_is_taken_after(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = amp.create("first");
        amp.claim(&id).unwrap();
        let finish = Finish { id: id.clone(), result: None, fence: None };
        let next = Next { complete: Some(finish), lease: Some(LeaseAsk::Seconds(60)), ..Next::default() };
        let taken = while_waiting(&amp, next, || drop(zed.create("second")));
        assert_eq!(taken.tasks[0].subject.as_str(), "second");
        assert_eq!(taken.completed.unwrap().task.id, id);
        assert_eq!(place.kinds(&id).len(), 3);
    }

    fn what_was_completed_before_waiting_is_not_completed_again(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = amp.create("reopened");
        amp.claim(&id).unwrap();
        let finish = Finish { id: id.clone(), result: None, fence: None };
        let next = Next { complete: Some(finish), ..Next::default() };
        let reopen = Patch { status: Some(Status::Pending), ..Patch::default() };
        let taken = while_waiting(&amp, next, || drop(zed.update(&id, reopen).unwrap()));
        assert_eq!(taken.tasks[0].id, id);
        assert_eq!(amp.get(&id).task.status, Status::InProgress);
    }

    fn a_key_keeps_only_the_last_answer_of_a_wait(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let request = amp.request(Command::Next(Box::default()), Some("k"));
        let cancelled = amp.engine.next_waiting(&request, LONG, &|| true).unwrap();
        assert!(taken(cancelled).idle.is_some());
        let id = zed.create("found by the repeated call");
        let found = wait(&amp, Next::default(), Some("k"), SHORT);
        assert_eq!(found.tasks[0].id, id);
        assert_eq!(wait(&amp, Next::default(), Some("k"), SHORT), found);
        let nothing = wait(&amp, Next::default(), Some("l"), SHORT);
        assert!(nothing.idle.is_some());
        zed.create("later");
        assert_eq!(wait(&amp, Next::default(), Some("l"), SHORT), nothing);
    }
}
