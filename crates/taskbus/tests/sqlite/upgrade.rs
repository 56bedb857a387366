//! Other versions: a newer schema that only added, one that did not, a step that is not ours.

use rusqlite::Connection;
use taskbus::core::id::TaskId;
use taskbus::store::{Abort, Store, StoreError};

use crate::support::{Home, create, try_create};

fn raw(home: &Home, sql: &str) {
    Connection::open(&home.path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_newer_store_whose_steps_only_added_is_used() {
    let home = Home::new();
    create(&home.with_list(), |_| {});
    raw(&home, "ALTER TABLE tasks ADD COLUMN colour TEXT; CREATE TABLE more (x); PRAGMA user_version = 9");
    let store = home.open();
    assert_eq!(create(&store, |_| {}).id, TaskId::number(2).unwrap());
    assert_eq!(store.check().unwrap().len(), 1, "the changed table is told, the new one is not");
}

#[test]
fn an_older_store_is_brought_up_to_date() {
    let home = Home::new();
    let store = home.with_list();
    create(&store, |_| {});
    drop(store);
    // As the first version left it.
    raw(&home, "DROP INDEX tombstones_by_list; DELETE FROM meta WHERE key = 'schema 2'; PRAGMA user_version = 1");
    let store = home.open();
    assert_eq!((create(&store, |_| {}).id, store.check().unwrap()), (TaskId::number(2).unwrap(), vec![]));
    let version: u32 =
        Connection::open(&home.path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 2);
}

#[test]
fn a_newer_store_that_this_version_cannot_write_is_refused_with_both_numbers() {
    let home = Home::new();
    let open = home.with_list();
    raw(&home, "UPDATE counters SET min_reader = 9 WHERE id = 0; PRAGMA user_version = 9");
    let is_newer = |error: &StoreError| matches!(error, StoreError::Newer { found: 9, known: 2, .. });
    let error = home.try_open().err().unwrap();
    assert!(is_newer(&error), "{error:?}");
    assert!(error.to_string().contains("schema 9") && error.to_string().contains("up to 2"), "{error}");
    let result = try_create(&open, |_| {});
    assert!(matches!(&result, Err(Abort::Failed(error)) if is_newer(error)), "{result:?}");
    assert!(is_newer(&open.locate(&TaskId::number(1).unwrap()).unwrap_err()));
}

#[test]
fn another_step_under_a_known_number_is_refused() {
    let home = Home::new();
    drop(home.with_list());
    raw(&home, "UPDATE meta SET value = 'x' WHERE key = 'schema 1'");
    let error = home.try_open().err().unwrap();
    assert!(matches!(error, StoreError::Damaged { .. }) && error.to_string().contains("schema step 1"), "{error}");
}

/// Many openers at once make one store.
#[test]
fn everybody_may_come_first() {
    for _ in 0..5 {
        let home = Home::new();
        std::thread::scope(|scope| {
            let openers: Vec<_> = (0..16).map(|_| scope.spawn(|| home.open())).collect();
            openers.into_iter().for_each(|opener| drop(opener.join().unwrap()));
        });
        let store = home.with_list();
        create(&store, |_| {});
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}
