//! The limits of the engine, at the limit and one past it, as they are by default. (Those of a single task are in
//! the core's own tests; nobody waits for the longest wait here.)

use taskbus::answer::Answer;
use taskbus::core::command::{Command, Draft, Patch, Planned};
use taskbus::core::limits;
use taskbus::core::name::ListName;
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::refusal::{Conflict, Refusal};
use taskbus::core::text::{Note, Subject};
use taskbus::engine::{ListAsk, Registration, Request, Span};

use crate::support::{Person, on_every_store, refusal, wish};

fn draft(subject: &str) -> Draft {
    Draft::new(Subject::new(subject).unwrap())
}

fn plan(person: &Person, tasks: usize) {
    let task = Planned { key: None, draft: draft("one of many"), parent: None, blocked_by: Vec::new(), done: false };
    person.send(Command::Plan(vec![task; tasks]), None).unwrap();
}

fn rows(person: &Person, limit: Option<usize>) -> usize {
    person.page(&ListAsk { limit, ..ListAsk::default() }).tasks.len()
}

on_every_store! {
    fn a_context_has_a_limit(place) {
        let zed = place.person("Zed");
        let with = |bytes| Registration { context: "c".repeat(bytes), ..wish("Zed", Span::Heartbeat) };
        assert!(zed.engine.register(&with(limits::CONTEXT_BYTES_MAX)).is_ok());
        assert_eq!(refusal(zed.engine.register(&with(limits::CONTEXT_BYTES_MAX + 1))).code(), "validation");
    }

    fn a_page_has_a_default_and_a_limit(place) {
        let zed = place.person("Zed");
        plan(&zed, limits::PAGE_ROWS_MAX + 1);
        assert_eq!(rows(&zed, None), limits::PAGE_ROWS_DEFAULT);
        assert_eq!(rows(&zed, Some(limits::PAGE_ROWS_MAX)), limits::PAGE_ROWS_MAX);
        let ask = ListAsk { limit: Some(limits::PAGE_ROWS_MAX + 1), ..ListAsk::default() };
        assert_eq!(refusal(zed.engine.list(Some(&zed.name), &crate::support::list(), &ask)).code(), "validation");
    }

    fn a_session_outlives_two_missed_heartbeats_and_then_expires(place) {
        let beats = i64::try_from(limits::HEARTBEAT_MS).unwrap();
        assert!(2 * beats < limits::SESSION_EXPIRY_MS);
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("held");
        zed.claim(&id).unwrap();
        place.clock.advance(limits::SESSION_EXPIRY_MS - 1);
        amp.engine.heartbeat().unwrap();
        assert!(amp.claim(&id).is_err());
        place.clock.advance(1);
        amp.claim(&id).unwrap();
    }

    fn a_receipt_answers_for_so_many_minutes(place) {
        let zed = place.person("Zed");
        let create = || Command::Create(Box::new(draft("keyed")));
        let first = zed.send(create(), Some("k")).unwrap();
        place.clock.advance(limits::RECEIPT_MINUTES * 60_000 - 1);
        assert_eq!(zed.send(create(), Some("k")).unwrap(), first);
        place.clock.advance(1);
        assert_ne!(zed.send(create(), Some("k")).unwrap(), first);
    }

    fn so_many_writes_pass_at_once(place) {
        let zed = place.person("Zed");
        (0..limits::WRITES_PER_SECOND).for_each(|_| { zed.create("quick"); });
        let late = zed.send(Command::Create(Box::new(draft("late"))), None);
        assert!(matches!(refusal(late), Refusal::RateLimited { .. }));
    }

    fn so_many_bytes_pass_at_once(place) {
        let zed = place.person("Zed");
        let id = zed.create("noted");
        let kib = limits::NOTE_BYTES_MAX as u32 / 1024;
        let note = || Patch { note: Some(Note::new("n".repeat(limits::NOTE_BYTES_MAX)).unwrap()), ..Patch::default() };
        let passed = (0..2 * limits::WRITE_KIB_PER_SECOND / kib).take_while(|_| zed.update(&id, note()).is_ok()).count();
        let full = (limits::WRITE_KIB_PER_SECOND / kib) as usize;
        assert!((full - 1..=full + 1).contains(&passed), "{passed} notes of {kib} KiB");
    }

    fn a_task_of_a_plan_is_reclaimed_so_often_before_it_is_parked(place) {
        let zed = place.person("Zed");
        let rules = ListRules { max_reclaims: limits::PLAN_MAX_RECLAIMS, ..ListRules::default() };
        let list = ListName::new("tasks/plan").unwrap();
        zed.engine.create_list(&zed.name, &list, rules).unwrap();
        let send = |command| zed.engine.execute(&Request { list: Some(list.clone()), ..zed.request(command, None) });
        let Answer::Created(task) = send(Command::Create(Box::new(draft("fragile")))).unwrap() else { panic!() };
        for reclaims in 0..=limits::PLAN_MAX_RECLAIMS {
            assert!(!zed.get(&task.id).task.parked, "after {reclaims} reclaims");
            zed.claim_for(&task.id, 1).unwrap();
            place.clock.advance(1_000);
        }
        assert!(zed.get(&task.id).task.parked);
    }

    fn a_refusal_names_so_many_tasks_and_counts_the_rest(place) {
        let zed = place.person("Zed");
        let parent = zed.create("parent");
        let children = limits::IDS_SHOWN_MAX + 1;
        for _ in 0..children {
            zed.draft(Draft { parent: Some(parent.clone()), ..draft("child") });
        }
        let refused = refusal(zed.update(&parent, Patch::delete()));
        assert!(matches!(&refused, Refusal::Conflict(Conflict::Children { children, .. }) if children.len() >= limits::IDS_SHOWN_MAX));
        assert!(refused.to_string().len() <= limits::ERROR_BYTES_MAX, "{refused}");
    }
}
