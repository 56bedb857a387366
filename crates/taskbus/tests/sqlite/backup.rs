//! Backups: whole while others write, never over a file that is there, and put back without losing what they replace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use taskbus::store::sqlite::{Journal, Recorded, SqliteOptions, SqliteStore};
use taskbus::store::{Abort, PageQuery, StoreError, read_with};

use crate::support::{Home, at, create, list, try_create};

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).unwrap()
}

fn lazy(home: &Home) -> SqliteStore {
    SqliteStore::lazy(&home.path, SqliteOptions::default())
}

fn tasks(store: &SqliteStore) -> u64 {
    read_with(store, Some(&list()), |snapshot| snapshot.page(&PageQuery::all(1, at(1)))).unwrap().total
}

fn named(home: &Home, name: &str) -> PathBuf {
    home.directory.path().join(name)
}

/// The names in the directory, without what SQLite makes and takes away by itself.
fn names(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.directory.path()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with("-shm") && !name.ends_with("-wal"));
    names.sort();
    names
}

/// A store with three tasks, a backup of it, and two tasks more.
fn backed_up(home: &Home) -> PathBuf {
    drop(home.with_list());
    let store = open(&home.path);
    (0..3).for_each(|_| drop(create(&store, |_| {})));
    let made = store.backup(&named(home, "copy.db"), false).unwrap();
    assert_eq!((made.verdict.seq, made.verdict.tasks), (3, 3));
    (0..2).for_each(|_| drop(create(&store, |_| {})));
    made.path
}

#[track_caller]
fn refused(result: Result<impl std::fmt::Debug, StoreError>, words: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn a_backup_is_a_store_in_one_file() {
    let home = Home::new();
    let copy = backed_up(&home);
    assert_eq!(names(&home), ["copy.db", "taskbus.db", "taskbus.db-high"]);
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let store = open(&copy);
    assert_eq!((tasks(&store), store.check().unwrap()), (3, vec![]));
}

#[test]
fn a_backup_made_while_others_write_is_one_moment() {
    let home = Home::new();
    drop(home.with_list());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let store = open(&home.path);
            (0..200).for_each(|_| drop(create(&store, |_| {})));
        });
        let store = open(&home.path);
        for n in 0.. {
            let made = store.backup(&named(&home, &format!("copy-{n}.db")), false).unwrap();
            assert_eq!((made.verdict.seq, made.verdict.is_sound()), (made.verdict.tasks, true));
            if writer.is_finished() {
                break;
            }
        }
    });
}

#[test]
fn what_is_there_is_not_replaced_unasked() {
    let home = Home::new();
    let copy = backed_up(&home);
    let before = fs::read(&copy).unwrap();
    let store = open(&home.path);
    refused(store.backup(&copy, false), "left as it is");
    assert_eq!(fs::read(&copy).unwrap(), before);
    assert_eq!(store.backup(&copy, true).unwrap().verdict.tasks, 5);
    for own in ["taskbus.db", "taskbus.db-wal", "taskbus.db-high"] {
        refused(store.backup(&named(&home, own), true), "belongs to the store itself");
    }
    refused(store.backup(&named(&home, "no/such/copy.db"), false), "no backup can be written");
    assert_eq!((tasks(&store), names(&home).len()), (5, 3), "nothing else is left");
}

#[test]
fn a_store_that_does_not_add_up_makes_no_backup() {
    let home = Home::new();
    let copy = backed_up(&home);
    let before = fs::read(&copy).unwrap();
    Connection::open(&home.path).unwrap().execute("UPDATE messages SET note = 'x' WHERE seq = 2", []).unwrap();
    refused(open(&home.path).backup(&copy, true), "revision 2 of task 2");
    assert_eq!((fs::read(&copy).unwrap(), names(&home).len()), (before, 3));
}

#[test]
fn a_backup_comes_back_and_the_file_there_is_kept() {
    let home = Home::new();
    let copy = backed_up(&home);
    let restored = lazy(&home).restore_backup(&copy).unwrap();
    assert_eq!((restored.kept, restored.verdict.epoch, restored.verdict.tasks), (3, 2, 3));
    let aside = restored.aside.unwrap();
    assert_eq!(aside, named(&home, "taskbus.db.replaced-1"));
    let store = open(&home.path);
    let next = create(&store, |_| {}).id.as_number().unwrap();
    assert!(next > 5, "number {next} was given out before");
    assert_eq!((tasks(&store), store.check().unwrap()), (4, vec![]));
    assert_eq!(store.high_water().unwrap().recorded, Recorded::Seq(next));
    drop(store);
    let old = open(&aside);
    assert_eq!((tasks(&old), old.check().unwrap()), (5, vec![]), "all that was there is kept");
    drop(old);
    let again = lazy(&home).restore_backup(&copy).unwrap();
    assert_eq!((again.verdict.epoch, again.aside.unwrap()), (3, named(&home, "taskbus.db.replaced-2")));
    assert!(create(&open(&home.path), |_| {}).id.as_number().unwrap() > next);
}

#[test]
fn nobody_may_be_in_the_store_meanwhile() {
    let home = Home::new();
    let copy = backed_up(&home);
    let other = open(&home.path);
    refused(lazy(&home).restore_backup(&copy), "other processes have the store open");
    assert_eq!(tasks(&other), 5);
    create(&other, |_| {});
    drop(other);
    assert_eq!(lazy(&home).restore_backup(&copy).unwrap().verdict.tasks, 3);
}

/// Without a log an idle one holds no lock that could be seen.
#[test]
fn who_was_not_seen_is_told_that_the_store_was_moved() {
    let home = Home::new();
    let copy = backed_up(&home);
    let options = SqliteOptions { journal: Journal::Rollback, ..SqliteOptions::default() };
    let idle = SqliteStore::open(&home.path, options).unwrap();
    assert_eq!(tasks(&idle), 5);
    let restored = lazy(&home).restore_backup(&copy).unwrap();
    let error = try_create(&idle, |_| {}).unwrap_err();
    assert!(matches!(error, Abort::Failed(StoreError::Moved { .. })), "{error:?}");
    drop(idle);
    assert_eq!((tasks(&open(&home.path)), tasks(&open(&restored.aside.unwrap()))), (3, 5));
}

#[test]
fn only_a_whole_backup_comes_back() {
    let home = Home::new();
    let copy = backed_up(&home);
    refused(lazy(&home).restore_backup(&named(&home, "none.db")), "there is no backup");
    refused(lazy(&home).restore_backup(&home.path), "is the store itself");
    let text = named(&home, "text.db");
    fs::write(&text, "this is no database, and it stays what it is".repeat(40)).unwrap();
    assert!(matches!(lazy(&home).restore_backup(&text), Err(StoreError::Damaged { .. })));
    Connection::open(&copy).unwrap().execute("UPDATE messages SET note = 'x' WHERE seq = 2", []).unwrap();
    refused(lazy(&home).restore_backup(&copy), "revision 2 of task 2");
    assert_eq!(tasks(&open(&home.path)), 5);
    assert_eq!(names(&home), ["copy.db", "taskbus.db", "taskbus.db-high", "text.db"]);
}

#[test]
fn a_store_that_is_damaged_or_gone_is_replaced_too() {
    let home = Home::new();
    let copy = backed_up(&home);
    let mut bytes = fs::read(&home.path).unwrap();
    bytes[..100].fill(0x55);
    fs::write(&home.path, &bytes).unwrap();
    let restored = lazy(&home).restore_backup(&copy).unwrap();
    assert_eq!(fs::read(restored.aside.unwrap()).unwrap(), bytes);
    let store = open(&home.path);
    let next = try_create(&store, |_| {}).unwrap().id.as_number().unwrap();
    assert!(next > 5, "number {next}: the high-water file knows of all");
    assert_eq!(tasks(&store), 4);
    drop(store);
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", home.path.display()));
    }
    assert_eq!(lazy(&home).restore_backup(&copy).unwrap().aside, None);
    assert_eq!(tasks(&open(&home.path)), 3);
}
