//! A database that was edited, with its log and its high-water file: the first byte chooses the file, and each six bytes
//! behind it are one edit. It is refused and stays as it is, or what it says is the truth, or somebody tells.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use taskbus::core::change::{Change, Kind};
use taskbus::core::id::TaskId;
use taskbus::core::name::{Identity, ListName};
use taskbus::core::neighbourhood::ListRules;
use taskbus::core::task::State;
use taskbus::core::time::Timestamp;
use taskbus::store::sqlite::{Durability, Recorded, SqliteOptions, SqliteStore};
use taskbus::store::{Author, PageQuery, StoreError, read_with, write_with};

use crate::harness::{Made, Target};
use crate::{files, scratch, task};

const NAME: &str = "taskbus.db";
const ENDINGS: [&str; 3] = ["", "-wal", "-high"];
const PAGE: usize = 2048;

#[test]
fn an_edited_database_is_refused_or_true_or_told() {
    Target { name: "databases", corpus: include_str!("corpus/databases.txt"), words: &[], take }.hunt_both(400);
}

fn list() -> ListName {
    ListName::new("tasks/work").unwrap()
}

fn open(dir: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(dir.join(NAME), SqliteOptions { durability: Durability::Relaxed, ..SqliteOptions::default() })
}

fn add(store: &SqliteStore) -> Result<TaskId, taskbus::store::Abort> {
    write_with(store, Some(&list()), |tx| {
        let task = task(tx.mint(1)?.remove(0));
        tx.append(&Change { kind: Kind::Created, task: task.clone(), note: None }, &Author::default())?;
        Ok(task.id)
    })
}

/// The three files of a store with some tasks in its file and some in its log, and what it says.
static WHOLE: LazyLock<([Vec<u8>; 3], String)> = LazyLock::new(|| {
    let dir = scratch();
    let durable = || SqliteStore::open(dir.path().join(NAME), SqliteOptions::default()).unwrap();
    let store = durable();
    write_with(&store, None, |tx| Ok(tx.create_list(&list(), ListRules::default(), Timestamp::from_millis(1))?))
        .unwrap();
    (0..12).for_each(|_| done(&store, &add(&store).unwrap()));
    drop(store);
    let raw = rusqlite::Connection::open(dir.path().join(NAME)).unwrap();
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(raw);
    let store = durable();
    (0..6).for_each(|_| drop(add(&store).unwrap()));
    let told = told(&store).unwrap();
    (ENDINGS.map(|ending| fs::read(dir.path().join(format!("{NAME}{ending}"))).unwrap()), told)
});

fn done(store: &SqliteStore, id: &TaskId) {
    write_with(store, Some(&list()), |tx| {
        let mut task = tx.task(id)?.unwrap();
        task.state = State::Completed { by: Identity::new("Zed").ok(), at: Timestamp::from_millis(9) };
        task.revision += 1;
        tx.append(&Change { kind: Kind::Changed, task, note: None }, &Author::default())?;
        Ok(())
    })
    .unwrap();
}

/// What it says of its tasks.
fn told(store: &SqliteStore) -> Result<String, StoreError> {
    read_with(store, Some(&list()), |snapshot| {
        let page = snapshot.page(&PageQuery::all(100, Timestamp::from_millis(1)))?;
        let mut said = format!("{page:?} {:?}", snapshot.deleted(100)?);
        for number in 1..=40 {
            let id = TaskId::number(number).unwrap();
            said += &format!("{:?} {:?}", snapshot.task(&id)?, snapshot.history(&id, None, 100)?);
        }
        Ok(said)
    })
}

fn take(input: &[u8]) -> Made {
    let (mut whole, truth) = WHOLE.clone();
    let (first, edits) = input.split_first().unwrap_or((&0, &[]));
    let file = &mut whole[usize::from(*first) % 3];
    if *first >= 200 {
        *file = edits.to_vec();
    } else {
        edits.chunks_exact(6).for_each(|edit| apply(file, edit));
    }
    let keep = scratch();
    let dir = keep.path();
    for (ending, bytes) in ENDINGS.iter().zip(&whole) {
        fs::write(dir.join(format!("{NAME}{ending}")), bytes).unwrap();
    }
    let before = files(dir);
    let store = match open(dir) {
        Ok(store) => store,
        Err(error) => {
            assert!(error.to_string().len() > 20, "{error}");
            assert_eq!(files(dir).get(NAME), before.get(NAME), "what is refused stays as it is");
            return Made::Refused;
        }
    };
    judge(&store, &truth)
}

/// One edit: what, where (two bytes), and three bytes to do it with.
fn apply(file: &mut Vec<u8>, edit: &[u8]) {
    let [what, high, low, a, b, c] = edit else { unreachable!("edits are six bytes") };
    let length = file.len();
    if length == 0 {
        return;
    }
    let at = (usize::from(*high) << 8 | usize::from(*low)) * 7 % length;
    match what % 6 {
        0 => file[at] ^= 1 << (a % 8),
        1 => file[at] = *a,
        2 => file[at..(at + usize::from(*a)).min(length)].fill(*b),
        3 => file.truncate(at),
        4 => {
            let pages = length / PAGE;
            let [from, to] = [usize::from(*a) % pages.max(1), usize::from(*b) % pages.max(1)];
            let page: Vec<u8> = file.iter().skip(from * PAGE).take(PAGE).copied().collect();
            file.splice(to * PAGE..(to * PAGE + page.len()).min(length), page);
        }
        _ => file.extend_from_slice(&[*a, *b, *c]),
    }
}

/// Whatever is read is the truth, or it is told that it is not.
fn judge(store: &SqliteStore, truth: &str) -> Made {
    let told = told(store);
    let is_lost = matches!(store.high_water().map(|high| high.recorded), Ok(Recorded::Lost(_)));
    let is_sound = store.check().is_ok_and(|found| found.is_empty());
    let written = add(store);
    match told {
        Err(_) => Made::Refused,
        Ok(told) if told == truth => {
            assert!(written.is_ok() || !is_sound || is_lost, "a whole store takes a task: {written:?}");
            Made::Taken
        }
        Ok(_) => {
            assert!(is_lost || !is_sound, "something else is served, and nobody tells");
            assert!(!is_lost || written.is_err(), "a store that lost something is not written");
            Made::Refused
        }
    }
}
