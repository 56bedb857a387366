//! Connections: how one is opened, tuned, and tried out, and what is done when the file may only be read.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::backup;
use super::error::{Answer, Fault};
use super::file::{Place, foreign};
use super::lock::Patience;
use super::migrate::{self, Found};
use super::{Clock, Durability, Journal, SqliteOptions, SystemClock};

/// Statements kept ready on each connection; more than there are.
const STATEMENTS: usize = 200;

/// Of a file that is made now; an existing one keeps its own. A change of one task writes five or six pages, and copying
/// and summing them is what most of its time goes into: with half of SQLite's usual size it takes an eighth less.
const PAGE: &str = "PRAGMA page_size = 2048";

/// Settings of every connection. Memory-mapped I/O stays off; the schema is trusted with nothing.
const TUNE: &str = "
    PRAGMA cache_size = -8000;
    PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA foreign_keys = OFF;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
";

/// A commit is flushed by the store itself, after the write lock is released. Checkpoints are the store's own too; one
/// syncs the log before it touches the file.
const LOGGED: &str = "
    PRAGMA synchronous = NORMAL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 67108864;
";
const ROLLBACK_DURABLE: &str = "PRAGMA synchronous = FULL;";
const ROLLBACK_RELAXED: &str = "PRAGMA synchronous = NORMAL;";

/// What may be done with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Read and write.
    Full,
    /// Read; the reason why not more.
    ReadOnly(String),
}

/// Makes the file a store if it is none yet, and says what may be done with it; with full access the connection that
/// writes comes along. Refuses what it does not understand.
pub(super) fn establish(place: &Place, options: &SqliteOptions) -> Answer<(Access, Option<Connection>)> {
    refuse_foreign(place.directory(), options.journal)?;
    place.prepare()?;
    let patience = Patience::of(options.deadline);
    match set_up(place, options, &patience) {
        Ok(Some(connection)) => Ok((Access::Full, Some(connection))),
        Ok(None) => read_only(place, "this user may not write it".to_owned(), &patience),
        Err(fault) if fault.is_write_protected() => read_only(place, fault.to_string(), &patience),
        Err(fault) => Err(fault),
    }
}

fn refuse_foreign(directory: &Path, journal: Journal) -> Answer<()> {
    match foreign(directory) {
        Some(kind) if journal == Journal::Log => Err(Fault::Unavailable(
            format!("{} is on {kind}, where a write-ahead log loses data", directory.display()),
            "keep the store on a local disk, or choose the rollback journal and run all processes on one machine",
        )),
        _ => Ok(()),
    }
}

fn set_up(place: &Place, options: &SqliteOptions, patience: &Patience) -> Answer<Option<Connection>> {
    let connection = open(place.path(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if connection.is_readonly("main")? {
        return Ok(None);
    }
    connection.execute_batch(PAGE)?;
    let found = migrate::examine(&connection, patience)?;
    let mut keep = |step| {
        let kept = backup::before_step(&connection, place, step, SystemClock.now())?;
        tracing::info!(kept = %kept.display(), step, "the store as it was before a schema step is kept");
        Ok(())
    };
    migrate::migrate(&connection, found, patience, &mut keep)?;
    choose_journal(&connection, options.journal, patience)?;
    tune(&connection, options, patience)?;
    Ok(Some(connection))
}

fn choose_journal(connection: &Connection, journal: Journal, patience: &Patience) -> Answer<()> {
    let wanted = match journal {
        Journal::Log => "wal",
        Journal::Rollback => "delete",
    };
    let got: String = patience.persist(|| {
        let got: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if got == wanted {
            return Ok(got);
        }
        connection.pragma_update_and_check(None, "journal_mode", wanted, |row| row.get(0))
    })?;
    if got != wanted {
        let reason = format!("its journal mode stays {got} where {wanted} is asked for");
        return Err(Fault::Unavailable(reason, "close every other program that has it open"));
    }
    // Not before the first read does SQLite touch the log and the shared memory.
    patience.persist(|| connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)))?;
    Ok(())
}

fn read_only(place: &Place, reason: String, patience: &Patience) -> Answer<(Access, Option<Connection>)> {
    let connection = reader_of_protected(place)?;
    match migrate::examine(&connection, patience)? {
        Found::Schema(version) if version >= migrate::KNOWN => Ok((Access::ReadOnly(reason), None)),
        Found::Schema(version) => Err(Fault::Unavailable(
            format!("it has schema {version} and may not be written, so it cannot be brought to {}", migrate::KNOWN),
            "open it once with write access",
        )),
        Found::Empty => Err(Fault::Unavailable(
            format!("it is empty and may not be written: {reason}"),
            "check that this user may write the file and its directory",
        )),
    }
}

/// A connection that reads and writes.
pub(super) fn writer(place: &Place, options: &SqliteOptions, patience: &Patience) -> Answer<Connection> {
    let connection = open(place.path(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    tune(&connection, options, patience)?;
    Ok(connection)
}

/// A connection that only reads, on a file that this process may also write.
pub(super) fn reader(place: &Place, options: &SqliteOptions, patience: &Patience) -> Answer<Connection> {
    let connection = writer(place, options, patience)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A connection to a file that cannot be written. With a log beside it, SQLite reads both; without one nobody can be
/// writing, and it is read as it stands, for the length of one transaction only.
pub(super) fn reader_of_protected(place: &Place) -> Answer<Connection> {
    if place.has_log() {
        return open(place.path(), OpenFlags::SQLITE_OPEN_READ_ONLY);
    }
    let uri = format!("file:{}?immutable=1", percent_encoded(place.path()));
    open(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

/// A connection to a file that nobody else has open.
pub(super) fn alone(path: &Path) -> Answer<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(connection)
}

fn open(path: &Path, access: OpenFlags) -> Answer<Connection> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Else SQLite plans a kept statement anew whenever another value is bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

fn tune(connection: &Connection, options: &SqliteOptions, patience: &Patience) -> Answer<()> {
    let durability = match (options.journal, options.durability) {
        (Journal::Log, _) => LOGGED,
        (Journal::Rollback, Durability::Full) => ROLLBACK_DURABLE,
        (Journal::Rollback, Durability::Relaxed) => ROLLBACK_RELAXED,
    };
    patience.persist(|| {
        connection.execute_batch(TUNE)?;
        connection.execute_batch(durability)
    })
}

/// Every byte that could mean something in a URI, escaped.
fn percent_encoded(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_the_uri() {
        assert_eq!(percent_encoded(Path::new("/a b/c#d?e%f'.db")), "/a%20b/c%23d%3Fe%25f%27.db");
    }
}
