//! The high-water file: a store that lost what it acknowledged is told from one that did not, and goes on only when
//! somebody says so.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use taskbus::store::sqlite::{Recorded, SqliteOptions, SqliteStore};
use taskbus::store::{Abort, PageQuery, StoreError, read_with};

use crate::support::{Home, at, create, list, try_create};

fn durable(home: &Home) -> SqliteStore {
    SqliteStore::open(&home.path, SqliteOptions::default()).unwrap()
}

fn beside(home: &Home, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", home.path.display()))
}

/// A store with so many tasks, closed.
fn with_tasks(home: &Home, tasks: usize) {
    drop(home.with_list());
    add(home, tasks);
}

fn add(home: &Home, tasks: usize) {
    let store = durable(home);
    (0..tasks).for_each(|_| drop(create(&store, |_| {})));
}

/// Everything of the store but its high-water file.
fn copy(from: &Path, to: &Path) {
    for ending in ["", "-wal"] {
        let place = |path: &Path| format!("{}{ending}", path.display());
        if fs::exists(place(from)).unwrap() {
            fs::copy(place(from), place(to)).unwrap();
        }
    }
    let _ = fs::remove_file(format!("{}-shm", to.display()));
}

fn tasks(store: &SqliteStore) -> u64 {
    read_with(store, Some(&list()), |snapshot| snapshot.page(&PageQuery::all(1, at(1)))).unwrap().total
}

#[test]
fn an_earlier_copy_is_refused_until_somebody_accepts_it() {
    let home = Home::new();
    with_tasks(&home, 3);
    let aside = home.directory.path().join("aside.db");
    copy(&home.path, &aside);
    add(&home, 2);
    copy(&aside, &home.path);
    let store = durable(&home);
    let error = try_create(&store, |_| {}).unwrap_err();
    assert!(matches!(error, Abort::Failed(StoreError::RolledBack { seq: 3, high: 5, .. })), "{error:?}");
    assert!(error.to_string().contains("doctor --accept-rollback"), "{error}");
    assert_eq!(tasks(&store), 3, "reading works");
    assert_eq!(store.high_water().unwrap().recorded, Recorded::Lost(5));
    let accepted = store.accept_rollback().unwrap().unwrap();
    assert_eq!((accepted.epoch, accepted.kept, accepted.lost), (2, 3, 5));
    assert_eq!(store.accept_rollback().unwrap(), None, "once is enough");
    let next = create(&store, |_| {}).id.as_number().unwrap();
    assert!(next > 5, "number {next} was given out before");
    assert_eq!((store.check().unwrap(), tasks(&store)), (vec![], 4));
    assert_eq!(store.high_water().unwrap().recorded, Recorded::Seq(next));
    drop(store);
    // The copy is of an earlier epoch now.
    copy(&aside, &home.path);
    assert_eq!(durable(&home).high_water().unwrap().recorded, Recorded::Lost(next));
}

/// SQLite takes a log for ended where a frame does not add up, and says nothing.
#[test]
fn a_log_that_lost_its_end_is_told() {
    let home = Home::new();
    with_tasks(&home, 5);
    let mut log = fs::read(beside(&home, "-wal")).unwrap();
    let at = log.len() - 100;
    log[at] ^= 1;
    fs::write(beside(&home, "-wal"), log).unwrap();
    fs::remove_file(beside(&home, "-shm")).unwrap();
    let store = durable(&home);
    assert_eq!(tasks(&store), 4);
    let error = try_create(&store, |_| {}).unwrap_err();
    assert!(matches!(error, Abort::Failed(StoreError::RolledBack { seq: 4, high: 5, .. })), "{error:?}");
}

#[test]
fn a_file_that_is_missing_or_useless_stops_nobody() {
    let home = Home::new();
    with_tasks(&home, 2);
    let high = beside(&home, "-high");
    assert_eq!(fs::metadata(&high).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(durable(&home).high_water().unwrap().recorded, Recorded::Seq(2));
    fs::remove_file(&high).unwrap();
    assert_eq!(durable(&home).high_water().unwrap().recorded, Recorded::Nothing);
    add(&home, 1);
    assert_eq!(durable(&home).high_water().unwrap().recorded, Recorded::Seq(3), "it was made again");
    fs::write(&high, [0xA5; 300]).unwrap();
    add(&home, 1);
    assert_eq!(durable(&home).high_water().unwrap().recorded, Recorded::Seq(4));
    let target = home.directory.path().join("precious");
    fs::write(&target, "precious").unwrap();
    fs::remove_file(&high).unwrap();
    symlink(&target, &high).unwrap();
    add(&home, 1);
    assert!(matches!(durable(&home).high_water().unwrap().recorded, Recorded::Unusable(_)));
    assert_eq!(fs::read_to_string(target).unwrap(), "precious");
    fs::remove_file(&high).unwrap();
    fs::create_dir(&high).unwrap();
    add(&home, 1);
    assert_eq!(tasks(&durable(&home)), 6);
}

#[test]
fn the_file_of_another_store_means_nothing() {
    let (home, other) = (Home::new(), Home::new());
    with_tasks(&home, 2);
    with_tasks(&other, 9);
    fs::copy(beside(&other, "-high"), beside(&home, "-high")).unwrap();
    assert_eq!(durable(&home).high_water().unwrap().recorded, Recorded::Foreign);
    add(&home, 1);
    assert_eq!(durable(&home).high_water().unwrap().recorded, Recorded::Seq(3));
}

#[test]
fn the_file_follows_many_writers() {
    let home = Home::new();
    drop(home.with_list());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| add(&home, 25));
        }
    });
    let store = durable(&home);
    let Recorded::Seq(noted) = store.high_water().unwrap().recorded else { panic!("{:?}", store.high_water()) };
    assert!((93..=100).contains(&noted), "{noted}");
}

#[test]
fn without_durability_the_file_follows_from_afar() {
    let home = Home::new();
    let store = home.with_list();
    (0..130).for_each(|_| drop(create(&store, |_| {})));
    assert_eq!(store.high_water().unwrap().recorded, Recorded::Seq(128));
}
