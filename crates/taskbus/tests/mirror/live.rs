//! A shared list in SQLite and a task directory, worked on by taskbus agents on one side and by a Claude Code on the
//! other.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskbus::answer::{Answer, TaskView};
use taskbus::core::command::{Command, Draft, Patch};
use taskbus::core::id::TaskId;
use taskbus::core::name::{Identity, ListName};
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::task::Status;
use taskbus::core::text::{Body, Subject};
use taskbus::engine::{Engine, Error, Limits, ListAsk, Registration, Request};
use taskbus::mirror::{Event, Mirror, MirrorError, Notice};
use taskbus::store::claude::{ClaudeOptions, ClaudeStore};
use taskbus::store::rows::RowStore as _;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

use crate::claude_code;

/// Both sides, and an agent on the shared list.
struct Place {
    keep: TempDir,
    list: ListName,
    engine: Engine,
    amp: Identity,
    files: ClaudeStore,
}

impl Place {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let files = ClaudeStore::open(&keep.path().join("sprint"), ClaudeOptions::default()).unwrap();
        let list = ListName::from_short("work").unwrap();
        let engine = Self::engine(&keep);
        let amp = engine.register(&Registration { name: "Amp".to_owned(), ..Registration::default() }).unwrap().name;
        engine.create_list(&amp, &list, ListRules::default()).unwrap();
        std::fs::create_dir(keep.path().join("sprint")).unwrap();
        Self { keep, list, engine, amp, files }
    }

    /// A process of its own on the shared list.
    fn engine(keep: &TempDir) -> Engine {
        let store = SqliteStore::open(keep.path().join("taskbus.db"), SqliteOptions::default()).unwrap();
        Engine::new(Arc::new(store), Limits::default())
    }

    fn dir(&self) -> PathBuf {
        self.keep.path().join("sprint")
    }

    fn run(&self, command: Command) -> Result<Answer, Error> {
        self.engine.execute(&Request { caller: self.amp.clone(), list: Some(self.list.clone()), command, key: None })
    }

    fn create(&self, draft: Draft) -> TaskId {
        let Answer::Created(task) = self.run(Command::Create(Box::new(draft))).unwrap() else { panic!() };
        task.id
    }

    fn update(&self, id: &TaskId, patch: Patch) -> Result<Answer, Error> {
        self.run(Command::Update(id.clone(), Box::new(patch)))
    }

    fn task(&self, id: &TaskId) -> TaskView {
        self.engine.get(Some(&self.amp), id, false).unwrap().task
    }

    /// The shared task with this subject.
    fn called(&self, subject: &str) -> TaskView {
        let page = self.engine.list(Some(&self.amp), &self.list, &ListAsk::default()).unwrap();
        let row =
            page.tasks.iter().find(|row| row.subject.as_str() == subject).unwrap_or_else(|| panic!("no {subject}"));
        self.task(&row.id)
    }

    fn file(&self, id: u64) -> Value {
        serde_json::from_slice(&std::fs::read(self.dir().join(format!("{id}.json"))).unwrap()).unwrap()
    }

    fn numbers(&self) -> Vec<u64> {
        self.files.snapshot().unwrap().live.iter().filter_map(|task| task.id.as_number()).collect()
    }
}

fn draft(subject: &str) -> Draft {
    Draft::new(Subject::new(subject).unwrap())
}

/// Settles once, and holds that a second time has nothing to do.
fn settle(mirror: &mut Mirror<'_, ClaudeStore>) -> Vec<Event> {
    let mut events = Vec::new();
    mirror.settle(&mut |event| events.push(event)).unwrap();
    assert!(!mirror.settle(&mut |event| panic!("an echo: {event:?}")).unwrap());
    events
}

fn set(patch: &[(&str, Value)]) -> impl FnOnce(&mut serde_json::Map<String, Value>) {
    let patch: Vec<(String, Value)> = patch.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    move |task| task.extend(patch)
}

#[test]
fn what_is_on_either_side_comes_to_the_other() {
    let place = Place::new();
    let first = place.create(draft("from the list"));
    let second =
        Draft { blocked_by: vec![first.clone()], description: Some(Body::new("d").unwrap()), ..draft("second") };
    let second = place.create(second);
    let done = place.create(draft("done long ago"));
    place.update(&done, Patch::complete(None)).unwrap();
    claude_code::create(&place.dir(), "from claude").unwrap();
    let id = claude_code::create(&place.dir(), "also").unwrap();
    claude_code::add_blocker(&place.dir(), id, 1).unwrap();
    claude_code::update(&place.dir(), id, set(&[("metadata", json!({"deep": {"a": [1]}}))])).unwrap();
    let own = Place::engine(&place.keep);
    let mut mirror = Mirror::start(&own, &place.list, &place.files).unwrap();
    let events = settle(&mut mirror);
    assert_eq!(place.numbers(), [1, 2, 3, 4], "what is done is not brought to the directory");
    let (file, other) = (place.file(3), place.file(4));
    assert_eq!(
        (&file["subject"], &file["blocks"], &other["blockedBy"]),
        (&json!("from the list"), &json!(["4"]), &json!(["3"]))
    );
    assert_eq!(other["description"], "d");
    let (made, also) = (place.called("from claude"), place.called("also"));
    assert_eq!((also.blocked_by, &also.metadata["deep"]), (vec![made.id.clone()], &json!({"a": [1]})));
    assert_eq!(
        (&made.metadata["claude_id"], &file["metadata"]["taskbus"]["shared_id"]),
        (&json!("sprint/1"), &json!(format!("tasks/work#{first}")))
    );
    assert_eq!(place.task(&second).metadata["claude_id"], "sprint/4");
    assert!(events.iter().any(|event| matches!(event, Event::TaskMade { .. })));
    drop(mirror);
    own.close().unwrap();
    let again = Place::engine(&place.keep);
    let mut mirror = Mirror::start(&again, &place.list, &place.files).unwrap();
    assert!(settle(&mut mirror).is_empty(), "a new mirror finds all in step");
    drop(mirror);
    again.close().unwrap();
    place.update(&made.id, Patch { add_blocked_by: vec![second.clone()], ..Patch::default() }).unwrap();
    claude_code::update(&place.dir(), 1, |task| {
        task["subject"] = json!("edited");
        task["metadata"]["k"] = json!("v");
    })
    .unwrap();
    // Later than the change on the list by more than the clock of the file system is coarse.
    let later = std::time::SystemTime::now() + Duration::from_secs(1);
    std::fs::File::open(place.dir().join("1.json")).unwrap().set_modified(later).unwrap();
    let third = Place::engine(&place.keep);
    settle(&mut Mirror::start(&third, &place.list, &place.files).unwrap());
    let joined = place.task(&made.id);
    assert_eq!(
        (joined.subject.as_str(), &joined.metadata["k"], &joined.blocked_by),
        ("edited", &json!("v"), &vec![second])
    );
    assert_eq!(place.file(1)["blockedBy"], json!(["4"]), "what both did while nobody mirrored is joined");
}

#[test]
fn work_in_claude_code_is_seen_on_the_list() {
    let place = Place::new();
    let task = place.create(draft("a"));
    let own = Place::engine(&place.keep);
    let mut mirror = Mirror::start(&own, &place.list, &place.files).unwrap();
    settle(&mut mirror);
    claude_code::update(&place.dir(), 1, set(&[("status", json!("in_progress"))])).unwrap();
    settle(&mut mirror);
    let seen = place.task(&task);
    assert_eq!((seen.status, seen.owner.unwrap().as_str()), (Status::InProgress, "claude sprint"));
    assert_eq!(place.file(1).get("owner"), None, "Claude Code named nobody");
    claude_code::update(&place.dir(), 1, set(&[("owner", json!("worker-1"))])).unwrap();
    settle(&mut mirror);
    assert_eq!(place.task(&task).owner.unwrap().as_str(), "worker-1");
    assert!(place.engine.sessions().unwrap().iter().any(|session| session.name.as_str() == "worker-1"), "kept alive");
    let edit = [("status", json!("completed")), ("subject", json!("a, done")), ("activeForm", json!("Doing a"))];
    claude_code::update(&place.dir(), 1, set(&edit)).unwrap();
    settle(&mut mirror);
    let seen = place.task(&task);
    assert_eq!(
        (seen.status, seen.subject.as_str(), seen.owner.unwrap().as_str()),
        (Status::Completed, "a, done", "worker-1")
    );
    claude_code::update(&place.dir(), 1, set(&[("status", json!("in_progress")), ("owner", json!("worker-2"))]))
        .unwrap();
    settle(&mut mirror);
    let seen = place.task(&task);
    assert_eq!((seen.status, seen.owner.unwrap().as_str()), (Status::InProgress, "worker-2"), "reopened and taken");
    claude_code::update(&place.dir(), 1, |task| {
        task.insert("status".to_owned(), json!("pending"));
        task.remove("owner");
    })
    .unwrap();
    settle(&mut mirror);
    assert_eq!((place.task(&task).status, place.task(&task).owner), (Status::Pending, None));
}

#[test]
fn work_on_the_list_is_seen_in_claude_code() {
    let place = Place::new();
    let (a, b) = (place.create(draft("a")), place.create(draft("b")));
    let own = Place::engine(&place.keep);
    let mut mirror = Mirror::start(&own, &place.list, &place.files).unwrap();
    settle(&mut mirror);
    place.update(&a, Patch::claim(place.amp.clone(), None)).unwrap();
    place.update(&b, Patch { add_blocked_by: vec![a.clone()], ..Patch::default() }).unwrap();
    settle(&mut mirror);
    assert_eq!((&place.file(1)["owner"], &place.file(1)["status"]), (&json!("Amp"), &json!("in_progress")));
    assert_eq!((&place.file(2)["blockedBy"], &place.file(1)["blocks"]), (&json!(["1"]), &json!(["2"])));
    place.update(&a, Patch::complete(None)).unwrap();
    settle(&mut mirror);
    assert_eq!(place.file(1)["status"], "completed");
    place.update(&a, Patch::delete()).unwrap();
    settle(&mut mirror);
    assert_eq!((place.numbers(), &place.file(2)["blockedBy"]), (vec![2], &json!([])));
    assert_eq!(std::fs::read_to_string(place.dir().join(".highwatermark")).unwrap(), "2");
    place.run(Command::Restore(a.clone())).unwrap();
    settle(&mut mirror);
    assert_eq!(place.numbers(), [2, 3], "it comes back, under a new number");
}

#[test]
fn what_the_list_refuses_goes_back_in_the_directory() {
    let place = Place::new();
    let a = place.create(draft("a"));
    let b = place.create(Draft { blocked_by: vec![a.clone()], ..draft("b") });
    place.update(&a, Patch::claim(place.amp.clone(), None)).unwrap();
    let own = Place::engine(&place.keep);
    let mut mirror = Mirror::start(&own, &place.list, &place.files).unwrap();
    settle(&mut mirror);
    let steal = [("owner", json!("thief")), ("status", json!("completed")), ("description", json!("mine"))];
    claude_code::update(&place.dir(), 1, set(&steal)).unwrap();
    claude_code::update(&place.dir(), 2, set(&[("status", json!("in_progress"))])).unwrap();
    let events = settle(&mut mirror);
    let file = place.file(1);
    assert_eq!(
        (&file["owner"], &file["status"], &file["description"]),
        (&json!("Amp"), &json!("in_progress"), &json!(""))
    );
    assert_eq!((&place.file(2)["status"], place.task(&b).status), (&json!("pending"), Status::Pending));
    let refused: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::Refused { refusal, .. } => Some(refusal.to_string()),
            _ => None,
        })
        .collect();
    assert!(
        refused.iter().any(|text| text.contains("held by Amp"))
            && refused.iter().any(|text| text.contains("blocked by"))
    );
    claude_code::add_blocker(&place.dir(), 1, 2).unwrap();
    claude_code::add_blocker(&place.dir(), 2, 2).unwrap();
    settle(&mut mirror);
    assert_eq!(place.task(&b).blocked_by, [a], "a circle stays in the directory, and everything else goes on");
    place.update(&b, Patch { description: Some(Some(Body::new("new").unwrap())), ..Patch::default() }).unwrap();
    settle(&mut mirror);
    assert_eq!(place.file(2)["description"], "new");
}

#[test]
fn a_cleared_directory_deletes_nothing() {
    let place = Place::new();
    let open = place.create(draft("open"));
    let own = Place::engine(&place.keep);
    let mut mirror = Mirror::start(&own, &place.list, &place.files).unwrap();
    claude_code::create(&place.dir(), "done there").unwrap();
    settle(&mut mirror);
    let done = place.called("done there");
    for id in place.numbers() {
        std::fs::remove_file(place.dir().join(format!("{id}.json"))).unwrap();
    }
    let events = settle(&mut mirror);
    let told = |id: &TaskId| {
        events.iter().any(|event| matches!(event, Event::Notice(Notice::Vanished { shared, .. }) if shared == id))
    };
    assert!(told(&open) && told(&done.id));
    assert_eq!((place.task(&open).status, place.task(&done.id).status), (Status::Pending, Status::Pending));
    assert!(place.numbers().is_empty(), "and nothing is brought back");
    place.update(&open, Patch { subject: Some(Subject::new("still open").unwrap()), ..Patch::default() }).unwrap();
    assert!(settle(&mut mirror).is_empty());
    claude_code::create(&place.dir(), "next").unwrap();
    settle(&mut mirror);
    assert_eq!(place.numbers(), [1], "without a mark, a number is given again");
    assert_eq!((place.called("next").status, place.task(&open).subject.as_str()), (Status::Pending, "still open"));
    claude_code::delete(&place.dir(), place.numbers()[0]).unwrap();
    assert!(
        matches!(&settle(&mut mirror)[..], [Event::Notice(Notice::Vanished { .. })]),
        "a delete there looks the same"
    );
    assert_eq!(place.called("next").status, Status::Pending);
}

#[test]
fn texts_of_any_size_and_kind_come_to_rest() {
    let place = Place::new();
    let long = "é".repeat(30_000);
    let task = place.create(Draft { description: Some(Body::new(long.clone()).unwrap()), ..draft("long") });
    claude_code::create(&place.dir(), &format!(" two\nlines {}", "x".repeat(400))).unwrap();
    let huge = claude_code::create(&place.dir(), "huge").unwrap();
    claude_code::update(&place.dir(), huge, set(&[("description", json!("日".repeat(50_000)))])).unwrap();
    let internal = claude_code::create(&place.dir(), "bookkeeping").unwrap();
    claude_code::update(&place.dir(), internal, set(&[("metadata", json!({"_internal": true}))])).unwrap();
    let own = Place::engine(&place.keep);
    let mut mirror = Mirror::start(&own, &place.list, &place.files).unwrap();
    settle(&mut mirror);
    assert_eq!(place.file(4)["description"], long);
    assert_eq!(place.task(&task).description.unwrap().as_str(), long);
    assert_eq!(place.file(huge)["description"].as_str().unwrap().len(), 150_000, "left as it is there");
    assert!(place.called("huge").description.unwrap().as_str().len() < 64 * 1024);
    let total = place.engine.list(Some(&place.amp), &place.list, &ListAsk::default()).unwrap().total;
    assert_eq!(total, 3, "Claude Code's own bookkeeping is no task");
}

#[test]
fn what_the_list_can_never_take_is_told_once_and_left() {
    let place = Place::new();
    let deep = (0..20).fold(json!(1), |inner, _| json!([inner]));
    let id = claude_code::create(&place.dir(), "deep").unwrap();
    claude_code::update(&place.dir(), id, set(&[("metadata", json!({ "deep": deep }))])).unwrap();
    let own = Place::engine(&place.keep);
    let mut mirror = Mirror::start(&own, &place.list, &place.files).unwrap();
    let events = settle(&mut mirror);
    assert!(matches!(&events[..], [Event::Refused { .. }]), "{events:?}");
    claude_code::update(&place.dir(), id, |task| drop(task.remove("metadata"))).unwrap();
    settle(&mut mirror);
    let task = place.called("deep");
    claude_code::update(&place.dir(), id, |task| task["metadata"]["deep"] = deep).unwrap();
    let events = settle(&mut mirror);
    assert!(matches!(&events[..], [Event::Refused { .. }]), "{events:?}");
    assert!(place.file(id)["metadata"]["deep"].is_array(), "left in the file");
    claude_code::update(&place.dir(), id, |task| drop(task.insert("status".to_owned(), json!("completed")))).unwrap();
    settle(&mut mirror);
    assert_eq!(place.task(&task.id).status, Status::Completed, "and the rest goes on");
}

#[test]
fn there_is_one_mirror_at_a_time() {
    let place = Place::new();
    let (first, second) = (Place::engine(&place.keep), Place::engine(&place.keep));
    let mirror = Mirror::start(&first, &place.list, &place.files).unwrap();
    let error = Mirror::start(&second, &place.list, &place.files).err().unwrap();
    assert!(matches!(error, MirrorError::Running { .. }), "{error}");
    drop(mirror);
    first.close().unwrap();
    assert!(Mirror::start(&second, &place.list, &place.files).is_ok());
}

/// Waits until something is so, and fails when it takes too long.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what} takes too long");
        std::thread::yield_now();
    }
}

#[test]
fn it_runs_live_both_ways_and_then_is_silent() {
    let place = Place::new();
    let task = place.create(draft("a"));
    let (own, stop) = (Place::engine(&place.keep), AtomicBool::new(false));
    let mirror = Mirror::start(&own, &place.list, &place.files).unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| mirror.run(&|| stop.load(Ordering::SeqCst), &mut |_| {}));
        until("the first file", || place.numbers() == [1]);
        claude_code::update(&place.dir(), 1, set(&[("status", json!("completed"))])).unwrap();
        until("the completion", || place.task(&task).status == Status::Completed);
        place.update(&task, Patch { subject: Some(Subject::new("b").unwrap()), ..Patch::default() }).unwrap();
        until("the subject", || place.file(1)["subject"] == "b");
        // Nothing moves any more, on neither side.
        let (files, shared) = (place.files.version().unwrap(), place.engine.store().version().unwrap());
        place.files.wait(files, Duration::from_millis(400)).unwrap();
        assert_eq!((place.files.version().unwrap(), place.engine.store().version().unwrap()), (files, shared));
        stop.store(true, Ordering::SeqCst);
        running.join().unwrap().unwrap();
    });
    assert!(!place.engine.sessions().unwrap().iter().any(|session| session.name.as_str() == "claude sprint"));
}
