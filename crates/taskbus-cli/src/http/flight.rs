//! Requests that have no whole answer yet. The server ends when they have.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch::{Receiver, Sender, channel};

/// Counts them.
#[derive(Clone)]
pub(super) struct Flight(Sender<()>);

/// One of them, until it is dropped.
pub(super) struct Aloft(#[expect(dead_code, reason = "it is counted while it is there")] Receiver<()>);

impl Default for Flight {
    fn default() -> Self {
        Self(channel(()).0)
    }
}

impl Flight {
    /// One more.
    pub(super) fn begin(&self) -> Aloft {
        Aloft(self.0.subscribe())
    }

    /// How many.
    pub(super) fn count(&self) -> usize {
        self.0.receiver_count()
    }

    /// Waits until there are none.
    pub(super) async fn landed(&self) {
        self.0.closed().await;
    }
}

/// A body that is in flight until its last byte has been taken.
pub(super) struct Tracked<B> {
    inner: B,
    aloft: Option<Aloft>,
}

impl<B> Tracked<B>
where
    B: HttpBody<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
{
    /// An answer that counts.
    pub(super) fn body(inner: B, aloft: Aloft) -> Body {
        Body::new(Self { inner, aloft: Some(aloft) })
    }
}

impl<B: HttpBody<Data = Bytes, Error = Infallible> + Unpin> HttpBody for Tracked<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if let Poll::Ready(None) = polled {
            self.aloft = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
