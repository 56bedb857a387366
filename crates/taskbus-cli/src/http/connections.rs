//! Connections: how many there may be, how long a head may take to come, and how they end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use taskbus_core::limits;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::listen::Listening;

/// After an accept that failed for want of something: the next one may find it.
const PAUSE: Duration = Duration::from_millis(100);
/// So many, in the type that a semaphore counts in.
const ALL: u32 = limits::HTTP_CONNECTIONS_MAX as u32;

/// The connections that are open, as the room that they leave.
#[derive(Clone)]
pub(super) struct Open(Arc<Semaphore>);

impl Default for Open {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(limits::HTTP_CONNECTIONS_MAX)))
    }
}

impl Open {
    /// How many.
    pub(super) fn count(&self) -> usize {
        limits::HTTP_CONNECTIONS_MAX - self.0.available_permits()
    }

    /// Waits until there are none.
    pub(super) async fn closed(&self) {
        let _all = self.0.acquire_many(ALL).await;
    }
}

/// Accepts connections until `ending`. Those that are open then finish the request that they are at.
pub(super) async fn accept(listening: &Listening, open: &Open, router: Router, ending: CancellationToken) {
    raise_file_limit();
    loop {
        let next = async {
            let place = Arc::clone(&open.0).acquire_owned().await.expect("BUG: nobody closes the semaphore");
            (place, listening.listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = ending.cancelled() => return,
            next = next => next,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(talk(stream, router.clone(), ending.clone(), place))),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn talk(stream: TcpStream, router: Router, ending: CancellationToken, _place: OwnedSemaphorePermit) {
    // An answer is not held back until more of it comes.
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(limits::HTTP_READ_SECONDS_MAX))
        .max_buf_size(limits::HTTP_HEAD_BYTES_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = ending.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Each connection is an open file, and the usual limit leaves the store none when all are taken.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = 2 * u64::from(ALL);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < wanted) {
        let current = maximum.map_or(wanted, |maximum| maximum.min(wanted));
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum }) {
            tracing::warn!(%error, "fewer connections than promised are possible");
        }
    }
}
