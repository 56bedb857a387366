//! Lines in and lines out. One task reads and passes the gate, one task writes; everything that is written goes
//! through its queue, so that no two answers mix. Standard output carries answers and nothing else.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::flight::Flight;
use super::gate::{Gate, Verdict};

/// What is read at once.
const READ_BYTES: usize = 64 * 1024;
/// Answers that wait to be written; beyond that, who answers waits.
const LINES_WAITING: usize = 64;

/// The way out.
#[derive(Clone, Debug)]
pub(super) struct Outgoing(mpsc::Sender<Vec<u8>>);

/// Nobody reads what we write any more.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
pub(super) struct Closed;

impl Outgoing {
    /// The way out, and its other end for [`write()`].
    pub(super) fn new() -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (sender, receiver) = mpsc::channel(LINES_WAITING);
        (Self(sender), receiver)
    }

    /// Queues one message as one line.
    pub(super) async fn send(&self, message: &impl Serialize) -> Result<(), Closed> {
        let mut line = serde_json::to_vec(message).map_err(|_| Closed)?;
        line.push(b'\n');
        self.0.send(line).await.map_err(|_| Closed)
    }
}

/// Writes lines until nobody sends any more. When nobody reads them, everything ends.
pub(super) async fn write(
    mut lines: mpsc::Receiver<Vec<u8>>,
    mut writer: impl AsyncWrite + Unpin,
    ending: CancellationToken,
) {
    while let Some(line) = lines.recv().await {
        let written = async {
            writer.write_all(&line).await?;
            if lines.is_empty() { writer.flush().await } else { Ok(()) }
        };
        if let Err(error) = written.await {
            tracing::info!(%error, "standard output is closed");
            lines.close();
            ending.cancel();
        }
    }
}

/// The way in: what passes the gate, until the input ends or everything does.
pub(super) struct Incoming<T> {
    /// Makes a message of what passed, or says what is wrong with it.
    pub(super) parse: fn(Value) -> Result<T, Value>,
    /// Where messages go.
    pub(super) messages: mpsc::Sender<T>,
    /// Where answers go.
    pub(super) outgoing: Outgoing,
    /// What has no answer yet.
    pub(super) flight: Arc<Flight>,
}

impl<T> Incoming<T> {
    /// Reads until the input ends, and then ends everything.
    pub(super) async fn read(self, reader: impl AsyncRead + Unpin, ending: CancellationToken) {
        tokio::select! {
            () = self.read_all(reader) => {}
            () = ending.cancelled() => {}
        }
        ending.cancel();
    }

    async fn read_all(&self, mut reader: impl AsyncRead + Unpin) {
        let (mut gate, mut buffer) = (Gate::default(), vec![0; READ_BYTES]);
        loop {
            match reader.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => {
                    for verdict in gate.push(&buffer[..read]) {
                        if self.act(verdict).await.is_err() {
                            return;
                        }
                    }
                }
            }
        }
        if let Some(verdict) = gate.end() {
            let _ = self.act(verdict).await;
        }
    }

    async fn act(&self, verdict: Verdict) -> Result<(), Closed> {
        match verdict {
            Verdict::Answer(answer) => self.outgoing.send(&answer).await,
            Verdict::Notification(message) => {
                if let Some(id) = cancelled(&message) {
                    self.flight.done(id);
                }
                self.pass(message).await
            }
            Verdict::Request { id, message, bytes } => {
                self.flight.admit(&id, bytes).await;
                self.pass(message).await
            }
        }
    }

    async fn pass(&self, message: Value) -> Result<(), Closed> {
        match (self.parse)(message) {
            Ok(message) => self.messages.send(message).await.map_err(|_| Closed),
            Err(answer) => self.outgoing.send(&answer).await,
        }
    }
}

/// The request whose answer a client no longer wants; the SDK does not give one.
fn cancelled(message: &Value) -> Option<&Value> {
    (message.get("method")? == "notifications/cancelled").then(|| message.get("params")?.get("requestId"))?
}
