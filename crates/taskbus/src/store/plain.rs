//! Plain names in a directory that is held open, for stores that keep files in one: a link is never followed, nothing that
//! is no regular file is opened for long, and a name that is not there is none.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Which file of which device.
pub(super) type FileId = (u64, u64);

/// How a file is opened to be read: without following a link, and without waiting for whoever is to write to a pipe.
const TO_READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a directory.
pub(super) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

/// Opens a regular file to read it; none if there is no such name.
///
/// # Errors
/// `InvalidInput` for what is no regular file.
pub(super) fn open(dir: &OwnedFd, name: &str) -> io::Result<Option<File>> {
    let file = match rustix::fs::openat(dir, name, TO_READ, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NXIO) => return Err(io::ErrorKind::InvalidInput.into()),
        Err(error) => return Err(error.into()),
    };
    let is_file = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::RegularFile;
    if is_file { Ok(Some(file)) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// What a name stands for, a link for itself; none if there is no such name.
pub(super) fn stat(dir: &OwnedFd, name: &str) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a path still names the directory that is open.
pub(super) fn is_in_place(dir: &OwnedFd, path: &Path) -> io::Result<bool> {
    let open = rustix::fs::fstat(dir)?;
    match rustix::fs::statat(CWD, path, AtFlags::empty()) {
        Ok(there) => Ok(id(&there) == id(&open)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Which file it is.
pub(super) fn id(stat: &Stat) -> FileId {
    (stat.st_dev, stat.st_ino)
}

/// Removes a file; one that is not there is fine.
pub(super) fn remove(dir: &OwnedFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Hex digits that nobody else has, two for each byte.
pub(super) fn random_hex<const BYTES: usize>() -> String {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes).expect("BUG: the operating system always has random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
