//! Several files change at once or not at all: for whoever reads meanwhile, and for whoever comes after a kill.

use std::ffi::OsStr;
use std::fs;
use std::time::Duration;

use serde_json::json;
use taskbus::core::id::TaskId;
use taskbus::core::task::Task;
use taskbus::store::claude::ClaudeStore;
use taskbus::store::rows::RowStore as _;

use crate::crew::{Crew, Dice, Orders, orders, say};
use crate::support::{create, open, write};

const TASKS: u64 = 40;
const KILLS: usize = 50;
const PATIENCE: Duration = Duration::from_secs(120);

/// Counts all tasks up, in one transaction each time.
#[test]
fn a_counter() {
    let own = tempfile::tempdir().unwrap();
    let alone = Orders { dir: own.path().join("list"), worker: 0, first: 0, last: 3, locks: true };
    let orders = orders().unwrap_or(alone);
    let store = open(&orders.dir);
    make(&store);
    for number in orders.first..orders.last {
        write(&store, |rows| {
            for id in 1..=TASKS {
                let mut task = rows.get(&TaskId::Number(id))?.unwrap();
                task.metadata.insert("count".to_owned(), json!(number));
                rows.set(&task)?;
            }
            Ok(())
        })
        .unwrap();
        say(&json!(number));
    }
    assert_eq!(count(&store.snapshot().unwrap().live), Some(orders.last - 1));
}

fn make(store: &ClaudeStore) {
    write(store, |rows| {
        let there = rows.list()?.live.len() as u64;
        (there..TASKS).try_for_each(|at| create(rows, &format!("{at}"), &[]).map(drop))
    })
    .unwrap();
}

/// What all tasks say; fails when they do not agree.
#[track_caller]
fn count(tasks: &[Task]) -> Option<u64> {
    let counts: Vec<Option<u64>> = tasks.iter().map(|task| task.metadata.get("count")?.as_u64()).collect();
    assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "half of a transaction: {counts:?}");
    counts.first().copied().flatten()
}

#[test]
fn a_transaction_on_several_files_is_whole_for_readers_and_after_a_kill() {
    // In memory, where a sync costs nothing, much more of the time goes into what a kill may cut in two.
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let dir = place.path().join("list");
    let reader = open(&dir);
    make(&reader);
    let unfinished = || fs::read_dir(&dir).unwrap().any(|entry| is_unfinished(&entry.unwrap().file_name()));
    let (mut crew, mut dice, mut last, mut cut) = (Crew::new("whole::a_counter"), Dice::new(3), 0, 0);
    for _ in 0..KILLS {
        crew.start(&Orders { dir: dir.clone(), worker: 0, first: last + 1, last: u64::MAX, locks: true });
        let mut left = 1 + dice.below(6);
        while left > 0 {
            let said = crew.heard.recv_timeout(PATIENCE).expect("it counts on");
            last = said.line.expect("it counts on").as_u64().unwrap();
            left -= 1;
            assert!(count(&reader.snapshot().unwrap().live) >= Some(last), "a reader sees what was acknowledged");
        }
        // Anywhere in the next one.
        std::thread::sleep(Duration::from_micros(dice.below(30_000)));
        crew.kill(0);
        while let Some(line) = crew.heard.recv_timeout(PATIENCE).expect("it ends").line {
            last = line.as_u64().unwrap();
        }
        assert!(!crew.ended(0));
        cut += usize::from(unfinished());
        let found = count(&open(&dir).snapshot().unwrap().live);
        assert!(found == Some(last) || found == Some(last + 1), "{found:?} after {last}");
        last = found.unwrap();
    }
    eprintln!("{cut} of {KILLS} kills left something unfinished");
    assert!(cut > 0, "{cut} of {KILLS} kills left something unfinished");
    write(&reader, |rows| create(rows, "what is unfinished goes away", &[])).unwrap();
    assert!(!unfinished());
    assert_eq!(reader.problems().unwrap(), []);
}

/// Whether it is a file that did not get to its place, or the journal of a transaction.
fn is_unfinished(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.contains(".tmp.") || name.contains("journal")
}
