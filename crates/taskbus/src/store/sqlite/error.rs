//! What can go wrong inside, and how it is told at the seam. Inner functions return a [`Fault`], which knows nothing
//! of the store's name; the edge turns it into a [`StoreError`].

use std::time::Duration;

use rusqlite::ErrorCode;

use crate::store::StoreError;

/// The answer of an inner function.
pub(super) type Answer<T> = Result<T, Fault>;

/// Why an inner function could not do its work.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error("{what}: {source}")]
    Io { what: &'static str, source: std::io::Error },
    #[error("other writers held it")]
    Busy { waited: Duration },
    #[error("{0}")]
    Damaged(String),
    #[error("schema {found} is newer than {known}")]
    Newer { found: u32, known: u32 },
    #[error("{0}")]
    Unavailable(String, &'static str),
    #[error("{0}")]
    ReadOnly(String),
    #[error("the path names another file")]
    Moved,
    #[error("the newest number is {seq}, but {high} was acknowledged")]
    RolledBack { seq: u64, high: u64 },
    /// A caller asked what the contract does not allow.
    #[error("{0}")]
    Misuse(String),
}

/// What to do about a file that is no store of ours.
pub(super) const RESCUE: &str = "name another file, or put a backup in its place with taskbus restore-backup FILE";

impl Fault {
    /// Whether the file or its directory cannot be written by this process.
    pub(super) fn is_write_protected(&self) -> bool {
        let Fault::Sql(error) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
        )
    }

    /// Whether it says that one row has what none of ours has, and not that the file cannot be read.
    pub(super) fn is_about_a_row(&self) -> bool {
        match self {
            Fault::Damaged(_) => true,
            Fault::Sql(error) => is_malformed(error),
            _ => false,
        }
    }

    /// The same in the words of the seam.
    pub(super) fn told(self, store: &str) -> StoreError {
        let store = store.to_owned();
        match self {
            Fault::Sql(error) => told(error, store),
            Fault::Busy { waited } => StoreError::Busy { store, waited_ms: millis(waited) },
            Fault::Damaged(reason) => StoreError::Damaged { store, reason, next: RESCUE },
            Fault::Newer { found, known } => StoreError::Newer { store, found, known },
            Fault::Unavailable(reason, next) => StoreError::Unavailable { store, reason, next },
            Fault::ReadOnly(reason) => StoreError::ReadOnly { store, reason },
            Fault::Moved => StoreError::Moved { store },
            Fault::RolledBack { seq, high } => StoreError::RolledBack { store, seq, high },
            Fault::Io { .. } | Fault::Misuse(_) => StoreError::Failed { store, source: Box::new(self) },
        }
    }
}

/// Whether SQLite says that somebody else holds what it needs.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

fn told(error: rusqlite::Error, store: String) -> StoreError {
    let reason = error.to_string();
    if is_malformed(&error) {
        return StoreError::Damaged { store, reason, next: RESCUE };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            StoreError::Busy { store, waited_ms: 0 }
        }
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { store, reason },
        Some(ErrorCode::DiskFull) => StoreError::Full { store, reason },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged { store, reason, next: RESCUE }
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => StoreError::Unavailable {
            store,
            reason,
            next: "check that this user may read and write the file and its directory",
        },
        _ => StoreError::Failed { store, source: Box::new(error) },
    }
}

/// A value that no row of ours has.
fn is_malformed(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    matches!(error, FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
