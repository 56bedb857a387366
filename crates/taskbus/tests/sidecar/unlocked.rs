//! The sidecar without its lock, broken on purpose: each change is made on a copy, which then takes the place of the
//! file. Two that do so at once undo each other.

use std::fs;
use std::time::Duration;

use taskbus::store::rows::{RowSet, RowStore, RowsBody};
use taskbus::store::sidecar::{Options, Sidecar};
use taskbus::store::{Abilities, Abort, StoreError};
use taskbus_core::name::ListName;
use taskbus_core::policy::Policy;

pub(crate) struct Unlocked(pub(crate) Sidecar);

impl RowStore for Unlocked {
    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn list_name(&self) -> ListName {
        self.0.list_name()
    }

    fn policy(&self) -> Policy {
        self.0.policy()
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        let path = self.0.path();
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
        self.0.snapshot()
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.0.version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.0.wait(seen, timeout)
    }
}
