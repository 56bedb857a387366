//! Schema steps: numbered, forward only, never edited. The number of the last one is the file's `user_version`.
//!
//! A step that older versions cannot live with raises `counters.min_reader` to its own number; all others only add.

use rusqlite::{Connection, OptionalExtension as _};

use super::chained::STORE_ID;
use super::error::{Answer, Fault};
use super::lock::Patience;

/// Marks a SQLite file as a taskbus store ("tskb").
pub(super) const APPLICATION_ID: i32 = 0x7473_6B62;

/// The newest schema known here.
pub(super) const KNOWN: u32 = 3;

/// One step: what makes the schema of this number out of the one before.
struct Step {
    number: u32,
    sql: &'static str,
    /// Older versions cannot live with it: it raises `min_reader`, and the store as it was is kept.
    breaks: bool,
}

const STEPS: [Step; KNOWN as usize] = [
    Step { number: 1, sql: include_str!("schema/0001.sql"), breaks: false },
    Step { number: 2, sql: include_str!("schema/0002.sql"), breaks: false },
    Step { number: 3, sql: include_str!("schema/0003.sql"), breaks: false },
];

const BEGIN: &str = "BEGIN IMMEDIATE";
/// The mode in which free pages can be given back has to be chosen before the first page is written, which the
/// beginning of a writing transaction does already. So this is what begins to write when the file is still empty; a
/// file that has pages keeps its mode.
const BEGIN_FIRST: [&str; 2] = ["BEGIN", "PRAGMA auto_vacuum = INCREMENTAL"];
/// How many objects there are, and one of those that would run by themselves: no store of ours has any.
const OBJECTS: &str = "SELECT count(*), max(CASE WHEN type IN ('trigger', 'view') THEN name END) FROM sqlite_schema";
const MIN_READER: &str = "SELECT min_reader FROM counters WHERE id = 0";
const KEEP: &str = "INSERT INTO meta (key, value) VALUES (?1, ?2)";
const CHECKSUM: &str = "SELECT value FROM meta WHERE key = ?1";

/// What a file is, before anything is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing yet.
    Empty,
    /// A store of this schema.
    Schema(u32),
}

/// What a file says of itself, as of one moment.
struct Header {
    application: i64,
    version: i64,
    objects: i64,
    /// A trigger or a view.
    program: Option<String>,
    pages: i64,
    /// Of a store of ours that is newer than this version.
    min_reader: Option<i64>,
    /// Of the steps that both know, from the first, in a store of ours.
    checksums: Vec<String>,
}

/// Looks at the header and refuses what is no store of ours.
pub(super) fn examine(connection: &Connection, patience: &Patience) -> Answer<Found> {
    let header = patience.persist(|| look(connection))?;
    if (header.application, header.version, header.objects) == (0, 0, 0) {
        return if header.pages == 0 { Ok(Found::Empty) } else { Err(foreign("an SQLite file without any table")) };
    }
    if header.application != i64::from(APPLICATION_ID) {
        return Err(foreign("an SQLite file of another program"));
    }
    if let Some(program) = header.program {
        return Err(foreign(&format!("a store with the trigger or view {program}, which no version of taskbus makes")));
    }
    let version = u32::try_from(header.version).map_err(|_| foreign("a store with a negative schema number"))?;
    check_readable(&header, version)?;
    Ok(Found::Schema(version))
}

/// In one transaction: another process may be making the store at this moment.
fn look(connection: &Connection) -> rusqlite::Result<Header> {
    let tx = connection.unchecked_transaction()?;
    let pragma = |name: &str| tx.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (objects, program) = tx.query_row(OBJECTS, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (application, version, pages) = (pragma("application_id")?, pragma("user_version")?, pragma("page_count")?);
    let newer = version > i64::from(KNOWN);
    let shared = u32::try_from(version).ok().map(|version| version.min(KNOWN));
    let shared = shared.filter(|_| application == i64::from(APPLICATION_ID));
    let min_reader = shared.filter(|_| newer).map(|_| tx.query_row(MIN_READER, [], |row| row.get(0))).transpose()?;
    let kept = |step| tx.query_row(CHECKSUM, [checksum_key(step)], |row| row.get(0)).optional();
    let checksums = (1..=shared.unwrap_or(0)).map(|step| Ok(kept(step)?.unwrap_or_default()));
    let checksums = checksums.collect::<rusqlite::Result<_>>()?;
    Ok(Header { application, version, objects, program, pages, min_reader, checksums })
}

fn foreign(what: &str) -> Fault {
    Fault::Damaged(format!("it is {what}"))
}

/// A newer schema is fine as long as its steps only added.
fn check_readable(header: &Header, version: u32) -> Answer<()> {
    if let Some(min) = header.min_reader {
        check_min_reader(min, version)?;
    }
    match (1..).zip(&header.checksums).find(|(step, kept)| **kept != checksum(*step)) {
        Some((step, _)) => Err(Fault::Damaged(format!("its schema step {step} is not the one of this version"))),
        None => Ok(()),
    }
}

/// Asked again in every transaction: a newer process may have changed the file since it was opened.
pub(super) fn check_min_reader(min: i64, found: u32) -> Answer<()> {
    if min > i64::from(KNOWN) {
        let found = found.max(u32::try_from(min).unwrap_or(u32::MAX));
        return Err(Fault::Newer { found, known: KNOWN });
    }
    Ok(())
}

/// Brings the file to the newest schema, one transaction a step; another process may do the same at the same time.
/// `keep` is called with the number of a step that older versions cannot live with, before it is done.
pub(super) fn migrate(connection: &Connection, found: Found, patience: &Patience, keep: &mut Keep<'_>) -> Answer<()> {
    migrate_by(&STEPS, connection, found, patience, keep)
}

/// Keeps a copy before the step with this number.
type Keep<'a> = dyn FnMut(u32) -> Answer<()> + 'a;

fn migrate_by(
    steps: &[Step],
    connection: &Connection,
    found: Found,
    patience: &Patience,
    keep: &mut Keep<'_>,
) -> Answer<()> {
    let from = match found {
        Found::Empty => 0,
        Found::Schema(version) => version,
    };
    for step in steps.iter().filter(|step| step.number > from) {
        // Of a store that is being made there is nothing to keep.
        if step.breaks && from > 0 {
            keep(step.number)?;
        }
        patience.persist(|| if from == 0 { begin_first(connection) } else { connection.execute_batch(BEGIN) })?;
        match apply(connection, step) {
            Ok(()) => patience.persist(|| connection.execute_batch("COMMIT"))?,
            Err(error) => {
                connection.execute_batch("ROLLBACK")?;
                return Err(error);
            }
        }
    }
    Ok(())
}

fn begin_first(connection: &Connection) -> rusqlite::Result<()> {
    let begun = BEGIN_FIRST.iter().try_for_each(|sql| connection.execute_batch(sql));
    if begun.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    begun
}

/// Under the lock: nothing to do if somebody else has done it.
fn apply(connection: &Connection, step: &Step) -> Answer<()> {
    let version = version(connection)?;
    if version >= step.number {
        return Ok(());
    }
    let objects: i64 = connection.query_row(OBJECTS, [], |row| row.get(0))?;
    if version == 0 && objects > 0 {
        return Err(foreign("an SQLite file of another program"));
    }
    connection.execute_batch(step.sql)?;
    if step.number == 1 {
        connection.execute(KEEP, (STORE_ID, fresh_id()))?;
    }
    connection.execute(KEEP, (checksum_key(step.number), hashed(step.sql)))?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", step.number)?;
    Ok(())
}

/// The schema number of a file.
pub(super) fn version(connection: &Connection) -> Answer<u32> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    u32::try_from(version).map_err(|_| foreign("a store with a negative schema number"))
}

/// A store in memory with nothing but the schema, to compare with.
pub(super) fn sample() -> Answer<Connection> {
    let connection = Connection::open_in_memory()?;
    for step in &STEPS {
        connection.execute_batch(step.sql)?;
    }
    Ok(connection)
}

/// What tells one store from every other.
fn fresh_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("BUG: the operating system always has random bytes");
    format!("{:032x}", u128::from_le_bytes(bytes))
}

fn checksum_key(step: u32) -> String {
    format!("schema {step}")
}

fn checksum(step: u32) -> String {
    hashed(STEPS.iter().find(|known| known.number == step).map_or("", |known| known.sql))
}

fn hashed(sql: &str) -> String {
    blake3::hash(sql.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use taskbus_core::time::Timestamp;

    use super::super::file::Place;
    use super::super::{SqliteOptions, SqliteStore, backup, open};
    use super::*;

    #[test]
    fn steps_are_numbered_without_gaps_and_never_edited() {
        let numbers: Vec<u32> = STEPS.iter().map(|step| step.number).collect();
        assert_eq!(numbers, (1..=KNOWN).collect::<Vec<_>>());
    }

    /// A step of a version to come, on a store of this one.
    #[test]
    fn before_a_step_that_breaks_the_store_is_kept_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("taskbus.db");
        drop(SqliteStore::open(&path, SqliteOptions::default()).unwrap());
        let patience = Patience::of(Duration::from_secs(9));
        let place = Place::find(&path).unwrap();
        let connection = open::writer(&place, &SqliteOptions::default(), &patience).unwrap();
        let (next, sql) = (KNOWN + 1, "DROP TABLE notices; UPDATE counters SET min_reader = 4 WHERE id = 0");
        let steps = [Step { number: next, sql, breaks: true }];
        let mut kept = Vec::new();
        let mut keep = |step| {
            kept.push(backup::before_step(&connection, &place, step, Timestamp::from_millis(5))?);
            Ok(())
        };
        migrate_by(&steps, &connection, Found::Schema(KNOWN), &patience, &mut keep).unwrap();
        assert_eq!(version(&connection).unwrap(), next);
        assert_eq!(kept, [home.path().join(format!("taskbus.db.before-schema-{next}"))]);
        let old = SqliteStore::open(&kept[0], SqliteOptions::default()).unwrap();
        assert_eq!(old.check().unwrap(), Vec::<String>::new());
        let again = backup::before_step(&connection, &place, next, Timestamp::from_millis(5)).unwrap();
        assert!(again.to_string_lossy().ends_with("-5"), "what is there is not replaced: {}", again.display());
    }
}
