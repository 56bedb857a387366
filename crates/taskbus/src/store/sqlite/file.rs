//! The file as the operating system sees it: where it is, whether it may be one of ours, whether it is still the same.
//!
//! The database file itself is never opened here, only asked about: POSIX drops all of a process's locks on a file
//! when any handle to it is closed, and SQLite's would be among them.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::error::{Answer, Fault};

/// The directory of a store that this program makes.
const DIRECTORY_MODE: u32 = 0o700;
/// The file.
const FILE_MODE: u32 = 0o600;
/// No SQLite file is shorter, unless it is empty.
const SHORTEST: u64 = 512;

/// Which file a path names: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// Where a store is, absolute and without symbolic links.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: PathBuf,
}

impl Place {
    /// Finds the place of a store; makes its directory if that is missing.
    pub(super) fn find(path: &Path) -> Answer<Self> {
        let name = path.file_name().ok_or_else(|| {
            Fault::Unavailable(format!("{} names no file", path.display()), "give the path of a file")
        })?;
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
        let directory = made.and_then(|()| directory.canonicalize()).map_err(|error| {
            let reason = format!("the directory {} cannot be used: {error}", directory.display());
            Fault::Unavailable(reason, "name a file in a directory that you may write")
        })?;
        Ok(Self { path: directory.join(name) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The write-ahead log beside it.
    pub(super) fn log(&self) -> PathBuf {
        self.beside("-wal")
    }

    /// The high-water file beside it.
    pub(super) fn high(&self) -> PathBuf {
        self.beside("-high")
    }

    fn beside(&self, ending: &str) -> PathBuf {
        beside(&self.path, ending)
    }

    pub(super) fn directory(&self) -> &Path {
        self.path.parent().expect("BUG: a place is absolute and names a file")
    }

    /// Which file is there now; none if none is.
    pub(super) fn id(&self) -> Option<FileId> {
        identify(&self.path)
    }

    /// Whether the log holds anything.
    pub(super) fn has_log(&self) -> bool {
        std::fs::symlink_metadata(self.log()).is_ok_and(|meta| meta.len() > 0)
    }

    /// A number that changes when the file or its log does, for stores that can only be read.
    pub(super) fn stamp(&self) -> u64 {
        let files = [self.path.clone(), self.log()];
        let facts = files.iter().filter_map(|path| std::fs::metadata(path).ok());
        let parts = facts.map(|m| (m.ino(), m.len(), m.mtime(), m.mtime_nsec()));
        let bytes: Vec<u8> = parts.flat_map(|p| format!("{p:?}").into_bytes()).collect();
        let hash = blake3::hash(&bytes);
        u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("BUG: a hash has 32 bytes")) >> 2
    }

    /// Makes an empty file if there is none; refuses what cannot be a store of ours. What is there stays untouched.
    pub(super) fn prepare(&self) -> Answer<()> {
        match std::fs::symlink_metadata(&self.path) {
            Ok(meta) if meta.is_symlink() => Err(Fault::Damaged("it is a symbolic link".to_owned())),
            Ok(meta) if !meta.is_file() => Err(Fault::Damaged("it is no regular file".to_owned())),
            Ok(meta) if meta.len() >= SHORTEST => Ok(()),
            Ok(meta) if meta.len() > 0 => self.refuse_short(meta.len()),
            Ok(_) => self.refuse_orphaned_log("is empty"),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.refuse_orphaned_log("is gone")?;
                self.create()
            }
            Err(error) => Err(self.unreachable(&error)),
        }
    }

    /// Left by a first write that was cut off if there is a journal, which takes it back; else nothing of ours.
    fn refuse_short(&self, bytes: u64) -> Answer<()> {
        if std::fs::symlink_metadata(self.beside("-journal")).is_ok_and(|meta| meta.len() > 0) {
            return Ok(());
        }
        Err(Fault::Damaged(format!("with {bytes} bytes it is not a database")))
    }

    /// An empty file next to a full log: SQLite would throw the log away.
    fn refuse_orphaned_log(&self, what: &str) -> Answer<()> {
        if self.has_log() {
            return Err(Fault::Damaged(format!("the file {what}, but its log {} is not", self.log().display())));
        }
        Ok(())
    }

    fn create(&self) -> Answer<()> {
        match make(&self.path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(self.unreachable(&error)),
            _ => {}
        }
        let synced = File::open(self.directory()).and_then(|directory| directory.sync_all());
        synced.map_err(|source| Fault::Io { what: "the new file's directory could not be flushed", source })
    }

    fn unreachable(&self, error: &std::io::Error) -> Fault {
        let reason = format!("{}: {error}", self.path.display());
        Fault::Unavailable(reason, "check that this user may read and write the file and its directory")
    }
}

/// What SQLite keeps beside a file: its name with this ending.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// Which file a path names now.
pub(super) fn identify(path: &Path) -> Option<FileId> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    (meta.nlink() > 0).then(|| FileId { device: meta.dev(), inode: meta.ino() })
}

/// Makes the empty file without ever holding it open, so that no lock of another store in this process is dropped.
#[cfg(target_os = "linux")]
pub(super) fn make(path: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::RegularFile, Mode::from_raw_mode(FILE_MODE), 0)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn make(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(FILE_MODE).open(path).map(drop)
}

/// The kind of a network or foreign file system, on which the shared memory beside a write-ahead log is not shared or
/// locks are not kept; none for a local one.
#[cfg(target_os = "linux")]
pub(super) fn foreign(directory: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(directory).ok()?.f_type;
    name_of(u32::try_from(kind & 0xFFFF_FFFF).unwrap_or_default())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn foreign(_directory: &Path) -> Option<&'static str> {
    None
}

/// By the magic numbers of statfs(2).
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn name_of(magic: u32) -> Option<&'static str> {
    const FOREIGN: [(u32, &str); 14] = [
        (0x6969, "NFS"),
        (0x517B, "SMB"),
        (0xFE53_4D42, "SMB"),
        (0xFF53_4D42, "CIFS"),
        (0x0102_1997, "9p"),
        (0x6573_5546, "FUSE or virtiofs"),
        (0x5346_414F, "AFS"),
        (0x7375_7245, "Coda"),
        (0x00C3_6400, "Ceph"),
        (0x0BD0_0BD0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x0116_1970, "GFS2"),
        (0x786F_4256, "a VirtualBox shared folder"),
        (0xBACB_ACBC, "a VMware shared folder"),
    ];
    FOREIGN.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        for (magic, name) in
            [(0x6969, "NFS"), (0xFF53_4D42, "CIFS"), (0x0102_1997, "9p"), (0x6573_5546, "FUSE or virtiofs")]
        {
            assert_eq!(name_of(magic), Some(name));
        }
        for local in [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630] {
            assert_eq!(name_of(local), None, "{local:x}");
        }
        assert_eq!(foreign(&std::env::temp_dir()), None);
    }
}
