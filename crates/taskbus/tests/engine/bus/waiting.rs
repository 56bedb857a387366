//! Waiting for messages: woken by others, never by writing; not too long, and not in vain for ever.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use taskbus::core::bus::receive::Received;
use taskbus::core::bus::rules::Start;
use taskbus::core::limits;
use taskbus::core::refusal::{Invalid, Refusal};
use taskbus::engine::{Error, ReceiveAsk};

use super::{contents, waiting};
use crate::support::{Person, Watched, on_every_store, refusal};

const LONG: Duration = Duration::from_secs(40);
const SHORT: Duration = Duration::from_millis(20);

/// Receives in another thread, runs `f` while it waits, and gives what came of it.
fn while_waiting(person: &Person, ask: &ReceiveAsk, f: impl FnOnce()) -> Result<Received, Error> {
    let is_waiting = AtomicBool::new(false);
    let seen = || {
        is_waiting.store(true, Ordering::SeqCst);
        false
    };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| person.engine.receive(&person.name, ask, &seen));
        let deadline = Instant::now() + LONG;
        while !is_waiting.load(Ordering::SeqCst) {
            assert!(Instant::now() < deadline, "it never waited");
            std::thread::yield_now();
        }
        f();
        waiter.join().unwrap()
    })
}

on_every_store! {
    fn a_waiting_call_returns_when_somebody_sends(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        let start = Instant::now();
        let received = while_waiting(&amp, &waiting(LONG), || {
            zed.say("general", "at last");
        }).unwrap();
        assert_eq!(contents(&received), ["at last"]);
        assert!(start.elapsed() < LONG / 2);
    }

    fn a_wait_in_vain_ends_in_time_and_writes_nothing(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let amp = place.person("Amp");
        amp.follow("general", Start::Now).unwrap();
        let start = Instant::now();
        let writes = watched.writes_during(|| {
            assert_eq!(amp.receive(&waiting(SHORT)).unwrap(), Received::default());
        });
        assert_eq!(writes, 0);
        assert!(start.elapsed() >= SHORT);
    }

    fn a_wait_that_is_too_long_is_refused_at_once(place) {
        let amp = place.person("Amp");
        let max = Duration::from_secs(limits::WAIT_SECONDS_MAX);
        let start = Instant::now();
        let refused = refusal(amp.receive(&waiting(max + Duration::from_secs(1))));
        assert!(matches!(refused, Refusal::Invalid(Invalid::WaitTooLong { given: 51, max: 50 })));
        assert!(refused.to_string().contains("taskbus wait"));
        assert!(start.elapsed() < max / 2);
    }

    fn waiting_in_vain_again_and_again_is_refused_until_something_comes(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        for _ in 1..limits::EMPTY_POLLS_MAX {
            assert!(!amp.receive(&waiting(SHORT)).unwrap().is_news());
            assert!(!amp.all().is_news(), "a call that does not wait does not count");
        }
        let start = Instant::now();
        let refused = refusal(amp.receive(&waiting(SHORT)));
        assert!(start.elapsed() >= SHORT, "after its time");
        assert_eq!((refused.code(), refused.retryable()), ("polling", false));
        assert!(refused.to_string().contains("taskbus wait"));
        assert_eq!(refusal(amp.receive(&waiting(SHORT))).code(), "polling");
        let watcher = ReceiveAsk { exempt_from_polling: true, ..waiting(SHORT) };
        amp.receive(&watcher).unwrap();
        zed.say("general", "x");
        let batch = amp.receive(&waiting(SHORT)).unwrap();
        amp.ack(&batch);
        assert!(!amp.receive(&waiting(SHORT)).unwrap().is_news());
    }

    fn a_stale_acknowledgement_is_told_after_the_wait_too(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        let stale = ReceiveAsk { ack: Some("never handed out".to_owned()), ..waiting(LONG) };
        let received = while_waiting(&amp, &stale, || {
            zed.say("general", "x");
        }).unwrap();
        assert!(received.ack_ignored && contents(&received) == ["x"]);
    }

    fn a_cancelled_wait_ends_at_once(place) {
        let amp = place.person("Amp");
        let cancel = AtomicBool::new(false);
        let start = Instant::now();
        let cancelled = || cancel.swap(true, Ordering::SeqCst);
        assert_eq!(amp.engine.receive(&amp.name, &waiting(LONG), &cancelled).unwrap(), Received::default());
        assert!(start.elapsed() < LONG / 4);
    }

    fn who_loses_the_name_while_waiting_is_told(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        let received = while_waiting(&amp, &waiting(LONG), || {
            place.silence_all_but(&[&zed]);
            place.person("Amp");
        });
        assert_eq!(refusal(received).code(), "not_registered");
    }
}
