//! Starts the MCP server: what the command line and the environment say, as what the server needs. A store that
//! cannot be had is no reason not to start: the answer to each call says so, and what to do.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::mcp::{self, ServeOptions};
use crate::project::{self, Surroundings};
use crate::store::{self, StoreUrl, UrlError};
use crate::wire::error::Failure;

/// `taskbus mcp`.
#[derive(Debug, Parser)]
#[command(name = "taskbus mcp", about = "Serve the tools over standard input and output (MCP)")]
struct Mcp {
    /// Act under this name when an agent took none
    #[arg(long = "as", value_name = "NAME", env = "TASKBUS_AS", hide_env_values = true)]
    name: Option<String>,
    /// The list that is meant when a call names none
    #[arg(long, value_name = "NAME", env = "TASKBUS_LIST", hide_env_values = true)]
    list: Option<String>,
    /// Where tasks are kept
    #[arg(long, value_name = "URL", env = "TASKBUS_STORE", hide_env_values = true)]
    store: Option<OsString>,
    /// The tools to offer
    #[arg(long, value_name = "SET", default_value = "core", value_parser = ["core"])]
    tools: String,
}

/// Serves until the client is gone.
pub(crate) fn mcp(args: Vec<OsString>) -> ExitCode {
    let Mcp { name, list, store, tools: _ } = Mcp::parse_from(args);
    let url = store::choose(store.as_deref());
    let list = project::choose(&Surroundings::from_env(list)).ok().map(|chosen| chosen.name);
    mcp::serve(ServeOptions { open: Box::new(move || open(&url)), list, name })
}

fn open(url: &Result<StoreUrl, UrlError>) -> Result<std::sync::Arc<dyn taskbus::store::Store>, Failure> {
    let url = url.as_ref().map_err(|error| Failure::internal("store_unavailable", error.to_string(), false))?;
    store::open(url).map_err(|error| Failure::from(&error))
}
