//! The sidecar without its lock, broken on purpose: each change is made on a copy, which then takes the place of the
//! file. Two that do so at once undo each other. Nor does it help to have a lock file that is taken away from whoever
//! holds it for longer than it should take, as its time of change says.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use taskbus::store::rows::{RowSet, RowStore, RowsBody};
use taskbus::store::sidecar::{Options, Sidecar};
use taskbus::store::{Abilities, Abort, StoreError};
use taskbus_core::name::ListName;
use taskbus_core::policy::Policy;

/// A sidecar without its lock.
pub(crate) struct Unlocked {
    pub(crate) sidecar: Sidecar,
    /// Whether it has a lock that others steal.
    pub(crate) steals: bool,
}

/// Who holds the lock for longer is taken for dead.
const DEAD_AFTER: Duration = Duration::from_millis(2);

/// A lock file, until it is dropped or stolen.
struct Stolen(PathBuf);

impl Stolen {
    fn take(path: PathBuf) -> Self {
        while File::options().write(true).create_new(true).open(&path).is_err() {
            let changed = fs::metadata(&path).and_then(|file| file.modified());
            let age = changed.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
            if age.is_some_and(|age| age > DEAD_AFTER) {
                let _stolen = fs::remove_file(&path);
            }
            std::thread::yield_now();
        }
        Self(path)
    }
}

impl Drop for Stolen {
    fn drop(&mut self) {
        let _given_back = fs::remove_file(&self.0);
    }
}

impl RowStore for Unlocked {
    fn abilities(&self) -> Abilities {
        self.sidecar.abilities()
    }

    fn describe(&self) -> String {
        self.sidecar.describe()
    }

    fn list_name(&self) -> ListName {
        self.sidecar.list_name()
    }

    fn policy(&self) -> Policy {
        self.sidecar.policy()
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        let path = self.sidecar.path();
        let _lock = self.steals.then(|| Stolen::take(path.with_extension("steal")));
        let own = tempfile::tempdir_in(path.parent().unwrap()).unwrap();
        let copy = own.path().join(path.file_name().unwrap());
        if path.exists() {
            fs::copy(&path, &copy).unwrap();
        }
        Sidecar::at(&copy, Options::default())?.transact(f)?;
        if copy.exists() {
            fs::rename(copy, path).unwrap();
        }
        Ok(())
    }

    fn snapshot(&self) -> Result<RowSet, StoreError> {
        self.sidecar.snapshot()
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.sidecar.version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.sidecar.wait(seen, timeout)
    }
}
