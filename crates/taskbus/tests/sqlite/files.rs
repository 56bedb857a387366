//! The file: its modes, odd names, what is refused and stays untouched, what can only be read, what is taken away.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rusqlite::Connection;
use rustix::fs::Mode;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use taskbus::core::change::Kind;
use taskbus::core::id::TaskId;
use taskbus::store::sqlite::{Journal, SqliteOptions, SqliteStore};
use taskbus::store::{Abort, PageQuery, Store, StoreError, read_with};

use crate::support::{Home, at, change, create, list, relaxed, try_create};

/// Everything in a directory, by name; the memory that SQLite's processes share aside.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let entries = entries.filter(|entry| !entry.file_name().to_string_lossy().ends_with("-shm"));
    let read =
        |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap_or_default());
    entries.map(read).collect()
}

/// A store with one task in it, whole in its file without a log, with nobody using it.
fn closed_store(home: &Home) -> TaskId {
    let id = create(&home.with_list(), |_| {}).id;
    let connection = Connection::open(&home.path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    connection.close().unwrap();
    let names = contents(home.directory.path()).into_keys().collect::<Vec<_>>();
    assert_eq!(names, ["taskbus.db", "taskbus.db-high"]);
    id
}

fn live(store: &dyn Store) -> u64 {
    let page = read_with(store, Some(&list()), |snapshot| snapshot.page(&PageQuery::all(10, at(0)))).unwrap();
    assert_eq!(page.rows.len() as u64, page.total);
    page.total
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn nobody_else_may_read_what_is_made() {
    rustix::process::umask(Mode::empty());
    let home = Home::new();
    let path = home.directory.path().join("a/b/taskbus.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    read_with(&store, None, |snapshot| snapshot.lists()).unwrap();
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for ending in ["", "-wal", "-shm"] {
        assert_eq!(mode(Path::new(&format!("{}{ending}", path.display()))), 0o600, "{ending}");
    }
}

#[test]
fn odd_names_are_names() {
    for name in ["a b", "a#b", "a?mode=ro", "100%25", "it's", "say \"x\"", "ünï", "dot.", "file:x", ";drop"] {
        let home = Home::new();
        let directory = home.directory.path().join(name);
        let path = directory.join(format!("{name}.db"));
        let store = SqliteStore::open(&path, relaxed()).unwrap();
        assert_eq!(store.describe(), format!("sqlite:{}", path.display()));
        drop(store);
        let made: Vec<String> = contents(&directory).into_keys().collect();
        assert!(made.iter().all(|file| file.starts_with(&format!("{name}.db"))), "{made:?}");
        assert_eq!(contents(home.directory.path()).len(), 1);
        SqliteStore::open(&path, relaxed()).unwrap();
    }
}

#[track_caller]
fn check_refused(home: &Home, why: &str) {
    let before = contents(home.directory.path());
    let error = home.try_open().err().unwrap_or_else(|| panic!("not refused: {why}"));
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains(why) && error.to_string().contains("untouched"), "{error}");
    // SQLite may have looked for a log and left an empty one.
    let mut after = contents(home.directory.path());
    after.retain(|name, bytes| !bytes.is_empty() || before.contains_key(name));
    assert_eq!(after, before, "{why}");
}

#[test]
fn what_is_no_store_stays_as_it_is() {
    let home = Home::new();
    fs::write(&home.path, "my shopping list\n".repeat(400)).unwrap();
    check_refused(&home, "not a database");

    let home = Home::new();
    fs::write(&home.path, "x").unwrap();
    check_refused(&home, "not a database");

    let home = Home::new();
    Connection::open(&home.path).unwrap().execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
    check_refused(&home, "another program");

    let home = Home::new();
    Connection::open(&home.path).unwrap().execute_batch("CREATE TABLE t (x); DROP TABLE t").unwrap();
    check_refused(&home, "without any table");

    let home = Home::new();
    fs::create_dir(&home.path).unwrap();
    check_refused(&home, "no regular file");

    let home = Home::new();
    fs::write(home.directory.path().join("other"), "").unwrap();
    symlink("other", &home.path).unwrap();
    check_refused(&home, "symbolic link");
}

#[test]
fn a_damaged_store_stays_as_it_is() {
    let home = Home::new();
    closed_store(&home);
    let whole = fs::read(&home.path).unwrap();

    fs::write(&home.path, &whole[..100]).unwrap();
    check_refused(&home, "");

    fs::write(&home.path, [&[0; 4096], &whole[4096..]].concat()).unwrap();
    check_refused(&home, "not a database");

    fs::write(&home.path, &whole[..whole.len() / 2]).unwrap();
    check_refused(&home, "malformed");

    fs::write(&home.path, "").unwrap();
    fs::write(home.directory.path().join("taskbus.db-wal"), "what is left").unwrap();
    check_refused(&home, "is empty, but its log");

    fs::remove_file(&home.path).unwrap();
    check_refused(&home, "is gone, but its log");
}

/// Damage that opening does not meet is met by the call that reads it, and told.
#[test]
fn damage_inside_is_told_by_the_call_that_meets_it() {
    let home = Home::new();
    let id = closed_store(&home);
    let store = home.open();
    let raw = Connection::open(&home.path).unwrap();
    raw.execute("UPDATE messages SET content = '{\"subject\": 7}'", []).unwrap();
    let error = read_with(&store, Some(&list()), |snapshot| Ok(snapshot.task(&id)?)).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("task 1 "), "{error}");
    assert!(read_with(&store, Some(&list()), |snapshot| snapshot.history(&id, None, 9)).is_err());
    let found = store.check().unwrap();
    assert!(found.iter().any(|line| line.contains("task 1")), "{found:?}");

    raw.execute("UPDATE tasks SET condition = 9", []).unwrap();
    let error = read_with(&store, Some(&list()), |snapshot| snapshot.page(&PageQuery::all(1, at(0)))).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
}

/// Each way in which derived rows can differ from the documents is seen.
#[test]
fn the_check_sees_what_was_changed_behind_its_back() {
    for (sql, says) in [
        ("UPDATE tasks SET condition = 0 WHERE id = 2", "task 2: condition"),
        ("UPDATE tasks SET path = x'00' WHERE id = 2", "task 2: path"),
        ("UPDATE tasks SET open = '' WHERE id = 2", "task 2: open"),
        ("UPDATE tasks SET subject = 'x' WHERE id = 2", "task 2: subject"),
        ("DELETE FROM tasks WHERE id = 2", "task 2 has no row"),
        ("UPDATE tasks SET id = 99 WHERE id = 2", "task 99 is of no live task"),
        ("DELETE FROM edges", "blocker 1 is missing"),
        ("INSERT INTO edges VALUES (5, 1)", "blocker 5 is too many"),
        ("INSERT INTO task_labels VALUES (1, 'x', 1)", "label x of list 1 is too many"),
        ("INSERT INTO tombstones VALUES (9, 1, 1)", "tombstone 1 of list 1 is too many"),
        ("UPDATE counters SET ready = 7 WHERE id = 1", "counters of list 1"),
        ("UPDATE counters SET seq = 1 WHERE id = 0", "newest seq of the store"),
        ("UPDATE messages SET previous = 7 WHERE seq = 2", "revision 2 of task 2"),
        ("DELETE FROM messages WHERE seq = 2", "task 2 is of no live task"),
        ("CREATE TRIGGER t AFTER INSERT ON tasks BEGIN SELECT 1; END", "trigger t is not one"),
        ("DROP INDEX tasks_timed", "index tasks_timed is not as"),
    ] {
        let home = Home::new();
        let store = home.with_list();
        create(&store, |_| {});
        create(&store, |task| task.blocked_by = vec![TaskId::number(1).unwrap()]);
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        Connection::open(&home.path).unwrap().execute_batch(sql).unwrap();
        let found = store.check().unwrap();
        assert!(found.iter().any(|line| line.contains(says)), "{sql}: {found:?}");
    }
}

/// Takes away, from this thread only, the privilege to write what the mode forbids.
fn without_privileges() {
    let Ok(mut sets) = capabilities(None) else { return };
    sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    set_capabilities(None, sets).unwrap();
}

fn protect(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[track_caller]
fn check_read_only(home: &Home) {
    let store = home.open();
    assert_eq!(live(&store), 1);
    let id = TaskId::number(1).unwrap();
    assert_eq!(store.locate(&id).unwrap(), Some(list()));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let before = store.version().unwrap();
    match try_create(&store, |_| {}) {
        Err(Abort::Failed(error @ StoreError::ReadOnly { .. })) => assert!(error.to_string().contains("reading works")),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.version().unwrap(), before);
    assert_eq!(live(&store), 1);
}

#[test]
fn a_file_that_may_not_be_written_can_be_read() {
    let home = Home::new();
    closed_store(&home);
    without_privileges();
    protect(&home.path, 0o400);
    check_read_only(&home);
    assert_eq!(contents(home.directory.path()).len(), 2, "nothing was made beside it");

    let store = home.open();
    assert_eq!(live(&store), 1);
    protect(&home.path, 0o600);
    create(&store, |_| {});
    assert_eq!(live(&store), 2);
}

#[test]
fn a_directory_that_may_not_be_written_can_be_read() {
    let home = Home::new();
    closed_store(&home);
    without_privileges();
    protect(home.directory.path(), 0o500);
    check_read_only(&home);
    protect(&home.path, 0o400);
    check_read_only(&home);
    protect(home.directory.path(), 0o700);
}

#[test]
fn a_log_beside_a_protected_file_is_read_too() {
    let home = Home::new();
    let writer = home.with_list();
    create(&writer, |_| {});
    without_privileges();
    protect(&home.path, 0o400);
    check_read_only(&home);
    drop(writer);
}

#[test]
fn where_nothing_can_be_made_the_call_says_so() {
    let home = Home::new();
    without_privileges();
    protect(home.directory.path(), 0o500);
    let store = SqliteStore::lazy(home.directory.path().join("new/taskbus.db"), relaxed());
    for _ in 0..2 {
        let error = read_with(&store, None, |snapshot| snapshot.lists()).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
    let beside = SqliteStore::lazy(&home.path, relaxed());
    assert!(matches!(beside.version(), Err(StoreError::Unavailable { .. })));
    protect(home.directory.path(), 0o700);
    assert_eq!(read_with(&store, None, |snapshot| snapshot.lists()).unwrap(), []);
}

#[test]
fn what_is_wrong_with_the_file_is_the_error_of_each_call() {
    let home = Home::new();
    fs::write(&home.path, "no store, clearly").unwrap();
    let store = SqliteStore::lazy(&home.path, relaxed());
    assert!(matches!(store.locate(&TaskId::number(1).unwrap()), Err(StoreError::Damaged { .. })));
    assert!(matches!(try_create(&store, |_| {}), Err(Abort::Failed(StoreError::Damaged { .. }))));
    fs::remove_file(&home.path).unwrap();
    assert_eq!(store.locate(&TaskId::number(1).unwrap()).unwrap(), None);
}

#[track_caller]
fn check_moved(home: &Home, store: &SqliteStore) {
    let before = contents(home.directory.path());
    let result = try_create(store, |_| {});
    assert!(matches!(result, Err(Abort::Failed(StoreError::Moved { .. }))), "{result:?}");
    let read = read_with(store, None, |snapshot| snapshot.lists());
    assert!(matches!(read, Err(StoreError::Moved { .. })), "{read:?}");
    assert_eq!(contents(home.directory.path()), before);
}

#[test]
fn nothing_is_acknowledged_once_the_path_names_another_file() {
    let home = Home::new();
    let store = home.with_list();
    fs::rename(&home.path, home.directory.path().join("old")).unwrap();
    check_moved(&home, &store);
    fs::write(&home.path, "").unwrap();
    check_moved(&home, &store);
    fs::remove_file(&home.path).unwrap();
    fs::rename(home.directory.path().join("old"), &home.path).unwrap();
    create(&store, |_| {});

    let durable = SqliteStore::open(&home.path, SqliteOptions::default()).unwrap();
    create(&durable, |_| {});
    fs::remove_file(home.directory.path().join("taskbus.db-wal")).unwrap();
    let result = try_create(&durable, |_| {});
    assert!(matches!(result, Err(Abort::Failed(StoreError::Moved { .. }))), "{result:?}");
}

/// The file is taken away while a transaction is under way.
#[test]
fn a_transaction_does_not_outlive_its_file() {
    let home = Home::new();
    let store = home.with_list();
    let result = store.write(Some(&list()), &mut |tx| {
        tx.drop_receipts(at(0), 1)?;
        tx.put_session(&crate::waiting::session("Amp"))?;
        fs::rename(&home.path, home.directory.path().join("old")).unwrap();
        Ok(())
    });
    assert!(matches!(result, Err(Abort::Failed(StoreError::Moved { .. }))), "{result:?}");
    fs::rename(home.directory.path().join("old"), &home.path).unwrap();
    assert_eq!(read_with(&store, None, |snapshot| snapshot.sessions(at(0))).unwrap(), []);
}

#[test]
fn ids_are_never_given_twice() {
    let home = Home::new();
    let mut store = home.with_list();
    let mut last = TaskId::number(1).unwrap();
    for round in 0..4 {
        let task = create(&store, |_| {});
        assert!(round == 0 || task.id > last);
        let refused = store.write(Some(&list()), &mut |tx| {
            let minted = tx.mint(1)?;
            assert!(minted[0] > task.id);
            Err(Abort::Failed(StoreError::Moved { store: String::new() }))
        });
        assert!(refused.is_err());
        change(&store, &task, Kind::Deleted, |_| {});
        last = task.id;
        drop(store);
        Connection::open(&home.path).unwrap().execute("DELETE FROM messages", []).unwrap();
        Connection::open(&home.path).unwrap().execute("DELETE FROM tombstones", []).unwrap();
        store = home.open();
    }
}

/// The rollback journal is for file systems that cannot carry a log; it works anywhere, and back.
#[test]
fn the_journal_can_be_chosen() {
    let home = Home::new();
    let rollback =
        || SqliteStore::open(&home.path, SqliteOptions { journal: Journal::Rollback, ..SqliteOptions::default() });
    create(&home.with_list(), |_| {});
    let store = rollback().unwrap();
    create(&store, |_| {});
    assert_eq!(live(&store), 2);
    let version = store.version().unwrap();
    create(&rollback().unwrap(), |_| {});
    assert_ne!(store.version().unwrap(), version);
    assert!(!contents(home.directory.path()).contains_key("taskbus.db-wal"));
    drop(store);
    let store = home.open();
    assert_eq!(live(&store), 3);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
