//! The MCP server, over standard input and output: the tools of the [`table`], for clients of both eras of the
//! protocol. A line goes this way:
//!
//! ```text
//! stdio ── gate ── sdk ── desk: args by the table ── calls: command ── engine
//!                   │                                                     │
//! stdio ◂──────── result ◂───────────────── wire form ◂──────────── answer
//! ```
//!
//! Beside the tools there are [`prompts`], [`resources`], and the [`watch`] that tells of changes of resources.
//!
//! Over HTTP the same server is [mounted](web) by another surface: a request goes through the gate and the SDK to the
//! desk of its session ([`seats`]).
//!
//! Nothing is decided here. The store is opened by the first call, so the handshake never waits for it.

mod args;
mod calls;
mod desk;
mod docs;
mod field;
mod flight;
#[cfg(test)]
mod fuzz_tests;
mod gate;
mod house;
mod life;
mod near;
mod people;
mod prompts;
mod repository;
mod resources;
mod schema;
mod sdk;
mod seats;
mod start;
mod stdio;
mod table;
#[cfg(test)]
mod trial;
mod voice;
mod watch;
mod web;

use std::process::ExitCode;
use std::sync::Arc;

use taskbus::engine::Engine;
use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::text::TextError;

use self::desk::Desk;
pub(crate) use self::desk::{Choice, Lists};
use self::people::{Hints, People};
use self::repository::Repository;
pub(crate) use self::start::start;
use self::table::Offer;
pub(crate) use self::web::mount;
use crate::harness;
use crate::log;
use crate::options::ToolSet;
use crate::wire::error::Failure;

/// How to serve.
pub(crate) struct ServeOptions {
    /// Opens the engine, on the first call and after a failure; what it says becomes the answer to the call.
    pub(crate) open: Box<dyn Fn() -> Result<Engine, Failure> + Send + Sync>,
    /// The sets of tools to offer.
    pub(crate) tools: Vec<ToolSet>,
    /// Which list a call means when it names none.
    pub(crate) lists: Lists,
    /// The name to act under when an agent took none: `--as` or `TASKBUS_AS`.
    pub(crate) name: Option<String>,
    /// The least that is logged.
    pub(crate) log_level: String,
}

/// Threads beside those of the calls: heartbeat, tick, the end, and standard input and output when they are no
/// pipes.
const OTHER_THREADS: usize = 6;

/// Serves standard input and output until the client is gone.
pub(crate) fn serve(options: ServeOptions) -> ExitCode {
    log::start("mcp", &options.log_level);
    let offer = Offer::of(&options.tools, matches!(options.lists, Lists::One { .. }));
    let repository = Repository::around_here();
    let desk = Desk::new(options.open, options.lists, People::new(hints(options.name)), repository);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(house::CALLS_MAX + OTHER_THREADS)
        .build();
    match runtime {
        Ok(runtime) => {
            runtime.block_on(life::run(Arc::new(desk), offer));
            // A read of a terminal cannot be given up, and need not be waited for.
            runtime.shutdown_background();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("taskbus: the machine gives no timers and no input: {error}");
            ExitCode::FAILURE
        }
    }
}

fn hints(name: Option<String>) -> Hints {
    let directory = std::env::current_dir().ok();
    let directory = directory.as_deref().and_then(std::path::Path::file_name).unwrap_or(".".as_ref());
    Hints {
        name: name.filter(|name| !name.trim().is_empty()),
        session: std::env::var("CLAUDE_CODE_SESSION_ID").ok().filter(|id| !id.trim().is_empty()),
        // Whatever a directory is called, it makes a context.
        context: directory.to_string_lossy().chars().filter(|c| !c.is_control()).collect(),
        harness: harness::around_here(),
    }
}

/// A text as what it must be, or the refusal that names the field.
fn typed<T>(field: &'static str, text: String, new: impl FnOnce(String) -> Result<T, TextError>) -> Result<T, Failure> {
    new(text).map_err(|error| Refusal::Invalid(Invalid::Text { field, error }).into())
}
