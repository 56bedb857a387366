//! Power cuts: a workload is watched, and after any of its calls the disk may hold what [`crate::image`] makes of it. Each
//! image must open, be sound, and hold everything that was acknowledged by then.
//!
//! A workload that syncs too little must be seen to lose something, else it would show nothing.

use std::collections::BTreeMap;

use taskbus::store::sqlite::Durability;

use crate::image::{Disk, Unsynced};
use crate::record::{self, Event};
use crate::shim::{self, Wish};
use crate::workload::{Acks, Orders, STORE, USUAL, wrongs};

/// Images of a usual run, and of one that writes the log back; a variable of the environment multiplies both.
const IMAGES: usize = 2_900;
const IMAGES_OF_A_CHECKPOINT: usize = 100;
const TIMES: &str = "TASKBUS_TEST_TIMES";
/// The log is written back at 4,000 pages, each of 2,048 bytes and a head.
const NEARLY_FULL: u64 = 3_700 * (2_048 + 24);
/// Wrongs told.
const TOLD_MAX: usize = 10;

/// A workload that was watched: what was there before, and what it did.
struct Watched {
    before: BTreeMap<String, Vec<u8>>,
    events: Vec<Event>,
}

/// One image: after so many calls, made so.
#[derive(Clone, Copy, Debug)]
struct Cut {
    after: usize,
    unsynced: Unsynced,
}

fn watch(orders: &Orders, before: BTreeMap<String, Vec<u8>>, drop: Option<&'static str>) -> Watched {
    let (home, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = home.path().canonicalize().unwrap();
    for (name, bytes) in &before {
        std::fs::write(dir.join(name), bytes).unwrap();
    }
    let record = beside.path().join("record");
    let status = shim::run(&dir, orders, &Wish { record: Some(record.clone()), drop, ..Wish::default() });
    assert!(status.success() && Acks::of(&dir).ended, "the workload does not come to its end: {status}");
    Watched { before, events: record::read(&record) }
}

/// A store whose log is nearly so long that it is written back.
fn nearly_full() -> BTreeMap<String, Vec<u8>> {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().canonicalize().unwrap();
    let read = |name: String| (name.clone(), std::fs::read(dir.join(name)).unwrap());
    let log = format!("{STORE}-wal");
    for name in 'b'..='z' {
        assert!(shim::run(&dir, &Orders { calls: 6, long: true, name, ..USUAL }, &Wish::default()).success());
        if read(log.clone()).1.len() as u64 > NEARLY_FULL {
            return [STORE.to_owned(), log].map(read).into();
        }
    }
    panic!("the log does not become long enough");
}

fn times() -> usize {
    std::env::var(TIMES).ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// So many cuts, spread over the calls, each kind as often as the others.
fn cuts(events: usize, count: usize) -> Vec<Cut> {
    let kind = |at: usize| match at % 4 {
        0 => Unsynced::Lost,
        1 => Unsynced::Kept,
        _ => Unsynced::Torn(at as u64),
    };
    let mut cuts: Vec<Cut> = (0..count).map(|at| Cut { after: 1 + at * events / count, unsynced: kind(at) }).collect();
    cuts.sort_by_key(|cut| cut.after);
    cuts
}

/// What is wrong with the images after these cuts, in two threads.
fn check_all(watched: &Watched, cuts: &[Cut]) -> Vec<String> {
    let (first, second) = cuts.split_at(cuts.len() / 2);
    std::thread::scope(|scope| {
        let halves = [first, second].map(|half| scope.spawn(|| check(watched, half)));
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    })
}

fn check(watched: &Watched, cuts: &[Cut]) -> Vec<String> {
    let (mut disk, mut done, mut found) = (Disk::with(&watched.before), 0, Vec::new());
    for cut in cuts {
        watched.events[done..cut.after].iter().for_each(|event| disk.apply(event));
        done = cut.after;
        let home = tempfile::tempdir().unwrap();
        disk.lay_out(home.path(), cut.unsynced);
        let wrongs = wrongs(home.path(), &Acks::read(&disk.acks()));
        found.extend(wrongs.into_iter().map(|wrong| format!("{cut:?}: {wrong}")));
        if found.len() >= TOLD_MAX {
            break;
        }
    }
    found
}

#[track_caller]
fn survives(watched: &Watched, count: usize) {
    let (events, cuts) = (watched.events.len(), cuts(watched.events.len(), count));
    let found = check_all(watched, &cuts);
    println!("{count} images of a run of {events} calls, {} wrong", found.len());
    assert_eq!(found, [""; 0]);
}

#[test]
fn images_of_a_usual_run_hold_what_was_acknowledged() {
    let watched = watch(&Orders { threads: 2, calls: 30, ..USUAL }, BTreeMap::new(), None);
    survives(&watched, IMAGES * times());
}

#[test]
fn images_of_a_checkpoint_hold_what_was_acknowledged() {
    let watched = watch(&Orders { calls: 16, long: true, ..USUAL }, nearly_full(), None);
    let in_file = watched.events.iter().filter(|event| is_of_store(event, &watched.events)).count();
    assert!(in_file > 1_000, "the log was not written back: {in_file} calls on the file");
    survives(&watched, IMAGES_OF_A_CHECKPOINT * times());
}

/// Whether a call is on the file itself and not on its log.
fn is_of_store(event: &Event, events: &[Event]) -> bool {
    let number = events.iter().find(|event| event.what == record::What::Opened(STORE.to_owned()));
    number.is_some_and(|number| number.file == event.file)
}

#[track_caller]
fn loses(watched: &Watched) {
    let lost = check_all(watched, &cuts(watched.events.len(), 60));
    assert!(lost.iter().any(|wrong| wrong.contains("lost: ")), "{lost:?}");
}

/// `durability = "relaxed"` is what SQLite calls NORMAL.
#[test]
fn a_store_that_syncs_now_and_then_is_seen_to_lose() {
    loses(&watch(&Orders { durability: Durability::Relaxed, ..USUAL }, BTreeMap::new(), None));
}

/// As SQLite does at OFF.
#[test]
fn a_store_that_syncs_nothing_is_seen_to_lose() {
    loses(&watch(&USUAL, BTreeMap::new(), Some("all")));
}

#[test]
fn a_store_that_does_not_sync_its_directory_is_seen_to_lose() {
    loses(&watch(&USUAL, BTreeMap::new(), Some("dir")));
}
