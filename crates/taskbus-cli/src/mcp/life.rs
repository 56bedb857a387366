//! The life of the process: from the first line to the last answer. It ends when the input does, when nobody reads
//! the output, when the parent is gone, or on a signal; always within a second, always with the sessions ended.

use std::sync::Arc;
use std::time::Duration;

use taskbus_core::limits;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use super::sdk;
use super::stdio::{self, Outgoing};
use super::table::Offer;
use crate::blocking::blocking;

/// How long answers in flight may take once the end has come.
const DRAIN: Duration = Duration::from_millis(700);
/// How long the last lines may take to be read.
const FLUSH: Duration = Duration::from_millis(50);
/// How long ending the sessions may take; else they end by themselves.
const CLOSE: Duration = Duration::from_millis(150);
/// Between two looks for the parent.
const PARENT: Duration = Duration::from_secs(2);
/// Between two looks whether a store is open, so that maintenance has something to do.
const OPENED: Duration = Duration::from_secs(limits::CLEANUP_INTERVAL_SECONDS);

/// Serves until the end.
pub(super) async fn run(desk: Arc<Desk>, offer: Offer) {
    let ending = CancellationToken::new();
    let (reader, writer) = sdk::pipes();
    let (outgoing, lines) = Outgoing::new();
    let writing = tokio::spawn(stdio::write(lines, writer, ending.clone()));
    let serving = sdk::serve(Arc::clone(&desk), offer, reader, outgoing, &ending);
    tokio::spawn(signals(ending.clone()));
    tokio::spawn(parent(ending.clone()));
    let own = Arc::clone(&desk);
    tokio::spawn(heartbeat(move || vec![Arc::clone(&own)]));
    tokio::spawn(tick(Arc::clone(&desk)));
    let overdue = async {
        ending.cancelled().await;
        sleep(DRAIN).await;
    };
    tokio::select! {
        _ = serving.waiting() => {}
        () = overdue => tracing::warn!("answers in flight were given up"),
    }
    ending.cancel();
    let _ = timeout(FLUSH, writing).await;
    let _ = timeout(CLOSE, close(&desk)).await;
}

async fn close(desk: &Desk) {
    let Some(engine) = desk.opened() else { return };
    match blocking(move || engine.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the sessions will end by themselves"),
        Err(failure) => tracing::warn!(failure.message, "the sessions will end by themselves"),
    }
}

async fn signals(ending: CancellationToken) {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    for kind in kinds {
        match signal(kind) {
            Ok(mut signals) => {
                let ending = ending.clone();
                tokio::spawn(async move {
                    signals.recv().await;
                    ending.cancel();
                });
            }
            Err(error) => tracing::warn!(%error, "a signal will end this process at once"),
        }
    }
}

/// A parent that was killed may leave the input open in other processes.
async fn parent(ending: CancellationToken) {
    let first = rustix::process::getppid();
    while rustix::process::getppid() == first {
        sleep(PARENT).await;
    }
    tracing::info!("the parent is gone");
    ending.cancel();
}

/// Keeps the sessions of these desks alive, once there are any.
pub(super) async fn heartbeat(desks: impl Fn() -> Vec<Arc<Desk>>) {
    loop {
        sleep(Duration::from_millis(limits::HEARTBEAT_MS)).await;
        for engine in desks().iter().filter_map(|desk| desk.opened()) {
            if let Ok(Err(error)) = blocking(move || engine.heartbeat()).await {
                tracing::warn!(%error, "a heartbeat was missed");
            }
        }
    }
}

/// Mends what nobody looks at. The first delay is random, so that many processes do not do it together.
pub(super) async fn tick(desk: Arc<Desk>) {
    let interval = |desk: &Desk| desk.opened().map_or(OPENED, |engine| engine.tick_interval());
    sleep(random_below(interval(&desk))).await;
    loop {
        if let Some(engine) = desk.opened()
            && let Ok(Err(error)) = blocking(move || engine.tick()).await
        {
            tracing::warn!(%error, "a tick was missed");
        }
        sleep(interval(&desk)).await;
    }
}

/// The standard library seeds its hash maps at random.
fn random_below(limit: Duration) -> Duration {
    use std::hash::{BuildHasher as _, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    Duration::from_millis(random % u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_comes_within_a_second() {
        assert!(DRAIN + FLUSH + CLOSE < Duration::from_secs(1));
        assert!((0..100).all(|_| random_below(OPENED) < OPENED));
    }
}
