//! Any bytes, in the place of files that others write too: a sidecar, a file in a task directory, a database with its log
//! and its high-water file, a session id. What cannot be read is told and stays as it is, byte for byte; what can be read
//! is kept when something else is written.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod claude;
#[path = "../../../taskbus-core/tests/fuzz/harness.rs"]
mod harness;
#[cfg(feature = "sqlite")]
mod opener;
mod sidecar;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use taskbus::core::id::TaskId;
use taskbus::core::name::Identity;
use taskbus::core::rank::Rank;
use taskbus::core::task::{Stamp, State, Task};
use taskbus::core::text::Subject;
use taskbus::core::time::Timestamp;

/// A directory of its own, in memory where there is such a place: what is looked at here is not what survives.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap()
}

/// Every file of a directory, whole.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let entries = entries.filter(|entry| entry.file_type().unwrap().is_file());
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap())).collect()
}

/// A pending task with nothing special about it.
fn task(id: TaskId) -> Task {
    let stamp = Stamp { at: Timestamp::from_millis(1_796_054_400_000), by: Some(Identity::new("Amp").unwrap()) };
    Task {
        id,
        subject: Subject::new("Do it").unwrap(),
        description: None,
        active_form: None,
        state: State::Pending { assignee: None },
        parent: None,
        rank: Rank::first(),
        blocked_by: Vec::new(),
        not_before: None,
        labels: Default::default(),
        paths: Default::default(),
        metadata: Default::default(),
        result: None,
        created: stamp.clone(),
        updated: stamp,
        revision: 1,
        fence: 0,
        reclaims: 0,
        parked: false,
        extra: Default::default(),
    }
}
