//! The MCP server over HTTP (Streamable HTTP), for a server that mounts it. A body passes the same gate as a line does;
//! sessions, streams and headers of the protocol are the SDK's.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use taskbus::engine::Engine;
use taskbus::store::Store;
use taskbus_core::limits;
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, Lists};
use super::gate::{self, Verdict};
use super::house::House;
use super::people::{Hints, People};
use super::repository::Repository;
use super::seats::{self, Seats};
use super::table::Offer;
use super::{life, sdk, start};
use crate::config;
use crate::log;
use crate::mounted::{Answering, Callers, Mounted, Request, Response};
use crate::options::{Globals, ToolSet};
use crate::store;
use crate::term::failure::Failure;

/// The first revision of the protocol without sessions, and what it took back of what the SDK still has.
const NEWER: &str = "2026-07-28";
const TAKEN_BACK: [&str; 2] = ["resources/subscribe", "resources/unsubscribe"];
/// The code of an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

struct Web {
    sdk: Box<dyn Fn(Request) -> Answering + Send + Sync>,
    house: Arc<House>,
    seats: Arc<Seats>,
    store: Arc<dyn Store>,
    cut: CancellationToken,
}

/// The service over the store that is meant, which is opened now.
pub(crate) fn mount(globals: Globals, tools: &[ToolSet], callers: &Callers) -> Result<Arc<dyn Mounted>, Failure> {
    let config = config::here(globals.config.as_deref())?;
    log::start("serve", config.log_level());
    let url = store::choose(globals.store.as_deref(), &config)?;
    let lists = if url.is_one_list() { Lists::One { named: globals.list } } else { start::many(globals.list) };
    let offer = Offer::of(tools, url.is_one_list());
    let store = store::open(&url, config.sqlite(), store::Opener::Session)?;
    Engine::new(Arc::clone(&store), config.limits()).lists()?;
    let (shared, limits) = (Arc::clone(&store), config.limits());
    let desk = move || {
        let (store, limits) = (Arc::clone(&shared), limits.clone());
        let open = Box::new(move || Ok(Engine::new(Arc::clone(&store), limits.clone())));
        // The clients are elsewhere: nothing around this process is theirs.
        Desk::new(open, lists.clone(), People::new(Hints::default()), Repository::default())
    };
    Ok(serve(offer, Arc::new(desk()), Box::new(desk), store, callers))
}

fn serve(
    offer: Offer,
    common: Arc<Desk>,
    make: seats::MakeDesk,
    store: Arc<dyn Store>,
    callers: &Callers,
) -> Arc<dyn Mounted> {
    let (ending, cut) = (CancellationToken::new(), CancellationToken::new());
    let seats = Arc::new(Seats::new(make));
    let house = Arc::new(House::of_many(Arc::clone(&common), Arc::clone(&seats), ending));
    let sdk = sdk::over_http(Arc::new(sdk::Shop::new(offer)), Arc::clone(&house), callers, cut.clone());
    let taken = Arc::clone(&seats);
    tokio::spawn(life::heartbeat(move || taken.desks()));
    tokio::spawn(life::tick(common));
    tokio::spawn(sweep(Arc::clone(&house)));
    Arc::new(Web { sdk: Box::new(sdk), house, seats, store, cut })
}

async fn sweep(house: Arc<House>) {
    loop {
        tokio::time::sleep(Duration::from_millis(limits::HEARTBEAT_MS)).await;
        house.sweep();
    }
}

impl Mounted for Web {
    fn answer(&self, request: Request) -> Answering {
        if request.method() == Method::DELETE {
            return Box::pin(ended((self.sdk)(request)));
        }
        if request.method() != Method::POST || !is_json(&request) {
            return (self.sdk)(request);
        }
        let newer = is_newer(&request);
        match gate::judge_alone(request.body()) {
            Some(Verdict::Answer(answer)) => ready(said(&answer, newer)),
            Some(Verdict::Request { id, message, .. }) if newer && was_taken_back(&message) => {
                let error =
                    json!({"code": METHOD_NOT_FOUND, "message": "this revision of the protocol has no such method"});
                ready(said(&json!({"jsonrpc": "2.0", "id": id, "error": error}), newer))
            }
            Some(Verdict::Request { message, .. } | Verdict::Notification(message)) => {
                (self.sdk)(request.map(|_| Bytes::from(message.to_string())))
            }
            None => ready(plain(StatusCode::ACCEPTED, Bytes::new())),
        }
    }

    fn hurry(&self) {
        self.house.ending.cancel();
    }

    fn cut(&self) {
        self.cut.cancel();
    }

    fn close(&self) {
        self.seats.desks().iter().for_each(|desk| seats::close(desk));
    }

    fn sessions(&self) -> usize {
        self.seats.desks().len()
    }

    fn health(&self) -> Result<(), String> {
        self.store.version().map(|_| ()).map_err(|error| error.to_string())
    }
}

/// A session that has ended is gone, not about to go: clients take anything but that for a failure.
async fn ended(answering: Answering) -> Response {
    let mut response = answering.await;
    if response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

fn is_json(request: &Request) -> bool {
    let given = request.headers().get(CONTENT_TYPE).and_then(|given| given.to_str().ok());
    let essence = given.and_then(|given| given.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn ready(response: Response) -> Answering {
    Box::pin(std::future::ready(response))
}

fn is_newer(request: &Request) -> bool {
    let version = request.headers().get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= NEWER)
}

fn was_taken_back(message: &Value) -> bool {
    message["method"].as_str().is_some_and(|method| TAKEN_BACK.contains(&method))
}

/// An answer of the gate. A method that is unknown is not found in the newer era; in the older one that would mean that
/// the session is gone.
fn said(answer: &Value, newer: bool) -> Response {
    let code = answer.get("error").map(|error| &error["code"]);
    let status = match code {
        None => StatusCode::OK,
        Some(code) if *code != METHOD_NOT_FOUND => StatusCode::BAD_REQUEST,
        Some(_) if newer => StatusCode::NOT_FOUND,
        Some(_) => StatusCode::OK,
    };
    let mut response = plain(status, Bytes::from(answer.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn plain(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Full::new(body).boxed());
    *response.status_mut() = status;
    response
}
