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
fn scene(zed: &Person) -> Vec<TaskId> {
    let ids: Vec<TaskId> = ["top", "left", "right", "done", "gone"].iter().map(|name| zed.create(name)).collect();
    for child in &ids[1..3] {
        zed.update(child, Patch { parent: Some(Some(ids[0].clone())), ..Patch::default() }).unwrap();
    }
    zed.update(&ids[2], Patch { add_blocked_by: vec![ids[1].clone()], ..Patch::default() }).unwrap();
    zed.claim(&ids[1]).unwrap();
    zed.complete(&ids[3]).unwrap();
    zed.update(&ids[4], Patch::delete()).unwrap();
    ids
}

fn commands(zed: &Person, ids: &[TaskId]) -> Vec<Command> {
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
        update(0, Patch::claim(zed.name.clone(), None)),
    ]
}

on_every_store! {
    fn a_failed_command_leaves_no_trace(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let zed = place.person("Zed");
        let ids = scene(&zed);
        let (before, newest) = (dump(&place, &zed), place.latest_seq());
        for command in commands(&zed, &ids) {
            for fault in [Fault::Late, Fault::Panic] {
                let version = place.store.version().unwrap();
                let send = AssertUnwindSafe(|| zed.send(command.clone(), Some("k")));
                let failed = watched.failing(fault, || catch_unwind(send));
                assert!(failed.is_err() || failed.unwrap().is_err());
                assert_eq!(dump(&place, &zed), before, "{fault:?} {command:?}");
                assert_eq!(place.store.version().unwrap(), version);
            }
        }
        assert_eq!(zed.create("next").as_number(), Some(place.latest_seq()), "no seq was lost");
        assert_eq!(place.latest_seq(), newest + 1);
        for command in commands(&zed, &ids) {
            let sent = zed.send(command.clone(), None);
            assert!(sent.is_ok(), "{command:?}: {sent:?}");
        }
    }

    fn a_failed_write_of_names_lists_and_receipts_leaves_no_trace(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        zed.send(Command::Next(Box::default()), Some("kept")).unwrap();
        let before = dump(&place, &zed);
        let new = ListName::new("tasks/new").unwrap();
        watched.failing(Fault::Late, || {
            assert!(zed.engine.register(&wish("Jan", Span::Heartbeat)).is_err());
            assert!(zed.engine.create_list(&zed.name, &new, ListRules::default()).is_err());
            assert!(amp.engine.close().is_err());
        });
        assert_eq!(dump(&place, &zed), before);
        let id = zed.create("for nobody");
        let to_jan = Patch { owner: Some(Some(taskbus::core::name::Identity::new("Jan").unwrap())), ..Patch::default() };
        assert_eq!(crate::support::refusal(zed.update(&id, to_jan)).code(), "not_found", "Jan never registered");
        place.clock.advance(3_600_000);
        assert!(watched.failing(Fault::Late, || zed.engine.tick()).is_err());
        assert_eq!(zed.engine.tick().unwrap().receipts, 1);
    }

    fn what_was_not_written_is_not_charged(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let zed = place.person_with("Zed", Limits { writes_per_second: 1, ..Limits::default() });
        let create = || Command::Create(Box::new(Draft::new(Subject::new("one").unwrap())));
        for _ in 0..5 {
            assert!(watched.failing(Fault::Late, || zed.send(create(), None)).is_err());
        }
        zed.send(create(), None).unwrap();
    }
}
