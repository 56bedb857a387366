//! What the HTTP server knows of the MCP server that it mounts: requests go in, answers come out. Neither imports the
//! other; the entry of the program brings them together.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;

use crate::options::{Globals, ToolSet};
use crate::term::failure::Failure;

/// A request that was read to its end.
pub(crate) type Request = http::Request<Bytes>;
/// An answer, perhaps a stream.
pub(crate) type Response = http::Response<BoxBody<Bytes, Infallible>>;
/// An answer to come.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Makes the service, in the runtime that it is to run in.
pub(crate) type Mount = fn(Globals, &[ToolSet], &Callers) -> Result<Arc<dyn Mounted>, Failure>;

/// Which `Host` and `Origin` a request may name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers {
    /// Names and addresses; none: whatever the server in front lets through.
    pub(crate) hosts: Option<Vec<String>>,
    /// Origins beside the server's own, such as `https://board.example`.
    pub(crate) origins: Vec<String>,
}

/// A service behind a path.
pub(crate) trait Mounted: Send + Sync {
    /// Answers a request.
    fn answer(&self, request: Request) -> Answering;

    /// The end has come: calls that wait answer now.
    fn hurry(&self);

    /// Ends the streams and the sessions of clients.
    fn cut(&self);

    /// Gives up the names that are held. May block.
    fn close(&self);

    /// How many sessions, and names that were registered without one, there are.
    fn sessions(&self) -> usize;

    /// Whether the store answers, or why it does not. May block.
    fn health(&self) -> Result<(), String>;
}
