//! What strangers may send or leave: searches in the syntax of every database and none, and files that somebody spoiled
//! (threats T11 and T17 of SECURITY.md).

use std::collections::BTreeSet;

use taskbus::core::bus::channel::ChannelKind;
use taskbus::core::bus::fold;
use taskbus::core::bus::query::Query;
use taskbus::core::text::Subject;
use taskbus::store::bus::MessageFilter;
use taskbus::store::bus::Place;
use taskbus::store::sqlite::SqliteStore;
use taskbus::store::{Snapshot, Store, StoreError, read_with, write_with};

use crate::bus_files::post;
use crate::bus_questions::channel;
use crate::support::{Home, at, create, list};

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % end as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const WORDS: [&str; 16] = [
    "red", "fox", "quick", "straße", "STRASSE", "ε", "e\u{301}", "日本", "drop", "table", "near", "and", "not", "x1",
    "👍", "null",
];
/// What parts, quotes, negates, groups, matches or ends something somewhere.
const SIGNS: [&str; 24] = [
    " ", " ", "\"", "'", "*", "(", ")", ":", "-", "+", "^", "%", "_", ";", "--", "/*", "\\", "{", "}", ",", " OR ",
    " NEAR(", "\u{0}", "\u{202e}",
];

fn text(dice: &mut Dice, pieces: usize) -> String {
    (0..=dice.below(pieces)).map(|_| if dice.below(2) == 0 { dice.pick(&WORDS) } else { dice.pick(&SIGNS) }).collect()
}

/// Messages with such texts, by number.
fn filled(store: &SqliteStore, dice: &mut Dice) -> Vec<(u64, String)> {
    let general = channel("general");
    let mut written = Vec::new();
    write_with(store, None, |tx| {
        let bus = tx.bus_mut().unwrap();
        bus.create_channel(&general, ChannelKind::Ordinary, at(1))?;
        written = (0..120)
            .map(|_| {
                let content = text(dice, 12).replace('\0', "");
                (post(bus, &general, &content, &[], Place::Ordinary), content)
            })
            .collect();
        Ok(())
    })
    .unwrap();
    store.index_texts().unwrap();
    written
}

#[test]
fn a_hundred_thousand_queries_find_what_a_reader_would_find() {
    let home = Home::new();
    let (store, mut dice) = (home.with_list(), Dice(7));
    let written = filled(&store, &mut dice);
    let words: Vec<(u64, Vec<String>)> = written.iter().map(|(seq, text)| (*seq, fold::words(text))).collect();
    let (mut asked, mut found_any) = (0, 0);
    read_with(&store, None, |snapshot| {
        let bus = snapshot.bus().unwrap();
        while asked < 100_000 {
            let query = text(&mut dice, 5);
            asked += 1;
            let Ok(query) = Query::parse(&query) else { continue };
            let hits = bus.search(&query.terms, &MessageFilter::default(), 1000)?;
            let found: BTreeSet<u64> = hits.iter().map(|hit| hit.found.seq).collect();
            let has_all = |words: &[String]| query.terms.iter().all(|term| term.is_in(words));
            let expected = words.iter().filter(|(_, words)| !query.terms.is_empty() && has_all(words));
            let expected: BTreeSet<u64> = expected.map(|(seq, _)| *seq).collect();
            assert_eq!(found, expected, "{query:?}");
            found_any += u32::from(!found.is_empty());
        }
        Ok(())
    })
    .unwrap();
    assert!((10_000..90_000).contains(&found_any), "{found_any} of {asked} found something");
    assert!(store.check().unwrap().is_empty(), "nothing was changed by asking");
}

/// A store with a list, tasks of several revisions, and messages; its bytes.
fn whole() -> Vec<u8> {
    let home = Home::new();
    let store = home.with_list();
    for _ in 0..20 {
        create(&store, |task| task.subject = Subject::new("The quick fox").unwrap());
    }
    filled(&store, &mut Dice(1));
    drop(store);
    let connection = rusqlite::Connection::open(&home.path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    std::fs::read(&home.path).unwrap()
}

fn spoil(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let page = 2048;
    match dice.below(4) {
        0 => (0..=dice.below(8)).for_each(|_| {
            let at = dice.below(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
        }),
        1 => (0..=dice.below(32)).for_each(|_| {
            let at = dice.below(bytes.len());
            bytes[at] = u8::try_from(dice.below(256)).unwrap();
        }),
        2 => {
            let [from, to] = [dice.below(bytes.len() / page), dice.below(bytes.len() / page)];
            let copy = bytes[from * page..(from + 1) * page].to_vec();
            bytes[to * page..(to + 1) * page].copy_from_slice(&copy);
        }
        _ => bytes.truncate(1 + dice.below(bytes.len())),
    }
}

/// Looks at everything and writes something; every step may be refused.
fn used(home: &Home) -> Result<(), StoreError> {
    let store = home.try_open()?;
    let _problems = store.check()?;
    read_with(&store, Some(&list()), |snapshot: &dyn Snapshot| {
        let _lists = snapshot.lists()?;
        let bus = snapshot.bus().unwrap();
        let _channels = bus.channels()?;
        let terms = Query::parse("quick fox*").unwrap().terms;
        let _hits = bus.search(&terms, &MessageFilter::default(), 100)?;
        Ok(())
    })?;
    let _written = write_with(&store, None, |tx| Ok(tx.mint(1)?));
    Ok(())
}

#[test]
fn two_thousand_spoiled_databases_are_used_or_refused() {
    let whole = whole();
    let (mut used_anyway, mut refused) = (0, 0);
    for seed in 0..2000 {
        let (home, mut bytes) = (Home::new(), whole.clone());
        spoil(&mut bytes, &mut Dice(seed));
        std::fs::write(&home.path, bytes).unwrap();
        match used(&home) {
            Ok(()) => used_anyway += 1,
            Err(error) => {
                refused += 1;
                assert!(error.to_string().len() > 20, "seed {seed}: {error}");
            }
        }
    }
    assert!(used_anyway > 100 && refused > 100, "{used_anyway} used, {refused} refused");
}
