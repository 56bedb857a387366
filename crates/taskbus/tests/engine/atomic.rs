//! A write that fails, at its end or by a panic, leaves no trace, and costs nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use taskbus::core::command::{Command, Draft, Next, Patch, Place as Spot};
use taskbus::core::id::TaskId;
use taskbus::core::name::ListName;
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::text::Subject;
use taskbus::engine::{Limits, ListAsk, Span};

use crate::support::{Fault, Person, Place, Watched, list, on_every_store, wish};

/// Everything that can be read, as text.
fn dump(place: &Place, reader: &Person) -> String {
    let page = reader.page(&ListAsk { limit: Some(200), ..ListAsk::default() });
    let known: Vec<_> = (1..=place.latest_seq() + 2).map(TaskId::Number).collect();
    let tasks: Vec<_> = known.iter().filter_map(|id| reader.engine.get(None, id, true).ok()).collect();
    let homes: Vec<_> = known.iter().map(|id| place.store.locate(id).unwrap()).collect();
    let tally = reader.engine.tally(&list()).unwrap();
    let (lists, sessions) = (reader.engine.lists().unwrap(), reader.engine.sessions().unwrap());
    format!("{page:#?}\n{tasks:#?}\n{homes:?}\n{tally:?}\n{lists:?}\n{sessions:?}")
}

/// A little of everything: a tree, links, one task in progress, one done, one deleted.
fn scene(sam: &Person) -> Vec<TaskId> {
    let ids: Vec<TaskId> = ["top", "left", "right", "done", "gone"].iter().map(|name| sam.create(name)).collect();
    for child in &ids[1..3] {
        sam.update(child, Patch { parent: Some(Some(ids[0].clone())), ..Patch::default() }).unwrap();
    }
    sam.update(&ids[2], Patch { add_blocked_by: vec![ids[1].clone()], ..Patch::default() }).unwrap();
    sam.claim(&ids[1]).unwrap();
    sam.complete(&ids[3]).unwrap();
    sam.update(&ids[4], Patch::delete()).unwrap();
    ids
}

fn commands(sam: &Person, ids: &[TaskId]) -> Vec<Command> {
    let update = |at: usize, patch| Command::Update(ids[at].clone(), Box::new(patch));
    let moved = Patch { parent: Some(None), place: Some(Spot::Before(ids[0].clone())), ..Patch::default() };
    let unlinked = Patch { remove_blocked_by: vec![ids[1].clone()], ..Patch::default() };
    vec![
        Command::Create(Box::new(Draft::new(Subject::new("new").unwrap()))),
        Command::Next(Box::new(Next { count: 3, ..Next::default() })),
        Command::Restore(ids[4].clone()),
        update(1, Patch::complete(None)),
        update(1, Patch::delete()),
        update(2, moved),
        update(2, unlinked),
        update(3, Patch::delete()),
        update(0, Patch::claim(sam.name.clone(), None)),
    ]
}

on_every_store! {
    fn a_failed_command_leaves_no_trace(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let sam = place.person("Sam");
        let ids = scene(&sam);
        let (before, newest) = (dump(&place, &sam), place.latest_seq());
        for command in commands(&sam, &ids) {
            for fault in [Fault::Late, Fault::Panic] {
                let version = place.store.version().unwrap();
                let send = AssertUnwindSafe(|| sam.send(command.clone(), Some("k")));
                let failed = watched.failing(fault, || catch_unwind(send));
                assert!(failed.is_err() || failed.unwrap().is_err());
                assert_eq!(dump(&place, &sam), before, "{fault:?} {command:?}");
                assert_eq!(place.store.version().unwrap(), version);
            }
        }
        assert_eq!(sam.create("next").as_number(), Some(place.latest_seq()), "no seq was lost");
        assert_eq!(place.latest_seq(), newest + 1);
        for command in commands(&sam, &ids) {
            let sent = sam.send(command.clone(), None);
            assert!(sent.is_ok(), "{command:?}: {sent:?}");
        }
    }

    fn a_failed_write_of_names_lists_and_receipts_leaves_no_trace(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (sam, kim) = (place.person("Sam"), place.person("Kim"));
        sam.send(Command::Next(Box::default()), Some("kept")).unwrap();
        let before = dump(&place, &sam);
        let new = ListName::new("tasks/new").unwrap();
        watched.failing(Fault::Late, || {
            assert!(sam.engine.register(&wish("Lee", Span::Heartbeat)).is_err());
            assert!(sam.engine.create_list(&sam.name, &new, ListRules::default()).is_err());
            assert!(kim.engine.close().is_err());
        });
        assert_eq!(dump(&place, &sam), before);
        let id = sam.create("for nobody");
        let to_lee = Patch { owner: Some(Some(taskbus::core::name::Identity::new("Lee").unwrap())), ..Patch::default() };
        assert_eq!(crate::support::refusal(sam.update(&id, to_lee)).code(), "not_found", "Lee never registered");
        place.clock.advance(3_600_000);
        assert!(watched.failing(Fault::Late, || sam.engine.tick()).is_err());
        assert_eq!(sam.engine.tick().unwrap().receipts, 1);
    }

    fn what_was_not_written_is_not_charged(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let sam = place.person_with("Sam", Limits { writes_per_second: 1, ..Limits::default() });
        let create = || Command::Create(Box::new(Draft::new(Subject::new("one").unwrap())));
        for _ in 0..5 {
            assert!(watched.failing(Fault::Late, || sam.send(create(), None)).is_err());
        }
        sam.send(create(), None).unwrap();
    }
}
