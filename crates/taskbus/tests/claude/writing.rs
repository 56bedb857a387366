//! What is written, how, and under which locks.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use taskbus::core::id::TaskId;
use taskbus::core::name::Identity;
use taskbus::core::task::{State, Status};
use taskbus::core::text::Body;
use taskbus::store::claude::{ClaudeOptions, ClaudeStore, Touch};
use taskbus::store::rows::RowStore as _;
use taskbus::store::{Abort, StoreError};

use crate::support::{Place, create, failed, impatient, open, write};

#[test]
fn a_task_is_written_as_claude_code_writes_it() {
    let place = Place::new();
    assert_eq!(place.create("Write it down", &[]), 1);
    let text = place.text("1.json");
    let start = "{\n  \"id\": \"1\",\n  \"subject\": \"Write it down\",\n  \"description\": \"\",\n  \"status\": \"pending\",\n  \"blocks\": [],\n  \"blockedBy\": [],\n  \"metadata\": {\n    \"taskbus\": {\n";
    assert!(text.starts_with(start) && text.ends_with("\n}"), "{text}");
    let mode = |name: &str| fs::metadata(place.file(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("1.json"), mode(".")), (0o600, 0o700));
    assert_eq!(place.names(), [".lock", "1.json"], "nothing is left over, the sentinel stays");
    assert_eq!(place.text(".lock"), "");
}

#[test]
fn what_was_written_is_read_back_the_same_by_anybody() {
    let place = Place::new();
    place.create("a", &[]);
    place.change(1, |task| {
        task.description = Some(Body::new("line\nline").unwrap());
        task.state = State::InProgress { owner: Some(Identity::new("Zed").unwrap()), lease: None };
        (task.revision, task.fence) = (2, 1);
    });
    let seen = place.task(1);
    assert_eq!((seen.revision, seen.fence, seen.status()), (2, 1, Status::InProgress));
    assert_eq!(open(&place.path()).snapshot().unwrap().live, [seen]);
}

#[test]
fn an_unchanged_write_touches_nothing() {
    let place = Place::new();
    place.create("a", &[]);
    let before = (place.text("1.json"), fs::metadata(place.file("1.json")).unwrap().modified().unwrap());
    let seen = place.store.version().unwrap();
    place.change(1, |_| {});
    let after = (place.text("1.json"), fs::metadata(place.file("1.json")).unwrap().modified().unwrap());
    assert_eq!((before, seen), (after, place.store.version().unwrap()));
}

#[test]
fn both_ends_of_an_edge_are_kept() {
    let place = Place::new();
    place.create("a", &[]);
    place.create("b", &[1]);
    place.create("c", &[1, 2]);
    assert_eq!((&place.json(1)["blocks"], &place.json(2)["blocks"]), (&json!(["2", "3"]), &json!(["3"])));
    place.change(3, |task| task.blocked_by.retain(|id| *id != TaskId::Number(1)));
    assert_eq!((&place.json(1)["blocks"], &place.json(3)["blockedBy"]), (&json!(["2"]), &json!(["2"])));
    assert!(place.delete(2));
    assert_eq!((&place.json(1)["blocks"], &place.json(3)["blockedBy"]), (&json!([]), &json!([])));
    assert_eq!((place.problems(), place.task(1).revision, place.task(3).revision), (vec![], 1, 1));
}

#[test]
fn edges_that_others_wrote_stay() {
    let place = Place::new();
    place.put_task(1, &json!({"blocks": ["40", "x y"], "blockedBy": ["50"]}));
    place.create("b", &[1]);
    assert_eq!((&place.json(1)["blocks"], &place.json(1)["blockedBy"]), (&json!(["40", "x y", "2"]), &json!(["50"])));
    place.put_task(3, &json!({"blockedBy": ["4"]}));
    assert_eq!(place.create("d", &[]), 4);
    assert_eq!(place.json(4)["blocks"], json!(["3"]), "it was waited for before it was there");
}

#[test]
fn ids_are_never_given_twice() {
    let place = Place::new();
    place.put_task(3, &json!({}));
    place.put("5.json", "no task");
    assert_eq!((place.create("a", &[]), place.create("b", &[])), (6, 7));
    assert!(place.delete(7));
    assert_eq!(place.text(".highwatermark"), "7");
    assert_eq!(place.create("c", &[]), 8);
    assert!(place.delete(8) && place.delete(6) && !place.delete(6));
    assert_eq!(place.text(".highwatermark"), "8");
    let reopened = open(&place.path());
    assert_eq!(write(&reopened, |rows| create(rows, "d", &[])).unwrap(), 9);
    let unused = write(&reopened, |rows| Ok(rows.allocate()?)).unwrap();
    assert_eq!((unused, place.create("e", &[])), (TaskId::Number(10), 11), "handed out and not used is used up");
}

#[test]
fn the_last_number_is_the_last() {
    let place = Place::new();
    place.put(".highwatermark", "9223372036854775806");
    assert_eq!(place.create("last", &[]), 9_223_372_036_854_775_807);
    let error = failed(write(&place.store, |rows| create(rows, "one more", &[])));
    assert!(error.to_string().contains("9223372036854775807"), "{error}");
}

#[test]
fn a_body_that_fails_or_panics_leaves_nothing() {
    let place = Place::new();
    place.create("a", &[]);
    let names = place.names();
    let refused = write::<()>(&place.store, |rows| {
        create(rows, "lost", &[1])?;
        rows.delete(&TaskId::Number(1))?;
        Err(Abort::Failed(StoreError::Moved { store: "by hand".to_owned() }))
    });
    assert!(refused.is_err());
    let store = Arc::clone(&place.store);
    let panicked = std::thread::spawn(move || {
        let _ = write::<()>(&store, |rows| {
            create(rows, "lost", &[1])?;
            panic!("on purpose");
        });
    });
    assert!(panicked.join().is_err());
    assert_eq!((place.names(), place.live()), (names, vec![1]));
    assert_eq!(place.create("b", &[]), 2);
}

#[test]
fn a_transaction_sees_what_it_wrote() {
    let place = Place::new();
    place.create("a", &[]);
    write(&place.store, |rows| {
        let id = TaskId::Number(create(rows, "b", &[1])?);
        assert_eq!(rows.get(&id)?.unwrap().subject.as_str(), "b");
        assert_eq!(rows.list()?.live.len(), 2);
        assert!(rows.delete(&TaskId::Number(1))? && rows.get(&TaskId::Number(1))?.is_none());
        assert!(rows.get(&id)?.unwrap().blocked_by.is_empty(), "edges go with what they lead to");
        assert_eq!(rows.list()?.live.len(), 1);
        Ok(())
    })
    .unwrap();
    assert_eq!((place.live(), place.json(2)["blockedBy"].clone()), (vec![2], json!([])));
}

#[test]
fn a_change_by_another_program_in_between_runs_the_body_again() {
    let place = Place::new();
    place.put_task(1, &json!({}));
    let mut runs = 0;
    write(&place.store, |rows| {
        let mut task = rows.get(&TaskId::Number(1))?.unwrap();
        runs += 1;
        if runs == 1 {
            place.put_task(1, &json!({"owner": "other", "status": "in_progress"}));
        }
        task.metadata.insert("run".to_owned(), runs.into());
        Ok(rows.set(&task)?)
    })
    .unwrap();
    let task = place.json(1);
    assert_eq!((runs, &task["owner"], &task["metadata"]["run"]), (2, &json!("other"), &json!(2)));
    assert!(!place.names().iter().any(|name| name.contains(".tmp.")));
}

#[test]
fn a_program_that_never_stops_changing_makes_it_busy() {
    let place = Place::new();
    place.put_task(1, &json!({}));
    let store = impatient(&place.path(), 1_000);
    let mut runs = 0;
    let error = failed(write(&store, |rows| {
        runs += 1;
        place.put_task(1, &json!({"description": format!("{runs}")}));
        create(rows, "never", &[1])
    }));
    assert!(matches!(error, StoreError::Busy { .. }) && runs > 1, "{error}");
    assert_eq!(place.live(), [1]);
}

/// Says when a writer found a lock held.
struct TellsOfWaiting(Sender<()>);

impl Touch for TellsOfWaiting {
    fn allow(&self) -> io::Result<()> {
        Ok(())
    }

    fn waits(&self) {
        let _nobody_listens_any_more = self.0.send(());
    }
}

#[test]
fn locks_of_another_program_are_waited_for() {
    for name in [".lock.lock", "1.json.lock"] {
        let place = Place::new();
        place.create("a", &[]);
        fs::create_dir(place.file(name)).unwrap();
        let error = failed(write(&impatient(&place.path(), 60), |rows| Ok(rows.delete(&TaskId::Number(1))?)));
        assert!(matches!(error, StoreError::Busy { waited_ms: 60.., .. }), "{name}: {error}");
        assert_eq!(place.live(), [1]);
        let (tell, waits) = channel();
        let options = ClaudeOptions { touch: Arc::new(TellsOfWaiting(tell)), ..ClaudeOptions::default() };
        let store = ClaudeStore::open(&place.path(), options).unwrap();
        let lock = place.file(name);
        let holder = std::thread::spawn(move || {
            waits.recv_timeout(Duration::from_secs(20)).expect("the writer finds the lock held");
            fs::remove_dir(lock).unwrap();
        });
        assert!(write(&store, |rows| Ok(rows.delete(&TaskId::Number(1))?)).unwrap());
        holder.join().unwrap();
    }
}

#[test]
fn an_abandoned_lock_of_another_program_is_taken_over() {
    let place = Place::new();
    place.create("a", &[]);
    for name in [".lock.lock", "1.json.lock"] {
        fs::create_dir(place.file(name)).unwrap();
        let old = SystemTime::now() - Duration::from_millis(10_500);
        fs::File::open(place.file(name)).unwrap().set_modified(old).unwrap();
    }
    let start = Instant::now();
    assert!(place.delete(1));
    assert!(start.elapsed() < Duration::from_secs(5));
}

struct NoTouch;

impl Touch for NoTouch {
    fn allow(&self) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[test]
fn where_times_cannot_be_set_it_works_all_the_same() {
    let place = Place::new();
    let options = ClaudeOptions { touch: Arc::new(NoTouch), ..ClaudeOptions::default() };
    let store = ClaudeStore::open(&place.path(), options).unwrap();
    assert_eq!(write(&store, |rows| create(rows, "a", &[])).unwrap(), 1);
    assert_eq!(write(&store, |rows| create(rows, "b", &[1])).unwrap(), 2);
}

#[test]
fn a_directory_that_may_not_be_written_says_so() {
    let place = Place::new();
    place.put_task(1, &json!({}));
    place.put(".lock", "");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let result = write(&place.store, |rows| create(rows, "no", &[]));
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // The super-user writes everywhere.
    if let Err(Abort::Failed(error)) = result {
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        assert_eq!(place.live(), [1]);
    } else {
        assert_eq!(place.live(), [1, 2]);
    }
}

#[test]
fn a_directory_that_is_replaced_under_a_write_gets_no_acknowledgement() {
    let place = Place::new();
    place.create("a", &[]);
    let aside = place.path().with_extension("aside");
    let error = failed(write(&place.store, |rows| {
        fs::rename(place.path(), &aside).unwrap();
        create(rows, "lost", &[])
    }));
    assert!(matches!(error, StoreError::Moved { .. }), "{error}");
    assert_eq!(place.create("in the new one", &[]), 2, "ids go on");
    assert!(!aside.join("2.json").exists());
}

#[test]
fn what_a_killed_process_left_is_finished_or_swept() {
    let place = Place::new();
    place.create("a", &[]);
    place.create("b", &[1]);
    // A transaction that had happened and was not carried out: b is deleted, and a blocks nobody.
    let print = |name: &str| blake3::hash(place.text(name).as_bytes()).to_hex()[..32].to_owned();
    let freed = place.text("1.json").replace("\"blocks\": [\n    \"2\"\n  ]", "\"blocks\": []");
    let journal = json!({"version": 1, "writes": [
        {"name": "1.json", "before": print("1.json"), "after": freed},
        {"name": "2.json", "before": print("2.json"), "after": null},
        {"name": "9.json", "before": null, "after": freed.replace("\"id\": \"1\"", "\"id\": \"9\"")},
    ]});
    place.put(".taskbus-journal", &journal.to_string());
    assert_eq!(place.live(), [1, 9], "a reader sees it carried out");
    assert_eq!(open(&place.path()).snapshot().unwrap().live.len(), 2);
    assert!(place.file("2.json").exists(), "and writes nothing");
    assert_eq!(place.create("c", &[]), 10);
    assert_eq!(
        (place.names(), &place.json(1)["blocks"]),
        (names(&[".lock", "1.json", "10.json", "9.json"]), &json!([]))
    );
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_journal_that_cannot_be_followed_stops_writing_and_nothing_else() {
    let place = Place::new();
    place.create("a", &[]);
    place.put(".taskbus-journal", "{");
    assert_eq!(place.live(), [1]);
    assert!(place.problems()[0].contains(".taskbus-journal"));
    assert!(matches!(failed(write(&place.store, |rows| create(rows, "b", &[]))), StoreError::Damaged { .. }));
    place.put(".taskbus-journal", r#"{"version":9}"#);
    let newer = failed(write(&place.store, |rows| create(rows, "b", &[])));
    assert!(matches!(newer, StoreError::Newer { found: 9, .. }));
    assert_eq!(place.text(".taskbus-journal"), r#"{"version":9}"#, "left as it was");
}

#[test]
fn words_are_files_too_but_not_hidden_ones() {
    let place = Place::new();
    let word =
        |word: &str| taskbus::core::task::Task { id: TaskId::Text(word.into()), ..crate::support::task(1, "a word") };
    write(&place.store, |rows| Ok(rows.set(&word("t_1_ab"))?)).unwrap();
    assert_eq!(place.rows().live[0].id, TaskId::Text("t_1_ab".into()));
    assert!(place.file("t_1_ab.json").exists());
    for hidden in ["_meta", ".x"] {
        let error = failed(write(&place.store, |rows| Ok(rows.set(&word(hidden))?)));
        assert!(error.to_string().contains("cannot be the name"), "{error}");
    }
}
