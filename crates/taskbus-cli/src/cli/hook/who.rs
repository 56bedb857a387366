//! Whose hook it is: the agent's in the program around this process, else perhaps the one that its repository names. The
//! store is only looked at; a hook never makes one.

use std::time::Duration;

use taskbus::engine::Engine;
use taskbus::store::sqlite::SqliteOptions;
use taskbus_core::name::Identity;

use crate::config;
use crate::harness;
use crate::options::Globals;
use crate::repo_file::{self, RepoFile};
use crate::repo_name;
use crate::store::{self, StoreUrl};
use crate::term::failure::Failure;

/// How long a hook waits for other writers.
const PATIENCE: Duration = Duration::from_secs(2);

/// The engine over the store; none when there is nothing in it yet.
pub(super) fn engine(globals: &Globals) -> Result<Option<Engine>, Failure> {
    let config = config::here(globals.config.as_deref())?;
    let url = store::choose(globals.store.as_deref(), &config)?;
    let is_there = match &url {
        StoreUrl::Sqlite(path) => path.exists(),
        StoreUrl::Memory => false,
        StoreUrl::Sidecar(_) | StoreUrl::Session { .. } | StoreUrl::Claude(_) => true,
    };
    if !is_there {
        return Ok(None);
    }
    let options = SqliteOptions { deadline: PATIENCE, ..config.sqlite() };
    Ok(Some(Engine::new(store::open(&url, options, store::Opener::Command)?, config.limits())))
}

/// What the repository says of its agents; none when it says nothing.
pub(super) fn repository() -> Result<Option<RepoFile>, Failure> {
    let (cwd, home) = repo_name::surroundings()?;
    let path = repo_file::find(&cwd, home.as_deref());
    Ok(path.map(|path| RepoFile::read(&path)).transpose()?)
}

/// The agent that is at work in the program around this process.
pub(super) fn at_work(engine: &Engine) -> Result<Option<Identity>, Failure> {
    Ok(harness::around_here().map(|harness| engine.session_of_harness(harness)).transpose()?.flatten())
}

/// A name, and whether somebody acts under it here.
pub(super) struct Named {
    /// The name.
    pub(super) name: Identity,
    /// Whether it is at work in the program around this process.
    pub(super) is_here: bool,
}

/// The agent at work here; else the one that is named like the repository, unless somebody else is that one now.
pub(super) fn named(engine: &Engine) -> Result<Option<Named>, Failure> {
    if let Some(name) = at_work(engine)? {
        return Ok(Some(Named { name, is_here: true }));
    }
    let Some(name) = repository()?.map(|file| file.identity()).transpose()? else { return Ok(None) };
    let is_taken = engine.sessions()?.into_iter().any(|session| session.name == name);
    Ok((!is_taken).then_some(Named { name, is_here: false }))
}
