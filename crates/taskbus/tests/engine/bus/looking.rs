//! Looking for what is unread without a trace, for hooks and for a wait in the background.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use taskbus::core::bus::peek::PeekAsk;
use taskbus::core::bus::rules::Start;
use taskbus::core::name::Identity;
use taskbus::engine::{Limits, ReceiveAsk};

use super::{contents, name};
use crate::support::{Watched, on_every_store, refusal};

const LONG: Duration = Duration::from_secs(40);
const SHORT: Duration = Duration::from_millis(20);

fn of(channels: &[&str]) -> PeekAsk {
    PeekAsk { channels: channels.iter().map(|text| name(text)).collect(), include_own: false }
}

on_every_store! {
    fn a_look_needs_no_session_and_leaves_no_trace(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        zed.say("general", "one");
        let stranger = place.engine(Limits::default());
        let writes = watched.writes_during(|| {
            let seen = stranger.peek(&amp.name, &of(&[])).unwrap();
            assert_eq!(seen[0].content, "one");
            let woken = stranger.wait_for(&amp.name, &of(&[]), Some(LONG), &mut |_| true, &|| false).unwrap();
            assert_eq!(woken.unwrap()[0].content, "one");
        });
        assert_eq!(writes, 0);
        let batch = amp.all();
        assert_eq!(contents(&batch), ["one"], "it is still new");
        assert!(stranger.peek(&amp.name, &of(&[])).unwrap().is_empty(), "handed out, not acknowledged");
        assert!(amp.all().redelivered);
        amp.ack(&batch);
    }

    fn a_look_without_a_subscription_is_refused(place) {
        let zed = place.person("Zed");
        let nobody = Identity::new("Nobody").unwrap();
        assert_eq!(refusal(zed.engine.peek(&nobody, &of(&[]))).code(), "not_found");
        assert_eq!(refusal(zed.engine.peek(&zed.name, &of(&["general"]))).code(), "not_found");
        let wait = zed.engine.wait_for(&nobody, &of(&[]), Some(LONG), &mut |_| true, &|| false);
        assert_eq!(refusal(wait).code(), "not_found");
    }

    fn a_wait_skips_what_does_not_match_and_asks_about_it_once(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        for n in 0..5 {
            zed.say("general", &format!("dull {n}"));
        }
        let asked = AtomicUsize::new(0);
        let woken = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut matches = |message: &taskbus::core::bus::message::Message| {
                    asked.fetch_add(1, Ordering::SeqCst);
                    message.content.contains("bright")
                };
                amp.engine.wait_for(&amp.name, &of(&[]), None, &mut matches, &|| false)
            });
            let deadline = Instant::now() + LONG;
            while asked.load(Ordering::SeqCst) < 5 {
                assert!(Instant::now() < deadline, "it never looked");
                std::thread::yield_now();
            }
            zed.say("general", "bright");
            waiter.join().unwrap()
        });
        assert_eq!(woken.unwrap().unwrap()[0].content, "bright");
        assert_eq!(asked.load(Ordering::SeqCst), 6);
        assert_eq!(amp.all().messages.len(), 6, "nothing is read by it");
    }

    fn a_wait_ends_with_its_time_or_when_it_is_cancelled(place) {
        let amp = place.person("Amp");
        let wait = |timeout, cancelled: bool| {
            amp.engine.wait_for(&amp.name, &of(&[]), timeout, &mut |_| true, &|| cancelled).unwrap()
        };
        let start = Instant::now();
        assert_eq!(wait(Some(SHORT), false), None);
        assert!(start.elapsed() >= SHORT);
        assert_eq!(wait(None, true), None);
        assert!(start.elapsed() < LONG);
        amp.receive(&ReceiveAsk::default()).unwrap();
    }
}
