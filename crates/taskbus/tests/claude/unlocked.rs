//! The task directory without its locks, broken on purpose: each change is made on a copy, whose changed files then take
//! the places of the others. Two that do so at once undo each other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taskbus::core::name::ListName;
use taskbus::core::policy::Policy;
use taskbus::store::claude::{ClaudeOptions, ClaudeStore};
use taskbus::store::rows::{RowSet, RowStore, RowsBody};
use taskbus::store::{Abilities, Abort, StoreError};

pub(crate) struct Unlocked(pub(crate) Arc<ClaudeStore>, pub(crate) PathBuf);

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
        fs::create_dir_all(&self.1).unwrap();
        // Beside the directory, so that its files can be moved.
        let own = tempfile::tempdir_in(self.1.parent().unwrap()).unwrap();
        let copy = own.path().join(self.1.file_name().unwrap());
        fs::create_dir(&copy).unwrap();
        let before = files(&self.1);
        before.iter().for_each(|(name, bytes)| fs::write(copy.join(name), bytes).unwrap());
        ClaudeStore::open(&copy, ClaudeOptions::default())?.transact(f)?;
        let after = files(&copy);
        for name in after.keys().filter(|name| after.get(*name) != before.get(*name)) {
            fs::rename(copy.join(name), self.1.join(name)).unwrap();
        }
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            let _gone_already = fs::remove_file(self.1.join(name));
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

/// The files of a directory; one that goes while they are read is gone.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| fs::read(dir.join(&name)).ok().map(|bytes| (name, bytes))).collect()
}
