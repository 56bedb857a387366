//! The yardstick: a bare loop of one-row transactions on a SQLite file of its own, as durable as the store's. What
//! the store costs is said as a multiple of this, measured in the same breath.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior, params};

use super::field::Mode;
use crate::term::failure::Failure;

/// Rows of the table; a commit changes one of them.
const ROWS: u64 = 1_000;

/// The bare loop.
pub(super) struct Raw {
    connection: Connection,
    log: File,
    turn: u64,
}

impl Raw {
    /// A fresh file in a directory.
    pub(super) fn open(dir: &Path) -> Result<Self, Failure> {
        Self::try_open(dir).map_err(|error| Failure::machine("the bare loop cannot be set up", error))
    }

    fn try_open(dir: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let path = dir.join("raw.db");
        let connection = Connection::open(&path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4000;
             CREATE TABLE row(id INTEGER PRIMARY KEY, value INTEGER NOT NULL);",
        )?;
        for id in 0..ROWS {
            connection.execute("INSERT INTO row(id, value) VALUES (?1, 0)", params![id.cast_signed()])?;
        }
        let log = File::open(dir.join("raw.db-wal"))?;
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

/// The version of SQLite in use.
pub(super) fn sqlite_version() -> &'static str {
    rusqlite::version()
}
