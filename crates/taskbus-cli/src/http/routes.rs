//! What there is at which path. Every answer says that browsers are to keep nothing of it and run nothing in it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::{any, get};
use serde_json::json;

use super::body::Room;
use super::connections::Open;
use super::flight::{Flight, Tracked};
use super::guard::{Guard, Turned};
use super::metrics::{Metrics, Now};
use super::page::page;
use crate::blocking::blocking;
use crate::mounted::Mounted;

/// What every request has at hand.
pub(super) struct App {
    mcp: Arc<dyn Mounted>,
    guard: Guard,
    flight: Flight,
    open: Open,
    room: Room,
    metrics: Metrics,
    address: SocketAddr,
}

impl App {
    /// What is served.
    pub(super) fn new(mcp: Arc<dyn Mounted>, guard: Guard, flight: Flight, open: Open, address: SocketAddr) -> Self {
        Self { mcp, guard, flight, open, room: Room::default(), metrics: Metrics::default(), address }
    }
}

/// The routes.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .route("/mcp", any(mcp))
        .fallback(nothing)
        .layer(from_fn_with_state(Arc::clone(&app), guarded))
        .with_state(app)
}

async fn guarded(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = served(request.uri().path());
    let mut response = match app.guard.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(turned) => refused(&turned),
    };
    app.metrics.answered(path, response.status());
    let harmless = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in harmless {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The path as it is counted.
fn served(path: &str) -> &'static str {
    ["/", "/healthz", "/metrics", "/mcp"].into_iter().find(|own| *own == path).unwrap_or("other")
}

fn refused(turned: &Turned) -> Response {
    tracing::info!(status = turned.status.as_u16(), turned.why, "a request was refused");
    (turned.status, format!("{}\n", turned.why)).into_response()
}

async fn index(State(app): State<Arc<App>>) -> Html<String> {
    Html(page(app.address))
}

async fn health(State(app): State<Arc<App>>) -> Response {
    let looked = blocking(move || app.mcp.health()).await.map_err(|failure| failure.message);
    let (status, facts) = match looked.and_then(|looked| looked) {
        Ok(()) => (StatusCode::OK, json!({"schema_version": 1, "status": "ok"})),
        Err(why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            json!({"schema_version": 1, "status": "store_unavailable", "message": why}),
        ),
    };
    (status, [(CONTENT_TYPE, "application/json")], format!("{facts}\n")).into_response()
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let now = Now { connections: app.open.count(), in_flight: app.flight.count(), sessions: app.mcp.sessions() };
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.text(&now)).into_response()
}

/// The whole request is read, then the mounted server answers. Streams of a `GET` last as long as the client wants, so
/// that the end of the server does not wait for them.
async fn mcp(State(app): State<Arc<App>>, request: Request) -> Response {
    let aloft = (request.method() == axum::http::Method::POST).then(|| app.flight.begin());
    let (head, body) = request.into_parts();
    let body = match app.room.read(body).await {
        Ok(body) => body,
        Err(turned) => return refused(&turned),
    };
    let answer = app.mcp.answer(Request::from_parts(head, body)).await;
    match aloft {
        Some(aloft) => answer.map(|body| Tracked::body(body, aloft)),
        None => answer.map(Body::new),
    }
}

async fn nothing() -> Response {
    let why = "there is nothing at this path; MCP is at /mcp, and / says what else there is\n";
    (StatusCode::NOT_FOUND, why).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounted::{self, Answering};
    use crate::options::Serve;

    /// A server whose store is gone.
    struct Sick;

    impl Mounted for Sick {
        fn answer(&self, _: mounted::Request) -> Answering {
            unreachable!("nobody asks")
        }

        fn hurry(&self) {}

        fn cut(&self) {}

        fn close(&self) {}

        fn sessions(&self) -> usize {
            0
        }

        fn health(&self) -> Result<(), String> {
            Err("the disk is gone".to_owned())
        }
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_told() {
        let options = Serve {
            listen: "127.0.0.1:7777".parse().unwrap(),
            port_file: None,
            tools: Vec::new(),
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            insecure: false,
        };
        let guard = Guard::new(options.listen, &options);
        let app = App::new(Arc::new(Sick), guard, Flight::default(), Open::default(), options.listen);
        let told = health(State(Arc::new(app))).await;
        assert_eq!(told.status(), StatusCode::SERVICE_UNAVAILABLE);
        let body = axum::body::to_bytes(told.into_body(), 1024).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains("the disk is gone"), "{body:?}");
    }
}
