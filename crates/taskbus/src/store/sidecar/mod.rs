//! The Kin sidecar: one JSON file with the tasks of one session , in a form that Kin reads (ADR 0017).
//!
//! Readers take the file as it is, since it is only ever replaced as a whole. Writers lock a file beside it, read again,
//! and replace it: a new file under a name of its own, on disk before it is moved into place, and the move on disk
//! before anything is acknowledged. A file that is no sidecar is refused and left as it is.
//!
//! ```text
//! X.tasks.json                          the sidecar
//! X.tasks.json.taskbus-lock             locked by writers; says which process holds it
//! X.tasks.json.<16 hex>.taskbus-tmp     the next sidecar while it is written
//! ```

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use taskbus_core::limits::SIDECAR_BYTES_MAX;
use taskbus_core::name::ListName;
use taskbus_core::policy::Policy;
use taskbus_core::time::Timestamp;

use self::form::{Form, FormError, VERSION};
use self::lock::{Lock, LockError};
use self::place::{ENDING, Place, Stamp};
pub use self::place::{NameError, check_session};
use self::sheet::{Sheet, row_set};
use super::rows::{RowSet, RowStore, RowsBody};
use super::watch::Watch;
use super::{Abilities, Abort, Clock, StoreError, SystemClock};

mod form;
mod ids;
mod lock;
mod place;
mod row;
mod sheet;
mod times;

/// How often a transaction is begun anew because somebody without our lock changed the file meanwhile.
const RUNS_MAX: u32 = 8;

/// How a sidecar is opened.
#[derive(Clone)]
pub struct Options {
    /// How long a writer waits for its turn.
    pub patience: Duration,
    /// What it goes by.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self { patience: Duration::from_secs(10), clock: Arc::new(SystemClock) }
    }
}

/// A sidecar file as a store of rows.
pub struct Sidecar {
    place: Place,
    session_id: String,
    options: Options,
    held: Mutex<Held>,
    watch: Watch,
}

/// The sidecar as it was when it was last looked at. Its file is kept open, so that no other file gets its inode and
/// passes for it.
#[derive(Default)]
struct Held {
    file: Option<(File, Stamp)>,
    form: Option<Arc<Form>>,
    /// What the file before it said.
    before: Option<Arc<Form>>,
    /// Counts the states that were seen.
    version: u64,
}

impl Sidecar {
    /// The sidecar at a path, which need not be there yet; its directory must be.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the path names no file or its directory cannot be opened.
    pub fn at(path: &Path, options: Options) -> Result<Self, StoreError> {
        let (dir, name) = place::apart(path).map_err(|error| no_name(path, &error))?;
        let stem = name.strip_suffix(ENDING).or_else(|| name.strip_suffix(".json")).unwrap_or(name);
        Self::open(dir, name, stem, options)
    }

    /// The sidecar of a session, in the directory that holds its journal.
    ///
    /// # Errors
    /// As [`Sidecar::at`]; also for a session id that is no plain name.
    pub fn of_session(dir: &Path, session_id: &str, options: Options) -> Result<Self, StoreError> {
        place::check_session(session_id).map_err(|error| no_name(dir, &error))?;
        Self::open(dir, &format!("{session_id}{ENDING}"), session_id, options)
    }

    fn open(dir: &Path, name: &str, session_id: &str, options: Options) -> Result<Self, StoreError> {
        let place = Place::open(dir, name).map_err(|error| StoreError::Unavailable {
            store: format!("file:{}", dir.join(name).display()),
            reason: format!("its directory cannot be opened: {error}"),
            next: "make the directory, or name another with --store file:PATH",
        })?;
        Ok(Self {
            place,
            session_id: session_id.to_owned(),
            options,
            held: Mutex::default(),
            watch: Watch::new(place::is_ours),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.place.path()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether the file is another one than before. One that is gone is no empty list.
    fn look(&self, held: &mut Held) -> Result<(), StoreError> {
        let there = self.place.look().map_err(|error| self.failed(error))?;
        if there.is_none() && held.file.is_some() {
            return Err(StoreError::Moved { store: self.describe() });
        }
        let stamp = |file: &Option<(File, Stamp)>| file.as_ref().map(|(_, stamp)| *stamp);
        if !place::is_current(stamp(&held.file).as_ref(), stamp(&there).as_ref()) {
            let before = held.form.take().or(held.before.take());
            *held = Held { file: there, form: None, before, version: held.version + 1 };
        }
        Ok(())
    }

    /// The sidecar as it is now. A file that somebody is writing in place is read again once it has changed.
    fn load(&self) -> Result<Arc<Form>, StoreError> {
        let mut held = self.held();
        loop {
            self.look(&mut held)?;
            if let Some(form) = &held.form {
                return Ok(Arc::clone(form));
            }
            match self.parse(&held) {
                Ok(form) => held.form = Some(Arc::new(form)),
                Err(error) => {
                    let version = held.version;
                    self.look(&mut held)?;
                    if held.version == version {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn parse(&self, held: &Held) -> Result<Form, StoreError> {
        let Some((file, _)) = &held.file else { return Ok(Form::empty(&self.session_id)) };
        let bytes = place::contents(file).map_err(|error| self.failed(error))?;
        Form::parse(&bytes, held.before.as_deref()).map_err(|error| self.no_sidecar(&error))
    }

    /// One run of a body: what it made of the sidecar, and the state that it began with.
    fn run(&self, f: &mut RowsBody<'_>) -> Result<(Option<Form>, u64), Abort> {
        let form = self.load()?;
        let version = self.held().version;
        let mut sheet = Sheet::new(Form::clone(&form), self.options.clock.now());
        f(&mut sheet)?;
        Ok((sheet.into_changed(), version))
    }

    /// Replaces the file, unless it is no longer the one that the body began with; says whether it did.
    fn keep(&self, form: Form, version: u64, lock: &Lock) -> Result<bool, StoreError> {
        let failed = |error| self.failed(error);
        if !self.place.is_in_place().map_err(failed)? || !lock.holds(&self.place).map_err(failed)? {
            return Err(StoreError::Moved { store: self.describe() });
        }
        let Some(old) = self.unchanged_since(version)? else { return Ok(false) };
        let bytes = form.render();
        if bytes.len() > SIDECAR_BYTES_MAX {
            return Err(self.full(format!("it would be larger than {SIDECAR_BYTES_MAX} bytes")));
        }
        // Kept open until it has been looked at, and the readers not kept waiting while it is written.
        let written = self.place.replace(lock.temp(), &bytes, old.as_ref());
        let (_file, stamp) = written.map_err(|error| self.not_written(error))?;
        let mut held = self.held();
        self.look(&mut held)?;
        if held.file.as_ref().is_some_and(|(_, there)| *there == stamp) {
            held.form = Some(Arc::new(form));
        }
        Ok(true)
    }

    /// The file that is to be replaced; none if it is another one by now.
    fn unchanged_since(&self, version: u64) -> Result<Option<Option<Stamp>>, StoreError> {
        let mut held = self.held();
        self.look(&mut held)?;
        Ok((held.version == version).then(|| held.file.as_ref().map(|(_, stamp)| *stamp)))
    }

    fn full(&self, reason: String) -> StoreError {
        StoreError::Full { store: self.describe(), reason }
    }

    /// A file that is too large to write is no file that is too large to read.
    fn not_written(&self, error: io::Error) -> StoreError {
        if error.kind() == io::ErrorKind::FileTooLarge { self.full(error.to_string()) } else { self.failed(error) }
    }

    fn failed(&self, error: io::Error) -> StoreError {
        let (store, reason) = (self.describe(), error.to_string());
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                StoreError::ReadOnly { store, reason }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => self.full(reason),
            io::ErrorKind::InvalidInput => {
                let reason = "it is a link, a directory or a device".to_owned();
                StoreError::Damaged { store, reason, next: "name the file itself" }
            }
            io::ErrorKind::FileTooLarge => {
                let reason = "it is larger than any sidecar".to_owned();
                StoreError::Damaged { store, reason, next: NEXT }
            }
            _ => StoreError::Failed { store, source: Box::new(error) },
        }
    }

    fn no_sidecar(&self, error: &FormError) -> StoreError {
        let store = self.describe();
        match error {
            FormError::Newer(found) => StoreError::Newer { store, found: *found, known: VERSION },
            error => StoreError::Damaged { store, reason: error.to_string(), next: NEXT },
        }
    }

    fn no_lock(&self, error: LockError) -> StoreError {
        match error {
            LockError::Busy { waited, holder } => {
                let holder = holder.map_or_else(String::new, |pid| format!(" (process {pid} holds its lock)"));
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                StoreError::Busy { store: format!("{}{holder}", self.describe()), waited_ms }
            }
            LockError::Io(error) => self.failed(error),
        }
    }
}

const NEXT: &str = "mend it by hand, or move it away to begin with an empty list";

fn no_name(path: &Path, error: &NameError) -> StoreError {
    StoreError::Unavailable {
        store: format!("file:{}", path.display()),
        reason: error.to_string(),
        next: "name a file, or a directory and a session: file:DIR?session=ID",
    }
}

impl RowStore for Sidecar {
    fn abilities(&self) -> Abilities {
        Abilities { durable: true, shared_across_processes: true, liveness: false }
    }

    fn describe(&self) -> String {
        format!("file:{}", self.place.path().display())
    }

    fn list_name(&self) -> ListName {
        let fallback = || ListName::from_short("sidecar").expect("BUG: a constant name is valid");
        ListName::from_short(&self.session_id).unwrap_or_else(|_| fallback())
    }

    fn policy(&self) -> Policy {
        Policy::Kin
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.options.clock.now())
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        let since = Instant::now();
        let lock = Lock::take(&self.place, self.options.patience).map_err(|error| self.no_lock(error))?;
        for _ in 0..RUNS_MAX {
            let (Some(form), version) = self.run(f)? else { return Ok(()) };
            if self.keep(form, version, &lock)? {
                return Ok(());
            }
        }
        let waited_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Err(StoreError::Busy { store: self.describe(), waited_ms }.into())
    }

    fn snapshot(&self) -> Result<RowSet, StoreError> {
        Ok(row_set(&*self.load()?))
    }

    fn version(&self) -> Result<u64, StoreError> {
        let mut held = self.held();
        self.look(&mut held)?;
        Ok(held.version)
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.watch.wait(self.place.directory(), timeout, || Ok(self.version()? != seen))
    }
}
