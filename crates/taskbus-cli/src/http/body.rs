//! Bodies of requests: so long and no longer, so soon and no later, and so much of all of them together.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::StatusCode;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use taskbus_core::limits;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::guard::Turned;

/// The room that bodies take while they are read.
#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(limits::HTTP_BODIES_BYTES_MAX)))
    }
}

impl Room {
    /// Reads a body to its end.
    pub(super) async fn read(&self, body: Body) -> Result<Bytes, Turned> {
        let max = limits::REQUEST_BYTES_MAX;
        let told = usize::try_from(body.size_hint().upper().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let cost = u32::try_from(told.min(max)).unwrap_or(u32::MAX);
        let Ok(_room) = self.0.try_acquire_many(cost) else {
            return Err(turned(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many large requests at once; send it again".to_owned(),
            ));
        };
        let reading = Limited::new(body, max).collect();
        match timeout(Duration::from_secs(limits::HTTP_READ_SECONDS_MAX), reading).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let why = format!("the body is longer than {max} bytes, which is the most that is read; shorten it");
                Err(turned(StatusCode::PAYLOAD_TOO_LARGE, why))
            }
            Ok(Err(error)) => Err(turned(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}"))),
            Err(_) => {
                let why = format!("the body did not come within {} seconds", limits::HTTP_READ_SECONDS_MAX);
                Err(turned(StatusCode::REQUEST_TIMEOUT, why))
            }
        }
    }
}

fn turned(status: StatusCode, why: String) -> Turned {
    Turned { status, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(room: &Room, bytes: usize) -> Result<usize, u16> {
        room.read(Body::from(vec![b'x'; bytes])).await.map(|body| body.len()).map_err(|turned| turned.status.as_u16())
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let room = Room::default();
        assert_eq!(read(&room, limits::REQUEST_BYTES_MAX).await, Ok(limits::REQUEST_BYTES_MAX));
        assert_eq!(read(&room, limits::REQUEST_BYTES_MAX + 1).await, Err(413));
        assert_eq!(read(&room, 0).await, Ok(0));
    }

    #[tokio::test]
    async fn all_bodies_together_have_so_much_room() {
        let room = Room::default();
        let held = room.0.try_acquire_many(u32::try_from(limits::HTTP_BODIES_BYTES_MAX - 10).unwrap()).unwrap();
        assert_eq!([read(&room, 10).await, read(&room, 11).await], [Ok(10), Err(503)]);
        drop(held);
        assert_eq!(read(&room, 11).await, Ok(11));
    }
}
