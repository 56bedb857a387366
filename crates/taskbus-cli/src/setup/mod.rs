//! Puts taskbus into the configuration of the clients, and takes it out again: the entry that starts the server, the
//! hooks, the skill. Done twice it changes nothing; what it does not understand it leaves alone.
//!
//! Read [`clients`] for what goes where, [`apply`] for how it is written, [`edit`] for the kinds of changes.

mod apply;
mod clients;
#[cfg(test)]
mod docs;
mod edit;
mod hooks;
mod json;
mod report;
mod toml;
mod tree;

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use self::apply::Change;
pub(crate) use self::apply::{Action, Way};
pub(crate) use self::clients::{CLIENTS, Client, named};
use self::clients::{Home, Program};
pub(crate) use self::report::{Done, Overview};
use crate::term::failure::Failure;

/// Everything that `setup` needs to know of the user and of itself.
pub(crate) struct Setup {
    home: Home,
    program: Program,
}

impl Setup {
    /// This user and this program.
    pub(crate) fn here() -> Result<Self, Failure> {
        Ok(Self { home: home()?, program: program()? })
    }

    /// The clients that seem to be on this machine.
    pub(crate) fn found(&self) -> impl Iterator<Item = &'static Client> {
        CLIENTS.iter().filter(|client| client.is_here(&self.home))
    }

    /// Sets a client up, or undoes it; with `dry` it only says what it would do.
    pub(crate) fn run(&self, client: &'static Client, way: Way, dry: bool) -> Result<Done, Failure> {
        let changes = self.plan(client, way)?;
        if !dry {
            changes.iter().try_for_each(|change| apply::carry_out(change, way))?;
        }
        Ok(Done { client, changes, way, dry })
    }

    /// Whether a client has everything, nothing, or some of it.
    pub(crate) fn state(&self, client: &'static Client) -> State {
        let count =
            |way| self.plan(client, way).map(|changes| changes.iter().filter(|c| c.action != Action::Keep).count());
        match (count(Way::Setup), count(Way::Undo)) {
            (Ok(0), Ok(_)) => State::Whole,
            (Ok(_), Ok(0)) => State::Nothing,
            (Ok(_), Ok(_)) => State::Part,
            (Err(failure), _) | (_, Err(failure)) => State::Unknown(failure.words()),
        }
    }

    /// Which clients start taskbus, in a line.
    pub(crate) fn standing(&self) -> String {
        let with = |wanted: fn(&State) -> bool| -> Vec<&str> {
            CLIENTS.iter().filter(|client| wanted(&self.state(client))).map(|client| client.name).collect()
        };
        let (whole, part) = (with(|state| *state == State::Whole), with(|state| *state == State::Part));
        let unreadable = with(|state| matches!(state, State::Unknown(_)));
        let parts = [("set up", whole), ("set up in part", part), ("not to be read", unreadable)];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
        let told: Vec<String> = parts.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
        if told.is_empty() { "none is set up; taskbus setup does it".to_owned() } else { told.join("; ") }
    }

    fn plan(&self, client: &Client, way: Way) -> Result<Vec<Change>, Failure> {
        client.works(&self.home, &self.program).iter().map(|work| apply::plan(work, way)).collect()
    }
}

/// How far a client is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing is missing.
    Whole,
    /// Some of it is there.
    Part,
    /// Nothing is there.
    Nothing,
    /// One of its files cannot be read.
    Unknown(String),
}

fn home() -> Result<Home, Failure> {
    let base = etcetera::base_strategy::Xdg::new()
        .map_err(|_| Failure::usage("HOME does not say where the clients keep their configuration; set it"))?;
    let dir = |name| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let home = base.home_dir().to_owned();
    if !home.is_absolute() || home.parent().is_none() {
        return Err(Failure::usage(format!("HOME is {}, which is no home directory; set it", home.display())));
    }
    Ok(Home { home, config: base.config_dir(), claude: dir("CLAUDE_CONFIG_DIR"), codex: dir("CODEX_HOME") })
}

/// The program as the clients should start it: by its whole path, because not every client has the PATH of a shell. A
/// name on the PATH is preferred to where a link leads, because it stays when a new version comes.
fn program() -> Result<Program, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::machine("this program cannot be found", error))?;
    let same = |path: &Path| std::fs::canonicalize(path).ok() == std::fs::canonicalize(&own).ok();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&path).map(|dir| dir.join("taskbus")).find(|path| path.is_absolute() && same(path));
    let program = on_path.unwrap_or(own);
    let text = program.to_str().map(str::to_owned);
    text.map(Program).ok_or_else(|| {
        Failure::usage(format!(
            "{} is no text, which the files of clients must be; move the program",
            program.display()
        ))
    })
}
