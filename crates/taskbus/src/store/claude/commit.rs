//! Writing a plan: everything that can fail early is done before anything can be seen.
//!
//! ```text
//! new files under other names, to disk ── lock the files ── all still ours? nothing changed? ── mark
//!     ── more than one file: journal, to disk ── rename, remove ── directory to disk ── journal away
//! ```
//!
//! With one file, its rename is the moment at which the transaction happens; with several, the journal's is.

use std::collections::BTreeSet;
use std::io;

use super::dir::{Dir, Stamp};
use super::draft::Plan;
use super::error::failed;
use super::eye::View;
use super::journal::{self, Write};
use super::lock::Locks;
use super::names::{JOURNAL, MARK};
use crate::store::StoreError;

/// One plan on its way to disk.
pub(super) struct Commit<'a, 'l> {
    /// The store, for errors.
    pub(super) store: &'a str,
    /// Where.
    pub(super) dir: &'a Dir,
    /// The list's lock, held.
    pub(super) locks: &'a mut Locks<'l>,
    /// The directory as the plan knows it.
    pub(super) view: &'a View,
}

/// Files under other names; those that do not get to their places go away again.
struct Prepared<'a> {
    dir: &'a Dir,
    temps: BTreeSet<String>,
}

impl Prepared<'_> {
    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<String> {
        let temp = self.dir.prepare(name, bytes)?;
        self.temps.insert(temp.clone());
        Ok(temp)
    }

    fn place(&mut self, temp: &str, name: &str, new: bool) -> io::Result<()> {
        self.temps.remove(temp);
        self.dir.place(temp, name, new)
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        self.temps.iter().for_each(|temp| self.dir.discard(temp));
    }
}

impl Commit<'_, '_> {
    /// Writes the plan; false if another program came between and nothing was written. `look` looks at the directory
    /// again.
    pub(super) fn run(
        mut self,
        plan: &Plan,
        mut look: impl FnMut() -> Result<u64, StoreError>,
    ) -> Result<bool, StoreError> {
        let mut prepared = Prepared { dir: self.dir, temps: BTreeSet::new() };
        let steps = self.prepare(plan, &mut prepared)?;
        for write in plan.writes.iter().filter(|write| write.before.is_some()) {
            self.locks.file(&write.name)?;
        }
        if !self.dir.is_in_place().map_err(|error| failed(self.store, error))? {
            return Err(StoreError::Moved { store: self.store.to_owned() });
        }
        if look()? != self.view.generation || !self.locks.hold()? {
            return Ok(false);
        }
        self.begin(&steps, plan, &mut prepared)?;
        let whole = steps.journal.is_some();
        for step in &steps.files {
            match self.apply(step, &mut prepared) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !whole => return Ok(false),
                other => other.map_err(|error| failed(self.store, error))?,
            }
        }
        self.end(whole).map_err(|error| failed(self.store, error))?;
        Ok(true)
    }

    fn prepare<'p>(&mut self, plan: &'p Plan, prepared: &mut Prepared<'_>) -> Result<Steps<'p>, StoreError> {
        let store = self.store;
        let io = |error| failed(store, error);
        let mut files = Vec::new();
        for write in &plan.writes {
            let temp = write.after.as_ref().map(|bytes| prepared.write(&write.name, bytes)).transpose().map_err(io)?;
            files.push(Step { write, temp });
            self.locks.refresh();
        }
        let journal = (plan.writes.len() > 1).then(|| prepared.write(JOURNAL, &journal::encode(&plan.writes)));
        let mark = plan.mark.map(|mark| prepared.write(MARK, mark.to_string().as_bytes()));
        Ok(Steps { files, journal: journal.transpose().map_err(io)?, mark: mark.transpose().map_err(io)? })
    }

    /// The mark first, so that no id is given again; then, if there is one, the moment at which all has happened.
    fn begin(&self, steps: &Steps<'_>, plan: &Plan, prepared: &mut Prepared<'_>) -> Result<(), StoreError> {
        let placed = |steps: &Steps<'_>| {
            if let Some(temp) = &steps.mark {
                prepared.place(temp, MARK, false)?;
            }
            if let Some(temp) = &steps.journal {
                prepared.place(temp, JOURNAL, false)?;
            }
            if steps.journal.is_some() || !plan.removed.is_empty() { self.dir.sync() } else { Ok(()) }
        };
        let mut placed = placed;
        placed(steps).map_err(|error| failed(self.store, error))
    }

    fn apply(&mut self, step: &Step<'_>, prepared: &mut Prepared<'_>) -> io::Result<()> {
        self.locks.refresh();
        match &step.temp {
            Some(temp) => prepared.place(temp, &step.write.name, step.write.before.is_none()),
            None => self.dir.remove(&step.write.name),
        }
    }

    fn end(&self, whole: bool) -> io::Result<()> {
        self.dir.sync()?;
        if whole { self.dir.remove(JOURNAL) } else { Ok(()) }
    }
}

struct Steps<'p> {
    files: Vec<Step<'p>>,
    journal: Option<String>,
    mark: Option<String>,
}

struct Step<'p> {
    write: &'p Write,
    temp: Option<String>,
}

/// Finishes what a killed process left to be done; the list is locked.
pub(super) fn finish(store: &str, dir: &Dir, locks: &mut Locks<'_>, view: &View) -> Result<(), StoreError> {
    let io = |error| failed(store, error);
    if view.journal.is_none() {
        return Ok(());
    }
    for write in view.left.iter().filter(|write| write.before.is_some()) {
        locks.file(&write.name)?;
    }
    for write in &view.left {
        locks.refresh();
        match &write.after {
            Some(bytes) => dir.put(&write.name, bytes).map_err(io)?,
            None => dir.remove(&write.name).map_err(io)?,
        }
    }
    dir.sync().map_err(io)?;
    dir.remove(JOURNAL).map_err(io)?;
    locks.release_files();
    Ok(())
}

/// Removes what dead processes of ours left unfinished: files under temporary names, and locks of tasks.
pub(super) fn sweep(dir: &Dir, locks: &Locks<'_>, view: &View) {
    if !locks.is_sure() {
        return;
    }
    for name in &view.passing {
        match dir.stamp(name).ok().flatten().filter(Stamp::is_unfinished) {
            Some(stamp) if stamp.is_file() => dir.discard(name),
            // One that cannot be removed is taken over when somebody wants it.
            Some(stamp) if stamp.is_dir() => drop(dir.remove_lock(name)),
            Some(_) | None => {}
        }
    }
}
