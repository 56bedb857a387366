//! Thousands of random edits behind the store's back, each of them found. Each is made in a transaction on the store's
//! own connection, looked at there, and rolled back. `TASKBUS_EDITS` says how many; 10,000 take half a minute.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::message::Sort;
use taskbus_core::change::{Change, Kind};
use taskbus_core::document;
use taskbus_core::name::{Identity, Label, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::rank::Rank;
use taskbus_core::task::{Stamp, State, Task};
use taskbus_core::text::Note;
use taskbus_core::time::Timestamp;

use super::super::scope::{About, Opening, Scope};
use super::super::{SqliteOptions, SqliteStore};
use super::Look;
use crate::store::bus::{NewMessage, Place};
use crate::store::{Author, Store, Tx, write_with};

const EDITS: usize = 2_000;
const SEEDS: [u64; 4] = [1, 2, 3, 4];
const NOW: i64 = 1_796_000_000_000;

/// The tables whose rows are edited, and of each the columns of its key.
const TABLES: [(&str, &[&str]); 6] = [
    ("messages", &["seq"]),
    ("tasks", &["id"]),
    ("edges", &["blocker", "task"]),
    ("task_labels", &["list", "label", "task"]),
    ("counters", &["id"]),
    ("tombstones", &["id"]),
];

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW + millis)
}

fn who(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

/// What happens to the tasks of a list, by the rules.
struct Pen<'t> {
    tx: &'t mut dyn Tx,
    time: i64,
}

impl Pen<'_> {
    fn create(&mut self, f: impl FnOnce(&mut Task)) -> Task {
        self.time += 1;
        let id = self.tx.mint(1).unwrap().remove(0);
        let stamp = Stamp { at: at(self.time), by: Some(who("Zed")) };
        let text = format!(r#"{{"subject":"Do {id}","status":"pending","rank":"V","created_at":{}}}"#, NOW + self.time);
        let mut task = document::decode(id, 1, stamp.clone(), &text).unwrap();
        task.created = stamp;
        f(&mut task);
        self.write(Kind::Created, task, None)
    }

    fn change(&mut self, kind: Kind, task: &Task, f: impl FnOnce(&mut Task)) -> Task {
        self.time += 1;
        let mut task = task.clone();
        task.revision += 1;
        task.updated = Stamp { at: at(self.time), by: Some(who("Amp")) };
        f(&mut task);
        self.write(kind, task, Some(Note::new("seen").unwrap()))
    }

    fn claim(&mut self, task: &Task) -> Task {
        self.change(Kind::Changed, task, |task| {
            task.state = State::InProgress { owner: Some(who("Amp")), lease: Some(at(9_000_000)) };
            task.fence += 1;
        })
    }

    fn complete(&mut self, task: &Task) -> Task {
        self.change(Kind::Changed, task, |task| {
            (task.state, task.reclaims) = (State::Completed { by: Some(who("Amp")), at: task.updated.at }, 0);
        })
    }

    fn write(&mut self, kind: Kind, task: Task, note: Option<Note>) -> Task {
        let author = Author { context: "tests".to_owned(), client: "claude 1".to_owned() };
        let change = Change { kind, task, note };
        self.tx.append(&change, &author).unwrap();
        change.task
    }

    /// A bit of everything: a tree, blockers, labels, people, every kind of revision.
    fn story(&mut self) {
        let label = |name: &str| Label::new(name).unwrap();
        let root = self.create(|task| task.labels = [label("a"), label("b")].into());
        let child = self.create(|task| {
            task.parent = Some(root.id.clone());
            task.blocked_by = vec![root.id.clone()];
        });
        let grandchild = self.create(|task| {
            task.parent = Some(child.id.clone());
            task.labels = [label("a")].into();
            task.not_before = Some(at(90_000_000));
        });
        // Against the order in which they came.
        let waiting = self.change(Kind::Changed, &grandchild, |_| {});
        let held = self.claim(&root);
        let back = self.change(Kind::Reclaimed, &held, |task| {
            task.state = State::Pending { assignee: None };
            (task.fence, task.reclaims) = (task.fence + 1, 1);
        });
        let again = self.claim(&back);
        self.complete(&again);
        let late = self.create(|task| task.rank = Rank::nth(5));
        self.change(Kind::Changed, &waiting, |task| task.blocked_by = vec![late.id.clone(), child.id.clone()]);
        self.change(Kind::Reranked, &late, |task| task.rank = Rank::nth(9));
        for keep in [true, false] {
            let gone = self.create(|task| task.labels = [label("c")].into());
            let gone = self.claim(&gone);
            let gone = self.change(Kind::Deleted, &gone, |_| {});
            if keep {
                self.change(Kind::Restored, &gone, |task| {
                    task.state = State::Pending { assignee: None };
                    task.fence += 1;
                });
            }
        }
    }
}

fn list(name: &str) -> ListName {
    ListName::new(name).unwrap()
}

fn post(tx: &mut dyn Tx, channel: &ChannelName) {
    let (author, sort) = (Author::default(), Sort::default());
    let (sender, subject, reply_to, metadata) = (None, None, None, None);
    let (at, sort, content, tags, place) = (at(0), &sort, "hello", &[][..], Place::Ordinary);
    let author = &author;
    let new = NewMessage { channel, sender, author, at, sort, subject, content, reply_to, metadata, tags, place };
    tx.bus_mut().unwrap().post(&new).unwrap();
}

/// A store with two lists, one that is gone, and messages in between.
fn store(home: &std::path::Path) -> SqliteStore {
    let store = SqliteStore::open(home.join("taskbus.db"), SqliteOptions::default()).unwrap();
    let chat = ChannelName::new("chat").unwrap();
    let lists = ["tasks/gone", "tasks/a", "tasks/b"].map(list);
    write_with(&store, None, |tx| {
        tx.bus_mut().unwrap().create_channel(&chat, ChannelKind::Ordinary, at(0))?;
        for list in &lists {
            tx.create_list(list, ListRules::default(), at(0))?;
        }
        Ok(())
    })
    .unwrap();
    for list in &lists {
        write_with(&store, Some(list), |tx| {
            Pen { tx, time: 0 }.story();
            post(tx, &chat);
            Ok(())
        })
        .unwrap();
    }
    write_with(&store, None, |tx| Ok(tx.bus_mut().unwrap().delete_channel(&ChannelName::from(&lists[0]))?)).unwrap();
    store.index_texts().unwrap();
    store
}

/// Numbers that look random, from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }
}

/// All rows of a table.
#[derive(Clone, PartialEq)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

fn rows(connection: &Connection, table: &str) -> Rows {
    let mut statement = connection.prepare_cached(&format!("SELECT * FROM {table}")).unwrap();
    let columns: Vec<String> = statement.column_names().map(ToString::to_string).collect();
    let width = columns.len();
    let read = statement.query_map([], |row| (0..width).map(|at| row.get(at)).collect()).unwrap();
    Rows { columns, rows: read.map(Result::unwrap).collect() }
}

/// Another value, of the same type or none.
fn other(value: &Value, dice: &mut Dice) -> Value {
    match value {
        Value::Integer(number) => Value::Integer(match dice.roll(5) {
            0 => number.wrapping_add(1),
            1 => number.wrapping_sub(1),
            2 => -number,
            3 => number ^ (1 << dice.roll(63)),
            _ => i64::try_from(dice.roll(20)).unwrap(),
        }),
        Value::Text(text) => Value::Text(match dice.roll(4) {
            0 => format!("{text} "),
            1 => text.chars().rev().collect(),
            2 => text.chars().skip(1).collect(),
            _ => text.replacen(|c: char| c.is_ascii_digit(), "7", 1),
        }),
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            let at = dice.roll(bytes.len().max(1));
            match bytes.get_mut(at) {
                Some(byte) if dice.roll(2) == 0 => *byte ^= 1 << dice.roll(8),
                _ => bytes.truncate(at),
            }
            Value::Blob(bytes)
        }
        Value::Null => [Value::Integer(3), Value::Text("x".to_owned()), Value::Blob(vec![0; 32])][dice.roll(3)].clone(),
        Value::Real(_) => unreachable!("no column has reals"),
    }
}

/// One way to change the rows of a table; the rows it leaves are written in place of those there.
fn edited(before: &Rows, keys: &[&str], dice: &mut Dice) -> Vec<Vec<Value>> {
    let mut rows = before.rows.clone();
    let (one, two) = (dice.roll(rows.len()), dice.roll(rows.len()));
    let column = dice.roll(before.columns.len());
    let is_key = |at: usize| keys.contains(&before.columns[at].as_str());
    match dice.roll(10) {
        0..4 => rows[one][column] = other(&rows[one][column], dice),
        4 => rows[one][column] = rows[two][column].clone(),
        5 => rows[one][column] = Value::Null,
        6 => drop(rows.remove(one)),
        7 => drop(rows.pop()),
        // A row once more, under another key.
        8 => {
            let mut row = rows[one].clone();
            let key = keys[dice.roll(keys.len())];
            let at = before.columns.iter().position(|name| name == key).unwrap();
            row[at] = other(&row[at], dice);
            rows.push(row);
        }
        // Two rows change places: all that they say but their keys.
        _ => {
            for at in (0..before.columns.len()).filter(|at| !is_key(*at)) {
                let value = rows[one][at].clone();
                rows[one][at] = std::mem::replace(&mut rows[two][at], value);
            }
        }
    }
    rows
}

/// Puts rows in the place of others; none if no such rows can be there at all.
fn write(connection: &Connection, table: &str, before: &Rows, after: &[Vec<Value>]) -> Option<()> {
    connection.execute_batch(&format!("DELETE FROM {table}")).unwrap();
    let places = vec!["?"; before.columns.len()].join(", ");
    let mut insert = connection.prepare_cached(&format!("INSERT INTO {table} VALUES ({places})")).unwrap();
    after.iter().try_for_each(|row| insert.execute(params_from_iter(row)).ok().map(drop))
}

/// What the store's clock goes by may be missing: the next write takes it anew.
fn lacks_only_its_clock(before: &Rows, after: &[Vec<Value>]) -> bool {
    let Some(clock) = before.columns.iter().position(|name| name == "clock") else { return false };
    let mut without = before.rows.clone();
    without.iter_mut().for_each(|row| row[clock] = Value::Null);
    without == after
}

/// What is found on the connection, as it stands in the middle of its transaction.
fn found(connection: &Connection) -> Vec<String> {
    let opening = Opening::read(connection, About::Nothing);
    let looked = opening.map_err(Into::into).and_then(|opening| {
        let scope = Scope::enter(connection, "tests", About::Nothing, at(1_000_000), false, opening)?;
        scope.verify_all(Look::History, &mut |_, _| {})
    });
    match looked {
        Ok(verdict) => verdict.differences.iter().map(ToString::to_string).collect(),
        Err(fault) => vec![fault.to_string()],
    }
}

/// Makes so many edits; says how many in which table.
fn edit(seed: u64, edits: usize) -> BTreeMap<&'static str, usize> {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let opened = store.opened().unwrap();
    let (mut dice, mut tried) = (Dice(seed), BTreeMap::new());
    opened.with_idle(|connection| {
        let tables = TABLES.map(|(table, keys)| (table, keys, rows(connection, table)));
        for (table, _, before) in &tables {
            connection.execute_batch("BEGIN").unwrap();
            assert_eq!(write(connection, table, before, &before.rows), Some(()));
            assert_eq!(found(connection), Vec::<String>::new(), "the same rows once more are no edit");
            connection.execute_batch("ROLLBACK").unwrap();
        }
        while tried.values().sum::<usize>() < edits {
            let (table, keys, before) = &tables[dice.roll(tables.len())];
            let after = edited(before, keys, &mut dice);
            connection.execute_batch("BEGIN").unwrap();
            let written = write(connection, table, before, &after);
            if written.is_some() && rows(connection, table) != *before && !lacks_only_its_clock(before, &after) {
                *tried.entry(*table).or_default() += 1;
                let differs = after.iter().zip(&before.rows).find(|(after, before)| after != before);
                assert!(!found(connection).is_empty(), "{seed}, {table}: nobody saw {differs:?} {:?}", before.columns);
            }
            connection.execute_batch("ROLLBACK").unwrap();
        }
    });
    tried
}

#[test]
fn every_edit_is_found() {
    let edits = std::env::var("TASKBUS_EDITS").map_or(EDITS, |edits| edits.parse().unwrap());
    std::thread::scope(|scope| {
        let threads: Vec<_> = SEEDS.iter().map(|seed| scope.spawn(move || edit(*seed, edits / SEEDS.len()))).collect();
        for thread in threads {
            let tried = thread.join().unwrap();
            assert!(tried.len() == TABLES.len() && tried.values().all(|times| *times > 20), "{tried:?}");
        }
    });
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let verdict = store.verify(&mut |_, _| {}).unwrap().unwrap();
    assert!(verdict.is_sound(), "{verdict:?}");
    assert_eq!((verdict.epoch, verdict.head.len(), verdict.store.len()), (1, 64, 32));
    assert!(verdict.revisions > verdict.tasks && verdict.tasks > 0, "{verdict:?}");
}
