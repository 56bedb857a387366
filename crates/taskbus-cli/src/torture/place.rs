//! Where a run keeps its store and its evidence, and how its processes are started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use taskbus_core::name::Identity;
use tempfile::TempDir;

use super::worker::{Orders, Part};
use crate::store::{self, StoreUrl};
use crate::term::failure::Failure;

/// A directory with everything of one run: gone afterwards, unless something was found.
pub(super) struct Place {
    dir: TempDir,
    /// The seed of the run.
    pub(super) seed: u64,
    starter: Box<Starter>,
}

/// How a worker is started.
pub(super) type Starter = dyn Fn(&Orders) -> std::io::Result<Command>;

/// As this program's hidden verb.
fn this_program(orders: &Orders) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("torture-worker").arg("--orders").arg(serde_json::to_string(orders)?);
    Ok(command)
}

impl Place {
    /// A new place: beside the store that is named, which is not touched, so that its disk is tested; else among the
    /// temporary files.
    pub(super) fn new(store: Option<&OsStr>, seed: u64) -> Result<Self, Failure> {
        let parent = match store.filter(|store| !store.is_empty()).map(store::named).transpose()? {
            None => std::env::temp_dir(),
            Some(StoreUrl::Sqlite(path)) => match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            },
            Some(_) => return Err(Failure::usage("the torture works beside a store sqlite:PATH; leave --store out")),
        };
        Self::below(&parent, seed, Box::new(this_program))
    }

    /// A new place in a directory, with another way to start workers.
    pub(super) fn below(parent: &Path, seed: u64, starter: Box<Starter>) -> Result<Self, Failure> {
        let dir = tempfile::Builder::new().prefix("taskbus-torture-").tempdir_in(parent);
        let dir = dir.map_err(|error| Failure::usage(format!("{} cannot be used: {error}", parent.display())))?;
        Ok(Self { dir, seed, starter })
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The file of a store of a phase.
    pub(super) fn store(&self, phase: &str) -> PathBuf {
        self.path().join(format!("{phase}.db"))
    }

    /// The log of a client.
    pub(super) fn log(&self, client: u64) -> PathBuf {
        self.path().join(format!("client-{client}.log"))
    }

    /// Starts a worker.
    pub(super) fn spawn(&self, orders: &Orders) -> Result<Child, Failure> {
        let command = (self.starter)(orders);
        let child = command.and_then(|mut command| {
            let errors = std::fs::File::options().create(true).append(true).open(self.path().join("errors.log"))?;
            let pipe = || if orders.part == Part::Racer { Stdio::piped() } else { Stdio::null() };
            command.stdin(pipe()).stdout(pipe()).stderr(errors).spawn()
        });
        child.map_err(|error| Failure::machine("a process of the torture does not start", error))
    }

    /// Keeps everything.
    pub(super) fn keep(self) -> PathBuf {
        self.dir.keep()
    }
}

/// The name of a client.
pub(super) fn name(client: u64) -> Identity {
    Identity::new(format!("client-{client}")).expect("BUG: a constant name is valid")
}
