//! The HTTP server: one port for clients on this machine, or beyond it when that is asked for. It carries what others
//! say and decides nothing about tasks. A request goes this way:
//!
//! ```text
//! listen ── connections ── guard: Host, Origin ── routes ── body ── the mounted MCP server
//! ```
//!
//! Read [`start`], then [`connections`] for limits and the end, [`guard`] for who may ask.

mod body;
mod connections;
mod flight;
mod guard;
mod listen;
mod metrics;
mod page;
mod routes;

use std::sync::Arc;
use std::time::Duration;

use taskbus_core::limits;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::connections::Open;
use self::flight::Flight;
use self::guard::Guard;
use self::listen::Listening;
use self::routes::App;
use crate::blocking::blocking;
use crate::mounted::{Callers, Mount, Mounted};
use crate::options::{Globals, Serve};
use crate::term::failure::Failure;

/// Threads for what blocks: the calls that the mounted server lets run, and a few beside them.
const BLOCKING_THREADS: usize = 176;
/// How long streams may take to end, and sessions to be given up.
const LAST: Duration = Duration::from_secs(2);

/// Serves until a signal ends it.
pub(crate) fn start(globals: Globals, options: &Serve, mount: Mount) -> Result<(), Failure> {
    listen::check(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .map_err(|error| Failure::machine("the machine gives no timers and no sockets", error))?;
    let served = runtime.block_on(serve(globals, options, mount));
    runtime.shutdown_background();
    served
}

async fn serve(globals: Globals, options: &Serve, mount: Mount) -> Result<(), Failure> {
    let listening = Listening::begin(options)?;
    let guard = Guard::new(listening.address, options);
    let callers = Callers { hosts: guard.hosts(), origins: options.allow_origins.clone() };
    let mcp = mount(globals, &options.tools, &callers)?;
    let told = told_to_end()?;
    listening.announce(options)?;
    let flight = Flight::default();
    let open = Open::default();
    let app = Arc::new(App::new(Arc::clone(&mcp), guard, flight.clone(), open.clone(), listening.address));
    connections::accept(&listening, &open, routes::router(app), told).await;
    end(&*mcp, &flight, open).await;
    if timeout(LAST, blocking(move || mcp.close())).await.is_err() {
        tracing::warn!("the sessions will end by themselves");
    }
    Ok(())
}

/// Calls in flight are answered, then streams and sessions end, then connections do.
async fn end(mcp: &dyn Mounted, flight: &Flight, open: Open) {
    mcp.hurry();
    if timeout(Duration::from_secs(limits::HTTP_DRAIN_SECONDS), flight.landed()).await.is_err() {
        tracing::warn!("calls in flight were given up");
    }
    mcp.cut();
    if timeout(LAST, open.closed()).await.is_err() {
        tracing::warn!("connections were cut");
    }
}

/// Cancelled by the first signal that asks for the end.
fn told_to_end() -> Result<CancellationToken, Failure> {
    let told = CancellationToken::new();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut signals = signal(kind).map_err(|error| Failure::machine("signals cannot be heard", error))?;
        let told = told.clone();
        tokio::spawn(async move {
            signals.recv().await;
            told.cancel();
        });
    }
    Ok(told)
}
