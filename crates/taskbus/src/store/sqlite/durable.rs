//! What makes a commit durable: flushing the write-ahead log after the write lock is released and before the answer.
//! A prefix of the log is a consistent database, and whoever checkpoints syncs the log first (ADR 0006).
//!
//! Callers of one process share: who commits while a flush is under way waits for the next one, which whoever comes
//! first begins for all of them. A flush that had begun before a commit says nothing of it.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::error::{Answer, Fault};
use super::file::{FileId, Place, identify};

/// The write-ahead log, held open to be flushed. SQLite keeps no locks on it that closing this handle could drop.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    id: Option<FileId>,
    flushes: Mutex<Flushes>,
    ended: Condvar,
}

/// Flushes are numbered by when they begin; one is under way if more have begun than ended.
#[derive(Clone, Copy, Debug, Default)]
struct Flushes {
    begun: u64,
    ended: u64,
    /// The number of the error.
    failed: Option<i32>,
}

impl Log {
    /// Opens the log, which is there as long as any connection is.
    pub(super) fn open(place: &Place) -> Answer<Self> {
        let path = place.log();
        let id = identify(&path);
        let file = File::open(&path).map_err(|source| Fault::Io { what: "its log cannot be opened", source })?;
        Ok(Self { path, file, id, flushes: Mutex::default(), ended: Condvar::new() })
    }

    /// A log whose flush fails, as the null device has no disk.
    #[cfg(test)]
    pub(super) fn that_cannot_be_flushed(place: &Place) -> Self {
        let path = place.log();
        let (id, file) = (identify(&path), File::open("/dev/null").expect("BUG: a test runs where there are devices"));
        Self { path, file, id, flushes: Mutex::default(), ended: Condvar::new() }
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
        let mut flushes = self.flushes();
        let wanted = flushes.begun + 1;
        while flushes.ended < wanted {
            if let Some(number) = flushes.failed {
                return Err(failure(number));
            }
            if flushes.begun == flushes.ended {
                flushes.begun += 1;
                drop(flushes);
                flushes = self.sync();
            } else {
                flushes = self.ended.wait(flushes).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Ok(())
    }

    /// The flush that has begun. One that fails never ends, so that no other begins.
    fn sync(&self) -> MutexGuard<'_, Flushes> {
        let result = self.file.sync_data();
        let mut flushes = self.flushes();
        match result {
            Ok(()) => flushes.ended = flushes.begun,
            Err(error) => flushes.failed = Some(error.raw_os_error().unwrap_or_default()),
        }
        self.ended.notify_all();
        flushes
    }

    fn flushes(&self) -> MutexGuard<'_, Flushes> {
        self.flushes.lock().unwrap_or_else(PoisonError::into_inner)
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
        Log { path: PathBuf::new(), file, id: None, flushes: Mutex::default(), ended: Condvar::new() }
    }

    fn begun(log: &Log) -> u64 {
        log.flushes().begun
    }

    #[test]
    fn a_flush_that_is_under_way_is_not_the_one_that_is_waited_for() {
        let log = log_on(tempfile::tempfile().unwrap());
        log.flush().unwrap();
        log.flushes().begun += 1;
        std::thread::scope(|scope| {
            let callers = [(); 4].map(|()| scope.spawn(|| log.flush()));
            let mut flushes = log.flushes();
            flushes.ended = flushes.begun;
            drop(flushes);
            log.ended.notify_all();
            callers.into_iter().for_each(|caller| caller.join().unwrap().unwrap());
        });
        assert!((3..=6).contains(&begun(&log)), "{}", begun(&log));
    }

    #[test]
    fn what_failed_once_is_never_tried_again() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let log = log_on(File::from(std::os::fd::OwnedFd::from(reader)));
        for _ in 0..2 {
            let error = log.flush().unwrap_err();
            assert!(matches!(error, Fault::Io { .. }), "{error:?}");
        }
        assert_eq!(begun(&log), 1);
    }
}
