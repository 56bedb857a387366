//! The chain of revisions: it holds whatever is removed in the ways there are, and breaks at whatever is removed in others.

use rusqlite::Connection;
use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::change::{Change, Kind};
use taskbus::core::id::TaskId;
use taskbus::core::name::ListName;
use taskbus::core::neighbourhood::ListRules;
use taskbus::store::bus::Place;
use taskbus::store::sqlite::SqliteStore;
use taskbus::store::{Author, StoreError, read_with, write_with};

use crate::bus_files::{on_bus, post};
use crate::support::{Home, at, change, list, task};

fn other() -> ListName {
    ListName::new("tasks/other").unwrap()
}

fn create_in(store: &SqliteStore, list: &ListName) -> TaskId {
    write_with(store, Some(list), |tx| {
        let task = task(tx.mint(1)?.remove(0));
        let change = Change { kind: Kind::Created, task: task.clone(), note: None };
        tx.append(&change, &Author::default())?;
        Ok(task.id)
    })
    .unwrap()
}

/// Two lists and a channel, written in turn: seqs 1 to 9 are of the first list, a message, and the second list.
fn mixed(home: &Home) -> SqliteStore {
    let store = home.with_list();
    write_with(&store, None, |tx| Ok(tx.create_list(&other(), ListRules::default(), at(0))?)).unwrap();
    on_bus(&store, |bus| bus.create_channel(&chat(), ChannelKind::Ordinary, at(0)));
    for _ in 0..3 {
        create_in(&store, &list());
        on_bus(&store, |bus| Ok(post(bus, &chat(), "hello", &[], Place::Ordinary)));
        create_in(&store, &other());
    }
    store
}

fn chat() -> ChannelName {
    ChannelName::new("chat").unwrap()
}

fn drop_list(store: &SqliteStore, list: &ListName) {
    on_bus(store, |bus| bus.delete_channel(&ChannelName::from(list)));
}

fn kept_links(home: &Home) -> Vec<i64> {
    let raw = Connection::open(&home.path).unwrap();
    let mut kept = raw.prepare("SELECT seq FROM removed ORDER BY seq").unwrap();
    kept.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_list_goes_and_the_chain_still_holds() {
    let home = Home::new();
    let store = mixed(&home);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    drop_list(&store, &other());
    assert_eq!(
        (kept_links(&home), store.check().unwrap()),
        (vec![3, 6, 9], vec![]),
        "one in front of each that is left"
    );
    let id = create_in(&store, &list());
    assert_eq!((id.as_number(), store.check().unwrap()), (Some(10), vec![]));
    drop_list(&store, &list());
    assert_eq!((kept_links(&home), store.check().unwrap()), (vec![10], vec![]), "of a run of them the last is enough");
}

#[test]
fn everything_goes_and_the_chain_goes_on() {
    let home = Home::new();
    let store = mixed(&home);
    for round in 0..2 {
        on_bus(&store, |bus| bus.reset());
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        write_with(&store, None, |tx| Ok(tx.create_list(&list(), ListRules::default(), at(0))?)).unwrap();
        assert_eq!(create_in(&store, &list()).as_number(), Some(10 + round));
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_task_that_moves_in_the_order_of_dependencies_leaves_the_sum_right() {
    let home = Home::new();
    let store = home.with_list();
    let tasks: Vec<_> = (0..4).map(|_| crate::support::create(&store, |_| {})).collect();
    // Against the order in which they came, so that each edge moves something.
    for pair in tasks.windows(2) {
        change(&store, &pair[0], Kind::Changed, |task| task.blocked_by = vec![pair[1].id.clone()]);
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[track_caller]
fn finds(sql: &str, words: &str) {
    let home = Home::new();
    let store = mixed(&home);
    drop(store);
    Connection::open(&home.path).unwrap().execute_batch(sql).unwrap();
    let found = home.open().check().unwrap();
    assert!(found.iter().any(|line| line.contains(words)), "{sql}: {found:?}");
}

/// Each column that a reader is told of, and the one that says which client it came from.
#[test]
fn a_message_that_is_not_as_it_was_written_is_told_and_not_served() {
    let edits = [
        "seq = 1",
        "sender = 'Roo'",
        "context = 'x'",
        "client = 'x'",
        "created_at = created_at + 1",
        "type = 'x'",
        "subject = 'x'",
        "content = content || '.'",
        "reply_to = 1",
        "metadata = '{}'",
        "memory_id = 1, revision = 1",
        "tags = 'x'",
        "sum = sum + 1",
    ];
    let post = "(SELECT min(seq) FROM posts)";
    for edit in edits {
        finds(&format!("UPDATE posts SET {edit} WHERE seq = {post}"), "is not as it was written");
    }
    let home = Home::new();
    drop(mixed(&home));
    let raw = Connection::open(&home.path).unwrap();
    let seq: u64 = raw.query_row(&format!("SELECT {post}"), [], |row| row.get(0)).unwrap();
    raw.execute("UPDATE posts SET content = 'x'", []).unwrap();
    let refused = read_with(&home.open(), None, |snapshot| snapshot.bus().unwrap().message(seq)).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
}

#[test]
fn what_nobody_may_do_breaks_it() {
    finds("UPDATE messages SET context = 'x' WHERE seq = 4", "revision 4 of task 4: its link does not follow");
    finds("UPDATE messages SET list = 2 WHERE seq = 4", "revision 4 of task 4: its link does not follow");
    finds("DELETE FROM messages WHERE seq = 4", "revision 6 of task 6: its link does not follow");
    finds("DELETE FROM messages WHERE seq = 9", "the chain ends at revision 7 with another link");
    finds("DELETE FROM removed; DELETE FROM messages", "the chain ends at revision 0 with another link");
    finds("UPDATE meta SET value = '00' WHERE key = 'store'", "revision 1 of task 1: its link does not follow");
    finds("UPDATE lists SET name = 'tasks/y' WHERE id = 1", "revision 1 of task 1: its link does not follow");
    finds("UPDATE counters SET seq = 12 WHERE id = 0", "the seal does not fit the newest seq 12");
    finds("UPDATE counters SET epoch = 2 WHERE id = 0", "the seal does not fit the newest seq 9 of epoch 2");
    finds("UPDATE tasks SET ord = ord + 1 WHERE id = 4", "a place in the order of dependencies");
    finds("UPDATE counters SET min_reader = 0 WHERE id = 0", "say what no version of taskbus writes");
    finds("DELETE FROM counters WHERE id = 2", "there are no counters of list 2");
}
