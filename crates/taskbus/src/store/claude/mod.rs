//! A task directory of Claude Code as a store: the files that its task tools read and write, shared with it while it
//! runs.
//!
//! It is one list, with the policy of its other writer, who knows no leases, refuses no blocked start and clears the
//! list some seconds after the last task is completed. Nothing here resurrects what it removed; what was seen to
//! vanish is kept in memory and told ([`ClaudeStore::problems`]).
//!
//! ```text
//! transact: turn ── list lock ── finish, sweep ── look ── body on a draft ── plan ── commit ── look
//! snapshot: look (twice the same, or again)                                  wait: the kernel's notices
//! ```
//!
//! How the files look: [`mod@file`]. Who may write when: [`lock`]. What makes several files one change: [`journal`].

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use taskbus_core::name::ListName;
use taskbus_core::policy::Policy;
use taskbus_core::time::Timestamp;

use self::dir::Dir;
use self::draft::Draft;
use self::eye::{Eye, Row, View};
use self::gate::Gate;
use self::journal::JournalFault;
use self::lock::{Locks, Patience};
use super::rows::{RowSet, RowStore, RowsBody};
use super::watch::Watch;
use super::{Abilities, Abort, Clock, StoreError, SystemClock};

mod commit;
mod dir;
mod draft;
mod error;
mod eye;
mod file;
mod gate;
mod journal;
mod keep;
mod lock;
mod names;
mod parents;
mod place;
mod problems;
mod text;

pub use eye::Lost;
pub use file::Fault;
pub use lock::{AnyTouch, Touch};
pub use place::{PlaceError, Surroundings, list_directory};
pub use problems::Problem;

/// How to use a directory.
#[derive(Clone)]
pub struct ClaudeOptions {
    /// The clock that stamps what taskbus writes.
    pub clock: Arc<dyn Clock>,
    /// Whether the times of locks may be set; tests refuse it.
    pub touch: Arc<dyn Touch>,
    /// How long to wait for other writers. An abandoned lock is taken over after ten seconds.
    pub busy: Duration,
}

impl Default for ClaudeOptions {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), touch: Arc::new(AnyTouch), busy: Duration::from_secs(15) }
    }
}

/// A task directory.
pub struct ClaudeStore {
    path: PathBuf,
    shown: String,
    list: ListName,
    options: ClaudeOptions,
    eye: Mutex<Eye>,
    gate: Gate,
    watch: Watch,
}

impl ClaudeStore {
    /// Opens a directory. One that is not there is an empty list, and is made when something is written to it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it is no directory or cannot be read, or when neither it nor the directory
    /// around it, nor the one around that, is there.
    pub fn open(path: &Path, options: ClaudeOptions) -> Result<Self, StoreError> {
        let shown = format!("claude:{}", path.display());
        let path = std::path::absolute(path).map_err(|error| error::unavailable(&shown, &error))?;
        let around = path.ancestors().take(3);
        if !around.into_iter().any(Path::is_dir) {
            return Err(error::unavailable(&shown, &io::ErrorKind::NotFound.into()));
        }
        let store = Self {
            list: list_name(&path),
            path,
            shown,
            options,
            eye: Mutex::default(),
            gate: Gate::default(),
            watch: Watch::new(names::is_noise),
        };
        store.current()?;
        Ok(store)
    }

    /// What is wrong in the directory, what was seen to vanish from it last.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read.
    pub fn problems(&self) -> Result<Vec<Problem>, StoreError> {
        let view = self.current()?;
        Ok(problems::of(&view, self.eye().lost()))
    }

    /// The tasks whose files others removed since this store was opened, as they were last seen.
    ///
    /// # Errors
    /// [`StoreError`] when the directory cannot be read.
    pub fn vanished(&self) -> Result<Vec<Lost>, StoreError> {
        self.current()?;
        Ok(self.eye().lost().to_vec())
    }

    fn eye(&self) -> MutexGuard<'_, Eye> {
        self.eye.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Result<Arc<View>, StoreError> {
        let dir = Dir::open(&self.path).map_err(|error| error::unavailable(&self.shown, &error))?;
        self.look(dir.as_ref())
    }

    fn look(&self, dir: Option<&Dir>) -> Result<Arc<View>, StoreError> {
        let looked = self.eye().look(dir, self.options.clock.now());
        looked.map_err(|error| error::failed(&self.shown, error))
    }

    /// One try; false if another program came between.
    fn attempt(&self, patience: Patience<'_>, f: &mut RowsBody<'_>) -> Result<bool, Abort> {
        let dir = Dir::open_or_make(&self.path).map_err(|error| error::failed(&self.shown, error))?;
        let mut locks = Locks::list(&dir, &*self.options.touch, patience)?;
        let view = self.tidied(&dir, &mut locks)?;
        let mut draft = Draft::new(&self.shown, &view);
        f(&mut draft)?;
        let plan = draft.plan();
        if plan.writes.is_empty() && plan.mark.is_none() {
            return Ok(true);
        }
        let commit = commit::Commit { store: &self.shown, dir: &dir, locks: &mut locks, view: &view };
        self.eye().removing(plan.removed.clone());
        let written = commit.run(&plan, || Ok(self.look(Some(&dir))?.generation));
        let looked = self.look(Some(&dir));
        self.eye().removing(BTreeSet::new());
        looked?;
        Ok(written?)
    }

    /// The directory, with nothing left over in it from a dead process.
    fn tidied(&self, dir: &Dir, locks: &mut Locks<'_>) -> Result<Arc<View>, StoreError> {
        let view = self.look(Some(dir))?;
        match &view.bad_journal {
            Some(JournalFault::Newer(found)) => {
                return Err(StoreError::Newer { store: self.shown.clone(), found: *found, known: 1 });
            }
            Some(JournalFault::Damaged(why)) => {
                let reason = format!("{}: {why}", names::JOURNAL);
                let next = "move that file away by hand once you know what the last change was";
                return Err(StoreError::Damaged { store: self.shown.clone(), reason, next });
            }
            None => {}
        }
        commit::sweep(dir, locks, &view);
        if view.journal.is_none() {
            return Ok(view);
        }
        commit::finish(&self.shown, dir, locks, &view)?;
        self.look(Some(dir))
    }
}

impl RowStore for ClaudeStore {
    fn abilities(&self) -> Abilities {
        Abilities { durable: true, shared_across_processes: true, liveness: false }
    }

    fn describe(&self) -> String {
        self.shown.clone()
    }

    fn list_name(&self) -> ListName {
        self.list.clone()
    }

    fn policy(&self) -> Policy {
        Policy::Claude
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.options.clock.now())
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        let patience = Patience { store: &self.shown, since: Instant::now(), limit: self.options.busy };
        let _turn = self.gate.enter(patience)?;
        for tries in 0.. {
            if self.attempt(patience, f)? {
                break;
            }
            patience.pause(tries)?;
        }
        Ok(())
    }

    fn snapshot(&self) -> Result<RowSet, StoreError> {
        let view = self.current()?;
        let mut rows = rows_of(view.rows.values().map(|row| &**row));
        parents::cut_loops(&mut rows.live);
        Ok(rows)
    }

    fn version(&self) -> Result<u64, StoreError> {
        Ok(self.current()?.generation)
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.watch.wait(&self.path, timeout, || Ok(self.version()? != seen))
    }
}

fn rows_of<'a>(rows: impl Iterator<Item = &'a Row>) -> RowSet {
    let mut set = RowSet::default();
    for row in rows {
        match &row.content {
            Ok(file) if file.is_deleted => set.deleted.push(file.task.clone()),
            Ok(file) => set.live.push(file.task.clone()),
            Err(_) => set.unreadable.extend(names::task_of(&row.name)),
        }
    }
    set
}

/// The list is called like its directory, as far as a list can be.
fn list_name(path: &Path) -> ListName {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain: String = name.chars().map(|c| if c.is_control() { '-' } else { c }).collect();
    let fallback = || ListName::from_short("claude").expect("BUG: a plain word is a list name");
    ListName::new(format!("{}{plain}", ListName::PREFIX)).unwrap_or_else(|_| fallback())
}
