//! What makes a commit durable: flushing the write-ahead log after the write lock is released and before the answer.
//! A prefix of the log is a consistent database, and whoever checkpoints syncs the log first (ADR 0006).

use std::fs::File;
use std::path::PathBuf;

use super::error::{Answer, Fault};
use super::file::{FileId, Place, identify};

/// The write-ahead log, held open to be flushed. SQLite keeps no locks on it that closing this handle could drop.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    id: Option<FileId>,
}

impl Log {
    /// Opens the log, which is there as long as any connection is.
    pub(super) fn open(place: &Place) -> Answer<Self> {
        let path = place.log();
        let id = identify(&path);
        let file = File::open(&path).map_err(|source| Fault::Io { what: "its log cannot be opened", source })?;
        Ok(Self { path, file, id })
    }

    /// A log whose flush fails, as the null device has no disk.
    #[cfg(test)]
    pub(super) fn that_cannot_be_flushed(place: &Place) -> Self {
        let path = place.log();
        let (id, file) = (identify(&path), File::open("/dev/null").expect("BUG: a test runs where there are devices"));
        Self { path, file, id }
    }

    /// Whether the path still names the file that is open. Nobody may remove a log while it is in use.
    pub(super) fn is_in_place(&self) -> bool {
        identify(&self.path) == self.id
    }

    /// Returns when everything committed before the call is on disk. Never called again after it failed: the kernel
    /// may have dropped the pages.
    pub(super) fn flush(&self) -> Answer<()> {
        let what = "the change was written, but whether it reached the disk is unknown: look before sending it again";
        self.file.sync_data().map_err(|source| Fault::Io { what, source })
    }
}
