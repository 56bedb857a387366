//! One wait for each name: a new one takes the place of the last, which is asked to end. Who waits is written into a
//! small file, with when it started, so that nobody else is ever asked.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use taskbus::store::Harness;

use crate::files;
use crate::harness;
use crate::term::failure::Failure;

/// The place of the one who waits, until it is dropped.
#[derive(Debug)]
pub(super) struct Single {
    dir: PathBuf,
    path: PathBuf,
    own: Harness,
}

impl Single {
    /// Takes the place for a name on a store; whoever had it is asked to end.
    pub(super) fn take(data: &Path, name: &str, store: &str) -> Result<Self, Failure> {
        let dir = data.join("wait");
        let store = blake3::hash(store.as_bytes()).to_hex();
        let path = dir.join(format!("{}-{}.pid", file_name(name), &store[..8]));
        let single = Self { dir, path, own: harness::this_process() };
        let cannot = |error| Failure::machine(format!("{} cannot be written", single.path.display()), error);
        let lock = single.lock().map_err(cannot)?;
        if let Some(last) = single.holder().filter(|last| *last != single.own) {
            harness::terminate(last);
        }
        let written = format!("{} {}\n", single.own.pid, single.own.start);
        files::replace(&single.path, written.as_bytes(), 0o600).map_err(cannot)?;
        drop(lock);
        Ok(single)
    }

    fn lock(&self) -> std::io::Result<File> {
        std::fs::create_dir_all(&self.dir)?;
        let file = OpenOptions::new().create(true).append(true).open(self.dir.join("lock"))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// Who waits according to the file.
    fn holder(&self) -> Option<Harness> {
        let bytes = files::read(&self.path).ok()??;
        let text = String::from_utf8(bytes).ok()?;
        let (pid, start) = text.trim().split_once(' ')?;
        Some(Harness { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        let Ok(_lock) = self.lock() else { return };
        if self.holder() == Some(self.own) {
            // What is left behind names a process that is no more, and is written over by the next one.
            let _left = std::fs::remove_file(&self.path);
        }
    }
}

/// A name that any file system takes.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') { c } else { '_' };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_left_when_it_is_still_ours() {
        let data = tempfile::tempdir().unwrap();
        let first = Single::take(data.path(), "Zed/impl ü", "sqlite:a").unwrap();
        assert!(first.path.file_name().unwrap().to_str().unwrap().starts_with("Zed_impl__-"), "{:?}", first.path);
        assert_eq!(first.holder(), Some(first.own));
        let path = first.path.clone();
        std::fs::write(&path, "1 1\n").unwrap();
        drop(first);
        assert!(path.exists(), "another one's place was taken away");
        drop(Single::take(data.path(), "Zed/impl ü", "sqlite:a").unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn only_the_process_that_is_meant_is_asked_to_end() {
        let data = tempfile::tempdir().unwrap();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let single = Single::take(data.path(), "Zed", "s").unwrap();
        // A later process with that number: it started at another time.
        std::fs::write(&single.path, format!("{} 1\n", other.id())).unwrap();
        let second = Single::take(data.path(), "Zed", "s").unwrap();
        assert!(other.try_wait().unwrap().is_none(), "a stranger was asked to end");
        drop(second);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
