//! What stands in the directory, read anew only where something changed.
//!
//! A look collects the state of every file, reads those that differ, and collects again: when both collections agree,
//! everything that was read stood there at one moment. Files that changed lately are read every time, because the
//! clock of a file system may be too coarse to tell two changes apart. One that is no task is given some milliseconds
//! to become one, as Claude Code writes new files in place.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use taskbus_core::id::TaskId;
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;

use super::dir::{Dir, Stamp};
use super::file::{Fault, TaskFile};
use super::journal::{Journal, JournalFault, Write};
use super::names::{self, JOURNAL, MARK};

/// A change of a file younger than this may be followed by one that leaves the same times, in milliseconds: where
/// times are kept in parts of a second, and where they are not.
const UNSETTLED_MS: [i64; 2] = [100, 2_500];
/// A file younger than this that is no task may be one soon, in milliseconds.
const TORN_MS: i64 = 1_000;
/// Pauses for such files, in milliseconds.
const PAUSES_MS: [u64; 6] = [1, 2, 4, 8, 16, 32];
/// Collections that differ before a look is content with the last.
const COLLECTIONS_MAX: usize = 8;
/// Vanished tasks that are remembered.
const LOST_MAX: usize = 1_000;

/// The directory as it stood at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Counts the changes that this process saw.
    pub(super) generation: u64,
    /// Every task file, readable or not.
    pub(super) rows: BTreeMap<TaskId, Arc<Row>>,
    /// The highest number that was ever given, as far as is known.
    pub(super) top: u64,
    /// What the mark says; none if it says nothing, or nothing sensible.
    pub(super) mark: Option<u64>,
    /// What the mark says, if that is nothing sensible.
    pub(super) bad_mark: Option<String>,
    /// Names that look like a task's and are none.
    pub(super) odd_names: Vec<String>,
    /// What transactions make and do not keep.
    pub(super) passing: Vec<String>,
    /// A journal that cannot be followed.
    pub(super) bad_journal: Option<JournalFault>,
    /// What a killed process left to be done, already done in `rows`.
    pub(super) left: Vec<Write>,
    /// The files of the journal that this stands in.
    pub(super) journal: Option<Journal>,
}

/// One task file.
#[derive(Debug)]
pub(super) struct Row {
    /// Its name.
    pub(super) name: String,
    /// Its bytes; empty if there are none to be had.
    pub(super) bytes: Vec<u8>,
    /// What it says, or why that cannot be known.
    pub(super) content: Result<TaskFile, Fault>,
}

impl Row {
    /// The file of a live task.
    pub(super) fn live(&self) -> Option<&TaskFile> {
        self.content.as_ref().ok().filter(|file| !file.is_deleted)
    }
}

/// A task whose file somebody else removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// The task as it was last seen.
    pub task: Task,
    /// When that was noticed.
    pub at: Timestamp,
    /// Whether the whole list went, as Claude Code does some seconds after its last task is completed.
    pub cleared: bool,
}

/// Looks at a directory again and again.
#[derive(Debug, Default)]
pub(super) struct Eye {
    files: BTreeMap<String, Seen>,
    view: Arc<View>,
    lost: Vec<Lost>,
    /// The tasks that a transaction of ours is removing.
    ours: BTreeSet<TaskId>,
}

#[derive(Clone, Debug)]
struct Seen {
    stamp: Stamp,
    content: Result<Vec<u8>, Fault>,
    /// When it was read, in Unix ms.
    at_ms: i64,
}

impl Seen {
    /// Whether a file that looks like this now is surely what was read.
    fn is_settled(&self, now: &Stamp) -> bool {
        let is_coarse = now.modified_ns % 1_000_000_000 == 0;
        self.stamp == *now && self.at_ms - now.modified_ms() > UNSETTLED_MS[usize::from(is_coarse)]
    }
}

/// The names that matter, and the others that are worth telling.
#[derive(Debug, Default, PartialEq)]
struct Collection {
    stamps: BTreeMap<String, Stamp>,
    odd_names: Vec<String>,
    passing: Vec<String>,
    highest: u64,
}

impl Eye {
    /// What was removed by others since this began to look, oldest first.
    pub(super) fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// Says which tasks are about to be removed by ourselves; they are not lost.
    pub(super) fn removing(&mut self, ours: BTreeSet<TaskId>) {
        self.ours = ours;
    }

    /// Looks again; none for a directory that is not there.
    pub(super) fn look(&mut self, dir: Option<&Dir>, now: Timestamp) -> io::Result<Arc<View>> {
        let mut view = self.settled(dir)?;
        for pause in PAUSES_MS {
            if !self.may_be_torn(&view) {
                break;
            }
            std::thread::sleep(Duration::from_millis(pause));
            view = self.settled(dir)?;
        }
        self.note_lost(&view, now);
        if differs(&self.view, &view) {
            view.generation = self.view.generation + 1;
        } else {
            view.generation = self.view.generation;
        }
        self.view = Arc::new(view);
        Ok(Arc::clone(&self.view))
    }

    /// The directory, once two collections agree.
    fn settled(&mut self, dir: Option<&Dir>) -> io::Result<View> {
        let Some(dir) = dir else {
            self.files.clear();
            return Ok(self.view_of(&Collection::default()));
        };
        let mut before = self.collect(dir)?;
        for _ in 0..COLLECTIONS_MAX {
            if !self.read_changed(dir, &before)? {
                break;
            }
            let after = self.collect(dir)?;
            let agree = before.stamps == after.stamps;
            before = after;
            if agree {
                break;
            }
        }
        self.files.retain(|name, _| before.stamps.contains_key(name));
        Ok(self.view_of(&before))
    }

    fn collect(&self, dir: &Dir) -> io::Result<Collection> {
        let mut found = Collection::default();
        let mut names: BTreeSet<String> = dir.names()?.into_iter().collect();
        // A name that is replaced while the directory is listed may be missing in the list.
        names.extend(self.files.keys().cloned());
        for name in names {
            let number = names::number_of(&name);
            found.highest = found.highest.max(number.unwrap_or(0));
            if names::task_of(&name).is_some() || name == MARK || name == JOURNAL {
                if let Some(stamp) = dir.stamp(&name)? {
                    found.stamps.insert(name, stamp);
                }
            } else if number.is_some() {
                found.odd_names.push(name);
            } else if names::is_passing(&name) {
                found.passing.push(name);
            }
        }
        Ok(found)
    }

    /// Reads what is new or different; says whether there was any.
    fn read_changed(&mut self, dir: &Dir, found: &Collection) -> io::Result<bool> {
        let mut any = false;
        for (name, stamp) in &found.stamps {
            let old = self.files.get(name);
            if old.is_some_and(|seen| seen.is_settled(stamp)) {
                continue;
            }
            any = true;
            let at_ms = now_ms();
            let (stamp, content) = match dir.read(name) {
                Ok(Some((stamp, bytes))) => (stamp, Ok(bytes)),
                Ok(None) => continue,
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => (*stamp, Err(Fault::NoFile)),
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => (*stamp, Err(Fault::TooLarge)),
                Err(error) => (*stamp, Err(Fault::Closed(error.kind()))),
            };
            self.files.insert(name.clone(), Seen { stamp, content, at_ms });
        }
        Ok(any)
    }

    fn view_of(&self, found: &Collection) -> View {
        let mut view = View {
            odd_names: found.odd_names.clone(),
            passing: found.passing.clone(),
            top: self.view.top.max(found.highest),
            ..View::default()
        };
        self.read_mark(&mut view);
        self.read_journal(&mut view);
        let present = self.files.iter().filter(|(name, _)| found.stamps.contains_key(*name));
        for (name, seen) in present {
            let written = view.left.iter().find(|write| write.name == *name);
            let content = match written {
                Some(Write { after: None, .. }) => continue,
                Some(Write { after: Some(bytes), .. }) => &Ok(bytes.clone()),
                None => &seen.content,
            };
            let row = self.row(name, content, &seen.stamp);
            view.rows.extend(row);
        }
        let made = view.left.iter().filter(|write| !found.stamps.contains_key(&write.name));
        let made: Vec<_> = made.filter_map(|write| Some((write.name.clone(), write.after.clone()?))).collect();
        for (name, bytes) in made {
            let row = self.row_of(&name, &Ok(bytes), Timestamp::from_millis(now_ms()));
            view.top = view.top.max(names::number_of(&name).unwrap_or(0));
            view.rows.extend(row);
        }
        view
    }

    fn row(&self, name: &str, content: &Result<Vec<u8>, Fault>, stamp: &Stamp) -> Option<(TaskId, Arc<Row>)> {
        self.row_of(name, content, Timestamp::from_millis(stamp.modified_ms()))
    }

    /// The row of a file, the same as last time if the file is. A word for a name makes a task only of what reads as
    /// one, or did before.
    fn row_of(&self, name: &str, content: &Result<Vec<u8>, Fault>, modified: Timestamp) -> Option<(TaskId, Arc<Row>)> {
        let id = names::task_of(name)?;
        let old = self.view.rows.get(&id);
        let bytes = content.as_deref().unwrap_or_default();
        let is_same = |row: &&Arc<Row>| match (&row.content, content) {
            (Err(old), Err(new)) => old == new,
            (_, Ok(bytes)) => row.bytes == *bytes,
            (Ok(_), Err(_)) => false,
        };
        if let Some(row) = old.filter(is_same) {
            return Some((id, Arc::clone(row)));
        }
        let read = content.as_ref().map_err(Clone::clone).and_then(|bytes| TaskFile::read(&id, bytes, modified));
        if read.is_err() && id.as_number().is_none() && old.is_none() {
            return None;
        }
        Some((id, Arc::new(Row { name: name.to_owned(), bytes: bytes.to_vec(), content: read })))
    }

    fn read_mark(&self, view: &mut View) {
        let Some(seen) = self.files.get(MARK) else { return };
        let text = seen.content.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        view.mark = text.trim().parse().ok().filter(|mark| i64::try_from(*mark).is_ok());
        match view.mark {
            Some(mark) => view.top = view.top.max(mark),
            None => view.bad_mark = Some(text.chars().take(32).collect()),
        }
    }

    fn read_journal(&self, view: &mut View) {
        let Some(seen) = self.files.get(JOURNAL) else { return };
        match seen.content.as_deref().map(Journal::read) {
            Ok(Ok(journal)) => {
                let current = |name: &str| self.files.get(name).and_then(|seen| seen.content.as_deref().ok());
                view.left = journal.left(current);
                view.journal = Some(journal);
            }
            Ok(Err(fault)) => view.bad_journal = Some(fault),
            Err(fault) => view.bad_journal = Some(JournalFault::Damaged(fault.to_string())),
        }
    }

    /// Whether a young file that is no task was another one, or none, before this look.
    fn may_be_torn(&self, view: &View) -> bool {
        let young = |name: &str| self.files.get(name).is_some_and(|seen| now_ms() - seen.stamp.modified_ms() < TORN_MS);
        let broken = view.rows.iter().filter(|(_, row)| matches!(row.content, Err(Fault::Json(_))));
        let fresh = broken.filter(|(id, row)| self.view.rows.get(id).is_none_or(|old| !Arc::ptr_eq(old, row)));
        fresh.into_iter().any(|(_, row)| young(&row.name))
    }

    fn note_lost(&mut self, view: &View, at: Timestamp) {
        self.lost.retain(|lost| !view.rows.contains_key(&lost.task.id));
        let gone = |id: &TaskId| !view.rows.contains_key(id) && !self.ours.contains(id);
        let cleared = view.rows.is_empty();
        let before = self.view.rows.iter().filter(|(id, _)| gone(id));
        let tasks = before.filter_map(|(_, row)| row.live().map(|file| file.task.clone()));
        self.lost.extend(tasks.map(|task| Lost { task, at, cleared }));
        let excess = self.lost.len().saturating_sub(LOST_MAX);
        self.lost.drain(..excess);
    }
}

/// Whether anybody could tell the two apart.
fn differs(old: &View, new: &View) -> bool {
    let same_rows = old.rows.len() == new.rows.len()
        && old.rows.iter().zip(&new.rows).all(|(old, new)| old.0 == new.0 && Arc::ptr_eq(old.1, new.1));
    !same_rows || old.mark != new.mark || old.top != new.top || old.bad_journal != new.bad_journal
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
