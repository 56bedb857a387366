//! What is read, what is skipped, what is reported.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use taskbus::core::id::TaskId;
use taskbus::core::policy::Policy;
use taskbus::store::claude::{ClaudeOptions, ClaudeStore, Fault, Problem};
use taskbus::store::rows::RowStore as _;
use taskbus::store::{Abilities, StoreError};

use crate::support::{Place, failed, numbers, write};

#[test]
fn a_directory_that_is_not_there_is_an_empty_list() {
    let place = Place::new();
    assert_eq!(place.rows(), Default::default());
    assert!(!place.path().exists());
    assert_eq!((place.store.list_name().as_str(), place.store.policy()), ("tasks/list", Policy::Claude));
    let abilities = Abilities { durable: true, shared_across_processes: true, liveness: false };
    assert_eq!(place.store.abilities(), abilities);
    assert_eq!(place.store.describe(), format!("claude:{}", place.path().display()));
}

#[test]
fn what_is_no_directory_is_refused() {
    let place = Place::new();
    place.put("1.json", "x");
    for path in [place.file("1.json"), "/no/such/place/list".into()] {
        let error = ClaudeStore::open(&path, ClaudeOptions::default()).err().unwrap();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    }
}

#[test]
fn tasks_are_ordered_by_number_and_then_by_word() {
    let place = Place::new();
    for id in [10, 9, 1, 2] {
        place.put_task(id, &json!({}));
    }
    for word in ["t-9", "t-10"] {
        place.put(&format!("{word}.json"), r#"{"subject":"a word","status":"pending"}"#);
    }
    let ids: Vec<String> = place.rows().live.iter().map(|task| task.id.to_string()).collect();
    assert_eq!(ids, ["1", "2", "9", "10", "t-10", "t-9"]);
    assert!(place.rows().live.is_sorted_by(|a, b| (&a.rank, &a.id) < (&b.rank, &b.id)), "the tree has the same order");
}

#[test]
fn what_others_leave_lying_about_is_skipped() {
    let place = Place::new();
    place.put_task(1, &json!({}));
    let before = place.names();
    for name in
        [".lock", "_meta.json", ".2.json.tmp", "2.json.tmp.0a1b2c3d", "2.json.4711.99.tmp", "notes.txt", "2.json~"]
    {
        place.put(name, r#"{"subject":"no","status":"pending"}"#);
    }
    place.put("settings.json", r#"{"theme":"dark"}"#);
    place.put("broken.json", "{");
    std::fs::create_dir(place.file("1.json.lock")).unwrap();
    std::fs::create_dir(place.file("word.json")).unwrap();
    symlink("/etc/hostname", place.file("link.json")).unwrap();
    assert_eq!((place.live(), place.rows().unreadable), (vec![1], vec![]));
    assert_eq!(place.problems(), [""; 0]);
    assert_eq!(before, ["1.json"]);
}

#[test]
fn names_like_a_tasks_that_are_none_are_reported() {
    let place = Place::new();
    for name in ["0.json", "007.json"] {
        place.put(name, r#"{"subject":"guard","status":"pending"}"#);
    }
    assert_eq!(place.live(), [0; 0]);
    assert!(place.problems().iter().all(|text| text.contains("without leading zeros")));
    assert_eq!(place.create("next", &[]), 8, "007 reserves its number");
}

#[test]
fn a_file_that_is_no_task_keeps_its_id_and_blocks() {
    let place = Place::new();
    place.put_task(1, &json!({"blockedBy": ["2", "3", "9"]}));
    place.put("2.json", r#"{"id":"2","subject":"torn"#);
    place.put("3.json", r#"{"id":"3","subject":"odd","status":"open","blocks":[],"blockedBy":[]}"#);
    symlink(place.file("1.json"), place.file("4.json")).unwrap();
    mknodat(CWD, place.file("5.json"), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    std::fs::create_dir(place.file("6.json")).unwrap();
    let rows = place.rows();
    assert_eq!((numbers(rows.live.iter().map(|t| &t.id)), numbers(&rows.unreadable)), (vec![1], vec![2, 3, 4, 5, 6]));
    assert_eq!(numbers(&rows.live[0].blocked_by), [2, 3, 9]);
    let problems = place.store.problems().unwrap();
    let links = |problem: &&Problem| matches!(problem, Problem::Unreadable { fault: Fault::NoFile, .. });
    assert_eq!(problems.iter().filter(links).count(), 3);
    let dangling = Problem::Dangling { id: TaskId::Number(1), blockers: vec![TaskId::Number(9)] };
    assert!(problems.contains(&dangling), "{problems:?}");
    assert_eq!(place.create("next", &[]), 7);
    let touch = write(&place.store, |rows| Ok(rows.get(&TaskId::Number(2))?));
    let error = failed(touch);
    assert!(matches!(error, StoreError::Damaged { .. }) && error.to_string().contains("2.json"), "{error}");
    let error = failed(write(&place.store, |rows| Ok(rows.delete(&TaskId::Number(3))?)));
    assert!(error.to_string().contains("its status is"), "{error}");
    assert!(place.text("2.json").starts_with(r#"{"id":"2""#), "left as it was");
}

#[test]
fn a_torn_file_is_read_again_and_is_never_a_deletion() {
    let place = Place::new();
    place.put_task(1, &json!({}));
    place.put_task(2, &json!({}));
    let whole = place.text("2.json");
    assert_eq!(place.live(), [1, 2]);
    let seen = place.store.version().unwrap();
    place.put("2.json", &whole[..whole.len() / 2]);
    assert_eq!((place.live(), numbers(&place.rows().unreadable)), (vec![1], vec![2]));
    assert!(place.store.vanished().unwrap().is_empty());
    assert_ne!(place.store.version().unwrap(), seen);
    place.put("2.json", &whole);
    assert_eq!(place.live(), [1, 2]);
}

#[test]
fn a_file_that_is_being_written_is_given_the_time() {
    let place = Place::new();
    place.put_task(1, &json!({}));
    let whole = place.text("1.json").replace("task 1", "task 2");
    place.put("2.json", "");
    let path = place.file("2.json");
    let readings = Readings::of(&path);
    let writer = std::thread::spawn(move || {
        // The second reading comes after the reader found the file empty and gave it time.
        readings.wait_for(2);
        std::fs::write(path, whole).unwrap();
    });
    // Read while the file is empty, the task is there all the same: the reader waited for it.
    assert_eq!((place.live(), place.rows().unreadable), (vec![1, 2], vec![]));
    writer.join().unwrap();
}

/// Hears from the kernel how often a file was read.
struct Readings(OwnedFd);

impl Readings {
    fn of(path: &Path) -> Self {
        let ear = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&ear, path, WatchFlags::OPEN | WatchFlags::CLOSE_NOWRITE).unwrap();
        Self(ear)
    }

    fn wait_for(&self, readings: usize) {
        // Opened, closed, opened, closed: two alike in a row would be told as one.
        let mut times = 2 * readings;
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        while times > 0 {
            let patience = Timespec { tv_sec: 20, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&patience)).unwrap();
            assert!(ready > 0, "the file is opened or closed {times} times more");
            while times > 0 && reader.next().is_ok() {
                times -= 1;
            }
        }
    }
}

#[test]
fn a_word_that_was_a_task_and_is_none_is_not_forgotten() {
    let place = Place::new();
    place.put("word.json", r#"{"subject":"a","status":"pending"}"#);
    assert_eq!(place.rows().live.len(), 1);
    place.put("word.json", r#"{"subject":"a","#);
    assert_eq!(place.rows().unreadable, ["word".parse::<TaskId>().unwrap()]);
}

#[test]
fn a_stored_status_of_deleted_is_a_deleted_task() {
    let place = Place::new();
    place.put_task(1, &json!({"status": "deleted"}));
    let rows = place.rows();
    assert_eq!((rows.live.len(), numbers(rows.deleted.iter().map(|task| &task.id))), (0, vec![1]));
    assert!(!place.delete(1));
    place.change_deleted();
}

impl Place {
    /// Brings task 1 back.
    fn change_deleted(&self) {
        let task = self.rows().deleted.remove(0);
        write(&self.store, |rows| Ok(rows.set(&task)?)).unwrap();
        assert_eq!((self.live(), self.json(1)["status"].as_str()), (vec![1], Some("pending")));
    }
}

#[test]
fn circles_and_dangling_edges_are_read_and_reported() {
    let place = Place::new();
    place.put_task(1, &json!({"blockedBy": ["1"]}));
    place.put_task(2, &json!({"blockedBy": ["3"], "blocks": ["3"]}));
    place.put_task(3, &json!({"blockedBy": ["2"], "blocks": ["4"]}));
    place.put_task(4, &json!({"blockedBy": ["77"], "blocks": ["88"]}));
    for id in 5..3_000 {
        place.put_task(id, &json!({"blockedBy": [(id + 1).to_string()], "blocks": [(id - 1).to_string()]}));
    }
    place.put_task(3_000, &json!({"blockedBy": ["5"], "blocks": ["2999"]}));
    assert_eq!(place.live().len(), 3_000);
    let problems = place.store.problems().unwrap();
    let mut rings: Vec<usize> =
        problems.iter().filter_map(|p| if let Problem::Cycle { path } = p { Some(path.len()) } else { None }).collect();
    rings.sort_unstable();
    assert_eq!(rings, [1, 2, 2_996]);
    let half = Problem::HalfEdge { blocker: TaskId::Number(3), waiting: TaskId::Number(4) };
    assert!(problems.contains(&half));
    let round = place.problems().into_iter().find(|text| text.contains("2 -> 3 -> 2"));
    assert!(round.is_some());
}

#[test]
fn parents_that_go_round_do_not_hide_anybody() {
    let place = Place::new();
    place.put_task(1, &json!({"metadata": {"taskbus": {"parent": 2}}}));
    place.put_task(2, &json!({"metadata": {"taskbus": {"parent": 1}}}));
    assert_eq!(place.task(1).parent, None);
    assert_eq!(place.task(2).parent, Some(TaskId::Number(1)));
    assert_eq!(place.problems(), ["the parents of task 1 go round in a circle; it is shown as a root"]);
}

#[test]
fn a_bad_mark_is_reported_and_rebuilt_from_the_files() {
    let place = Place::new();
    place.put_task(5, &json!({}));
    place.put(".highwatermark", "twelve");
    assert!(place.problems()[0].contains("\"twelve\""));
    assert_eq!(place.create("next", &[]), 6);
    assert!(place.delete(6));
    assert_eq!(place.text(".highwatermark"), "6");
    place.put(".highwatermark", "12\n");
    assert_eq!(place.create("next", &[]), 13);
    place.put(".highwatermark", "2");
    assert!(place.delete(13));
    assert_eq!(place.text(".highwatermark"), "13", "a mark that fell behind is put right");
}
