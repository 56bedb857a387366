//! Who may ask: no page of another origin, no name that was turned to this machine, and nothing but JSON.

use serde_json::json;

use crate::server::{MCP, Server};

const ROUTES: [(&str, &str); 6] =
    [("GET", "/"), ("GET", "/healthz"), ("GET", "/metrics"), ("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/nothing")];

/// Hosts that are not this machine.
const HOSTS: [&str; 8] = [
    "evil.example",
    "evil.example:7777",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "10.0.0.1",
    "[fe80::1]",
    "0.0.0.0",
    "2130706433",
];

/// Origins that are not this server.
const ORIGINS: [&str; 8] = [
    "null",
    "http://evil.example",
    "https://evil.example",
    "http://localhost:1",
    "http://localhost.evil.example",
    "http://127.0.0.1:1",
    "file://",
    "chrome-extension://abcdef",
];

#[test]
fn no_route_answers_for_another_host() {
    let server = Server::start();
    for (method, path) in ROUTES {
        for host in HOSTS {
            let answer = server.ask(method, path, &[MCP.as_slice(), &[("Host", host)]].concat(), "");
            assert_eq!(answer.status, 403, "{method} {path} {host}: {answer:?}");
            assert!(answer.body.contains("--allow-host"), "{answer:?}");
        }
    }
}

#[test]
fn no_route_answers_a_page_of_another_origin() {
    let server = Server::start();
    for (method, path) in ROUTES {
        for origin in ORIGINS {
            let answer = server.ask(method, path, &[MCP.as_slice(), &[("Origin", origin)]].concat(), "");
            assert_eq!(answer.status, 403, "{method} {path} {origin}: {answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None, "{answer:?}");
        }
    }
}

#[test]
fn hosts_and_origins_that_are_named_are_answered() {
    let server = Server::with(&["--allow-host", "bus.example", "--allow-origin", "https://board.example"]);
    for (host, origin) in [
        ("bus.example", "https://board.example"),
        ("bus.example", "https://bus.example"),
        ("localhost:7", "http://localhost:7"),
        ("127.0.0.1", "https://board.example"),
    ] {
        let headers = [("Host", host), ("Origin", origin)];
        assert_eq!(server.ask("GET", "/healthz", &headers, "").status, 200, "{host} {origin}");
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        assert_eq!(server.post(&headers, &list).status, 200, "{host} {origin}");
    }
}

#[test]
fn what_a_form_can_send_changes_nothing() {
    let server = Server::start();
    let client = server.alone();
    client.ok("register", json!({"name": "Zed"}));
    client.ok("create_channel", json!({"name": "tasks/demo", "as": "Zed"}));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "task_create", "arguments": {"subject": "forged", "as": "Zed"}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "2"}}}})
    .to_string();
    let kinds = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json"];
    for kind in kinds {
        let headers = [("Accept", MCP[1].1), ("Content-Type", kind), ("Mcp-Method", "tools/call")];
        let answer = server.ask("POST", "/mcp", &headers, &call);
        assert_eq!(answer.status, 415, "{kind}: {answer:?}");
    }
    assert_eq!(server.ask("POST", "/mcp", &[("Accept", MCP[1].1)], &call).status, 415, "no kind at all");
    assert_eq!(client.ok("task_list", json!({"as": "Zed"}))["tasks"], json!([]));
}

#[test]
fn every_answer_says_that_a_browser_keeps_and_runs_nothing() {
    let server = Server::start();
    for (method, path) in ROUTES {
        let answer = server.ask(method, path, &MCP, "");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert!(answer.header("content-security-policy").unwrap().starts_with("default-src 'none'"), "{path}");
    }
    let page = server.ask("GET", "/", &[], "");
    assert!(page.body.contains(&format!("http://127.0.0.1:{}/mcp", server.port)), "{page:?}");
    assert!(!page.body.contains("<script") && !page.body.contains("src="), "{page:?}");
}
