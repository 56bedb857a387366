//! Starts the MCP server: what the command line and the environment say, as what the server needs. A store that
//! cannot be had is no reason not to start: the answer to each call says so, and what to do.

use std::process::ExitCode;
use std::sync::Arc;

use taskbus::store::Store;

use super::{Choice, Lists, ServeOptions};
use crate::options::{Globals, Mcp};
use crate::project::{self, Surroundings};
use crate::store::{self, StoreUrl, UrlError};
use crate::wire::error::Failure;

/// Serves until the client is gone.
pub(crate) fn start(globals: Globals, options: &Mcp) -> ExitCode {
    let Globals { name, list, store, json: _ } = globals;
    let tools = options.tools.clone();
    let url = store::choose(store.as_deref());
    let one_list = url.as_ref().is_ok_and(StoreUrl::is_one_list);
    let lists = if one_list { Lists::One { named: list } } else { many(list) };
    super::serve(ServeOptions { open: Box::new(move || open(&url)), tools, lists, name })
}

/// The list of the process, and the one that Claude Code's own variable names before that.
fn many(named: Option<String>) -> Lists {
    let choose = |named| project::choose(&Surroundings::from_env(named)).map(|chosen| chosen.name);
    let own = std::env::var("CLAUDE_CODE_TASK_LIST_ID").ok().filter(|id| !id.is_empty());
    let usual = choose(named.clone());
    let usual = usual.map_err(|error| Failure::shape("channel", format!("channel is required here: {error}")));
    let claude = choose(own.or(named)).map_err(|error| Failure::shape("list", error.to_string()));
    Lists::Many(Box::new(Choice { usual, claude }))
}

fn open(url: &Result<StoreUrl, UrlError>) -> Result<Arc<dyn Store>, Failure> {
    let url = url.as_ref().map_err(|error| Failure::internal("store_unavailable", error.to_string(), false))?;
    store::open(url).map_err(|error| Failure::from(&error))
}
