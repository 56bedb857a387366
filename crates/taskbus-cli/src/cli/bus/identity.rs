//! Under which name a process that has not registered acts for an agent: a wait in the background, a hook (reference
//! C.4). It never acts as somebody else's agent.

use taskbus::store::Harness;
use taskbus_core::name::Identity;

use crate::cli::desk::{CLIENT, Desk};
use crate::cli::input;
use crate::repo_file::{self, RepoFile};
use crate::repo_name;
use crate::term::failure::Failure;

/// The name that was given; else that of the session which the same program holds; else the one of the repository,
/// unless another program's session has it; outside of any repository the usual one of commands.
pub(crate) fn acting(desk: &Desk, harness: Option<Harness>) -> Result<Identity, Failure> {
    if let Some(given) = desk.given_name() {
        return input::identity("as", given);
    }
    if let Some(harness) = harness
        && let Some(own) = desk.engine.session_of_harness(harness)?
    {
        return Ok(own);
    }
    let Some(name) = of_repository()? else { return input::identity("as", &desk.name()) };
    let sessions = desk.engine.sessions()?;
    let held = sessions.iter().any(|session| session.name == name && session.client != CLIENT);
    if held && harness.is_some() {
        return Err(Failure::usage(format!(
            "this session has not registered, and {name} is another session's name: call register first, or give your \
             name with --as"
        )));
    }
    Ok(name)
}

/// The name that the agents of the repository around the current directory ask for.
fn of_repository() -> Result<Option<Identity>, Failure> {
    let (cwd, home) = repo_name::surroundings()?;
    let Ok(path) = repo_file::place(&cwd, home.as_deref()) else { return Ok(None) };
    let name = if path.exists() { RepoFile::read(&path)?.identity()? } else { repo_name::identity(&path)? };
    Ok(Some(name))
}
