//! Small files that people and other programs also write: they are replaced whole, in one step, so that nobody ever
//! reads half of one. A link is written through, and who asks is told where to.

use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The bytes of a file; none if there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {} MiB", BYTES_MAX >> 20)));
    }
    Ok(Some(bytes))
}

/// Where a write to this path ends up: elsewhere when the file is a link.
pub(crate) fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path),
        Ok(found) if !found.is_file() => Err(io::Error::other("it is no file")),
        Ok(_) => Ok(path.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

/// Replaces a file, or makes it with this mode, and the directories above it. An existing one keeps its mode.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let path = target(path)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let mode = fs::metadata(&path).map_or(mode, |old| old.permissions().mode() & 0o7777);
    let mut new = tempfile::Builder::new().prefix(".taskbus-").tempfile_in(dir)?;
    new.write_all(bytes)?;
    new.as_file().set_permissions(Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.json");
        assert_eq!(read(&path).unwrap(), None);
        replace(&path, b"one", 0o600).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"two", 0o600).unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else was left");
    }

    #[test]
    fn a_link_is_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::write(dir.join("real"), "one").unwrap();
        std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
        assert_eq!(target(&dir.join("link")).unwrap(), dir.join("real"));
        replace(&dir.join("link"), b"two", 0o644).unwrap();
        assert!(fs::symlink_metadata(dir.join("link")).unwrap().is_symlink());
        assert_eq!(fs::read(dir.join("real")).unwrap(), b"two");
        std::os::unix::fs::symlink("nowhere", dir.join("dangling")).unwrap();
        assert!(replace(&dir.join("dangling"), b"x", 0o644).is_err());
        assert!(replace(&dir, b"x", 0o644).is_err());
    }
}
