//! What makes a commit durable: flushing the write-ahead log after the write lock is released and before the answer.
//! A prefix of the log is a consistent database, and whoever checkpoints syncs the log first (ADR 0006).
//!
//! Callers of one process share ([`flushes`](super::flushes)).

use std::fs::File;
use std::path::PathBuf;

use super::error::{Answer, Fault};
use super::file::{FileId, Place, identify};
use super::flushes::Flushes;

/// The write-ahead log, held open to be flushed. SQLite keeps no locks on it that closing this handle could drop.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    id: Option<FileId>,
    flushes: Flushes,
}

impl Log {
    /// Opens the log, which is there as long as any connection is.
    pub(super) fn open(place: &Place) -> Answer<Self> {
        let path = place.log();
        let id = identify(&path);
        let file = File::open(&path).map_err(|source| Fault::Io { what: "its log cannot be opened", source })?;
        Ok(Self { path, file, id, flushes: Flushes::default() })
    }

    /// A log whose flush fails, as the null device has no disk.
    #[cfg(test)]
    pub(super) fn that_cannot_be_flushed(place: &Place) -> Self {
        let path = place.log();
        let (id, file) = (identify(&path), File::open("/dev/null").expect("BUG: a test runs where there are devices"));
        Self { path, file, id, flushes: Flushes::default() }
    }

    /// The file, to be locked.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Whether the path still names the file that is open. Nobody may remove a log while it is in use.
    pub(super) fn is_in_place(&self) -> bool {
        identify(&self.path) == self.id
    }

    /// Returns when everything committed before the call is on disk. Once it has failed it fails for ever, without trying
    /// again: the kernel may have dropped the pages.
    pub(super) fn flush(&self) -> Answer<()> {
        let sync = || self.file.sync_data().map_err(|error| error.raw_os_error().unwrap_or_default());
        self.flushes.share(&sync).map_err(failure)
    }
}

fn failure(number: i32) -> Fault {
    let what = "the change was written, but whether it reached the disk is unknown: look before sending it again";
    Fault::Io { what, source: std::io::Error::from_raw_os_error(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_on(file: File) -> Log {
        Log { path: PathBuf::new(), file, id: None, flushes: Flushes::default() }
    }

    #[test]
    fn what_failed_once_is_never_tried_again() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let log = log_on(File::from(std::os::fd::OwnedFd::from(reader)));
        for _ in 0..2 {
            let error = log.flush().unwrap_err();
            assert!(matches!(error, Fault::Io { .. }), "{error:?}");
        }
        assert_eq!(log.flushes.begun(), 1);
    }
}
