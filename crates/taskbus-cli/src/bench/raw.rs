//! The yardstick: a bare loop of one-row transactions on a SQLite file of its own. What the store costs is said as a
//! multiple of this, measured in the same breath and as durable.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use super::lists::field::Mode;
use crate::term::failure::Failure;

/// Rows of the table; a commit changes one of them.
const ROWS: u64 = 1_000;
/// How long SQLite's own busy handler waits: longer than anything here lasts.
const BUSY: Duration = Duration::from_secs(300);

/// How SQLite flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Flush {
    /// Only when it moves its log.
    Normal,
    /// At each commit, while it holds the lock.
    Full,
}

/// The bare loop.
pub(super) struct Raw {
    connection: Connection,
    log: File,
    turn: u64,
}

impl Raw {
    /// A fresh file in a directory.
    pub(super) fn open(dir: &Path) -> Result<Self, Failure> {
        let made = try_make(&path(dir)).and_then(|()| Self::try_join(&path(dir), Flush::Normal));
        made.map_err(|error| Failure::machine("the bare loop cannot be set up", error))
    }

    /// Another loop on that file.
    pub(super) fn join(dir: &Path, flush: Flush) -> Result<Self, Failure> {
        Self::try_join(&path(dir), flush).map_err(|error| Failure::machine("the bare loop cannot be joined", error))
    }

    fn try_join(path: &Path, flush: Flush) -> Result<Self, Box<dyn std::error::Error>> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "synchronous", if flush == Flush::Full { "FULL" } else { "NORMAL" })?;
        connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
        // The log is there once something was read.
        let _: i64 = connection.query_row("SELECT count(*) FROM row", [], |row| row.get(0))?;
        let log = File::open(path.with_extension("db-wal"))?;
        Ok(Self { connection, log, turn: 0 })
    }

    /// One transaction; how long it took, until it was on disk if `mode` waits for that.
    pub(super) fn turn(&mut self, mode: Mode) -> Result<Duration, Failure> {
        self.try_turn(mode).map_err(|error| Failure::machine("the bare loop failed", error))
    }

    fn try_turn(&mut self, mode: Mode) -> Result<Duration, Box<dyn std::error::Error>> {
        self.turn += 1;
        let id = (self.turn * 7919 % ROWS).cast_signed();
        let began = Instant::now();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.prepare_cached("UPDATE row SET value = value + 1 WHERE id = ?1")?.execute([id])?;
        transaction.commit()?;
        if mode == Mode::Durable {
            self.log.sync_data()?;
        }
        Ok(began.elapsed())
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join("raw.db")
}

fn try_make(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; CREATE TABLE row(id INTEGER PRIMARY KEY, value INTEGER NOT NULL);",
    )?;
    let transaction = connection.transaction()?;
    for id in 0..ROWS {
        transaction.execute("INSERT INTO row(id, value) VALUES (?1, 0)", params![id.cast_signed()])?;
    }
    Ok(transaction.commit()?)
}

/// Looks at a store as a program does that polls it.
pub(super) struct Poll(Connection);

impl Poll {
    /// Opens a store.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        Connection::open(path).map(Self).map_err(|error| Failure::machine("the store cannot be polled", error))
    }

    /// A number that changes with every commit of others.
    pub(super) fn version(&self) -> Result<i64, Failure> {
        let version = self.0.query_row("PRAGMA data_version", [], |row| row.get(0));
        version.map_err(|error| Failure::machine("the store cannot be polled", error))
    }
}

/// The version of SQLite in use.
pub(super) fn sqlite_version() -> &'static str {
    rusqlite::version()
}
