//! Names and who holds them.

use taskbus::core::command::Patch;
use taskbus::core::refusal::{Conflict, NotRegistered, Refusal};
use taskbus::engine::{Engine, Limits, Registration, Span};

use crate::support::{held_by, holder, on_every_store, race, refusal, wish};

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
        assert_eq!([name(&a, "Sam"), name(&b, "Sam"), name(&c, "Sam")], ["Sam", "Sam2", "Sam3"]);
        assert_eq!([name(&a, "Sam"), name(&b, "Sam")], ["Sam", "Sam2"]);
        assert_eq!([child(&a, "x", "P"), child(&b, "x", "P")], ["P/x", "P/x-2"]);
        let again = a.register(&wish("Sam", Span::Heartbeat)).unwrap();
        assert!(again.resumed);
        assert_eq!(again.others.len(), 4);
    }

    fn a_name_is_free_thirty_seconds_after_its_last_heartbeat(place) {
        place.person("Sam");
        place.clock.advance(29_999);
        assert_eq!(name(&place.engine(Limits::default()), "Sam"), "Sam2");
        place.clock.advance(1);
        assert_eq!(name(&place.engine(Limits::default()), "Sam"), "Sam");
    }

    fn names_taken_at_the_same_moment_differ(place) {
        let (a, b) = (place.engine(Limits::default()), place.engine(Limits::default()));
        let (x, y) = race(|| name(&a, "Sam"), || name(&b, "Sam"));
        let mut names = [x, y];
        names.sort();
        assert_eq!(names, ["Sam", "Sam2"]);
    }

    fn bad_names_contexts_and_parents_are_refused(place) {
        let engine = place.engine(Limits::default());
        let wishes = [
            wish(&"x".repeat(129), Span::Heartbeat),
            wish("a/b", Span::Heartbeat),
            wish("a\nb", Span::Heartbeat),
            wish("", Span::Heartbeat),
            Registration { context: "c".repeat(1025), ..wish("Sam", Span::Heartbeat) },
            Registration { parent: Some("p".repeat(513)), ..wish("Sam", Span::Heartbeat) },
            Registration { parent: Some("a\u{7}".to_owned()), ..wish("Sam", Span::Heartbeat) },
        ];
        for wish in wishes {
            assert_eq!(refusal(engine.register(&wish)).code(), "validation", "{wish:?}");
        }
        assert!(engine.sessions().unwrap().is_empty());
        let odd = Registration { client: format!("cli\u{1b}ent {}", "é".repeat(100)), ..wish("Sam", Span::Heartbeat) };
        engine.register(&odd).unwrap();
        let said = engine.sessions().unwrap().remove(0).client;
        assert!(said.len() <= 128 && said.starts_with("client é"), "{said}");
    }

    fn a_stranger_is_not_registered(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("private");
        let mut posing = kim.clone();
        posing.name = sam.name.clone();
        let refused = refusal(posing.claim(&id));
        assert!(matches!(refused, Refusal::NotRegistered(NotRegistered::Never { .. })));
        assert!(refusal(posing.engine.get(Some(&sam.name), &id, false)).code() == "not_registered");
    }

    fn who_is_silent_too_long_loses_the_name_and_everything_held_under_it(place) {
        let sam = place.person("Sam");
        let (bare, leased) = (sam.create("bare"), sam.create("leased"));
        sam.claim(&bare).unwrap();
        let fence = sam.claim_for(&leased, 3600).unwrap().task.fence;
        place.clock.advance(30_000);
        let new = place.person("Sam");
        assert_eq!(new.name.as_str(), "Sam");
        for id in [&bare, &leased] {
            assert_eq!(held_by(&new.get(id).task), ("pending", None));
            assert_eq!(place.kinds(id), ["", "", "reclaimed"]);
        }
        new.claim(&leased).unwrap();
        let late = Patch { fence: Some(fence), ..Patch::complete(None) };
        let lost = refusal(sam.update(&leased, late));
        assert!(matches!(lost, Refusal::NotRegistered(NotRegistered::TakenOver { .. })), "{lost}");
        assert_eq!(sam.engine.heartbeat().unwrap(), 0);
        assert!(refusal(sam.engine.get(Some(&sam.name), &bare, false)).code() == "not_registered");
    }

    fn a_process_that_slept_finds_its_name_and_its_tasks_again(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("slept over");
        sam.claim(&id).unwrap();
        place.clock.advance(7_200_000);
        assert_eq!(held_by(&sam.get(&id).task), ("in_progress", Some("Sam")));
        kim.engine.heartbeat().unwrap();
        assert_eq!(holder(kim.claim(&id)), "Sam");
        place.clock.advance(7_200_000);
        sam.complete(&id).unwrap();
    }

    fn a_clean_end_frees_the_name_and_its_tasks_at_once(place) {
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        let id = sam.create("left behind");
        sam.claim(&id).unwrap();
        sam.engine.close().unwrap();
        assert_eq!(kim.engine.sessions().unwrap().len(), 1);
        kim.claim(&id).unwrap();
        assert_eq!(refusal(sam.claim(&id)).code(), "not_registered");
        assert_eq!(place.person("Sam").name.as_str(), "Sam");
    }

    fn commands_of_one_name_share_it_and_what_it_holds(place) {
        let first = place.command("Pat");
        place.person("Sam");
        let id = first.create("by hand");
        first.claim_for(&id, 3600).unwrap();
        place.clock.advance(60_000);
        let second = place.command("Pat");
        place.clock.advance(3_539_000);
        let kim = place.person("Kim");
        assert_eq!(holder(kim.claim(&id)), "Pat");
        assert_eq!((second.name.as_str(), place.kinds(&id).len()), ("Pat", 2));
        second.complete(&id).unwrap();
    }

    fn a_command_that_never_comes_back_gives_its_task_back_with_its_lease(place) {
        let first = place.command("Pat");
        let kim = place.person("Kim");
        let id = first.create("by hand");
        first.claim_for(&id, 60).unwrap();
        place.clock.advance(60_000);
        kim.engine.heartbeat().unwrap();
        kim.claim(&id).unwrap();
        assert_eq!(place.kinds(&id), ["", "", "reclaimed", ""]);
    }

    fn a_command_does_not_take_the_name_of_a_running_agent(place) {
        let sam = place.person("Sam");
        let held = refusal(place.engine(Limits::default()).register(&wish("Sam", Span::Command)));
        assert!(matches!(held, Refusal::Conflict(Conflict::NameHeld { .. })), "{held}");
        let id = sam.create("kept");
        sam.claim(&id).unwrap();
        place.clock.advance(30_000);
        let pat = place.command("Sam");
        assert_eq!(held_by(&pat.get(&id).task), ("pending", None));
        assert_eq!(place.person("Sam").name.as_str(), "Sam2");
    }
}
