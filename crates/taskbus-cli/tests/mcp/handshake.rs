//! Both eras of the protocol, and what clients do before, between and instead of them.

use serde_json::{Value, json};

use crate::server::{Launch, Server};

fn memory(home: &tempfile::TempDir) -> Server {
    Launch::new(home.path(), "memory:").silent()
}

fn meta(version: &str) -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}})
}

fn hello(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

#[test]
fn the_older_era_shakes_hands() {
    for (asked, agreed) in [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("2031-01-01", "2025-11-25")] {
        let home = tempfile::tempdir().unwrap();
        let mut server = memory(&home);
        let result = server.request("initialize", hello(asked))["result"].clone();
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(result["capabilities"], json!({"prompts": {}, "resources": {"subscribe": true}, "tools": {}}));
        assert_eq!(result["serverInfo"]["name"], "taskbus");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        let instructions = result["instructions"].as_str().unwrap();
        assert!(instructions.len() <= 2048 && instructions.contains("not instructions"), "{}", instructions.len());
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let listed = server.request("tools/list", json!({}))["result"].clone();
        assert_eq!(listed["tools"].as_array().unwrap().len(), 12);
        assert_eq!((listed.get("nextCursor"), listed.get("resultType")), (None, None));
        assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    }
}

#[test]
fn the_newer_era_needs_no_handshake() {
    let home = tempfile::tempdir().unwrap();
    let mut server = memory(&home);
    let found = server.request("server/discover", json!({"_meta": meta("2026-07-28")}))["result"].clone();
    assert_eq!(found["resultType"], "complete");
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert_eq!(found["capabilities"], json!({"prompts": {}, "resources": {"subscribe": true}, "tools": {}}));
    let listed = server.request("tools/list", json!({"_meta": meta("2026-07-28")}))["result"].clone();
    assert_eq!((listed["resultType"].clone(), listed["tools"].as_array().unwrap().len()), (json!("complete"), 12));
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"].is_string(), "{}", listed["ttlMs"]);
    let call = json!({"name": "create_channel", "arguments": {"name": "tasks/t"}, "_meta": meta("2026-07-28")});
    let called = server.request("tools/call", call)["result"].clone();
    assert_eq!((&called["resultType"], &called["isError"]), (&json!("complete"), &json!(false)));
    assert_eq!(called["structuredContent"]["as"], format!("test-{}", server.pid));
    let refused =
        server.request("tools/call", json!({"name": "task_get", "arguments": 5, "_meta": meta("2026-07-28")}));
    assert_eq!((&refused["result"]["resultType"], &refused["result"]["isError"]), (&json!("complete"), &json!(true)));
    let unknown = server.request("tools/list", json!({"_meta": meta("2031-01-01")}));
    assert!(unknown["error"]["data"]["supported"].is_array(), "{unknown}");
}

#[test]
fn a_listener_with_nothing_to_hear_ends_with_the_input() {
    let home = tempfile::tempdir().unwrap();
    let mut server = memory(&home);
    let listen = json!({"notifications": {"toolsListChanged": true}, "_meta": meta("2026-07-28")});
    server.begin("subscriptions/listen", listen);
    let acknowledged = server.line();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({}));
    let (status, time, stderr) = server.end();
    assert!(status.success() && time.as_millis() < 1000 && stderr.is_empty(), "{status} {time:?} {stderr}");
}

#[test]
fn a_probe_of_the_newer_era_leaves_the_older_open() {
    let home = tempfile::tempdir().unwrap();
    let mut server = memory(&home);
    let probe = server.request("server/discover", json!({}));
    assert_eq!(probe["error"]["code"], -32602, "{probe}");
    assert_eq!(server.request("initialize", hello("2025-06-18"))["result"]["protocolVersion"], "2025-06-18");
    assert!(server.request("tools/list", json!({}))["result"]["tools"].is_array());
}

#[test]
fn nothing_unexpected_ends_the_connection() {
    let home = tempfile::tempdir().unwrap();
    let mut server = memory(&home);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": null}));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/nobody/knows"}));
    server.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    for (method, params, code) in [
        ("initialize", json!({}), -32602),
        ("initialize", json!({"protocolVersion": 5}), -32602),
        ("completion/complete", json!({}), -32601),
        ("logging/setLevel", json!(null), -32601),
        ("prompts/get", json!(null), -32602),
        ("prompts/get", json!({"name": "wrok"}), -32602),
        ("resources/read", json!({}), -32602),
        ("resources/read", json!({"uri": "file:///etc/passwd"}), -32002),
        ("resources/subscribe", json!({"uri": "taskbus://"}), -32002),
        ("tools/call", json!({"arguments": {}}), -32602),
        ("tools/call", json!({"name": "task_lisst", "arguments": {}}), -32602),
        ("tools/list", json!([1]), -32602),
    ] {
        let answer = server.request(method, params.clone());
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
    let unknown = server.request("tools/call", json!({"name": "task_lisst"}));
    assert_eq!(unknown["error"]["message"], "unknown tool \"task_lisst\"; did you mean task_list?");
    for id in [json!("text"), json!(0), json!(-7), json!(9_007_199_254_740_993_i64)] {
        server.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        assert_eq!(server.answer(&id)["result"], json!({}));
    }
    assert_eq!(server.request("initialize", hello("2025-11-25"))["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn what_is_no_message_is_answered_in_order() {
    let home = tempfile::tempdir().unwrap();
    let mut server = memory(&home);
    server.send_bytes(b"nonsense\n\n[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"no\"}\n");
    let answers: Vec<(Value, Value)> =
        (0..3).map(|_| server.line()).map(|line| (line["id"].clone(), line["error"]["code"].clone())).collect();
    assert_eq!(answers, [(json!(null), json!(-32700)), (json!(null), json!(-32600)), (json!(7), json!(-32601))]);
}

#[test]
fn names_come_from_what_the_connection_says() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Launch::new(home.path(), "memory:").env("CLAUDE_CODE_SESSION_ID", "0a1b-22223333").start();
    let made = server.call("create_channel", json!({"name": "tasks/t"}));
    assert_eq!(made["as"], "test-22223333");
    let codex = json!({"name": "task_create", "arguments": {"channel": "tasks/t", "subject": "s"},
        "_meta": {"threadId": "0199-aabbccdd", "sessionId": "x"}});
    assert_eq!(server.request("tools/call", codex)["result"]["structuredContent"]["created_by"], "test-aabbccdd");
    let mut named = Launch::new(home.path(), "memory:").env("TASKBUS_AS", "Roo").start();
    assert_eq!(named.call("create_channel", json!({"name": "tasks/t"}))["as"], "Roo");
    assert_eq!(named.call("register", json!({"name": "Amp"}))["as"], "Amp");
    assert_eq!(named.call("task_create", json!({"channel": "tasks/t", "subject": "s"}))["created_by"], "Amp");
}

#[test]
fn the_list_of_the_process_is_meant_when_none_is_named() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Launch::new(home.path(), "memory:").arg("--list").arg("demo").start();
    server.call("create_channel", json!({"name": "tasks/demo"}));
    assert_eq!(server.call("task_create", json!({"subject": "s"}))["channel"], "tasks/demo");
    assert_eq!(server.call("task_list", json!({"channel": ""}))["total"], 1);
    let mut without = Launch::new(home.path(), "memory:").start();
    let refusal = without.refusal("task_list", json!({}));
    assert_eq!((&refusal["code"], &refusal["field"]), (&json!("validation"), &json!("channel")));
    assert!(refusal["message"].as_str().unwrap().contains("--list"), "{refusal}");
}
