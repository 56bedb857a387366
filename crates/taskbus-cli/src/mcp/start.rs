//! Starts the MCP server: what the command line and the environment say, as what the server needs. A store that
//! cannot be had is no reason not to start: the answer to each call says so, and what to do.

use std::process::ExitCode;
use std::sync::Arc;

use taskbus::store::Store;

use super::ServeOptions;
use crate::options::{Globals, Mcp};
use crate::project::{self, Surroundings};
use crate::store::{self, StoreUrl, UrlError};
use crate::wire::error::Failure;

/// Serves until the client is gone.
pub(crate) fn start(globals: Globals, options: &Mcp) -> ExitCode {
    let Globals { name, list, store, json: _ } = globals;
    let Mcp { tools: _ } = options;
    let url = store::choose(store.as_deref());
    let list = project::choose(&Surroundings::from_env(list)).map(|chosen| chosen.name);
    let list = list.map_err(|error| Failure::shape("channel", format!("channel is required here: {error}")));
    super::serve(ServeOptions { open: Box::new(move || open(&url)), list, name })
}

fn open(url: &Result<StoreUrl, UrlError>) -> Result<Arc<dyn Store>, Failure> {
    let url = url.as_ref().map_err(|error| Failure::internal("store_unavailable", error.to_string(), false))?;
    store::open(url).map_err(|error| Failure::from(&error))
}
