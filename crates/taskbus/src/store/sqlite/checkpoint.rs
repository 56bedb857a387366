//! Moving the log into the file, beside the calls instead of inside them (ADR 0028).
//!
//! ```text
//!  a commit ── how long is the log? ──▶ 8 MiB: wakes the thread of this open file, which does what does not wait for
//!                                               anybody, and past 32 MiB also waits, so that the log begins anew
//!                                       64 MiB: does it itself, in case the thread is no more
//! ```
//!
//! The thread is started when there is something to do for the first time, unless hardly anything was committed: a command
//! that makes one change and ends does not start one. It sleeps otherwise. Correctness never depends on it: what is
//! in the log counts, and a checkpoint syncs the log before it touches the file.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, MAIN_DB};

use super::SqliteOptions;
use super::error::{Answer, Fault};
use super::file::{FileId, Place};
use super::lock::Patience;
use super::open;

/// Pages of log that are worth a checkpoint; 8 MiB in a new file.
const LONG: u32 = 4_000;
/// So many more before the next one, as long as the log does not begin anew.
const STEP: u32 = 1_000;
/// From here on a checkpoint waits for whoever still needs the log, so that it can begin anew.
const TOO_LONG: u32 = 4 * LONG;
/// From here on the caller does it; 64 MiB in a new file.
const MOST: u32 = 32_768;
/// A process that has committed less often than that is about to end.
const COMMITS_OF_A_COMMAND: u32 = 8;
/// How long a checkpoint that begins the log anew waits for others.
const WAIT: Duration = Duration::from_millis(500);

/// Which file is moved into.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) place: Place,
    pub(super) id: FileId,
    pub(super) options: SqliteOptions,
}

/// Who moves the log of an open file.
pub(super) struct Checkpointer {
    target: Target,
    commits: AtomicU32,
    /// How long it has to be for the next checkpoint by a caller.
    inline_at: AtomicU32,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Between the callers and the thread.
struct Shared {
    /// How long the log was after the last commit, in pages.
    log: AtomicU32,
    /// How long the log has to be for the next checkpoint by the thread; none is that long while it is at work.
    at: AtomicU32,
    /// It failed: what SQLite said of the file cannot be relied on.
    failed: AtomicBool,
    wish: Mutex<Wish>,
    wished: Condvar,
}

/// What the thread is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Sleep,
    Work,
    End,
}

impl Checkpointer {
    pub(super) fn new(target: Target) -> Self {
        let (at, failed) = (AtomicU32::new(LONG), AtomicBool::new(false));
        let (wish, wished) = (Mutex::new(Wish::Sleep), Condvar::new());
        let shared = Shared { log: AtomicU32::new(0), at, failed, wish, wished };
        Self {
            target,
            commits: AtomicU32::new(0),
            inline_at: AtomicU32::new(MOST),
            shared: Arc::new(shared),
            thread: Mutex::default(),
        }
    }

    /// Has a connection that writes say how long the log is.
    pub(super) fn listen(&self, connection: &mut Connection) -> Answer<()> {
        let shared = Arc::clone(&self.shared);
        connection.wal_hook(Some(move |_: &mut Wal, pages: c_int| {
            shared.log.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(())
    }

    /// After a commit on the connection that writes, which the caller still holds.
    pub(super) fn committed(&self, connection: &Connection) {
        let commits = self.commits.fetch_add(1, Ordering::Relaxed);
        let pages = self.shared.log.load(Ordering::Relaxed);
        if pages < LONG {
            self.shared.at.store(LONG, Ordering::Relaxed);
            self.inline_at.store(MOST, Ordering::Relaxed);
            return;
        }
        if commits >= COMMITS_OF_A_COMMAND && pages >= self.shared.at.load(Ordering::Relaxed) {
            self.wake();
        }
        if pages >= self.inline_at.load(Ordering::Relaxed) {
            self.inline_at.store(pages + STEP, Ordering::Relaxed);
            let _ = move_log(connection, CheckpointMode::RESTART, WAIT);
        }
    }

    #[cfg(test)]
    pub(super) fn has_thread(&self) -> bool {
        self.thread().is_some()
    }

    /// Whether a checkpoint failed, so that the file has to be opened anew.
    pub(super) fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::SeqCst)
    }

    /// Ends the thread, once it is done with what it does.
    pub(super) fn end(&self) {
        let thread = self.thread().take();
        self.shared.tell(Wish::End);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// Moves what is in a long log, on the connection that is about to be closed, if there never was a thread to do it.
    pub(super) fn leave(&self, connection: &Connection) {
        let is_long = self.shared.log.load(Ordering::Relaxed) >= LONG;
        if is_long && self.commits.load(Ordering::Relaxed) <= COMMITS_OF_A_COMMAND {
            let _ = move_log(connection, CheckpointMode::PASSIVE, Duration::ZERO);
        }
    }

    fn wake(&self) {
        self.shared.at.store(u32::MAX, Ordering::Relaxed);
        self.shared.tell(Wish::Work);
        let mut thread = self.thread();
        if thread.is_none() {
            let (target, shared) = (self.target.clone(), Arc::clone(&self.shared));
            let name = "taskbus-checkpoint".to_owned();
            *thread = std::thread::Builder::new().name(name).spawn(move || work(&target, &shared)).ok();
        }
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn tell(&self, wish: Wish) {
        *self.wish() = wish;
        self.wished.notify_one();
    }

    /// Waits for something to do; false when it is the end.
    fn is_wanted(&self) -> bool {
        let sleeps = |wish: &mut Wish| *wish == Wish::Sleep;
        let mut wish = self.wished.wait_while(self.wish(), sleeps).unwrap_or_else(PoisonError::into_inner);
        let is_wanted = *wish == Wish::Work;
        if is_wanted {
            *wish = Wish::Sleep;
        }
        is_wanted
    }

    fn wish(&self) -> MutexGuard<'_, Wish> {
        self.wish.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread.
fn work(target: &Target, shared: &Shared) {
    let mut connection = None;
    while shared.is_wanted() {
        match advance(target, &mut connection) {
            Ok(()) => {
                let next = shared.log.load(Ordering::Relaxed).max(LONG - STEP) + STEP;
                shared.at.store(next, Ordering::Relaxed);
            }
            Err(fault) => {
                tracing::warn!(?fault, "the log could not be moved into the file");
                shared.failed.store(true, Ordering::SeqCst);
                return;
            }
        }
    }
}

fn advance(target: &Target, connection: &mut Option<Connection>) -> Answer<()> {
    let connection = match connection {
        Some(connection) => connection,
        none => none.insert(open::writer(&target.place, &target.options, &Patience::of(WAIT))?),
    };
    // What was moved away has a log of its own, and what is there now is not ours to touch.
    if target.place.id() != Some(target.id) {
        return Err(Fault::Moved);
    }
    if move_log(connection, CheckpointMode::PASSIVE, Duration::ZERO)?.is_some_and(|pages| pages >= TOO_LONG) {
        // What was written meanwhile, so that there is little left when writers have to wait.
        move_log(connection, CheckpointMode::PASSIVE, Duration::ZERO)?;
        move_log(connection, CheckpointMode::RESTART, WAIT)?;
    }
    Ok(())
}

/// A checkpoint; how long the log is, in pages. None when somebody else is at it or, for one that begins the log anew,
/// still needs what is in it: that is no failure, and the next one will do.
fn move_log(connection: &Connection, mode: CheckpointMode, wait: Duration) -> Answer<Option<u32>> {
    match Patience::of(wait).persist(|| connection.wal_checkpoint_v2(Some(MAIN_DB), mode)) {
        Ok((pages, _)) => Ok(u32::try_from(pages).ok()),
        Err(Fault::Busy { .. }) => Ok(None),
        Err(fault) => Err(fault),
    }
}
