//! Starts the MCP server: what the command line, the configuration and the environment say, as what the server needs.
//! A store that cannot be had and a configuration that is wrong are no reason not to start: the answer to each call
//! says so, and what to do.

use std::process::ExitCode;

use taskbus::engine::Engine;

use super::{Choice, Lists, ServeOptions};
use crate::config::{self, Config, ConfigError};
use crate::options::{Globals, Mcp};
use crate::project::{self, Surroundings};
use crate::store::{self, StoreUrl, UrlError};
use crate::wire::error::Failure;

/// The log's level when the configuration cannot say.
const LOG_LEVEL: &str = "info";

/// Serves until the client is gone.
pub(crate) fn start(globals: Globals, options: &Mcp) -> ExitCode {
    let Globals { name, list, store, config, json: _ } = globals;
    let tools = options.tools.clone();
    let config = config::here(config.as_deref());
    let given = store.filter(|store| !store.is_empty());
    let url = match (&given, &config) {
        (Some(given), _) => store::named(given).map_err(|error| no_store(&error)),
        (None, Ok(config)) => store::choose(None, config).map_err(|error| no_store(&error)),
        (None, Err(error)) => Err(no_config(error)),
    };
    let one_list = url.as_ref().is_ok_and(StoreUrl::is_one_list);
    let lists = if one_list { Lists::One { named: list } } else { many(list) };
    let log_level = config.as_ref().map_or(LOG_LEVEL, Config::log_level).to_owned();
    let open = Box::new(move || open(url.as_ref(), config.as_ref()));
    super::serve(ServeOptions { open, tools, lists, name, log_level })
}

/// The list of the process, and the one that Claude Code's own variable names before that.
pub(super) fn many(named: Option<String>) -> Lists {
    let choose = |named| project::choose(&Surroundings::from_env(named)).map(|chosen| chosen.name);
    let own = std::env::var("CLAUDE_CODE_TASK_LIST_ID").ok().filter(|id| !id.is_empty());
    let usual = choose(named.clone());
    let usual = usual.map_err(|error| Failure::shape("channel", format!("channel is required here: {error}")));
    let claude = choose(own.or(named)).map_err(|error| Failure::shape("list", error.to_string()));
    Lists::Many(Box::new(Choice { usual, claude }))
}

fn open(url: Result<&StoreUrl, &Failure>, config: Result<&Config, &ConfigError>) -> Result<Engine, Failure> {
    let config = config.map_err(no_config)?;
    let store = store::open(url.map_err(Failure::clone)?, config.sqlite(), store::Opener::Session);
    Ok(Engine::new(store.map_err(|error| Failure::from(&error))?, config.limits()))
}

fn no_store(error: &UrlError) -> Failure {
    Failure::internal("store_unavailable", error.to_string(), false)
}

/// The process read it once, so that mending it needs a new one.
fn no_config(error: &ConfigError) -> Failure {
    let message = format!("{error}; then restart this server (reconnect it in your client)");
    Failure::internal("configuration", message, false)
}
