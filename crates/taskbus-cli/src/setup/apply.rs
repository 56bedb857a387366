//! Carries edits out: first every file of a client is read and its new content made, then all are written, each with a
//! copy of what was there. Nothing is written when one of them is refused.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::clients::Work;
use super::edit::{Edit, Refused};
use crate::files;
use crate::term::failure::Failure;

/// Copies that are looked for beside a file.
const BACKUPS_MAX: usize = 10;
/// Lines of a change that are shown.
const LINES_MAX: usize = 80;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Put our part in.
    Setup,
    /// Take our part away.
    Undo,
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It stays as it is.
    Keep,
    /// It is made.
    Create,
    /// It is changed.
    Change,
    /// It is again, byte for byte, what it was.
    Restore,
    /// It is taken away: there was none before.
    Delete,
}

/// A file and what becomes of it.
#[derive(Debug)]
pub(crate) struct Change {
    /// The file.
    pub(crate) path: PathBuf,
    /// Where it really is, if that is elsewhere.
    pub(crate) really: Option<PathBuf>,
    /// What becomes of it.
    pub(crate) action: Action,
    /// The copy of what was there.
    pub(crate) backup: Option<PathBuf>,
    /// The lines that go and come.
    pub(crate) lines: Vec<String>,
    /// Whether all of the file is ours, so that nobody needs to see it line by line.
    pub(crate) is_ours: bool,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    mode: u32,
}

/// What would become of a file.
pub(super) fn plan(work: &Work, way: Way) -> Result<Change, Failure> {
    let reading = |error| Failure::machine(format!("{} cannot be read", work.path.display()), error);
    let really = really(&work.path).map_err(reading)?;
    let old = files::read(&work.path).map_err(reading)?;
    let fate = match way {
        Way::Setup => put_in(work, old.as_deref()),
        Way::Undo => undo(work, old.as_deref()),
    };
    let Fate { action, new, backup } = fate.map_err(|refused| refusal(work, &refused, way))?;
    let lines = if action == Action::Keep { Vec::new() } else { lines(old.as_deref(), new.as_deref()) };
    let is_ours = matches!(work.edits[..], [Edit::Whole(_)]);
    Ok(Change { path: work.path.clone(), really, action, backup, lines, is_ours, old, new, mode: work.mode })
}

/// Does it. A file that was changed in the meantime is left alone.
pub(super) fn carry_out(change: &Change, way: Way) -> Result<(), Failure> {
    let path = &change.path;
    let writing = |error| Failure::machine(format!("{} cannot be written", path.display()), error);
    if change.action == Action::Keep {
        return Ok(());
    }
    if files::read(path).map_err(writing)? != change.old {
        return Err(Failure::Broken(format!(
            "{} was changed by somebody else just now; run this again",
            path.display()
        )));
    }
    if let (Way::Setup, Some(backup), Some(old)) = (way, &change.backup, &change.old) {
        files::replace(backup, old, fs::metadata(path).map_or(change.mode, |found| mode(&found))).map_err(writing)?;
    }
    match &change.new {
        Some(new) => files::replace(path, new, change.mode).map_err(writing)?,
        None => delete(path).map_err(writing)?,
    }
    if let (Way::Undo, Some(backup)) = (way, &change.backup) {
        fs::remove_file(backup).map_err(writing)?;
    }
    Ok(())
}

fn mode(found: &fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    found.permissions().mode() & 0o7777
}

fn apply(work: &Work, old: Option<&[u8]>) -> Result<Vec<u8>, Refused> {
    let mut bytes = old.map(<[u8]>::to_vec);
    for edit in &work.edits {
        bytes = Some(edit.apply(bytes.as_deref())?);
    }
    Ok(bytes.unwrap_or_default())
}

/// What is to become of a file.
struct Fate {
    action: Action,
    new: Option<Vec<u8>>,
    backup: Option<PathBuf>,
}

/// The file with our part.
fn put_in(work: &Work, old: Option<&[u8]>) -> Result<Fate, Refused> {
    let new = apply(work, old)?;
    let action = match old {
        Some(old) if *old == new => Action::Keep,
        Some(_) => Action::Change,
        None => Action::Create,
    };
    let backup = (action == Action::Change).then(|| free_backup(&work.path));
    Ok(Fate { action, new: Some(new), backup })
}

/// What was there before, if nothing else has happened since; else the file without our part.
fn undo(work: &Work, old: Option<&[u8]>) -> Result<Fate, Refused> {
    let Some(old) = old else { return Ok(Fate { action: Action::Keep, new: None, backup: None }) };
    let made_of = |before: Option<&[u8]>| apply(work, before).is_ok_and(|made| made == old);
    for backup in backups(&work.path) {
        let Ok(Some(before)) = files::read(&backup) else { continue };
        if before != old && made_of(Some(&before)) {
            return Ok(Fate { action: Action::Restore, new: Some(before), backup: Some(backup) });
        }
    }
    if made_of(None) {
        return Ok(Fate { action: Action::Delete, new: None, backup: None });
    }
    let mut left = Some(old.to_vec());
    for edit in &work.edits {
        let Some(bytes) = &left else { break };
        left = edit.revert(bytes)?;
    }
    let action = match &left {
        None => Action::Delete,
        Some(left) if left == old => Action::Keep,
        Some(_) => Action::Change,
    };
    Ok(Fate { action, new: left, backup: None })
}

/// Beside the file, in the order in which they are made.
fn backups(path: &Path) -> impl Iterator<Item = PathBuf> {
    let name = |ending: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    (0..BACKUPS_MAX).map(move |n| name(if n == 0 { ".bak".to_owned() } else { format!(".bak.{n}") }))
}

/// The first name that is free; the last one is used again and again.
fn free_backup(path: &Path) -> PathBuf {
    let mut names: Vec<PathBuf> = backups(path).collect();
    let free = names.iter().position(|name| fs::symlink_metadata(name).is_err()).unwrap_or(names.len() - 1);
    names.swap_remove(free)
}

/// Where a file really is, if a link leads elsewhere: its own, or one above it, except where all of the home directory
/// is somewhere else.
fn really(path: &Path) -> io::Result<Option<PathBuf>> {
    let target = files::target(path)?;
    let home = crate::repo_name::home();
    let real = match (target.parent().map(fs::canonicalize), target.file_name()) {
        (Some(Ok(dir)), Some(name)) => dir.join(name),
        _ => return Ok(None),
    };
    let plain =
        etcetera::home_dir().ok().zip(home).and_then(|(home, real)| Some(real.join(path.strip_prefix(home).ok()?)));
    Ok((real != path && Some(&real) != plain.as_ref()).then_some(real))
}

/// Takes a file away, and the directories that are empty without it.
fn delete(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    let home = etcetera::home_dir().ok();
    let above = path.ancestors().skip(1).take_while(|dir| Some(*dir) != home.as_deref());
    for dir in above {
        if fs::remove_dir(dir).is_err() {
            break;
        }
    }
    Ok(())
}

fn refusal(work: &Work, refused: &Refused, way: Way) -> Failure {
    let snippet = || work.edits.iter().map(Edit::snippet).collect::<Vec<_>>().join("\n");
    let next = match way {
        Way::Setup => format!("correct it and run this again, or put this in by hand:\n{}", snippet()),
        Way::Undo => "take out by hand what begins with taskbus".to_owned(),
    };
    Failure::usage(format!("{}: {refused}. Nothing was changed; {next}", work.path.display()))
}

/// The lines that differ, between those that both begin with and those that both end with.
fn lines(old: Option<&[u8]>, new: Option<&[u8]>) -> Vec<String> {
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let (old, new) = (text(old), text(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let gone = old[..old.len() - tail].iter().map(|line| format!("- {line}"));
    let come = new[..new.len() - tail].iter().map(|line| format!("+ {line}"));
    let mut lines: Vec<String> = gone.chain(come).collect();
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("… and {more} more lines"));
    }
    lines
}
