//! The bus in its file: what the doctor sees there, and that what was read long ago costs nobody anything.

use std::time::Instant;

use rusqlite::Connection;
use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::bus::message::{MemoryRef, Sort};
use taskbus::core::bus::query::Query;
use taskbus::core::bus::tag;
use taskbus::core::change::Kind;
use taskbus::core::text::{Body, Subject};
use taskbus::store::bus::{BusTx, MessageFilter, MessageQuery, NewMessage, Place};
use taskbus::store::sqlite::SqliteStore;
use taskbus::store::{Author, Store, StoreError, read_with, write_with};

use crate::support::{Home, at, change, create, list};

pub(crate) fn post(bus: &mut dyn BusTx, channel: &ChannelName, content: &str, tags: &[&str], place: Place) -> u64 {
    let (author, sort, tags) = (Author::default(), Sort::default(), tag::normalize(tags).unwrap());
    let message = NewMessage {
        channel,
        sender: None,
        author: &author,
        at: at(1),
        sort: &sort,
        subject: None,
        content,
        reply_to: None,
        metadata: None,
        tags: &tags,
        place,
    };
    bus.post(&message).unwrap()
}

pub(crate) fn on_bus<T>(store: &SqliteStore, f: impl Fn(&mut dyn BusTx) -> Result<T, StoreError>) -> T {
    write_with(store, None, |tx| Ok(f(tx.bus_mut().unwrap())?)).unwrap()
}

/// A task (1, revised by 2), an ordinary message (3), a memory (4), of which 5 is the live revision, and its vector.
fn full(home: &Home) -> SqliteStore {
    let store = home.with_list();
    let task = create(&store, |task| task.description = Some(Body::new("a lazy dog").unwrap()));
    change(&store, &task, Kind::Changed, |task| task.subject = Subject::new("The quick fox").unwrap());
    on_bus(&store, |bus| {
        let (general, memory) = (ChannelName::general(), ChannelName::memory());
        bus.create_channel(&general, ChannelKind::Ordinary, at(1))?;
        bus.create_channel(&memory, ChannelKind::Memory, at(1))?;
        post(bus, &general, "hello there", &["a", "b:c"], Place::Ordinary);
        let id = post(bus, &memory, "first words", &["a"], Place::NewMemory);
        bus.bury(id, at(2))?;
        let seq = post(bus, &memory, "second words", &["d"], Place::Revision(MemoryRef { id, revision: 2 }));
        bus.put_vector(seq, "m", &[0.5, 0.25])
    });
    store.index_texts().unwrap();
    store
}

#[test]
fn the_check_sees_what_was_changed_of_the_bus_behind_its_back() {
    for (sql, says) in [
        (
            "UPDATE channels SET live = 3 WHERE name = 'general'",
            "counts of channel general are [3, 1, 3], not [1, 1, 3]",
        ),
        ("UPDATE channels SET rows = 1 WHERE name = 'memory'", "counts of channel memory"),
        ("UPDATE channels SET latest_seq = 2 WHERE name = 'general'", "counts of channel general"),
        ("UPDATE posts SET standing = 0, buried_at = NULL WHERE seq = 4", "counts of channel memory"),
        ("UPDATE posts SET channel = 9 WHERE seq = 3", "message 3 is in no channel"),
        ("UPDATE posts SET seq = 900 WHERE seq = 3", "there is message 900"),
        ("UPDATE posts SET tags = 'a' WHERE seq = 3", "message 3: tag b:c is too many"),
        ("DELETE FROM message_tags WHERE tag = 'd'", "message 5: tag d is missing"),
        ("INSERT INTO message_tags VALUES ('a', 4)", "message 4: tag a is too many"),
        ("UPDATE posts SET embedded = 0", "message 5 is not marked"),
        ("DELETE FROM embeddings", "message 5 is not marked"),
        ("UPDATE embeddings SET seq = 3", "vector of message 3 is of no live memory"),
        ("UPDATE posts SET content = 'hello here' WHERE seq = 3", "text 3 is indexed with other words"),
        ("UPDATE posts SET subject = 'hello' WHERE seq = 3", "text 3 is indexed with other words"),
        ("DELETE FROM texts WHERE rowid = 1", "text 1 is not in the index"),
        ("INSERT INTO texts (rowid, rest) VALUES (4, 'first words')", "text 4 is in the index, but"),
        ("UPDATE upkeep SET indexed = 1", "text 5 is in the index, but"),
        ("DROP INDEX posts_buried", "index posts_buried is not as"),
    ] {
        let home = Home::new();
        let store = full(&home);
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        Connection::open(&home.path).unwrap().execute_batch(sql).unwrap();
        let found = store.check().unwrap();
        assert!(found.iter().any(|line| line.contains(says)), "{sql}: {found:?}");
    }
}

/// What is behind the index is not missed by the check, and found after the next look.
#[test]
fn texts_are_indexed_late_and_only_when_they_differ() {
    let home = Home::new();
    let store = full(&home);
    let found = |words: &str| {
        read_with(&store, None, |snapshot| {
            let terms = Query::parse(words).unwrap().terms;
            snapshot.bus().unwrap().search(&terms, &MessageFilter::default(), 9)
        })
        .unwrap()
        .len()
    };
    assert_eq!((found("fox"), found("lazy"), found("do"), found("first"), found("second")), (1, 1, 0, 0, 1));
    let raw = Connection::open(&home.path).unwrap();
    let segments = || raw.query_row("SELECT count(*) FROM texts_data", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = segments();
    let task = read_with(&store, Some(&list()), |snapshot| Ok(snapshot.held(9)?)).unwrap();
    assert!(task.is_empty());
    let id = taskbus::core::id::TaskId::number(1).unwrap();
    let task = read_with(&store, Some(&list()), |snapshot| Ok(snapshot.task(&id)?)).unwrap().unwrap();
    let parked = change(&store, &task, Kind::Changed, |task| task.parked = true);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    store.index_texts().unwrap();
    assert_eq!(segments(), before, "the same text is not written again");
    change(&store, &parked, Kind::Changed, |task| task.subject = Subject::new("The slow fox").unwrap());
    assert_eq!((found("quick"), found("slow"), store.check().unwrap()), (1, 0, vec![]));
    store.index_texts().unwrap();
    assert_eq!((found("quick"), found("slow"), store.check().unwrap()), (0, 1, vec![]));
}

/// The steps that a read takes inside SQLite do not grow with what was read before: measured as time, with a wide
/// margin, because a walk over the past would take a hundred times as long.
#[test]
fn a_delivery_is_flat_in_history() {
    let [short, long] = [1_000, 100_000].map(|history| {
        let home = Home::new();
        let store = home.with_list();
        let general = ChannelName::general();
        let tagged = tag::normalize_patterns(&["a*"]).unwrap();
        on_bus(&store, |bus| {
            bus.create_channel(&general, ChannelKind::Ordinary, at(1))?;
            for _ in 0..history {
                post(bus, &general, "x", &["a", "a:b"], Place::Ordinary);
            }
            Ok(())
        });
        let cursor = read_with(&store, None, |snapshot| snapshot.bus().unwrap().latest_seq()).unwrap() - 10;
        let read = |query: &MessageQuery<'_>| {
            let found = read_with(&store, None, |snapshot| snapshot.bus().unwrap().messages(query)).unwrap();
            assert_eq!(found.len(), 10);
        };
        let queries = [
            MessageQuery::of(&general, cursor, 100),
            MessageQuery { all_tags: &tagged, ..MessageQuery::anywhere(cursor, 100) },
            MessageQuery { newest_first: true, any_tags: &tagged, ..MessageQuery::of(&general, 0, 10) },
        ];
        queries.each_ref().map(|query| {
            let times = (0..20).map(|_| {
                let start = Instant::now();
                read(query);
                start.elapsed()
            });
            times.min().unwrap()
        })
    });
    println!("10 messages behind a history of 1,000: {short:?}, of 100,000: {long:?}");
    for (short, long) in short.iter().zip(&long) {
        assert!(*long < *short * 10, "{short:?} {long:?}");
    }
}

/// Whoever searches indexes first, and many may do so at once while others write.
#[test]
fn many_handles_index_and_write_at_once() {
    let home = Home::new();
    let store = home.with_list();
    let general = ChannelName::general();
    on_bus(&store, |bus| bus.create_channel(&general, ChannelKind::Ordinary, at(1)));
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (home, general) = (&home, &general);
            scope.spawn(move || {
                let store = home.open();
                for round in 0..30 {
                    create(&store, |task| task.description = Some(Body::new(format!("found w{writer}")).unwrap()));
                    on_bus(&store, |bus| Ok(post(bus, general, "found", &["a"], Place::Ordinary)));
                    if round % 3 == 0 {
                        store.index_texts().unwrap();
                    }
                }
            });
        }
    });
    store.index_texts().unwrap();
    let terms = Query::parse("found").unwrap().terms;
    let hits =
        read_with(&store, None, |snapshot| snapshot.bus().unwrap().search(&terms, &MessageFilter::default(), 1000));
    assert_eq!((hits.unwrap().len(), store.check().unwrap()), (180, vec![]));
}
