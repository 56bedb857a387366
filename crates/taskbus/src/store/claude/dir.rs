//! One directory, held open, and the file operations on names inside it. Nothing outside can be reached: names are
//! plain, links are never followed, and nothing that is no regular file is opened for long.
//!
//! What taskbus makes and has not finished (a lock, a temporary file) bears the sticky bit: it is set in the same
//! system call that makes the thing and taken away when it is in its place, so whoever finds one after a crash knows whose
//! it was.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use taskbus_core::limits::TASK_FILE_BYTES_MAX;

use crate::store::plain::{self, FileId};

/// Marks what is ours and unfinished.
const UNFINISHED: u32 = 0o1000;
// Task text is nobody else's to read; what another program made keeps its mode.
const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// A directory.
#[derive(Debug)]
pub(super) struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Which file.
    pub(super) id: FileId,
    /// Its size, in bytes.
    pub(super) size: u64,
    /// When its contents changed, in ns since the epoch.
    pub(super) modified_ns: i128,
    /// When anything of it changed, in ns since the epoch.
    pub(super) changed_ns: i128,
    /// Its kind and permissions.
    pub(super) mode: u32,
}

impl Stamp {
    fn of(stat: &Stat) -> Self {
        let ns = |seconds, ns| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        Self {
            id: plain::id(stat),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
            mode: stat.st_mode,
        }
    }

    /// Whether it is a regular file.
    pub(super) fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    /// Whether it is a directory.
    pub(super) fn is_dir(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }

    /// Whether a taskbus made it and did not finish.
    pub(super) fn is_unfinished(&self) -> bool {
        self.mode & UNFINISHED != 0
    }

    /// When its contents changed, in Unix ms.
    pub(super) fn modified_ms(&self) -> i64 {
        i64::try_from(self.modified_ns / 1_000_000).unwrap_or(0)
    }
}

impl Dir {
    /// Opens a directory; none if there is nothing of that name.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        match plain::open_dir(path) {
            Ok(fd) => Ok(Some(Self { fd, path: path.to_owned() })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a directory, made if it is not there, with its parent if that is not there either.
    pub(super) fn open_or_make(path: &Path) -> io::Result<Self> {
        for _ in 0..2 {
            if let Some(dir) = Self::open(path)? {
                return Ok(dir);
            }
            if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                make_dir(parent)?;
            }
            make_dir(path)?;
        }
        Self::open(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Whether the path still names the directory that is open.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        plain::is_in_place(&self.fd, &self.path)
    }

    /// Whether locks of the kernel may be trusted to hold against every user of the directory: not where other
    /// machines reach it.
    pub(super) fn is_local(&self) -> bool {
        const REMOTE: [u64; 9] = [
            0x6969,      // NFS
            0x517b,      // SMB
            0xff53_4d42, // CIFS
            0xfe53_4d42, // SMB2
            0x6573_5546, // FUSE, also sshfs, gcsfuse, virtiofs
            0x0102_1997, // 9p
            0x00c3_6400, // Ceph
            0x5346_414f, // AFS
            0x0bd0_0bd0, // Lustre
        ];
        #[expect(clippy::cast_sign_loss, reason = "a magic number has 32 bits, whatever its type")]
        let kind = rustix::fs::fstatfs(&self.fd).map(|stat| stat.f_type as u64 & 0xffff_ffff);
        kind.is_ok_and(|kind| !REMOTE.contains(&kind))
    }

    /// Every name that is text.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let entries = rustix::fs::Dir::read_from(&self.fd)?;
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = entry?.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The state of a name; a link is not followed.
    pub(super) fn stamp(&self, name: &str) -> io::Result<Option<Stamp>> {
        Ok(plain::stat(&self.fd, name)?.as_ref().map(Stamp::of))
    }

    /// A regular file's state and bytes; none if there is no such name.
    ///
    /// # Errors
    /// `InvalidInput` for what is no regular file, `FileTooLarge` beyond the limit.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<(Stamp, Vec<u8>)>> {
        let Some(file) = plain::open(&self.fd, name)? else { return Ok(None) };
        let stamp = Stamp::of(&rustix::fs::fstat(&file)?);
        let mut bytes = Vec::new();
        file.take(TASK_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > TASK_FILE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Some((stamp, bytes)))
    }

    /// Opens a regular file to lock it, made empty if it is not there.
    pub(super) fn open_sentinel(&self, name: &str) -> io::Result<(FileId, File)> {
        let base = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(FILE_MODE);
        let made = rustix::fs::openat(&self.fd, name, base | OFlags::CREATE | OFlags::EXCL, mode);
        let fd = match made {
            Err(Errno::EXIST) => rustix::fs::openat(&self.fd, name, base, Mode::empty())?,
            other => other?,
        };
        let stamp = Stamp::of(&rustix::fs::fstat(&fd)?);
        if stamp.is_file() { Ok((stamp.id, File::from(fd))) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Writes a file in one step: all of it is there and on disk, or nothing. The directory still has to be synced.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temp = self.prepare(name, bytes)?;
        self.place(&temp, name, false)
    }

    /// Writes, to disk, what is to take the place of `name`, under another name that is returned.
    pub(super) fn prepare(&self, name: &str, bytes: &[u8]) -> io::Result<String> {
        let temp = format!("{name}.tmp.{}", plain::random_hex::<4>());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(FILE_MODE | UNFINISHED);
        let mut file = File::from(rustix::fs::openat(&self.fd, &temp, flags, mode)?);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        if written.is_err() {
            self.discard(&temp);
        }
        written.map(|()| temp)
    }

    /// Puts what was prepared in its place, with the permissions of what was there. With `new`, an existing name is
    /// `AlreadyExists`.
    pub(super) fn place(&self, temp: &str, name: &str, new: bool) -> io::Result<()> {
        let placed = self.mode_for(temp, name).and_then(|mode| {
            rustix::fs::chmodat(&self.fd, temp, Mode::from_raw_mode(mode | UNFINISHED), AtFlags::empty())?;
            let id = self.stamp(temp)?.map(|stamp| stamp.id);
            self.rename(temp, name, new)?;
            Ok((id, mode))
        });
        if placed.is_err() {
            self.discard(temp);
        }
        let (id, mode) = placed?;
        // What is in its place is finished. A mark that stays does no harm there; taken away before, it would be missed
        // on what a killed process leaves.
        let _ = self.unmark(name, id, mode);
        Ok(())
    }

    /// Removes what was prepared and is not wanted. What cannot be removed now is swept up later.
    pub(super) fn discard(&self, temp: &str) {
        let _ = self.remove(temp);
    }

    /// The permissions of what is there, else those that it was made with.
    fn mode_for(&self, temp: &str, name: &str) -> io::Result<u32> {
        let model = self.stamp(name)?.filter(Stamp::is_file);
        let model = model.map_or_else(|| self.stamp(temp), |stamp| Ok(Some(stamp)))?;
        Ok(model.map_or(FILE_MODE, |stamp| stamp.mode) & 0o777)
    }

    /// Takes the mark from a file, if it is the one that was put there.
    fn unmark(&self, name: &str, id: Option<FileId>, mode: u32) -> io::Result<()> {
        let Some(file) = plain::open(&self.fd, name)? else { return Ok(()) };
        if id == Some(plain::id(&rustix::fs::fstat(&file)?)) {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        }
        Ok(())
    }

    fn rename(&self, temp: &str, name: &str, new: bool) -> io::Result<()> {
        if !new {
            return Ok(rustix::fs::renameat(&self.fd, temp, &self.fd, name)?);
        }
        match rustix::fs::renameat_with(&self.fd, temp, &self.fd, name, RenameFlags::NOREPLACE) {
            // Not every file system can; then a second name does the same.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::linkat(&self.fd, temp, &self.fd, name, AtFlags::empty())?;
                self.remove(temp)
            }
            other => Ok(other?),
        }
    }

    /// Removes a file; one that is not there is fine.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        plain::remove(&self.fd, name)
    }

    /// Makes a directory that bears our mark.
    pub(super) fn make_lock(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(DIR_MODE | UNFINISHED))?)
    }

    /// Removes an empty directory; one that is not there is fine.
    pub(super) fn remove_lock(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the time at which a name was changed to now.
    pub(super) fn touch(&self, name: &str) -> io::Result<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        Ok(rustix::fs::utimensat(&self.fd, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Sets the time at which an open file was changed to `later` from now.
    pub(super) fn touch_later(file: &File, later: Duration) -> io::Result<()> {
        file.set_modified(SystemTime::now() + later)
    }

    /// Brings the names themselves to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.fd.as_fd())?)
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    match rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(DIR_MODE)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn place() -> (tempfile::TempDir, Dir) {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open(place.path()).unwrap().unwrap();
        (place, dir)
    }

    #[test]
    fn a_file_is_whole_or_not_there_and_bears_no_mark() {
        let (place, dir) = place();
        let temp = dir.prepare("1.json", b"one").unwrap();
        assert!(dir.stamp("1.json").unwrap().is_none() && dir.stamp(&temp).unwrap().unwrap().is_unfinished());
        dir.place(&temp, "1.json", true).unwrap();
        let temp = dir.prepare("1.json", b"two").unwrap();
        assert_eq!(dir.place(&temp, "1.json", true).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(dir.read("1.json").unwrap().unwrap().1, b"one");
        dir.put("1.json", b"two").unwrap();
        let (stamp, bytes) = dir.read("1.json").unwrap().unwrap();
        assert_eq!((bytes.as_slice(), stamp.mode & 0o7777), (b"two".as_slice(), 0o600));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn a_rewrite_keeps_the_permissions() {
        let (place, dir) = place();
        dir.put("1.json", b"one").unwrap();
        std::fs::set_permissions(place.path().join("1.json"), std::fs::Permissions::from_mode(0o600)).unwrap();
        dir.put("1.json", b"two").unwrap();
        assert_eq!(dir.stamp("1.json").unwrap().unwrap().mode & 0o7777, 0o600);
    }

    #[test]
    fn links_pipes_and_directories_are_not_read() {
        let (place, dir) = place();
        std::fs::write(place.path().join("x"), "secret").unwrap();
        std::os::unix::fs::symlink("x", place.path().join("1.json")).unwrap();
        let pipe = FileType::Fifo;
        rustix::fs::mknodat(CWD, place.path().join("2.json"), pipe, Mode::from_raw_mode(0o644), 0).unwrap();
        std::fs::create_dir(place.path().join("3.json")).unwrap();
        for name in ["1.json", "2.json", "3.json"] {
            assert_eq!(dir.read(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert!(dir.read("4.json").unwrap().is_none());
    }

    #[test]
    fn what_is_too_large_is_not_read_whole() {
        let (place, dir) = place();
        let write = |size| std::fs::write(place.path().join("1.json"), vec![b' '; size]).unwrap();
        write(TASK_FILE_BYTES_MAX);
        assert!(dir.read("1.json").unwrap().is_some());
        write(TASK_FILE_BYTES_MAX + 1);
        assert_eq!(dir.read("1.json").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn locks_bear_our_mark_and_a_replaced_directory_is_noticed() {
        let (place, dir) = place();
        dir.make_lock("1.json.lock").unwrap();
        let stamp = dir.stamp("1.json.lock").unwrap().unwrap();
        assert!(stamp.is_dir() && stamp.is_unfinished());
        assert_eq!(dir.make_lock("1.json.lock").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        dir.remove_lock("1.json.lock").unwrap();
        assert!(dir.is_in_place().unwrap() && dir.is_local());
        let aside = place.path().with_extension("aside");
        std::fs::rename(place.path(), &aside).unwrap();
        assert!(!dir.is_in_place().unwrap());
        std::fs::create_dir(place.path()).unwrap();
        assert!(!dir.is_in_place().unwrap());
        std::fs::remove_dir_all(aside).unwrap();
    }
}
