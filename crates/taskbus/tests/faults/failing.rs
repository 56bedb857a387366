//! Calls that fail: of each kind of failure, at places spread over a whole run. What was acknowledged is there afterwards,
//! and when the failure has passed, the work goes on.

use std::path::Path;

use crate::record::{self, What};
use crate::shim::{self, Wish};
use crate::workload::{Acks, STORE, USUAL, wrongs};

/// How many failures; a variable of the environment multiplies it.
const FAILURES: usize = 600;
const TIMES: &str = "TASKBUS_TEST_TIMES";
const KINDS: [&str; 5] = ["eio", "enospc", "short", "torn", "full"];

/// What came of the failures.
#[derive(Debug, Default)]
struct Tally {
    wrongs: Vec<String>,
    /// Runs in which a call was told of the failure,
    told: usize,
    /// in which the process was killed,
    killed: usize,
    /// and that were done in the end all the same.
    done: usize,
}

/// How many calls a run makes that can fail.
fn calls() -> u64 {
    let (home, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let record = beside.path().join("record");
    let dir = home.path().canonicalize().unwrap();
    assert!(shim::run(&dir, &USUAL, &Wish { record: Some(record.clone()), ..Wish::default() }).success());
    let events = record::read(&record);
    let acks = events.iter().find(|event| event.what == What::Opened("acks.log".to_owned())).unwrap().file;
    let fails = |what: &What| matches!(what, What::Wrote(..) | What::Cut(_) | What::Synced);
    events.iter().filter(|event| event.file != acks && fails(&event.what)).count() as u64
}

fn fail(number: u64, how: &'static str, tally: &mut Tally) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().canonicalize().unwrap();
    let status = shim::run(&dir, &USUAL, &Wish { fail: Some((number, how)), ..Wish::default() });
    let acks = Acks::of(&dir);
    let mut say = |what: String| tally.wrongs.push(format!("{how} at call {number}: {what}"));
    match how {
        "torn" => {}
        "full" if acks.failed == 0 => say("nobody was told that the disk is full".to_owned()),
        "full" => {}
        _ if !status.success() => say(format!("the process ended with {status}")),
        _ if !acks.ended => say(format!("it did not go on: {acks:?}")),
        _ => {}
    }
    wrongs_of(&dir, &acks).into_iter().for_each(say);
    tally.told += usize::from(acks.failed > 0);
    tally.killed += usize::from(!status.success());
    tally.done += usize::from(acks.ended);
}

/// Before anything was acknowledged there may be no store yet.
fn wrongs_of(dir: &Path, acks: &Acks) -> Vec<String> {
    if acks.all.is_empty() && !dir.join(STORE).exists() { Vec::new() } else { wrongs(dir, acks) }
}

#[test]
fn no_failure_loses_what_was_acknowledged() {
    let times = std::env::var(TIMES).ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let (calls, count) = (calls(), FAILURES * times);
    let run = |from: usize| {
        let mut tally = Tally::default();
        for at in (from..count).step_by(2) {
            // Every kind at every place in turn, as far as the count reaches.
            let number = 1 + (at / KINDS.len()) as u64 * calls / (count / KINDS.len()) as u64;
            fail(number, KINDS[at % KINDS.len()], &mut tally);
        }
        tally
    };
    let (first, second) = std::thread::scope(|scope| {
        let halves = [0, 1].map(|from| scope.spawn(move || run(from)));
        let [first, second] = halves.map(|half| half.join().unwrap());
        (first, second)
    });
    let (told, killed) = (first.told + second.told, first.killed + second.killed);
    println!("{count} failures over {calls} calls: {told} told, {killed} killed, {} done", first.done + second.done);
    assert_eq!([first.wrongs, second.wrongs].concat(), [""; 0]);
    assert!(told > count / 4 && killed > count / 8, "{told} told, {killed} killed");
}
