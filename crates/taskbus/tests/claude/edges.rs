//! The engine over a directory: the rules of a list that Claude Code shares.

use std::sync::Arc;

use serde_json::json;
use taskbus::answer::Answer;
use taskbus::core::command::{Command, Draft, Next, Patch};
use taskbus::core::id::TaskId;
use taskbus::core::name::Identity;
use taskbus::core::refusal::{Conflict, Refusal};
use taskbus::core::task::Status;
use taskbus::core::text::Subject;
use taskbus::engine::{Engine, Error, Limits, ListAsk, Registration, Request};
use taskbus::store::StoreError;
use taskbus::store::claude::{ClaudeOptions, ClaudeStore};
use taskbus::store::small::Small;

use crate::support::Place;

struct Desk {
    place: Place,
    engine: Engine,
    zed: Identity,
}

fn desk(place: Place) -> Desk {
    let rows = ClaudeStore::open(&place.path(), ClaudeOptions::default()).unwrap();
    let engine = Engine::new(Arc::new(Small::new(rows).unwrap()), Limits::default());
    let zed = engine.register(&Registration { name: "Zed".to_owned(), ..Registration::default() }).unwrap().name;
    Desk { place, engine, zed }
}

impl Desk {
    fn run(&self, command: Command) -> Result<Answer, Error> {
        let list = Some(self.engine.lists().unwrap()[0].name.clone());
        self.engine.execute(&Request { caller: self.zed.clone(), list, command, key: None })
    }

    fn update(&self, id: u64, patch: Patch) -> Result<Answer, Error> {
        self.run(Command::Update(TaskId::Number(id), Box::new(patch)))
    }
}

fn draft(subject: &str) -> Draft {
    Draft::new(Subject::new(subject).unwrap())
}

#[test]
fn the_engine_works_a_claude_list() {
    let place = Place::new();
    place.put_task(1, &json!({"owner": "other", "status": "in_progress"}));
    let desk = desk(place);
    let waits = Draft { blocked_by: vec![TaskId::Number(1)], ..draft("b") };
    desk.run(Command::Create(Box::new(waits))).unwrap();
    desk.run(Command::Create(Box::new(draft("c")))).unwrap();
    let Answer::Next(taken) = desk.run(Command::Next(Box::default())).unwrap() else { panic!() };
    assert_eq!((&taken.tasks[0].id, taken.tasks[0].fence), (&TaskId::Number(3), 1));
    assert_eq!(desk.place.json(3)["owner"], "Zed");
    let Answer::Written(written) =
        desk.update(2, Patch { status: Some(Status::InProgress), ..Patch::default() }).unwrap()
    else {
        panic!()
    };
    assert!(written.warnings[0].contains("blocked"), "{:?}", written.warnings);
    desk.place.put_task(1, &json!({"status": "completed"}));
    assert!(desk.engine.get(Some(&desk.zed), &TaskId::Number(2), false).unwrap().task.open_blockers.is_empty());
    assert_eq!(desk.place.json(2)["blockedBy"], json!(["1"]), "a completed blocker stays named");
}

#[test]
fn an_edit_by_claude_code_is_a_revision() {
    let desk = desk(Place::new());
    desk.run(Command::Create(Box::new(draft("a")))).unwrap();
    let id = TaskId::Number(1);
    desk.update(1, Patch::claim(desk.zed.clone(), None)).unwrap();
    let edited = |subject: &str| {
        let mut task = desk.place.json(1);
        task["subject"] = subject.into();
        desk.place.put("1.json", &task.to_string());
        desk.engine.get(Some(&desk.zed), &id, true).unwrap()
    };
    let (first, second) = (edited("x"), edited("y"));
    assert_eq!((first.task.revision, second.task.revision, second.task.updated_by), (3, 4, None));
    assert_eq!(second.history.unwrap().len(), 4);
    let stale = Patch { if_revision: Some(3), ..Patch::complete(None) };
    assert!(matches!(desk.update(1, stale), Err(Error::Refused(_))));
    let complete = Patch { if_revision: Some(4), fence: Some(1), ..Patch::complete(None) };
    assert!(desk.update(1, complete).is_ok());
    assert_eq!(desk.place.json(1)["metadata"]["taskbus"]["revision"], 5);
}

#[test]
fn a_task_that_claude_code_took_over_has_another_fence() {
    let desk = desk(Place::new());
    desk.run(Command::Create(Box::new(draft("a")))).unwrap();
    desk.update(1, Patch::claim(desk.zed.clone(), None)).unwrap();
    let mut task = desk.place.json(1);
    task["owner"] = "other".into();
    desk.place.put("1.json", &task.to_string());
    let late = Patch { fence: Some(1), ..Patch::complete(None) };
    let refused = desk.update(1, late);
    assert!(matches!(refused, Err(Error::Refused(Refusal::Conflict(Conflict::LeaseLost { .. })))), "{refused:?}");
    assert_eq!(desk.place.json(1)["status"], "in_progress");
}

#[test]
fn what_cannot_be_read_blocks_and_is_said() {
    let place = Place::new();
    place.put("1.json", "{");
    place.put_task(2, &json!({"blockedBy": ["1"]}));
    let desk = desk(place);
    let task = desk.engine.get(Some(&desk.zed), &TaskId::Number(2), false).unwrap();
    assert_eq!((task.ready, task.task.open_blockers), (false, vec![TaskId::Number(1)]));
    let Answer::Next(taken) = desk.run(Command::Next(Box::<Next>::default())).unwrap() else { panic!() };
    assert!(taken.tasks.is_empty());
    let error = desk.engine.get(Some(&desk.zed), &TaskId::Number(1), false).unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Damaged { .. })), "{error}");
    let page = desk.engine.list(Some(&desk.zed), &desk.engine.lists().unwrap()[0].name, &ListAsk::default()).unwrap();
    assert_eq!(page.total, 1);
}

#[test]
fn a_deleted_task_leaves_no_edge_and_can_come_back() {
    let desk = desk(Place::new());
    desk.run(Command::Create(Box::new(draft("a")))).unwrap();
    let waits = Draft { blocked_by: vec![TaskId::Number(1)], ..draft("b") };
    desk.run(Command::Create(Box::new(waits))).unwrap();
    desk.update(1, Patch::delete()).unwrap();
    assert_eq!(
        (desk.place.json(2)["blockedBy"].clone(), desk.place.text(".highwatermark")),
        (json!([]), "2".to_owned())
    );
    assert_eq!(desk.engine.get(Some(&desk.zed), &TaskId::Number(2), false).unwrap().task.revision, 1);
    desk.run(Command::Restore(TaskId::Number(1))).unwrap();
    assert_eq!((desk.place.live(), desk.place.json(1)["subject"].as_str()), (vec![1, 2], Some("a")));
    assert!(desk.place.store.vanished().unwrap().is_empty());
}
