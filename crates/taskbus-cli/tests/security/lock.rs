//! Threat T14: somebody who holds the lock and does not go on. Calls end by their deadline and name the process, and
//! the doctor says what to do.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::Place;

/// What begins to write and waits for the end of its input.
const HOLDER: &str = "import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.read()
store.execute('ROLLBACK')";

fn holding(place: &Place) -> Child {
    let mut python = Command::new("python3");
    python.args(["-c", HOLDER]).arg(place.path("tasks.db")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut holder = python.spawn().expect("python3 is needed for this test");
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    holder
}

fn signal(holder: &Child, signal: Signal) {
    kill_process(Pid::from_child(holder), signal).unwrap();
}

#[test]
fn a_stopped_process_that_holds_the_lock_is_named_and_outlived() {
    let place = Place::new();
    place.ok(&["add", "one", "--create"]);
    let mut holder = holding(&place);
    signal(&holder, Signal::STOP);
    let begun = Instant::now();
    let (code, refused) = place.json(&["add", "two"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!((code, &refused["error"]["reason"]), (3, &"store_busy".into()), "{refused}");
    let named = format!("process {} (python3), which is stopped, holds its lock", holder.id());
    assert!(refused.to_string().contains(&named), "{refused}");
    assert_eq!(place.ok(&["list"])["tasks"].as_array().map(Vec::len), Some(1), "reading goes on");
    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.code, 3, "{doctor:?}");
    assert!(doctor.out.contains(&format!("kill -CONT {}", holder.id())), "{doctor:?}");
    signal(&holder, Signal::CONT);
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    place.ok(&["add", "two"]);
    assert_eq!(place.run(&["doctor"]).code, 0);
}
