//! The end: what was asked is answered, what waits stops waiting, and nothing hangs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use taskbus_core::limits::HTTP_DRAIN_SECONDS;

use crate::server::{MCP, PATIENCE, Server, answer, request};

/// The head of a call, sent; the server is reading its body.
fn head_read(server: &Server, tool: &str, body: &str) -> TcpStream {
    let own = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    let headers = [MCP.as_slice(), &own, &[("Expect", "100-continue")]].concat();
    let whole = request("POST", "/mcp", &headers, body);
    let mut stream = server.connect();
    stream.write_all(&whole.as_bytes()[..whole.len() - body.len()]).unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

fn call(tool: &str, arguments: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "2"}}}})
    .to_string()
}

fn with_list(server: &Server) {
    let client = server.alone();
    client.ok("register", json!({"name": "Zed"}));
    client.ok("create_channel", json!({"name": "tasks/demo", "as": "Zed"}));
}

/// Nobody is let in any more.
fn wait_until_closed(server: &Server) {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", server.port)).is_ok() {
        assert!(Instant::now() < deadline, "it still accepts connections");
    }
}

#[test]
fn a_call_in_flight_is_answered_before_the_end() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start();
        with_list(&server);
        let body = call("task_create", json!({"subject": "last", "as": "Zed"}));
        let mut stream = head_read(&server, "task_create", &body);
        server.signal(signal);
        stream.write_all(body.as_bytes()).unwrap();
        let made = answer(&mut stream).message();
        assert_eq!(made["result"]["structuredContent"]["subject"], "last", "{made}");
        assert!(server.exited().success());
        assert_eq!(server.place.ok(&["list"])["tasks"][0]["subject"], "last");
    }
}

#[test]
fn a_call_that_waits_is_answered_at_once() {
    let mut server = Server::start();
    with_list(&server);
    let body = call("task_next", json!({"wait_seconds": 50, "as": "Zed"}));
    let mut stream = head_read(&server, "task_next", &body);
    stream.write_all(body.as_bytes()).unwrap();
    let begun = Instant::now();
    server.signal(Signal::TERM);
    let nothing = answer(&mut stream).message();
    assert_eq!(nothing["result"]["structuredContent"]["task"], Value::Null, "{nothing}");
    assert!(server.exited().success());
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}

#[test]
fn streams_and_silent_connections_do_not_hold_up_the_end() {
    let mut server = Server::start();
    let client = server.session();
    let session = client.session.clone().unwrap();
    let open = [("Accept", "text/event-stream"), ("Mcp-Session-Id", &session), ("MCP-Protocol-Version", "2025-11-25")];
    let mut stream = server.connect();
    stream.write_all(request("GET", "/mcp", &open, "").as_bytes()).unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    let _silent = server.connect();
    server.signal(Signal::TERM);
    wait_until_closed(&server);
    assert!(server.exited().success());
}

#[test]
fn a_call_that_does_not_come_is_given_up() {
    let mut server = Server::start();
    with_list(&server);
    let _never = head_read(&server, "task_create", &call("task_create", json!({"subject": "never", "as": "Zed"})));
    let begun = Instant::now();
    server.signal(Signal::TERM);
    assert!(server.exited().success());
    assert!(begun.elapsed() >= Duration::from_secs(HTTP_DRAIN_SECONDS), "{:?}", begun.elapsed());
}

#[test]
fn a_store_that_is_locked_does_not_hold_up_the_end() {
    let mut server = Server::start();
    with_list(&server);
    let locking = rusqlite::Connection::open(server.place.path("tasks.db")).unwrap();
    locking.execute_batch("BEGIN IMMEDIATE").unwrap();
    server.signal(Signal::TERM);
    assert!(server.exited().success());
}

#[test]
fn names_are_free_after_the_end() {
    let mut server = Server::start();
    with_list(&server);
    let client = server.session();
    assert_eq!(client.ok("register", json!({"name": "Amp"}))["as"], "Amp");
    server.signal(Signal::TERM);
    assert!(server.exited().success());
    assert_eq!(server.place.ok(&["who"])["sessions"], json!([]));
}
