//! Where a sidecar is: one file in one directory that is held open, so that nothing outside it can be reached. Names are
//! plain, and a link in place of a file is refused, never followed.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use taskbus_core::limits::{SESSION_ID_BYTES_MAX, SIDECAR_BYTES_MAX};

use crate::store::plain;

/// A file that nobody else may read, where there was none to take the permissions from.
const FILE_MODE: u32 = 0o600;
/// What every sidecar of a session is called behind the session's id.
pub(super) const ENDING: &str = ".tasks.json";

/// What the names of our own files beside a sidecar end in.
const LOCK_ENDING: &str = ".taskbus-lock";
const TEMP_ENDING: &str = ".taskbus-tmp";

/// A directory, and the names of the files in it that belong to one sidecar.
#[derive(Debug)]
pub(super) struct Place {
    dir: OwnedFd,
    path: PathBuf,
    name: String,
}

/// What tells one state of a file from another. While the file is held open, nothing else gets its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    mode: u32,
}

/// Why a name is no sidecar's.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// A session id.
    #[error("{0:?} is no plain name: a session id has 1 to 128 letters, digits, '-', '_' and '.', and no '.' in front")]
    Session(String),
    /// A path.
    #[error("{0} names no file, or one whose name is no text")]
    NoFile(PathBuf),
}

/// Whether a name is that of a lock or an unfinished file of ours.
pub(super) fn is_ours(name: &str) -> bool {
    name.ends_with(LOCK_ENDING) || name.ends_with(TEMP_ENDING)
}

/// Checks a session id. It becomes part of a file name, so it must be a plain one.
///
/// # Errors
/// [`NameError::Session`].
pub fn check_session(id: &str) -> Result<(), NameError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let fits = (1..=SESSION_ID_BYTES_MAX).contains(&id.len());
    if fits && id.bytes().all(plain) && !id.starts_with('.') {
        Ok(())
    } else {
        Err(NameError::Session(id.chars().take(SESSION_ID_BYTES_MAX).collect()))
    }
}

/// The directory and the name in a path.
pub(super) fn apart(path: &Path) -> Result<(&Path, &str), NameError> {
    let no_file = || NameError::NoFile(path.to_owned());
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(no_file)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((dir, name))
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            mode: meta.mode(),
        })
    }

    fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Place {
    /// Opens the directory.
    pub(super) fn open(dir: &Path, name: &str) -> io::Result<Self> {
        let path = dir.canonicalize()?;
        Ok(Self { dir: plain::open_dir(&path)?, path, name: name.to_owned() })
    }

    /// The file, for people.
    pub(super) fn path(&self) -> PathBuf {
        self.path.join(&self.name)
    }

    /// The directory.
    pub(super) fn directory(&self) -> &Path {
        &self.path
    }

    /// The file that is locked while the sidecar is changed.
    pub(super) fn lock_name(&self) -> String {
        format!("{}{LOCK_ENDING}", self.name)
    }

    /// A name that no other file has, for the sidecar while it is written.
    pub(super) fn temp_name(&self) -> String {
        format!("{}.{}{TEMP_ENDING}", self.name, plain::random_hex::<8>())
    }

    /// Whether a name is one that [`Place::temp_name`] made.
    pub(super) fn is_temp_name(&self, name: &str) -> bool {
        let middle = name.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_suffix(TEMP_ENDING));
        middle.is_some_and(|middle| middle.len() == 17 && middle[1..].bytes().all(|b| b.is_ascii_hexdigit()))
    }

    /// Whether the path still names the directory that is open.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        plain::is_in_place(&self.dir, &self.path)
    }

    /// Opens the sidecar to read it; none if there is none.
    ///
    /// # Errors
    /// `InvalidInput` for what is no regular file.
    pub(super) fn look(&self) -> io::Result<Option<(File, Stamp)>> {
        let Some(file) = plain::open(&self.dir, &self.name)? else { return Ok(None) };
        let stamp = Stamp::of(&file)?;
        Ok(Some((file, stamp)))
    }

    /// Opens the lock file, made if it is not there.
    pub(super) fn open_lock(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(FILE_MODE);
        let file = File::from(rustix::fs::openat(&self.dir, self.lock_name(), flags, mode)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Whether the lock's name still names this file.
    pub(super) fn is_the_lock(&self, file: &File) -> io::Result<bool> {
        let open = rustix::fs::fstat(file)?;
        Ok(plain::stat(&self.dir, &self.lock_name())?.is_some_and(|there| plain::id(&there) == plain::id(&open)))
    }

    /// Writes the sidecar anew, in one step: when this returns, it is on disk. `old` gives the permissions.
    pub(super) fn replace(&self, temp: &str, bytes: &[u8], old: Option<&Stamp>) -> io::Result<(File, Stamp)> {
        let written = self.write_temp(temp, bytes, old).and_then(|file| {
            rustix::fs::renameat(&self.dir, temp, &self.dir, self.name.as_str())?;
            Ok(file)
        });
        if written.is_err() {
            // What is left over is removed by the next writer; the first error is the one to tell.
            let _ = self.remove(temp);
        }
        let file = written?;
        rustix::fs::fsync(&self.dir)?;
        let stamp = Stamp::of(&file)?;
        Ok((file, stamp))
    }

    fn write_temp(&self, temp: &str, bytes: &[u8], old: Option<&Stamp>) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(FILE_MODE);
        let mut file = File::from(rustix::fs::openat(&self.dir, temp, flags, mode)?);
        if let Some(old) = old.filter(|old| old.mode & 0o777 != FILE_MODE) {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(old.mode & 0o777))?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(file)
    }

    /// Removes a file; one that is not there is fine.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        plain::remove(&self.dir, name)
    }
}

/// Everything in a file.
///
/// # Errors
/// `FileTooLarge` beyond the limit.
pub(super) fn contents(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = Reader { file, at: 0 }.take(SIDECAR_BYTES_MAX as u64 + 1);
    reader.read_to_end(&mut bytes)?;
    if bytes.len() > SIDECAR_BYTES_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Reads a file from its start without moving the place where others read it.
struct Reader<'a> {
    file: &'a File,
    at: u64,
}

impl io::Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = std::os::unix::fs::FileExt::read_at(self.file, buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Whether a stamp is still that of its file.
pub(super) fn is_current(held: Option<&Stamp>, now: Option<&Stamp>) -> bool {
    match (held, now) {
        (Some(held), Some(now)) => held.is_same_file(now) && held == now,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}
