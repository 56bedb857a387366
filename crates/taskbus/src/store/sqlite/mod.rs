//! The SQLite store: the default. One file that every process opens directly; no daemon.
//!
//! ```text
//!  SqliteStore ── opens on first use ──▶ Opened: the gate to the one connection that writes, a few that read
//!    write: gate ─ BEGIN IMMEDIATE ─ Scope ─ still the same file? ─ COMMIT ─ gate ─ flush the log ─▶ Ok
//!                                                                      └─ a long log? the thread that moves it
//!    read:  a connection ─ BEGIN ─ Scope ─ end
//! ```
//!
//! A [`Scope`] is one transaction and answers every question of the seam; what it knows is spread over
//! the files here by subject. `file`, `open`, `migrate`, `lock`, `durable`, `checkpoint` and `wait` deal with the file
//! and with others who use it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::time::Timestamp;

pub use self::backup::{BackedUp, Restored};
use self::error::{Answer, Fault};
pub use self::holder::{LockHolder, lock_holder};
use self::opened::Opened;
pub use self::rollback::{Accepted, HighWater, Recorded};
use self::scope::{About, Scope};
use self::verify::Look;
use super::steady::Steady;
use super::verdict::{Progress, Verdict};
use super::{Abilities, Abort, Clock, ReadBody, Store, StoreError, SystemClock, WhereBody, WriteBody};

mod anchor;
mod backup;
mod bus;
mod chained;
mod checkpoint;
mod counters;
mod durable;
mod error;
mod file;
mod flushes;
mod follow;
mod front;
mod graph;
mod high;
mod holder;
mod lists;
mod lock;
mod lookup;
mod migrate;
mod open;
mod opened;
mod page;
mod people;
#[cfg(test)]
mod plans;
mod queue;
mod rollback;
mod row;
mod scope;
mod snapshot;
mod sum;
mod tree;
mod verify;
mod wait;
mod write;

/// When a change is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Once it is on disk: it survives a power cut.
    #[default]
    Full,
    /// Once the operating system has it: it survives the process, but a power cut may take the last ones.
    Relaxed,
}

/// How SQLite keeps a transaction whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Journal {
    /// A write-ahead log: readers and the writer do not wait for each other. Local file systems only.
    #[default]
    Log,
    /// A rollback journal, for file systems that cannot carry a log: slower, and readers and writers wait.
    Rollback,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// When a change is acknowledged.
    pub durability: Durability,
    /// How it is kept whole.
    pub journal: Journal,
    /// How long a call waits for other writers.
    pub deadline: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { durability: Durability::Full, journal: Journal::Log, deadline: Duration::from_secs(10) }
    }
}

/// A store in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    label: String,
    options: SqliteOptions,
    steady: Steady,
    opened: Mutex<Option<Arc<Opened>>>,
    /// No version handed out so far is larger.
    version: AtomicU64,
}

impl SqliteStore {
    /// A store that opens its file on first use: whatever is wrong with the file is an error of that call, and the
    /// next call tries again.
    #[must_use]
    pub fn lazy(path: impl AsRef<Path>, options: SqliteOptions) -> Self {
        let path = std::path::absolute(&path).unwrap_or_else(|_| path.as_ref().to_owned());
        let label = format!("sqlite:{}", path.display());
        let (opened, version) = (Mutex::new(None), AtomicU64::new(0));
        Self { path, label, options, steady: Steady::new(Arc::new(SystemClock)), opened, version }
    }

    /// Opens the file, and makes it if there is none: mode 0600, in a directory of mode 0700 if that has to be made.
    ///
    /// # Errors
    /// [`StoreError`]: `Damaged` for what is no store of ours (it is left untouched), `Newer` for one that a newer
    /// version has changed, `Unavailable` when the file or its file system cannot be used, `Busy` when somebody
    /// else holds it for longer than the deadline.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        let store = Self::lazy(path, options);
        store.told(store.opened())?;
        Ok(store)
    }

    /// The same store, with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { steady: Steady::new(clock), ..self }
    }

    /// Follows the chain of revisions, recomputes every derived row from the documents, compares the full-text index
    /// with the texts, and says what differs; empty when all is well. Reads everything.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read at all.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        let verdict = self.looked_at(Look::Words, &mut |_, _| {})?;
        let more = (verdict.more > 0).then(|| format!("and {} more", verdict.more));
        let differences = verdict.differences.iter().map(ToString::to_string);
        Ok(differences.chain(more).chain(self.stopped_writer()).collect())
    }

    fn looked_at(&self, look: Look, progress: &mut Progress<'_>) -> Result<Verdict, StoreError> {
        let opened = self.readable()?;
        let mut verdict = Verdict::default();
        opened.read(None, &self.steady, &mut |scope| {
            verdict = self.told(scope.verify_all(look, progress))?;
            Ok(())
        })?;
        Ok(verdict)
    }

    /// The open file, opened now if it was not.
    fn opened(&self) -> Answer<Arc<Opened>> {
        let mut slot = self.slot();
        if let Some(opened) = &*slot {
            return Ok(opened.clone());
        }
        let base = self.version.load(Ordering::SeqCst) + 1;
        let opened = Arc::new(Opened::new(&self.path, &self.label, self.options, base)?);
        *slot = Some(opened.clone());
        Ok(opened)
    }

    #[cfg(test)]
    fn put_opened(&self, opened: Opened) {
        *self.slot() = Some(Arc::new(opened));
    }

    /// The open file; if it could only be read so far, it is tried anew.
    fn writable(&self) -> Answer<Arc<Opened>> {
        let opened = self.opened()?;
        if !opened.is_read_only() {
            return Ok(opened);
        }
        self.forget(&opened);
        self.opened()
    }

    /// The open file, its clock known. Whoever looks into the store first after the machine was started ends the sessions
    /// of before; if that cannot be written, the next write does it.
    fn readable(&self) -> Result<Arc<Opened>, StoreError> {
        let opened = self.told(self.opened())?;
        if !self.steady.is_known() {
            opened.read(None, &self.steady, &mut |_| Ok(()))?;
            if self.steady.is_of_another_boot() && !opened.is_read_only() {
                let ended = opened.transact(About::Nothing, &self.steady, false, &mut |_| Ok(()));
                let _ = ended.inspect_err(|error| tracing::warn!(%error, "the sessions of an earlier boot stand"));
            }
        }
        Ok(opened)
    }

    fn write_scope(&self, about: About<'_>, f: &mut Verbs<'_>) -> Result<(), Abort> {
        let opened = self.told(self.writable())?;
        let result = opened.transact(about, &self.steady, false, f);
        if opened.is_spent() {
            self.forget(&opened);
        }
        result.map_err(|abort| match abort {
            Abort::Failed(StoreError::Busy { waited_ms, .. }) => {
                StoreError::Busy { store: self.label_and_holder(), waited_ms }.into()
            }
            other => other,
        })
    }

    /// After a failure of the file itself: the next call opens it anew.
    fn forget(&self, opened: &Arc<Opened>) {
        self.slot().take_if(|current| Arc::ptr_eq(current, opened));
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Opened>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who waited too long learns for whom.
    fn told<T>(&self, answer: Answer<T>) -> Result<T, StoreError> {
        answer.map_err(|fault| match fault {
            Fault::Busy { .. } => fault.told(&self.label_and_holder()),
            fault => fault.told(&self.label),
        })
    }

    fn label_and_holder(&self) -> String {
        let holder = lock_holder(&self.path);
        holder.map_or_else(|| self.label.clone(), |holder| format!("{} ({holder} holds its lock)", self.label))
    }

    /// Who was stopped in the middle of a write keeps everybody else from writing.
    fn stopped_writer(&self) -> Option<String> {
        let holder = lock_holder(&self.path).filter(|holder| holder.stopped)?;
        Some(format!(
            "{holder} holds the write lock, so nobody can write: continue it (kill -CONT {pid}) or end it \
             (kill -KILL {pid}), which loses nothing that was acknowledged",
            pid = holder.pid
        ))
    }

    fn wait_for_change(&self, seen: u64, timeout: Duration, stop: &dyn Fn() -> bool) -> Result<(), StoreError> {
        let opened = self.told(self.opened())?;
        // The file may be opened anew meanwhile.
        let version = || self.opened().and_then(|opened| self.version_of(&opened));
        self.told(opened.wait(timeout, || Ok(stop() || version()? != seen)))
    }

    fn version_of(&self, opened: &Opened) -> Answer<u64> {
        let version = opened.version()?;
        self.version.fetch_max(version, Ordering::SeqCst);
        Ok(version)
    }
}

/// The body of a transaction, inside.
type Verbs<'a> = dyn FnMut(&mut Scope<'_>) -> Result<(), Abort> + 'a;

/// Why a transaction without rules failed.
fn failed(abort: Abort) -> StoreError {
    match abort {
        Abort::Failed(error) => error,
        Abort::Refused(refusal) => StoreError::Failed { store: "in use".to_owned(), source: Box::new(refusal) },
    }
}

impl Store for SqliteStore {
    fn abilities(&self) -> Abilities {
        Abilities { durable: true, shared_across_processes: true, liveness: true }
    }

    fn has_bus(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        self.label.clone()
    }

    fn verify(&self, progress: &mut Progress<'_>) -> Result<Option<Verdict>, StoreError> {
        self.looked_at(Look::History, progress).map(Some)
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        if !self.steady.is_known() {
            self.readable()?;
        }
        Ok(self.steady.now())
    }

    fn locate(&self, id: &TaskId) -> Result<Option<ListName>, StoreError> {
        let opened = self.readable()?;
        let mut home = None;
        opened.read(None, &self.steady, &mut |scope| {
            home = self.told(scope.home(id))?;
            Ok(())
        })?;
        Ok(home)
    }

    fn read(&self, list: Option<&ListName>, f: &mut ReadBody<'_>) -> Result<(), StoreError> {
        let opened = self.readable()?;
        opened.read(list, &self.steady, &mut |scope| f(scope))
    }

    fn write(&self, list: Option<&ListName>, f: &mut WriteBody<'_>) -> Result<(), Abort> {
        self.write_scope(About::list(list), &mut |scope| f(scope))
    }

    fn write_where(&self, id: &TaskId, f: &mut WhereBody<'_>) -> Result<(), Abort> {
        self.write_scope(About::Task(id), &mut |scope| {
            let list = scope.list_in_scope().cloned();
            f(scope, list.as_ref())
        })
    }

    fn index_texts(&self) -> Result<(), StoreError> {
        let opened = self.told(self.opened())?;
        let mut done = opened.is_read_only();
        if !done {
            opened.read(None, &self.steady, &mut |scope| {
                done = self.told(scope.is_indexed())?;
                Ok(())
            })?;
        }
        while !done {
            self.write_scope(About::Nothing, &mut |scope| {
                done = self.told(scope.index_next())?;
                Ok(())
            })
            .map_err(failed)?;
        }
        Ok(())
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.told(self.opened().and_then(|opened| self.version_of(&opened)))
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.wait_for_change(seen, timeout, &|| false)
    }

    fn wait_unless(&self, seen: u64, timeout: Duration, stop: &dyn Fn() -> bool) -> Option<Result<(), StoreError>> {
        Some(self.wait_for_change(seen, timeout, stop))
    }

    fn nudge(&self) {
        if let Some(opened) = &*self.slot() {
            opened.nudge();
        }
    }
}
