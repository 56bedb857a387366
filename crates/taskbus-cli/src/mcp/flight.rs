//! Back-pressure. Every request holds its size until its answer is on its way; when too much is held, no more is
//! read. Notifications hold nothing, so a cancellation gets through.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What all requests together may hold, in bytes: four of the longest.
const BYTES_MAX: u32 = 4 * 1024 * 1024 + 4 * REQUEST_BYTES;
/// What a request costs beside its own bytes.
const REQUEST_BYTES: u32 = 4096;

/// The requests that have no answer yet.
#[derive(Debug)]
pub(super) struct Flight {
    room: Arc<Semaphore>,
    held: Mutex<BTreeMap<String, OwnedSemaphorePermit>>,
}

impl Default for Flight {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(BYTES_MAX as usize)), held: Mutex::default() }
    }
}

impl Flight {
    /// Waits until there is room for a request of this size.
    pub(super) async fn admit(&self, id: &Value, bytes: usize) {
        let cost = u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(REQUEST_BYTES).min(BYTES_MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(cost).await.expect("BUG: nobody closes the semaphore");
        self.lock().insert(id.to_string(), room);
    }

    /// Its answer is on its way, or nobody waits for one.
    pub(super) fn done(&self, id: &Value) {
        self.lock().remove(&id.to_string());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, OwnedSemaphorePermit>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn a_full_flight_admits_again_when_one_is_done() {
        let flight = Flight::default();
        for id in 0..4 {
            flight.admit(&json!(id), 1024 * 1024).await;
        }
        let id = json!("x");
        let mut waiting = std::pin::pin!(flight.admit(&id, 1024 * 1024));
        assert!(look(waiting.as_mut()).await.is_none());
        flight.done(&json!("2"));
        assert!(look(waiting.as_mut()).await.is_none(), "another id");
        flight.done(&json!(2));
        assert!(look(waiting.as_mut()).await.is_some());
    }

    /// One look at a future.
    async fn look<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        std::future::poll_fn(|context| match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }
}
