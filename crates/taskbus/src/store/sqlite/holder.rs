//! Who holds the write lock of a store, as the kernel tells: for an error that names somebody, and for the doctor.
//! SQLite's file format says which bytes are locked (<https://sqlite.org/walformat.html>, 2.3.1, and
//! <https://sqlite.org/lockingv3.html>). Only on Linux is there a list of locks to read; elsewhere nobody is found.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::file::beside;

/// The byte of the shared memory that a writer locks.
const WRITE_LOCK: u64 = 120;
/// The bytes of the file that a writer locks where there is no log.
const RESERVED: u64 = 0x4000_0001;

/// A process that holds the write lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Its number.
    pub pid: u32,
    /// What it runs, if that can be seen.
    pub program: String,
    /// Whether somebody stopped it, so that it will not go on by itself.
    pub stopped: bool,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        if !self.program.is_empty() {
            write!(f, " ({})", self.program)?;
        }
        if self.stopped { f.write_str(", which is stopped,") } else { Ok(()) }
    }
}

/// Who holds the write lock of the store at this path now; none if nobody does, or it cannot be told.
#[must_use]
pub fn lock_holder(path: &Path) -> Option<LockHolder> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let files = [(beside(path, "-shm"), WRITE_LOCK), (path.to_owned(), RESERVED)];
    let inode = |path: &Path| std::fs::metadata(path).ok().map(|meta| meta.ino());
    files.iter().find_map(|(file, byte)| holder_in(&locks, inode(file)?, *byte)).map(described)
}

/// The process that holds a lock for writing on this byte of this file, by the kernel's list.
fn holder_in(locks: &str, inode: u64, byte: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, file, from, to] = fields[..] else { return None };
        let same = file.rsplit(':').next()?.parse() == Ok(inode);
        let to = if to == "EOF" { u64::MAX } else { to.parse().ok()? };
        let holds = (from.parse().ok()?..=to).contains(&byte);
        (same && holds).then(|| pid.parse().ok()).flatten()
    })
}

fn described(pid: u32) -> LockHolder {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let stat = read("stat");
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    LockHolder { pid, program: read("comm").trim().to_owned(), stopped: matches!(state, Some("T" | "t")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_one_that_writes_to_this_byte() {
        let locks = "1: POSIX  ADVISORY  WRITE 41 fe:00:77 120 120\n\
             1: -> POSIX  ADVISORY  WRITE 42 fe:00:77 120 120\n\
             2: POSIX  ADVISORY  READ  43 fe:00:77 123 123\n\
             3: FLOCK  ADVISORY  WRITE 44 fe:00:77 0 EOF\n\
             4: POSIX  ADVISORY  WRITE 45 fe:00:78 0 EOF\n";
        assert_eq!(holder_in(locks, 77, WRITE_LOCK), Some(41));
        assert_eq!(holder_in(locks, 77, 121), None);
        assert_eq!(holder_in(locks, 78, RESERVED), Some(45));
        assert_eq!(holder_in("", 77, WRITE_LOCK), None);
    }

    #[test]
    fn a_process_that_writes_is_found() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.db");
        let writer = rusqlite::Connection::open(&path).unwrap();
        for mode in ["delete", "wal"] {
            writer.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(())).unwrap();
            assert_eq!(lock_holder(&path), None, "{mode}");
            writer.execute_batch("BEGIN IMMEDIATE").unwrap();
            let holder = lock_holder(&path).unwrap();
            assert_eq!((holder.pid, holder.stopped), (std::process::id(), false), "{mode}");
            assert!(holder.to_string().starts_with(&format!("process {} (", holder.pid)), "{holder}");
            writer.execute_batch("ROLLBACK").unwrap();
        }
    }
}
