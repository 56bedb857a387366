//! The file: its form, what is kept of what others wrote, and what is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taskbus::answer::{Answer, TaskView};
use taskbus::engine::{Engine, Error, Limits, Registration, Request};
use taskbus::store::rows::RowStore as _;
use taskbus::store::sidecar::{Options, Sidecar};
use taskbus::store::small::Small;
use taskbus::store::{ManualClock, Store as _, StoreError};
use taskbus_core::command::{Command, Draft, Patch};
use taskbus_core::content;
use taskbus_core::id::TaskId;
use taskbus_core::limits::{KIN_STALE_MS, SESSION_ID_BYTES_MAX, SIDECAR_BYTES_MAX};
use taskbus_core::name::Identity;
use taskbus_core::task::Status;
use taskbus_core::text::{Body, Subject};
use taskbus_core::time::Timestamp;
use tempfile::TempDir;

const START: i64 = 1_796_054_400_000;

/// A directory, a clock, and what happens in them.
struct Place {
    dir: TempDir,
    clock: Arc<ManualClock>,
}

/// An engine on the sidecar of a session, and who acts.
struct Session {
    engine: Engine,
    zed: Identity,
}

impl Place {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(START)));
        Self { dir: tempfile::tempdir().unwrap(), clock }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn options(&self) -> Options {
        let clock = Arc::<ManualClock>::clone(&self.clock);
        Options { patience: Duration::from_millis(50), clock }
    }

    fn open(&self, id: &str) -> Result<Session, StoreError> {
        let store = Small::new(Sidecar::of_session(self.dir.path(), id, self.options())?)?;
        let engine = Engine::new(Arc::new(store), Limits::default());
        let zed = engine.register(&Registration { name: "zed".to_owned(), ..Registration::default() }).unwrap().name;
        Ok(Session { engine, zed })
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Session {
    fn ask(&self, command: Command) -> Result<TaskView, Error> {
        let list = Some(self.engine.lists()?[0].name.clone());
        match self.engine.execute(&Request { caller: self.zed.clone(), list, command, key: None })? {
            Answer::Created(task) | Answer::Restored(task) => Ok(*task),
            Answer::Written(written) => Ok(written.task),
            answer => panic!("{answer:?}"),
        }
    }

    fn add(&self, content: &str, blocked_by: &[&TaskId]) -> Result<TaskId, Error> {
        let (subject, description) = content::split(content);
        let blocked_by = blocked_by.iter().map(|id| (*id).clone()).collect();
        let draft = Draft { description, blocked_by, ..Draft::new(subject) };
        Ok(self.ask(Command::Create(Box::new(draft)))?.id)
    }

    fn update(&self, id: &TaskId, patch: Patch) -> Result<TaskView, Error> {
        self.ask(Command::Update(id.clone(), Box::new(patch)))
    }

    fn start(&self, id: &TaskId) -> Result<TaskView, Error> {
        self.update(id, Patch { status: Some(Status::InProgress), ..Patch::default() })
    }
}

#[test]
fn a_new_sidecar_is_one_that_kin_reads() {
    let place = Place::new();
    let session = place.open("s1").unwrap();
    assert_eq!(place.names(), [""; 0], "opening makes nothing");
    let db = session.add("Provision the dev DB", &[]).unwrap();
    place.clock.advance(1_000);
    let seed = session.add("Seed fixtures", &[&db]).unwrap();
    session.update(&db, Patch::complete(None)).unwrap();
    session.update(&seed, Patch::delete()).unwrap();
    let ours = |revision: u64| json!({"created_by": "zed", "revision": revision, "updated_by": "zed"});
    let mut file = place.json("s1.tasks.json");
    let taken: Vec<Value> = (0..2).map(|at| file["tasks"][at]["taskbus"].take()).collect();
    assert_eq!(taken[1], ours(2));
    assert_eq!((&taken[0]["owner"], &taken[0]["revision"]), (&json!("zed"), &json!(2)));
    let row = |id: &TaskId, content: &str, status: &str, blockers: Value, at: i64, completed: Value| {
        json!({"id": id.to_string(), "content": content, "status": status, "blockedBy": blockers, "active_form": "",
            "created_at": at, "updated_at": START + 1_000, "completed_at": completed, "taskbus": null})
    };
    let rows = json!([
        row(&db, "Provision the dev DB", "completed", json!([]), START, json!(START + 1_000)),
        row(&seed, "Seed fixtures", "deleted", json!([db.to_string()]), START + 1_000, Value::Null),
    ]);
    assert_eq!(file, json!({"version": 1, "session_id": "s1", "tasks": rows}));
    assert!(db.to_string().starts_with("t_1796054400000_") && seed.to_string().starts_with("t_1796054401000_"));
    assert_eq!(place.names(), ["s1.tasks.json", "s1.tasks.json.taskbus-lock"]);
}

#[test]
fn everything_a_task_has_survives_and_a_second_process_sees_it() {
    let place = Place::new();
    let (one, two) = (place.open("s1").unwrap(), place.open("s1").unwrap());
    let parent = one.add("parent", &[]).unwrap();
    let draft = Draft {
        description: Some(Body::new("long\nform").unwrap()),
        active_form: Some(Subject::new("Doing it").unwrap()),
        parent: Some(parent.clone()),
        labels: ["rust".to_owned().try_into().unwrap()].into(),
        paths: ["src/**".to_owned().try_into().unwrap()].into(),
        metadata: [("k".to_owned(), json!({"b": [1.5, null, 9_007_199_254_740_993_i64], "a": "é\u{1F980}"}))].into(),
        not_before: Some(Timestamp::from_millis(START + 5)),
        ..Draft::new(Subject::new("child").unwrap())
    };
    let made = one.ask(Command::Create(Box::new(draft))).unwrap();
    assert_eq!(two.engine.get(Some(&two.zed), &made.id, false).unwrap().task, made);
    assert_eq!(place.open("s1").unwrap().engine.get(None, &made.id, false).unwrap().task, made);
    let first = two.add("first", &[]).unwrap();
    let before = Some(taskbus_core::command::Place::Before(parent.clone()));
    two.update(&first, Patch { place: before, ..Patch::default() }).unwrap();
    let list = one.engine.lists().unwrap()[0].name.clone();
    let page = one.engine.list(None, &list, &taskbus::engine::ListAsk::default()).unwrap();
    assert_eq!(page.tasks.iter().map(|task| &task.id).collect::<Vec<_>>(), [&first, &parent, &made.id]);
    assert!(one.update(&parent, Patch::delete()).unwrap_err().to_string().contains("children"));
}

const FOREIGN: &str = r#"{"tool": {"b": 1, "a": 1720600000.123456},
"session_id": "other", "version": 1,
"tasks": [
  {"zz": [1, {"y": null}], "status": "pending", "id": "t_1720600000000_a1b2", "content": "Seed", "updated_at": 1720600000.5},
  {"id": "t_1720600000001_a1b2", "content": "Smoke\ntest", "status": "in_progress", "blockedBy": ["t_1720600000000_a1b2", "t_9_gone"],
   "active_form": null, "created_at": "2024-07-10T08:26:40+00:00", "updated_at": 1720600001, "completed_at": null}
], "after": true}
"#;

#[test]
fn what_others_wrote_is_kept_and_missing_lists_are_empty() {
    let place = Place::new();
    fs::write(place.path("s1.tasks.json"), FOREIGN).unwrap();
    place.clock.advance(1_720_600_000_000 - START);
    let session = place.open("s1").unwrap();
    let ids: Vec<TaskId> = ["t_1720600000000_a1b2", "t_1720600000001_a1b2"].map(|id| id.parse().unwrap()).into();
    let second = session.engine.get(None, &ids[1], false).unwrap().task;
    assert_eq!((second.subject.as_str(), second.open_blockers.as_slice()), ("Smoke test", &ids[..1]));
    assert_eq!(second.description.unwrap().as_str(), "Smoke\ntest");
    assert_eq!(fs::read_to_string(place.path("s1.tasks.json")).unwrap(), FOREIGN, "reading changes nothing");
    session.start(&ids[0]).unwrap();
    let text = fs::read_to_string(place.path("s1.tasks.json")).unwrap();
    let mut expected: Value = serde_json::from_str(FOREIGN).unwrap();
    expected["tasks"][0]["status"] = "in_progress".into();
    expected["tasks"][0]["updated_at"] = json!(1_720_600_000.0);
    expected["tasks"][0]["created_at"] = json!(1_720_600_000.5);
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let ours = file["tasks"][0].as_object_mut().unwrap().shift_remove("taskbus").unwrap();
    assert_eq!(ours, json!({"owner": "zed", "fence": 1, "revision": 2, "updated_by": "zed"}));
    assert_eq!(file, expected);
    let place_of = |key: &str| text.find(key).unwrap_or_else(|| panic!("{key} in {text}"));
    for (first, then) in [("\"tool\"", "\"session_id\""), ("\"b\":1", "\"a\":1720600000.123456"), ("\"zz\"", "\"id\"")]
    {
        assert!(place_of(first) < place_of(then), "{first} comes before {then}");
    }
}

#[test]
fn content_of_any_form_comes_back_and_changes() {
    let place = Place::new();
    let session = place.open("s1").unwrap();
    let long = format!("{}\nand more", "word ".repeat(100));
    let id = session.add(&long, &[]).unwrap();
    assert_eq!(place.json("s1.tasks.json")["tasks"][0]["content"], long);
    assert!(place.json("s1.tasks.json")["tasks"][0]["taskbus"]["description"].is_null());
    let (subject, description) = content::split("short");
    session.update(&id, Patch { subject: Some(subject), description: Some(description), ..Patch::default() }).unwrap();
    assert_eq!(place.json("s1.tasks.json")["tasks"][0]["content"], "short");
    let own = Some(Some(Body::new("a description of its own").unwrap()));
    session.update(&id, Patch { description: own, ..Patch::default() }).unwrap();
    let row = place.json("s1.tasks.json")["tasks"][0].clone();
    assert_eq!(
        (&row["content"], &row["taskbus"]["description"]),
        (&json!("short"), &json!("a description of its own"))
    );
}

#[test]
fn what_was_left_in_progress_is_given_back_on_opening_alone() {
    let place = Place::new();
    let session = place.open("s1").unwrap();
    let (old, young) = (session.add("old", &[]).unwrap(), session.add("young", &[]).unwrap());
    session.start(&old).unwrap();
    place.clock.advance(1);
    session.start(&young).unwrap();
    place.clock.advance(KIN_STALE_MS);
    let status = |session: &Session, id| session.engine.get(None, id, false).unwrap().task.status;
    assert_eq!(status(&session, &old), Status::InProgress, "who has it open keeps it");
    let beside = Small::beside(Sidecar::of_session(place.dir.path(), "s1", place.options()).unwrap()).unwrap();
    assert!(beside.rows().snapshot().unwrap().live.iter().all(|task| task.status() == Status::InProgress));
    let next = place.open("s1").unwrap();
    assert_eq!((status(&next, &old), status(&next, &young)), (Status::Pending, Status::InProgress));
    assert_eq!(place.json("s1.tasks.json")["tasks"][0]["status"], "pending");
    assert_eq!(status(&session, &old), Status::Pending);
    place.clock.advance(-10 * KIN_STALE_MS);
    assert_eq!(status(&place.open("s1").unwrap(), &young), Status::InProgress, "a clock that went back reaps nothing");
}

#[test]
fn the_limits_hold_at_the_edge() {
    let place = Place::new();
    place.open(&"a".repeat(SESSION_ID_BYTES_MAX)).unwrap();
    assert!(place.open(&"a".repeat(SESSION_ID_BYTES_MAX + 1)).is_err());
    let mut file = b"{\"tasks\": []}".to_vec();
    file.resize(SIDECAR_BYTES_MAX, b' ');
    fs::write(place.path("s1.tasks.json"), &file).unwrap();
    place.open("s1").unwrap();
    file.push(b' ');
    refused(&place, &file, "larger than any sidecar");
}

#[track_caller]
fn refused(place: &Place, bytes: &[u8], says: &str) {
    fs::write(place.path("s1.tasks.json"), bytes).unwrap();
    let Err(error) = place.open("s1") else { panic!("{says}: was opened") };
    let text = error.to_string();
    assert!(text.contains("s1.tasks.json") && text.contains(says), "{text}");
    assert_eq!(fs::read(place.path("s1.tasks.json")).unwrap(), bytes);
}

#[test]
fn what_is_no_sidecar_is_refused_and_left_as_it_is() {
    let place = Place::new();
    let row = |change: (&str, Value)| {
        let mut row = json!({"id": "t_1_a", "content": "a", "status": "pending"});
        row[change.0] = change.1;
        json!({"tasks": [row]}).to_string().into_bytes()
    };
    refused(&place, b"", "it is empty");
    refused(&place, b"text", "no JSON");
    refused(&place, b"[]", "no object with a list of tasks");
    refused(&place, b"{\"version\":1}", "no object with a list of tasks");
    refused(&place, b"{\"version\":\"x\",\"tasks\":[]}", "version \"x\"");
    refused(&place, b"{\"version\":2,\"tasks\":[]}", "schema 2");
    refused(&place, &row(("status", json!("gone"))), "row 1 of its tasks is no task: its status \"gone\"");
    refused(&place, &row(("id", json!("../x"))), "its id \"../x\" cannot be an id");
    refused(&place, &row(("id", json!("007"))), "it would be written 7");
    refused(&place, &row(("content", json!(7))), "its content is missing");
    refused(&place, &row(("blockedBy", json!("t_1"))), "its blockedBy is no list");
    refused(&place, &row(("updated_at", json!("soon"))), "its updated_at is no time");
    refused(&place, &row(("taskbus", json!([]))), "its taskbus is no object");
    refused(&place, &row(("taskbus", json!({"labels": ["No!"]}))), "its taskbus");
    let twice = json!({"tasks": [{"id": "a", "content": "a", "status": "pending"}, {"id": "a", "content": "b", "status": "deleted"}]});
    refused(&place, twice.to_string().as_bytes(), "rows 1 and 2 have the same id a");
    let whole = FOREIGN.trim_end().as_bytes();
    for end in 0..whole.len() {
        refused(&place, &whole[..end], "");
    }
}

#[test]
fn a_file_that_breaks_while_it_is_open_is_refused_and_taken_up_again_when_mended() {
    let place = Place::new();
    let session = place.open("s1").unwrap();
    let id = session.add("a", &[]).unwrap();
    let good = fs::read(place.path("s1.tasks.json")).unwrap();
    fs::write(place.path("s1.tasks.json"), &good[..good.len() / 2]).unwrap();
    assert!(matches!(session.start(&id), Err(Error::Store(StoreError::Damaged { .. }))));
    assert!(matches!(session.engine.get(None, &id, false), Err(Error::Store(StoreError::Damaged { .. }))));
    assert_eq!(fs::read(place.path("s1.tasks.json")).unwrap(), good[..good.len() / 2]);
    fs::write(place.path("s1.tasks.json"), &good).unwrap();
    assert_eq!(session.start(&id).unwrap().status, Status::InProgress);
    fs::remove_file(place.path("s1.tasks.json")).unwrap();
    assert!(matches!(session.add("b", &[]), Err(Error::Store(StoreError::Moved { .. }))));
    assert!(!place.path("s1.tasks.json").exists());
}

#[test]
fn session_ids_are_plain_names_and_links_lead_nowhere() {
    let place = Place::new();
    for bad in ["", ".", "..", "../s1", "a/b", ".hidden", "a b", "a\0", "é", &"a".repeat(129)] {
        let Err(error) = place.open(bad) else { panic!("{bad:?} was opened") };
        assert!(error.to_string().contains("plain name"), "{error}");
    }
    for good in ["s1", "0b7c-44.x_Y", &"a".repeat(128)] {
        place.open(good).unwrap().add("a", &[]).unwrap();
    }
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("target"), "secret").unwrap();
    symlink(outside.path().join("target"), place.path("link.tasks.json")).unwrap();
    let Err(error) = place.open("link") else { panic!("a link was followed") };
    assert!(error.to_string().contains("it is a link"), "{error}");
    symlink(outside.path().join("new"), place.path("lock.tasks.json.taskbus-lock")).unwrap();
    place.open("lock").unwrap().add("a", &[]).unwrap_err();
    assert!(!outside.path().join("new").exists());
    fs::create_dir(place.path("dir.tasks.json")).unwrap();
    assert!(place.open("dir").is_err());
}

#[test]
fn paths_are_taken_as_they_are() {
    let place = Place::new();
    for name in ["a#b.tasks.json", "a?b%20.json", " é\u{1F980}'\". ", "plain"] {
        let sidecar = Sidecar::at(&place.path(name), place.options()).unwrap();
        let store = Small::new(sidecar).unwrap();
        let engine = Engine::new(Arc::new(store), Limits::default());
        let zed = engine.register(&Registration { name: "zed".to_owned(), ..Registration::default() }).unwrap().name;
        Session { engine, zed }.add("a", &[]).unwrap();
        assert!(place.path(name).is_file(), "{name}");
    }
    assert_eq!(place.json("a#b.tasks.json")["session_id"], "a#b");
    let missing = Sidecar::at(&place.path("none/x.tasks.json"), place.options());
    assert!(matches!(missing, Err(StoreError::Unavailable { .. })));
    assert!(Sidecar::at(Path::new("/"), place.options()).is_err());
}

#[test]
fn nobody_else_may_read_a_new_file_and_an_old_one_keeps_its_permissions() {
    let place = Place::new();
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    let session = place.open("s1").unwrap();
    let id = session.add("a", &[]).unwrap();
    assert_eq!((mode("s1.tasks.json"), mode("s1.tasks.json.taskbus-lock")), (0o600, 0o600));
    fs::set_permissions(place.path("s1.tasks.json"), fs::Permissions::from_mode(0o664)).unwrap();
    session.start(&id).unwrap();
    assert_eq!(mode("s1.tasks.json"), 0o664);
}

#[test]
fn a_held_lock_is_waited_for_and_names_its_holder() {
    let place = Place::new();
    let session = place.open("s1").unwrap();
    session.add("a", &[]).unwrap();
    let lock = fs::File::options().read(true).write(true).open(place.path("s1.tasks.json.taskbus-lock")).unwrap();
    lock.lock().unwrap();
    let Err(error) = session.add("b", &[]) else { panic!("written under somebody else's lock") };
    let holder = format!("process {} holds its lock", std::process::id());
    assert!(error.to_string().contains(&holder), "{error}");
    assert!(matches!(error, Error::Store(StoreError::Busy { waited_ms: 50.., .. })));
    assert_eq!(session.engine.lists().unwrap()[0].tasks, 1, "reading waits for nobody");
    lock.unlock().unwrap();
    session.add("b", &[]).unwrap();
}

#[test]
fn what_a_dead_writer_left_over_is_removed_and_nothing_else() {
    let place = Place::new();
    let session = place.open("s1").unwrap();
    session.add("a", &[]).unwrap();
    let left = "s1.tasks.json.00112233aabbccdd.taskbus-tmp";
    for name in [left, "s1.tasks.json.tmp", "s2.tasks.json.00112233aabbccdd.taskbus-tmp"] {
        fs::write(place.path(name), "{").unwrap();
    }
    fs::write(place.path("s1.tasks.json.taskbus-lock"), format!("pid 1\nwrites {left}\n")).unwrap();
    session.add("b", &[]).unwrap();
    assert!(!place.path(left).exists());
    fs::write(place.path("s1.tasks.json.taskbus-lock"), "pid 1\nwrites s1.tasks.json.tmp\n").unwrap();
    session.add("c", &[]).unwrap();
    assert_eq!(place.names().len(), 4, "{:?}", place.names());
}

#[test]
fn who_writes_without_the_lock_is_not_overwritten() {
    let place = Place::new();
    let sidecar = Sidecar::of_session(place.dir.path(), "s1", place.options()).unwrap();
    let session = place.open("s1").unwrap();
    session.add("a", &[]).unwrap();
    let path = place.path("s1.tasks.json");
    let mut runs = 0;
    sidecar
        .transact(&mut |rows| {
            runs += 1;
            let mut task = rows.list()?.live.remove(0);
            if runs == 1 {
                let mut file = place.json("s1.tasks.json");
                file["tasks"][0]["content"] = "theirs".into();
                fs::write(place.path("next"), file.to_string()).unwrap();
                fs::rename(place.path("next"), &path).unwrap();
            }
            task.active_form = Some(Subject::new("ours").unwrap());
            rows.set(&task)?;
            Ok(())
        })
        .unwrap();
    let row = place.json("s1.tasks.json")["tasks"][0].clone();
    assert_eq!((runs, &row["content"], &row["active_form"]), (2, &json!("theirs"), &json!("ours")));
}

#[test]
fn a_directory_that_was_replaced_is_noticed() {
    let place = Place::new();
    let inner = place.path("inner");
    fs::create_dir(&inner).unwrap();
    let store = Small::new(Sidecar::of_session(&inner, "s1", place.options()).unwrap()).unwrap();
    let engine = Engine::new(Arc::new(store), Limits::default());
    let zed = engine.register(&Registration { name: "zed".to_owned(), ..Registration::default() }).unwrap().name;
    let session = Session { engine, zed };
    session.add("a", &[]).unwrap();
    fs::rename(&inner, place.path("aside")).unwrap();
    fs::create_dir(&inner).unwrap();
    assert!(matches!(session.add("b", &[]), Err(Error::Store(StoreError::Moved { .. }))));
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 0);
}

#[test]
fn where_nothing_may_be_written_that_is_said() {
    let sys = Path::new("/sys");
    if !sys.is_dir() {
        println!("not tested here: there is no directory in which even root may not write");
        return;
    }
    let store = Small::new(Sidecar::of_session(sys, "s1", Options::default()).unwrap()).unwrap();
    let list = store.rows().list_name();
    let written = store.write(Some(&list), &mut |_| Ok(()));
    let said = written.unwrap_err().to_string();
    assert!(said.contains("read-only"), "{said}");
}

#[test]
fn a_waiter_hears_of_a_change_and_of_nothing_else() {
    let place = Place::new();
    let session = place.open("s1").unwrap();
    let id = session.add("a", &[]).unwrap();
    let sidecar = Sidecar::of_session(place.dir.path(), "s1", place.options()).unwrap();
    let seen = sidecar.version().unwrap();
    sidecar.wait(seen, Duration::from_millis(20)).unwrap();
    assert_eq!(sidecar.version().unwrap(), seen);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| sidecar.wait(seen, Duration::from_secs(30)));
        session.start(&id).unwrap();
        waiter.join().unwrap().unwrap();
    });
    assert_ne!(sidecar.version().unwrap(), seen);
}
