//! Other versions: a newer schema that only added, one that did not, a step that is not ours.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use rusqlite::Connection;
use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::bus::message::Sort;
use taskbus::core::change::Kind;
use taskbus::core::id::TaskId;
use taskbus::core::name::{Key, Label};
use taskbus::core::text::Subject;
use taskbus::store::bus::{MessageFilter, NewMessage, Place, Term};
use taskbus::store::sqlite::SqliteStore;
use taskbus::store::{Abort, Author, PageQuery, ReceiptRow, Store, StoreError, read_with, write_with};

use crate::support::{Home, at, change, create, list, try_create, who};

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

/// The schema steps before the newest, as they are shipped.
const STEPS: [&str; 2] =
    [include_str!("../../src/store/sqlite/schema/0001.sql"), include_str!("../../src/store/sqlite/schema/0002.sql")];
const TABLES: [&str; 11] = [
    "lists",
    "counters",
    "names",
    "sessions",
    "messages",
    "removed",
    "tasks",
    "edges",
    "task_labels",
    "tombstones",
    "receipts",
];

/// Makes of the store there one that the version of an older schema left, with all that is in it.
fn as_of(home: &Home, step: usize) {
    let newer = home.directory.path().join("newer.db");
    {
        let raw = Connection::open(&home.path).unwrap();
        raw.execute("VACUUM INTO ?1", [newer.to_str().unwrap()]).unwrap();
    }
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", home.path.display()));
    }
    let raw = Connection::open(&home.path).unwrap();
    raw.execute("ATTACH ?1 AS newer", [newer.to_str().unwrap()]).unwrap();
    for sql in &STEPS[..step] {
        raw.execute_batch(sql).unwrap();
    }
    raw.execute("DELETE FROM counters", []).unwrap();
    for table in TABLES {
        let mut columns = raw.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap();
        let columns: Vec<String> = columns.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let columns = columns.join(", ");
        raw.execute_batch(&format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM newer.{table}")).unwrap();
    }
    let keys = "key = 'store' OR (key IN ('schema 1', 'schema 2') AND substr(key, 8) <= ?1)";
    raw.execute(&format!("INSERT INTO meta SELECT key, value FROM newer.meta WHERE {keys}"), [step.to_string()])
        .unwrap();
    raw.execute_batch(&format!("PRAGMA application_id = 0x74736B62; PRAGMA user_version = {step}; DETACH newer"))
        .unwrap();
    fs::remove_file(newer).unwrap();
}

/// A store with something in every table.
fn full_store(home: &Home) -> TaskId {
    let store = home.with_list();
    let first = create(&store, |task| task.labels = [Label::new("a").unwrap()].into());
    let second = create(&store, |task| task.blocked_by = vec![first.id.clone()]);
    let third = create(&store, |_| {});
    change(&store, &third, Kind::Deleted, |_| {});
    change(&store, &second, Kind::Changed, |task| task.subject = Subject::new("zebra").unwrap());
    write_with(&store, None, |tx| {
        tx.put_session(&crate::waiting::session("Amp"))?;
        let receipt = ReceiptRow { fingerprint: "f".to_owned(), answer: "{}".to_owned(), expires_at: at(9000) };
        Ok(tx.put_receipt(&who("Amp"), &Key::new("k").unwrap(), &receipt)?)
    })
    .unwrap();
    second.id
}

/// Everything that the seam tells of the tasks, the sessions and the receipts.
fn told(store: &SqliteStore) -> String {
    read_with(store, Some(&list()), |snapshot| {
        let history = |id| snapshot.history(&TaskId::number(id).unwrap(), None, 9).unwrap();
        let page = snapshot.page(&PageQuery::all(9, at(1))).unwrap();
        let (lists, deleted, sessions) = (snapshot.lists()?, snapshot.deleted(9)?, snapshot.sessions(at(0))?);
        let receipt = snapshot.receipt(&who("Amp"), &Key::new("k").unwrap(), at(1))?;
        Ok(format!("{page:?} {lists:?} {deleted:?} {sessions:?} {receipt:?} {:?}", [1, 2, 3].map(history)))
    })
    .unwrap()
}

fn schema(home: &Home) -> u32 {
    Connection::open(&home.path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn an_older_store_is_brought_up_to_date_with_all_that_is_in_it() {
    for step in [1, 2] {
        let home = Home::new();
        let zebra = full_store(&home);
        let before = told(&home.open());
        as_of(&home, step);
        assert_eq!(schema(&home), u32::try_from(step).unwrap());
        let store = home.open();
        assert_eq!((told(&store), store.check().unwrap(), schema(&home)), (before, vec![], 3));
        store.index_texts().unwrap();
        let hits = read_with(&store, None, |snapshot| {
            let terms = [Term { words: vec!["zebra".to_owned()], prefix: false }];
            snapshot.bus().unwrap().search(&terms, &MessageFilter::default(), 9)
        });
        assert_eq!(hits.unwrap()[0].found.id, zebra.as_number().unwrap(), "old texts are found");
        assert_eq!(create(&store, |_| {}).id, TaskId::number(6).unwrap());
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_step_that_was_cut_off_is_done_the_next_time() {
    let home = Home::new();
    full_store(&home);
    let before = told(&home.open());
    as_of(&home, 2);
    raw(&home, "CREATE TABLE tag_sets (x)");
    let error = home.try_open().err().unwrap();
    assert!(error.to_string().contains("tag_sets"), "{error}");
    let left: i64 = Connection::open(&home.path)
        .unwrap()
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name IN ('channels', 'messages_by_list')", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!((schema(&home), left), (2, 0), "half a step is none");
    raw(&home, "DROP TABLE tag_sets");
    let store = home.open();
    assert_eq!((told(&store), store.check().unwrap(), schema(&home)), (before, vec![], 3));
}

/// The variable that tells a process of [`opener`] which store to open.
const PLACE: &str = "TASKBUS_UPGRADE_PLACE";

/// Processes and threads that all come first: one of them does the step, and all see everything.
#[test]
fn many_openers_at_once_make_one_step() {
    for _ in 0..2 {
        let home = Home::new();
        full_store(&home);
        let before = told(&home.open());
        as_of(&home, 2);
        let processes: Vec<_> = (0..4).map(|_| opening(&home.path).spawn().unwrap()).collect();
        std::thread::scope(|scope| {
            let openers: Vec<_> = (0..4).map(|_| scope.spawn(|| told(&home.open()))).collect();
            openers.into_iter().for_each(|opener| assert_eq!(opener.join().unwrap(), before));
        });
        for process in processes {
            let ended = process.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ended.stdout).into_owned();
            assert!(ended.status.success() && said.contains(&before), "{said}");
        }
        assert_eq!((home.open().check().unwrap(), schema(&home)), (vec![], 3));
    }
}

fn opening(path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["upgrade::opener", "--exact", "--nocapture"]).env(PLACE, path).stdout(Stdio::piped());
    command
}

/// Not a test: the process that opens a store for one does it here. Without a place there is nothing to do.
#[test]
fn opener() {
    if let Some(path) = std::env::var_os(PLACE) {
        println!("{}", told(&SqliteStore::open(path, crate::support::relaxed()).unwrap()));
    }
}

/// The write-ahead log writes the first page before anybody could choose the mode (trap N 12 of the reference).
#[test]
fn a_new_store_can_give_its_free_pages_back_and_an_old_one_keeps_them() {
    let mode = |home: &Home| -> u32 {
        Connection::open(&home.path).unwrap().pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap()
    };
    let home = Home::new();
    let store = home.with_list();
    assert_eq!(mode(&home), 2);
    fill_and_delete(&store);
    let bus = |store: &SqliteStore| {
        read_with(store, None, |snapshot| {
            let bus = snapshot.bus().unwrap();
            Ok((bus.used_bytes()?, bus.free_bytes()?))
        })
        .unwrap()
    };
    let (used, free) = bus(&store);
    assert!(free > 500_000 && used > 0, "{used} {free}");
    shrink(&store);
    let after = bus(&store);
    assert!(after.0 <= used && after.1 < free && free - after.1 <= 256 * 2048, "a bounded amount: {after:?}");
    while bus(&store).1 > 0 {
        shrink(&store);
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    drop(store);

    full_store_as_of_2(&home);
    assert_eq!(mode(&home), 0);
    let store = home.open();
    fill_and_delete(&store);
    assert_eq!(bus(&store).1, 0, "nothing that could be given back");
    shrink(&store);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

fn full_store_as_of_2(home: &Home) {
    drop(home.open());
    as_of(home, 2);
}

/// A megabyte of messages, and then none.
fn fill_and_delete(store: &SqliteStore) {
    let general = ChannelName::general();
    write_with(store, None, |tx| {
        let bus = tx.bus_mut().unwrap();
        bus.create_channel(&general, ChannelKind::Ordinary, at(1))?;
        for _ in 0..100 {
            bus.post(&message(&general, &"x".repeat(10_000)))?;
        }
        Ok(())
    })
    .unwrap();
    write_with(store, None, |tx| Ok(tx.bus_mut().unwrap().delete_channel(&general)?)).unwrap();
}

fn shrink(store: &SqliteStore) {
    write_with(store, None, |tx| Ok(tx.bus_mut().unwrap().shrink()?)).unwrap();
}

fn message<'a>(channel: &'a ChannelName, content: &'a str) -> NewMessage<'a> {
    static NOBODY: LazyLock<(Author, Sort)> = LazyLock::new(Default::default);
    NewMessage {
        channel,
        sender: None,
        author: &NOBODY.0,
        at: at(1),
        sort: &NOBODY.1,
        subject: None,
        content,
        reply_to: None,
        metadata: None,
        tags: &[],
        place: Place::Ordinary,
    }
}

#[test]
fn a_newer_store_that_this_version_cannot_write_is_refused_with_both_numbers() {
    let home = Home::new();
    let open = home.with_list();
    raw(&home, "UPDATE counters SET min_reader = 9 WHERE id = 0; PRAGMA user_version = 9");
    let is_newer = |error: &StoreError| matches!(error, StoreError::Newer { found: 9, known: 3, .. });
    let error = home.try_open().err().unwrap();
    assert!(is_newer(&error), "{error:?}");
    assert!(error.to_string().contains("schema 9") && error.to_string().contains("up to 3"), "{error}");
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
