//! Every statement of this store, as SQLite would run it: none reads a whole table, unless it is on the short list of those
//! that may. A statement written tomorrow is checked tomorrow, because they are taken from the source.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use super::{migrate, page};

const SOURCES: [(&str, &str); 23] = [
    ("anchor", include_str!("anchor.rs")),
    ("chained", include_str!("chained.rs")),
    ("channels", include_str!("bus/channels.rs")),
    ("counters", include_str!("counters.rs")),
    ("follow", include_str!("follow.rs")),
    ("following", include_str!("bus/following.rs")),
    ("graph", include_str!("graph.rs")),
    ("lists", include_str!("lists.rs")),
    ("lookup", include_str!("lookup.rs")),
    ("memories", include_str!("bus/memories.rs")),
    ("migrate", include_str!("migrate.rs")),
    ("people", include_str!("people.rs")),
    ("posts", include_str!("bus/posts.rs")),
    ("queue", include_str!("queue.rs")),
    ("removal", include_str!("bus/removal.rs")),
    ("row", include_str!("row.rs")),
    ("scope", include_str!("scope.rs")),
    ("snapshot", include_str!("snapshot.rs")),
    ("streams", include_str!("bus/streams.rs")),
    ("texts", include_str!("bus/texts.rs")),
    ("tree", include_str!("tree.rs")),
    ("upkeep", include_str!("bus/upkeep.rs")),
    ("write", include_str!("write.rs")),
];

/// May read a table from end to end: the lists, those removed and the channels, of which there are few; the schema, once at opening; an
/// index that holds nothing but what is asked for; what is held and who is there, once each time somebody sets a clock; and a virtual table, whose own index SQLite does not tell of.
const MAY_SCAN: [&str; 13] = [
    "anchor HAS_LEASES",
    "anchor MOVE",
    "chained DROP_LINKS",
    "chained LISTS",
    "channels CHANNELS",
    "channels LISTS",
    "lists LISTS",
    "memories BARE",
    "memories COUNT_BARE",
    "memories INBOXES",
    "migrate OBJECTS",
    "texts DROP",
    "texts MATCHES",
];

/// May sort: what is held (as many as there are agents), what has just become due, and what has one label.
const MAY_SORT: [&str; 9] = [
    "lookup READY_WITH_PATHS",
    "people SESSIONS",
    "queue DUE",
    "queue HELD",
    "queue HELD_BY",
    "page active",
    "page due",
    "page labelled",
    "page own active",
];

/// Every `const NAME: &str = "…"` with a statement in it, and the streams of the pages.
fn statements() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (file, source) in SOURCES {
        for piece in source.split("\nconst ").skip(1) {
            let Some((name, rest)) = piece.split_once(": &str = \"") else { continue };
            let Some((sql, _)) = rest.split_once("\";") else { continue };
            found.insert(format!("{file} {name}"), sql.to_owned());
        }
    }
    for (name, stream) in page::STREAMS {
        found.insert(format!("page {name}"), stream.rows.to_owned());
        found.insert(format!("page {name} counted"), stream.count.to_owned());
    }
    found.retain(|_, sql| {
        ["SELECT", "INSERT", "UPDATE", "DELETE"].iter().any(|verb| sql.trim_start().starts_with(verb))
    });
    found
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get::<_, String>(3).unwrap());
    }
    steps
}

fn those_with(mark: &str) -> BTreeSet<String> {
    let connection = migrate::sample().unwrap();
    let marked = |(name, sql): (String, String)| {
        let steps = plan(&connection, &sql);
        steps.iter().any(|step| step.contains(mark)).then_some(name)
    };
    statements().into_iter().filter_map(marked).collect()
}

#[test]
fn all_statements_are_found() {
    let found = statements();
    assert!(found.len() > 70, "{}", found.len());
    for name in ["queue FREE", "follow REBASE", "write MESSAGE", "page tree"] {
        assert!(found.contains_key(name), "{name}");
    }
}

#[test]
fn no_statement_reads_a_whole_table() {
    assert_eq!(those_with("SCAN "), MAY_SCAN.map(str::to_owned).into());
}

#[test]
fn few_statements_sort() {
    assert_eq!(those_with("USE TEMP B-TREE"), MAY_SORT.map(str::to_owned).into());
}

/// The queue is a walk along one index, from the front.
#[test]
fn the_next_task_is_found_along_one_index() {
    let connection = migrate::sample().unwrap();
    let all = statements();
    for (name, step) in [
        ("queue FREE", "SEARCH tasks USING INDEX tasks_pending (list=? AND condition=? AND path>? AND path<?)"),
        (
            "queue ASSIGNED",
            "SEARCH tasks USING INDEX tasks_assigned (list=? AND owner=? AND condition=? AND path>? AND path<?)",
        ),
        ("tree LAST", "SEARCH tasks USING COVERING INDEX tasks_children (list=? AND parent=?)"),
    ] {
        assert_eq!(plan(&connection, &all[name]), [step], "{name}");
    }
}

/// What a subscriber is given is found along one index, from where it has read to, whatever came before.
#[test]
fn a_delivery_is_found_along_one_index() {
    let connection = migrate::sample().unwrap();
    let all = statements();
    for (name, step) in [
        ("CHANNEL", "SEARCH posts USING COVERING INDEX posts_by_channel (channel=? AND seq>? AND seq<?)"),
        ("LIST", "SEARCH messages USING COVERING INDEX messages_by_list (list=? AND seq>? AND seq<?)"),
        ("ALL", "SEARCH posts USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
    ] {
        for way in ["UP", "DOWN"] {
            assert_eq!(plan(&connection, &all[&format!("streams {name}_{way}")]), [step], "{name} {way}");
        }
    }
}

/// A tag is found by (tag, seq), and the tags with a beginning by a range of bytes.
#[test]
fn messages_with_a_tag_are_found_along_the_index_of_tags() {
    let connection = migrate::sample().unwrap();
    let all = statements();
    for (name, step) in [
        ("TAG_UP", "SEARCH message_tags USING PRIMARY KEY (tag=? AND seq>? AND seq<?)"),
        ("TAG_DOWN", "SEARCH message_tags USING PRIMARY KEY (tag=? AND seq>? AND seq<?)"),
        ("TAGS_FROM", "SEARCH message_tags USING PRIMARY KEY (tag>? AND tag<?)"),
        ("TAGS_BEHIND", "SEARCH message_tags USING PRIMARY KEY (tag>? AND tag<?)"),
    ] {
        assert_eq!(plan(&connection, &all[&format!("streams {name}")]), [step], "{name}");
    }
}
