//! What is too long, too slow or too much is refused in time, and others are served meanwhile.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use taskbus_core::limits::{
    HTTP_CONNECTIONS_MAX, HTTP_HEAD_BYTES_MAX, HTTP_READ_SECONDS_MAX, HTTP_SESSIONS_MAX, REQUEST_BYTES_MAX,
    REQUEST_DEPTH_MAX,
};

use crate::server::{MCP, Server, answer, request};

#[test]
fn a_body_is_read_up_to_its_limit_however_it_comes() {
    let server = Server::start();
    let sized = |bytes: usize| request("POST", "/mcp", &MCP, &"x".repeat(bytes));
    assert_eq!(server.raw(sized(REQUEST_BYTES_MAX).as_bytes()).status, 400, "read, and found to be no JSON");
    assert_eq!(server.raw(sized(REQUEST_BYTES_MAX + 1).as_bytes()).status, 413);
    let mut chunked =
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
                       Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_owned();
    for _ in 0..=REQUEST_BYTES_MAX / 65_536 {
        chunked.push_str("10000\r\n");
        chunked.push_str(&"x".repeat(65_536));
        chunked.push_str("\r\n");
    }
    chunked.push_str("0\r\n\r\n");
    assert_eq!(server.raw(chunked.as_bytes()).status, 413);
    let head = request("GET", "/healthz", &[("X-Long", &"x".repeat(4 * HTTP_HEAD_BYTES_MAX))], "");
    assert_eq!(server.raw(head.as_bytes()).status, 431);
    assert_eq!(server.ask("GET", "/healthz", &[], "").status, 200, "it goes on");
}

#[test]
fn what_is_no_message_is_answered_as_over_pipes() {
    let server = Server::start();
    let deep = format!("{}1{}", "[".repeat(REQUEST_DEPTH_MAX + 1), "]".repeat(REQUEST_DEPTH_MAX + 1));
    for (body, status, code) in [
        ("{", 400, -32700),
        ("[]", 400, -32600),
        ("", 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"nothing/there"}"#, 200, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, 400, -32602),
        (&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{deep}}}}}"#), 400, -32600),
    ] {
        let answer = server.ask("POST", "/mcp", &MCP, body);
        assert_eq!((answer.status, &answer.message()["error"]["code"]), (status, &json!(code)), "{body}: {answer:?}");
    }
    let refused = server.ask(
        "POST",
        "/mcp",
        &MCP,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task_list","arguments":{"a":1,"a":2}}}"#,
    );
    assert_eq!(refused.message()["result"]["structuredContent"]["code"], "validation", "{refused:?}");
    for method in ["nothing/there", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        let answer = server.post(&headers, &json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": {}}));
        let told = answer.message();
        assert_eq!(
            (answer.status, &told["id"], &told["error"]["code"]),
            (404, &json!(5), &json!(-32601)),
            "{method}: {told}"
        );
    }
    assert_eq!(server.ask("GET", "/nothing", &[], "").status, 404);
    assert_eq!(server.ask("PUT", "/healthz", &[], "").status, 405);
}

#[test]
fn a_head_or_a_body_that_does_not_come_is_not_waited_for() {
    let (server, begun) = (Server::start(), Instant::now());
    let begin = |text: &str| {
        let mut stream = server.connect();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let mut heads: Vec<TcpStream> = (0..100).map(|_| begin("GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ")).collect();
    let silent = begin("");
    let whole = request("POST", "/mcp", &MCP, &"x".repeat(1000));
    let mut body = begin(&whole[..whole.len() - 500]);
    assert_eq!(server.ask("GET", "/healthz", &[], "").status, 200, "others are served meanwhile");
    let late = answer(&mut body);
    assert_eq!(late.status, 408, "{late:?}");
    assert!(begun.elapsed() >= Duration::from_secs(HTTP_READ_SECONDS_MAX), "cut too early: {:?}", begun.elapsed());
    heads.push(silent);
    for stream in &mut heads {
        let mut said = Vec::new();
        // Closed, with or without a word: what counts is that it ends within the patience of the socket.
        match stream.read_to_end(&mut said) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
    }
}

#[test]
fn there_are_so_many_sessions_and_one_that_ends_makes_room() {
    let server = Server::start();
    let sessions: Vec<_> = (0..HTTP_SESSIONS_MAX).map(|_| server.session()).collect();
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let refused = server.post(&[], &hello).message();
    assert!(refused["error"]["message"].as_str().unwrap().contains(&HTTP_SESSIONS_MAX.to_string()), "{refused}");
    assert_eq!(sessions[0].end().status, 204);
    let deadline = Instant::now() + crate::server::PATIENCE;
    while server.post(&[], &hello).message().get("result").is_none() {
        assert!(Instant::now() < deadline, "no session came free");
    }
}

#[test]
fn connections_beyond_the_last_wait_their_turn_and_memory_stays_small() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let own = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: own.maximum, ..own }).unwrap();
    let server = Server::start();
    let silent: Vec<TcpStream> = (0..HTTP_CONNECTIONS_MAX).map(|_| server.connect()).collect();
    assert_eq!(server.ask("GET", "/healthz", &[], "").status, 200, "once the silent ones were cut");
    assert!(server.memory_kib() < 64 * 1024, "{} KiB", server.memory_kib());
    drop(silent);
}

#[test]
fn streams_of_many_sessions_take_little_memory() {
    let server = Server::start();
    let open = |_| {
        let client = server.session();
        let session = client.session.as_deref().unwrap();
        let headers =
            [("Accept", "text/event-stream"), ("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")];
        let mut stream = server.connect();
        stream.write_all(request("GET", "/mcp", &headers, "").as_bytes()).unwrap();
        let mut first = [0; 15];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        stream
    };
    let streams: Vec<TcpStream> = (0..HTTP_SESSIONS_MAX).map(open).collect();
    assert!(server.memory_kib() < 128 * 1024, "{} KiB", server.memory_kib());
    assert_eq!(server.ask("GET", "/healthz", &[], "").status, 200);
    drop(streams);
}
