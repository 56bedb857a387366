//! Copies of a store: one made while others write, and one put back in its place.
//!
//! ```text
//!  backup:   snapshot ─▶ SQLite's online backup ─▶ draft ─▶ verified ─▶ on disk ─▶ under its name
//!  restore:  backup ─▶ draft ─▶ numbers above all that were given out, new epoch ─▶ verified ─▶ on disk
//!                                      nobody else in the store ─▶ the old file keeps another name ─▶ under its name
//! ```
//!
//! Whatever goes wrong before the last step leaves what was there as it was; nothing of a user's is ever deleted.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use taskbus_core::time::Timestamp;

use super::error::{Answer, Fault, is_busy};
use super::file::{self, Place};
use super::high::{self, High, Mark, Standing};
use super::lock::Patience;
use super::migrate::{self, Found};
use super::open;
use super::scope::{About, Opening, Scope};
use super::verify::Look;
use super::{Durability, SqliteOptions, SqliteStore};
use crate::store::StoreError;
use crate::store::verdict::Verdict;

/// Pages copied in one step.
const PAGES: i32 = 4096;
/// How long to wait for others to leave the store.
const OTHERS: Duration = Duration::from_secs(1);
/// What SQLite and this store keep beside a file.
const BESIDE: [&str; 4] = ["-wal", "-shm", "-journal", "-high"];

const BEGIN: &str = "BEGIN";
const BEGIN_IMMEDIATE: &str = "BEGIN IMMEDIATE";
const BEGIN_EXCLUSIVE: &str = "BEGIN EXCLUSIVE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
const NUMBERS: &str = "SELECT c.seq, c.epoch, m.value FROM counters c, meta m WHERE c.id = 0 AND m.key = 'store'";

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds, all of it looked at.
    pub verdict: Verdict,
}

/// A backup that was put in the place of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Where the file that was there is now; none if there was none.
    pub aside: Option<PathBuf>,
    /// The newest number of the backup.
    pub kept: u64,
    /// What the store holds now, all of it looked at.
    pub verdict: Verdict,
}

impl SqliteStore {
    /// Writes a copy of the store as it is now, while others may go on; looks at all of it before it gets its name.
    ///
    /// # Errors
    /// [`StoreError`]: `Unavailable` when there is a file of that name and it is not to be replaced, or the place cannot
    /// be written; `Damaged` when the store does not add up, and then no backup is made.
    pub fn backup(&self, to: &Path, replace: bool) -> Result<BackedUp, StoreError> {
        let opened = self.told(self.opened())?;
        let target = self.told(target(to, opened.place(), replace))?;
        let draft = self.told(Draft::beside(&target))?;
        opened.read(None, &self.steady, &mut |scope| self.told(copy(scope.connection, &draft.path).map(drop)))?;
        let verdict = self.told(open::alone(&draft.path).and_then(|copy| sound(&copy, self.steady.now())))?;
        self.told(draft.put(&target, replace))?;
        Ok(BackedUp { path: target, verdict })
    }

    /// Puts a backup in the place of the store. The file that is there keeps all that it holds, under another name.
    ///
    /// # Errors
    /// [`StoreError`]: `Unavailable` while anybody else has the store open, or when there is no such backup; `Damaged`
    /// when the backup is no store or does not add up. Then nothing was changed.
    pub fn restore_backup(&self, from: &Path) -> Result<Restored, StoreError> {
        self.slot().take();
        self.told(restore(&self.path, from, &self.options, self.steady.now()))
    }
}

/// Keeps a copy beside a store before a step that older versions cannot live with.
pub(super) fn before_step(store: &Connection, place: &Place, step: u32, now: Timestamp) -> Answer<PathBuf> {
    let draft = Draft::beside(place.path())?;
    drop(copy(store, &draft.path)?);
    // Its schema is an older one, so that the file itself is all that can be looked at.
    let whole: String = open::alone(&draft.path)?.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
    if whole != "ok" {
        return Err(Fault::Damaged(format!("a copy made before schema step {step} does not add up: {whole}")));
    }
    let mut target = file::beside(place.path(), &format!(".before-schema-{step}"));
    if file::identify(&target).is_some() {
        target = file::beside(place.path(), &format!(".before-schema-{step}-{}", now.as_millis()));
    }
    draft.put(&target, false)?;
    Ok(target)
}

fn restore(path: &Path, from: &Path, options: &SqliteOptions, now: Timestamp) -> Answer<Restored> {
    let place = Place::find(path)?;
    let source = source(from, &place)?;
    let current = alone(&place)?;
    let draft = Draft::beside(place.path())?;
    let copied = copied(&source, &draft.path, options)?;
    let mark = highest(&place, current.as_ref(), &copied)?;
    let kept = raised(&copied, &mark, now)?;
    let verdict = sound(&copied, now)?;
    copied.close().map_err(|(_, error)| error)?;
    let aside = set_aside(&place)?;
    draft.put(place.path(), true)?;
    High::open(&place, &verdict.store).note(verdict.seq, verdict.epoch, Durability::Full);
    Ok(Restored { aside, kept, verdict })
}

/// Where a backup is to be.
fn target(to: &Path, store: &Place, replace: bool) -> Answer<PathBuf> {
    let name = to.file_name().ok_or_else(|| {
        Fault::Unavailable(format!("{} names no file", to.display()), "give the path of a file to write")
    })?;
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let target = parent.canonicalize().map(|parent| parent.join(name)).map_err(|error| {
        let reason = format!("no backup can be written to {}: {error}", parent.display());
        Fault::Unavailable(reason, "name a file in a directory that is there")
    })?;
    let own = BESIDE.iter().any(|ending| target == file::beside(store.path(), ending));
    if own || target == store.path() || file::identify(&target).is_some_and(|id| Some(id) == store.id()) {
        let reason = format!("{} belongs to the store itself", target.display());
        return Err(Fault::Unavailable(reason, "name another file"));
    }
    if !replace && std::fs::symlink_metadata(&target).is_ok() {
        return Err(exists(&target));
    }
    Ok(target)
}

fn exists(target: &Path) -> Fault {
    let reason = format!("there is a file {} already, which is left as it is", target.display());
    Fault::Unavailable(reason, "name another one, or pass --force to replace it")
}

/// The backup to put back.
fn source(from: &Path, store: &Place) -> Answer<Place> {
    let next = "name a file that taskbus backup has made";
    let there = std::fs::symlink_metadata(from).is_ok_and(|meta| meta.is_file());
    if !there {
        return Err(Fault::Unavailable(format!("there is no backup {}", from.display()), next));
    }
    let source = Place::find(from)?;
    if source.id() == store.id() {
        return Err(Fault::Unavailable(format!("{} is the store itself", from.display()), next));
    }
    Ok(source)
}

/// The store that is there, with nobody else in it and nothing in its log; none if there is none, or none that can be
/// opened.
fn alone(place: &Place) -> Answer<Option<Connection>> {
    if place.id().is_none() {
        return Ok(None);
    }
    let patience = Patience::of(OTHERS);
    let begun = open::alone(place.path()).and_then(|connection| {
        // Only who is alone can do without the log, and only then is all of it in the file.
        let mode: String = patience
            .persist(|| connection.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0)))?;
        if mode != "delete" {
            return Err(in_use());
        }
        patience.persist(|| connection.execute_batch(BEGIN_EXCLUSIVE))?;
        Ok(connection)
    });
    match begun {
        Ok(connection) => Ok(Some(connection)),
        Err(Fault::Busy { .. }) => Err(in_use()),
        Err(Fault::Sql(error)) if is_busy(&error) => Err(in_use()),
        Err(fault @ Fault::Unavailable(..)) => Err(fault),
        Err(error) => {
            tracing::warn!(%error, "the store to be replaced cannot be opened");
            Ok(None)
        }
    }
}

fn in_use() -> Fault {
    Fault::Unavailable(
        "other processes have the store open".to_owned(),
        "end them (taskbus who says who is at work), then do the same again",
    )
}

/// A copy of what can be read through a connection, in one file without a log.
fn copy(source: &Connection, draft: &Path) -> Answer<Connection> {
    let mut copy = open::alone(draft)?;
    let backup = Backup::new(source, &mut copy)?;
    loop {
        match backup.step(PAGES)? {
            StepResult::Done => break,
            StepResult::Busy | StepResult::Locked => std::thread::sleep(Duration::from_millis(1)),
            _ => {}
        }
    }
    drop(backup);
    let mode: String = copy.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0))?;
    if mode == "delete" { Ok(copy) } else { Err(Fault::Damaged(format!("its copy stays in journal mode {mode}"))) }
}

/// A copy of a backup, brought to the newest schema.
fn copied(source: &Place, draft: &Path, options: &SqliteOptions) -> Answer<Connection> {
    let patience = Patience::of(options.deadline);
    let reader = open::reader_of_protected(source)?;
    let no_store = || Fault::Damaged(format!("{} is empty", source.path().display()));
    let found = match migrate::examine(&reader, &patience)? {
        Found::Empty => return Err(no_store()),
        found @ Found::Schema(_) => found,
    };
    let copied = copy(&reader, draft)?;
    // The backup itself is what is kept of the schema before.
    migrate::migrate(&copied, found, &patience, &mut |_| Ok(()))?;
    Ok(copied)
}

/// Above everything that was given out, as far as anybody here knows.
fn highest(place: &Place, current: Option<&Connection>, copied: &Connection) -> Answer<Mark> {
    type Numbers = (u64, u64, String);
    let numbers = |connection: &Connection| -> rusqlite::Result<Numbers> {
        connection.query_row(NUMBERS, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
    };
    let own = numbers(copied)?;
    // A store that cannot tell its numbers still has its file.
    let theirs = current.and_then(|current| numbers(current).ok());
    let mut mark = Mark { seq: 0, epoch: 0, relaxed: false, boot: 0 };
    for (seq, epoch, id) in std::iter::once(own).chain(theirs) {
        let noted = high::peek(place, &id).ok().and_then(|marks| marks.any);
        mark.seq = mark.seq.max(seq).max(noted.map_or(0, |noted| noted.seq));
        mark.epoch = mark.epoch.max(epoch).max(noted.map_or(0, |noted| noted.epoch));
    }
    Ok(mark)
}

/// Makes the numbers go on above the mark, in a new epoch; says which was the newest.
fn raised(copied: &Connection, mark: &Mark, now: Timestamp) -> Answer<u64> {
    within(copied, BEGIN_IMMEDIATE, now, |scope| {
        let kept = scope.seq.get();
        scope.guard(Standing::RolledBack(*mark), true)?;
        Ok(kept)
    })
}

/// Looks at all of a copy; refuses one that does not add up.
fn sound(copied: &Connection, now: Timestamp) -> Answer<Verdict> {
    let verdict = within(copied, BEGIN, now, |scope| scope.verify_all(Look::History, &mut |_, _| {}))?;
    match verdict.differences.first() {
        None => Ok(verdict),
        Some(first) => Err(Fault::Damaged(format!(
            "{} things in it do not add up, so that no copy was put anywhere (taskbus verify tells them all): {first}",
            verdict.differences.len() as u64 + verdict.more
        ))),
    }
}

fn within<T>(connection: &Connection, how: &str, now: Timestamp, f: impl FnOnce(&Scope<'_>) -> Answer<T>) -> Answer<T> {
    connection.execute_batch(how)?;
    let opening = Opening::read(connection, About::Nothing)?;
    let done = Scope::enter(connection, "a copy", About::Nothing, now, how == BEGIN_IMMEDIATE, opening)
        .and_then(|scope| f(&scope));
    connection.execute_batch(if done.is_ok() { COMMIT } else { ROLLBACK })?;
    done
}

/// Gives the file that is there a second name, and what lies beside it another one.
fn set_aside(place: &Place) -> Answer<Option<PathBuf>> {
    let what = "the store that is there cannot be kept under another name";
    for n in 1_u32.. {
        let aside = file::beside(place.path(), &format!(".replaced-{n}"));
        match std::fs::hard_link(place.path(), &aside) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(Fault::Io { what, source }),
            Ok(()) => {
                for ending in ["-wal", "-shm", "-journal"] {
                    match std::fs::rename(file::beside(place.path(), ending), file::beside(&aside, ending)) {
                        Err(source) if source.kind() != ErrorKind::NotFound => return Err(Fault::Io { what, source }),
                        _ => {}
                    }
                }
                return Ok(Some(aside));
            }
        }
    }
    Ok(None)
}

/// A file under a passing name; it is gone again unless it gets its own.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn beside(target: &Path) -> Answer<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).expect("BUG: the operating system always has random bytes");
        let mut name = OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{:016x}.part", u64::from_le_bytes(random)));
        let path = target.with_file_name(name);
        let what = "a new file cannot be written there";
        file::make(&path).map_err(|source| Fault::Io { what, source })?;
        Ok(Self { path })
    }

    /// To be called when nobody has it open: closing it would drop SQLite's locks.
    fn sync(&self) -> Answer<()> {
        let what = "the copy could not be flushed";
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(|source| Fault::Io { what, source })
    }

    fn put(self, target: &Path, replace: bool) -> Answer<()> {
        self.sync()?;
        let what = "the copy could not be given its name";
        let put = if replace { std::fs::rename(&self.path, target) } else { std::fs::hard_link(&self.path, target) };
        match put {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists(target)),
            put => put.map_err(|source| Fault::Io { what, source })?,
        }
        let directory = target.parent().unwrap_or(Path::new("."));
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|source| Fault::Io { what: "the directory of the copy could not be flushed", source })
    }
}

/// Of a draft that was put in its place nothing is left under the passing name, or only a second name of the same file.
impl Drop for Draft {
    fn drop(&mut self) {
        for ending in ["", "-journal", "-wal", "-shm"] {
            let _ = std::fs::remove_file(file::beside(&self.path, ending));
        }
    }
}
