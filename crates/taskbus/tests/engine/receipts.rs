//! Keyed calls: the same again answers the same, whatever has happened since.

use taskbus::answer::Answer;
use taskbus::core::command::{Command, Draft, LeaseAsk, Patch};
use taskbus::core::id::TaskId;
use taskbus::core::refusal::{Conflict, Refusal};
use taskbus::core::text::Subject;
use taskbus::engine::{Limits, ListAsk};

use crate::support::{held_by, on_every_store, race, refusal};

fn create(subject: &str) -> Command {
    Command::Create(Box::new(Draft::new(Subject::new(subject).unwrap())))
}

fn created(answer: &Answer) -> TaskId {
    match answer {
        Answer::Created(task) => task.id.clone(),
        other => panic!("not created: {other:?}"),
    }
}

fn reused<T: std::fmt::Debug>(result: Result<T, taskbus::engine::Error>) -> bool {
    matches!(refusal(result), Refusal::Conflict(Conflict::KeyReused { .. }))
}

on_every_store! {
    fn a_keyed_create_makes_one_task(place) {
        let zed = place.person("Zed");
        let first = zed.send(create("once"), Some("k")).unwrap();
        assert_eq!(zed.send(create("once"), Some("k")).unwrap(), first);
        assert_eq!(zed.page(&ListAsk::default()).total, 1);
        assert!(reused(zed.send(create("other"), Some("k"))));
    }

    fn a_key_belongs_to_its_sender(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let first = zed.send(create("mine"), Some("k")).unwrap();
        assert_ne!(created(&amp.send(create("mine"), Some("k")).unwrap()), created(&first));
    }

    fn racing_calls_with_one_key_make_one_task(place) {
        let zed = place.person("Zed");
        for round in 0..20 {
            let (key, subject) = (format!("k{round}"), format!("race {round}"));
            let (a, b) = race(|| zed.send(create(&subject), Some(&key)), || zed.send(create(&subject), Some(&key)));
            assert_eq!(a.unwrap(), b.unwrap());
        }
        assert_eq!(zed.page(&ListAsk::default()).total, 20);
    }

    fn a_claim_is_answered_again_after_the_task_has_gone(place) {
        let zed = place.person("Zed");
        let id = zed.create("short life");
        let claim = Patch::claim(zed.name.clone(), None);
        let first = zed.update_keyed(&id, claim.clone(), Some("claim")).unwrap();
        let deleted = zed.update_keyed(&id, Patch::delete(), Some("delete")).unwrap();
        let seq = place.latest_seq();
        assert_eq!(zed.update_keyed(&id, claim, Some("claim")).unwrap(), first);
        assert_eq!(zed.update_keyed(&id, Patch::delete(), Some("delete")).unwrap(), deleted);
        assert_eq!(place.latest_seq(), seq);
        assert!(reused(zed.update_keyed(&id, Patch::release(), Some("claim"))));
        let longer = Patch::claim(zed.name.clone(), Some(LeaseAsk::Seconds(60)));
        assert!(reused(zed.update_keyed(&id, longer, Some("claim"))));
    }

    fn a_keyed_claim_over_a_dead_owner_is_made_once(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("orphan");
        zed.claim(&id).unwrap();
        place.silence_all_but(&[&amp]);
        let claim = Patch::claim(amp.name.clone(), None);
        let first = amp.update_keyed(&id, claim.clone(), Some("k")).unwrap();
        let again = amp.update_keyed(&id, claim, Some("k")).unwrap();
        assert_eq!(serde_json::to_string(&first).unwrap(), serde_json::to_string(&again).unwrap());
        assert_eq!(place.kinds(&id), ["", "", "reclaimed", ""]);
    }

    fn a_no_op_keeps_its_receipt_and_a_refusal_keeps_none(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("noted");
        let first = zed.update_keyed(&id, Patch::release(), Some("no-op")).unwrap();
        amp.claim(&id).unwrap();
        assert_eq!(zed.update_keyed(&id, Patch::release(), Some("no-op")).unwrap(), first);
        refusal(zed.update_keyed(&id, Patch::complete(None), Some("refused")));
        amp.update(&id, Patch::release()).unwrap();
        let done = zed.update_keyed(&id, Patch::complete(None), Some("refused")).unwrap();
        assert_eq!(held_by(&done.task), ("completed", Some("Zed")));
    }

    fn a_replay_costs_nothing(place) {
        let slow = Limits { writes_per_second: 1, ..Limits::default() };
        let zed = place.person_with("Zed", slow);
        let first = zed.send(create("one"), Some("k")).unwrap();
        let before = zed.engine.store().version().unwrap();
        assert_eq!(zed.send(create("one"), Some("k")).unwrap(), first);
        assert_eq!(zed.engine.store().version().unwrap(), before, "nothing was written");
        assert!(matches!(refusal(zed.send(create("two"), Some("l"))), Refusal::RateLimited { .. }));
    }

    fn receipts_are_forgotten_after_an_hour_and_dropped_by_the_tick(place) {
        let zed = place.person("Zed");
        let first = zed.send(create("again"), Some("k")).unwrap();
        place.clock.advance(60 * 60_000 - 1);
        assert_eq!(zed.send(create("again"), Some("k")).unwrap(), first);
        assert_eq!(zed.engine.tick().unwrap().receipts, 0);
        place.clock.advance(1);
        assert_eq!(zed.engine.tick().unwrap().receipts, 1);
        assert_ne!(created(&zed.send(create("again"), Some("k")).unwrap()), created(&first));
    }
}
