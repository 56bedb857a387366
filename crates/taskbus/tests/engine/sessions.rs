//! Names and who holds them.

use taskbus::core::command::Patch;
use taskbus::core::limits::IDS_SHOWN_MAX;
use taskbus::core::refusal::{Conflict, NotRegistered, Refusal};
use taskbus::engine::{Engine, Limits, Registration, Span};
use taskbus::store::Harness;

use crate::support::{held_by, holder, on_every_store, race, refusal, sqlite, wish};

/// So many names one process takes.
const HOARD: usize = 10_000;

fn name(engine: &Engine, wished: &str) -> String {
    engine.register(&wish(wished, Span::Heartbeat)).unwrap().name.to_string()
}

fn child(engine: &Engine, wished: &str, parent: &str) -> String {
    let parent = Some(parent.to_owned());
    engine.register(&Registration { parent, ..wish(wished, Span::Heartbeat) }).unwrap().name.to_string()
}

on_every_store! {
    fn names_get_suffixes_across_processes_only(place) {
        let (a, b, c) =
            (place.engine(Limits::default()), place.engine(Limits::default()), place.engine(Limits::default()));
        assert_eq!([name(&a, "Zed"), name(&b, "Zed"), name(&c, "Zed")], ["Zed", "Zed2", "Zed3"]);
        assert_eq!([name(&a, "Zed"), name(&b, "Zed")], ["Zed", "Zed2"]);
        assert_eq!([child(&a, "x", "P"), child(&b, "x", "P")], ["P/x", "P/x-2"]);
        let again = a.register(&wish("Zed", Span::Heartbeat)).unwrap();
        assert!(again.resumed);
        assert_eq!(again.others.len(), 4);
    }

    fn a_name_is_free_thirty_seconds_after_its_last_heartbeat(place) {
        place.person("Zed");
        place.clock.advance(29_999);
        assert_eq!(name(&place.engine(Limits::default()), "Zed"), "Zed2");
        place.clock.advance(1);
        assert_eq!(name(&place.engine(Limits::default()), "Zed"), "Zed");
    }

    fn names_taken_at_the_same_moment_differ(place) {
        let (a, b) = (place.engine(Limits::default()), place.engine(Limits::default()));
        let (x, y) = race(|| name(&a, "Zed"), || name(&b, "Zed"));
        let mut names = [x, y];
        names.sort();
        assert_eq!(names, ["Zed", "Zed2"]);
    }

    fn bad_names_contexts_and_parents_are_refused(place) {
        let engine = place.engine(Limits::default());
        let wishes = [
            wish(&"x".repeat(129), Span::Heartbeat),
            wish("a/b", Span::Heartbeat),
            wish("a\nb", Span::Heartbeat),
            wish("", Span::Heartbeat),
            Registration { context: "c".repeat(1025), ..wish("Zed", Span::Heartbeat) },
            Registration { parent: Some("p".repeat(513)), ..wish("Zed", Span::Heartbeat) },
            Registration { parent: Some("a\u{7}".to_owned()), ..wish("Zed", Span::Heartbeat) },
        ];
        for wish in wishes {
            assert_eq!(refusal(engine.register(&wish)).code(), "validation", "{wish:?}");
        }
        assert!(engine.sessions().unwrap().is_empty());
        let odd = Registration { client: format!("cli\u{1b}ent {}", "é".repeat(100)), ..wish("Zed", Span::Heartbeat) };
        engine.register(&odd).unwrap();
        let said = engine.sessions().unwrap().remove(0).client;
        assert!(said.len() <= 128 && said.starts_with("client é"), "{said}");
    }

    fn a_stranger_is_not_registered(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("private");
        let mut posing = amp.clone();
        posing.name = zed.name.clone();
        let refused = refusal(posing.claim(&id));
        assert!(matches!(refused, Refusal::NotRegistered(NotRegistered::Never { .. })));
        assert!(refusal(posing.engine.get(Some(&zed.name), &id, false)).code() == "not_registered");
    }

    fn who_is_silent_too_long_loses_the_name_and_everything_held_under_it(place) {
        let zed = place.person("Zed");
        let (bare, leased) = (zed.create("bare"), zed.create("leased"));
        zed.claim(&bare).unwrap();
        let fence = zed.claim_for(&leased, 3600).unwrap().task.fence;
        place.clock.advance(30_000);
        let new = place.person("Zed");
        assert_eq!(new.name.as_str(), "Zed");
        for id in [&bare, &leased] {
            assert_eq!(held_by(&new.get(id).task), ("pending", None));
            assert_eq!(place.kinds(id), ["", "", "reclaimed"]);
        }
        new.claim(&leased).unwrap();
        let late = Patch { fence: Some(fence), ..Patch::complete(None) };
        let lost = refusal(zed.update(&leased, late));
        assert!(matches!(lost, Refusal::NotRegistered(NotRegistered::TakenOver { .. })), "{lost}");
        assert_eq!(zed.engine.heartbeat().unwrap(), 0);
        assert!(refusal(zed.engine.get(Some(&zed.name), &bare, false)).code() == "not_registered");
    }

    fn a_process_that_slept_finds_its_name_and_its_tasks_again(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("slept over");
        zed.claim(&id).unwrap();
        place.clock.advance(7_200_000);
        assert_eq!(held_by(&zed.get(&id).task), ("in_progress", Some("Zed")));
        amp.engine.heartbeat().unwrap();
        assert_eq!(holder(amp.claim(&id)), "Zed");
        place.clock.advance(7_200_000);
        zed.complete(&id).unwrap();
    }

    fn a_clean_end_frees_the_name_and_its_tasks_at_once(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("left behind");
        zed.claim(&id).unwrap();
        zed.engine.close().unwrap();
        assert_eq!(amp.engine.sessions().unwrap().len(), 1);
        amp.claim(&id).unwrap();
        assert_eq!(refusal(zed.claim(&id)).code(), "not_registered");
        assert_eq!(place.person("Zed").name.as_str(), "Zed");
    }

    fn commands_of_one_name_share_it_and_what_it_holds(place) {
        let first = place.command("Poe");
        place.person("Zed");
        let id = first.create("by hand");
        first.claim_for(&id, 3600).unwrap();
        place.clock.advance(60_000);
        let second = place.command("Poe");
        place.clock.advance(3_539_000);
        let amp = place.person("Amp");
        assert_eq!(holder(amp.claim(&id)), "Poe");
        assert_eq!((second.name.as_str(), place.kinds(&id).len()), ("Poe", 2));
        second.complete(&id).unwrap();
    }

    fn a_command_that_never_comes_back_gives_its_task_back_with_its_lease(place) {
        let first = place.command("Poe");
        let amp = place.person("Amp");
        let id = first.create("by hand");
        first.claim_for(&id, 60).unwrap();
        place.clock.advance(60_000);
        amp.engine.heartbeat().unwrap();
        amp.claim(&id).unwrap();
        assert_eq!(place.kinds(&id), ["", "", "reclaimed", ""]);
    }

    fn a_command_does_not_take_the_name_of_a_running_agent(place) {
        let zed = place.person("Zed");
        let held = refusal(place.engine(Limits::default()).register(&wish("Zed", Span::Command)));
        assert!(matches!(held, Refusal::Conflict(Conflict::NameHeld { .. })), "{held}");
        let id = zed.create("kept");
        zed.claim(&id).unwrap();
        place.clock.advance(30_000);
        let poe = place.command("Zed");
        assert_eq!(held_by(&poe.get(&id).task), ("pending", None));
        assert_eq!(place.person("Zed").name.as_str(), "Zed2");
    }

    fn a_hook_finds_the_name_that_its_agent_registered_last(place) {
        let engine = place.engine(Limits::default());
        let ours = Harness { pid: 7, start: 100 };
        let register = |name, parent: Option<&str>, harness| {
            place.clock.advance(1);
            let parent = parent.map(str::to_owned);
            engine.register(&Registration { parent, harness, ..wish(name, Span::Heartbeat) }).unwrap();
        };
        assert_eq!(engine.session_of_harness(ours).unwrap(), None);
        register("Zed", None, Some(ours));
        register("Amp", None, Some(ours));
        register("child", Some("Amp"), Some(ours));
        register("Roo", None, Some(Harness { pid: 7, start: 101 }));
        register("Jan", None, None);
        let found = |harness| engine.session_of_harness(harness).unwrap().map(String::from);
        assert_eq!(found(ours).as_deref(), Some("Amp"), "not the child, not another process of that id");
        assert_eq!(found(Harness { pid: 7, start: 0 }).as_deref(), Some("Roo"), "without a start the id decides");
        assert_eq!(found(Harness { pid: 8, start: 0 }), None);
        place.clock.advance(30_001);
        assert_eq!(found(ours), None);
    }
}

/// Whoever hoards sessions is in nobody's way, and thirty seconds after the last heartbeat their names are free.
#[test]
fn ten_thousand_sessions_keep_nobody_from_working() {
    let place = sqlite();
    let hoard = place.engine(Limits::default());
    for number in 0..HOARD {
        hoard.register_name(&wish(&format!("Amp{number}x"), Span::Heartbeat)).unwrap();
    }
    let zed = place.person("Zed");
    let look = zed.engine.register(&wish("Zed", Span::Heartbeat)).unwrap();
    assert_eq!((look.resumed, look.others.len()), (true, IDS_SHOWN_MAX), "a look around stays short");
    let task = zed.create("Do it");
    zed.claim(&task).unwrap();
    zed.complete(&task).unwrap();
    assert_eq!(hoard.heartbeat().unwrap(), HOARD);
    assert_eq!(zed.engine.sessions().unwrap().len(), HOARD + 1);
    place.silence_all_but(&[&zed]);
    assert_eq!(zed.engine.sessions().unwrap().len(), 1);
    assert_eq!(name(&place.engine(Limits::default()), "Amp7x"), "Amp7x", "a name is free again");
    place.clock.advance(25 * 60 * 60 * 1000);
    zed.engine.heartbeat().unwrap();
    assert_eq!(zed.engine.tick().unwrap().sessions, HOARD, "a day later nothing is kept of them");
}
