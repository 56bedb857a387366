//! The published definitions, as a client gets them, against what the strictest clients take.

use serde_json::{Value, json};

use crate::server::{Launch, on_sqlite};

/// Keywords over which some client stumbles.
const FORBIDDEN: [&str; 16] = [
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "const",
    "default",
    "format",
    "nullable",
    "pattern",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "patternProperties",
];
const TYPES: [&str; 5] = ["string", "integer", "boolean", "array", "object"];

fn tools() -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let mut server = Launch::new(home.path(), "memory:").start();
    server.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone()
}

#[track_caller]
fn lint(at: &str, schema: &Value) {
    let object = schema.as_object().unwrap_or_else(|| panic!("{at}: {schema}"));
    for keyword in FORBIDDEN {
        assert!(!object.contains_key(keyword), "{at} has {keyword}");
    }
    let kind =
        object.get("type").and_then(Value::as_str).unwrap_or_else(|| panic!("{at} has no single type: {schema}"));
    assert!(TYPES.contains(&kind), "{at} is a {kind}");
    if let Some(words) = object.get("enum") {
        assert!(kind == "string" && words.as_array().unwrap().iter().all(Value::is_string), "{at}: {words}");
    }
    match kind {
        "array" => lint(&format!("{at}[]"), &object["items"]),
        "object" => lint_object(at, schema),
        _ => {}
    }
}

#[track_caller]
fn lint_object(at: &str, schema: &Value) {
    let Some(properties) = schema["properties"].as_object() else {
        // An open object says what its values are.
        return lint(&format!("{at}.*"), &schema["additionalProperties"]);
    };
    assert_eq!(schema["additionalProperties"], false, "{at} is open");
    for (name, property) in properties {
        assert!(name.len() <= 25 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{at}.{name}");
        lint(&format!("{at}.{name}"), property);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(properties.contains_key(name.as_str().unwrap()), "{at} requires {name}");
    }
}

#[test]
fn every_client_can_read_the_definitions() {
    for tool in tools() {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 25 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        assert!(!tool["title"].as_str().unwrap().is_empty());
        assert!((1..=600).contains(&tool["description"].as_str().unwrap().len()), "{name}");
        lint(name, &tool["inputSchema"]);
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool["inputSchema"]["properties"].get("as").is_some() != (name == "register"), "{name}");
        assert!(tool.get("outputSchema").is_none(), "{name}");
    }
}

#[test]
fn annotations_are_there_and_honest() {
    let mut loaded = Vec::new();
    for tool in tools() {
        let name = tool["name"].as_str().unwrap().to_owned();
        let hint = |hint: &str| tool["annotations"][hint].as_bool().unwrap_or_else(|| panic!("{name} has no {hint}"));
        assert_eq!(hint("readOnlyHint"), matches!(name.as_str(), "task_get" | "task_list"), "{name}");
        assert_eq!(hint("destructiveHint"), name == "task_update", "{name}");
        assert!(!hint("openWorldHint"), "{name}");
        let again = matches!(name.as_str(), "task_create" | "task_plan" | "task_next" | "task_update");
        assert_eq!(hint("idempotentHint"), !again, "{name}");
        if tool["_meta"]["anthropic/alwaysLoad"] == true {
            loaded.push(name);
        }
    }
    assert_eq!(loaded, ["register", "task_next", "task_update", "task_list"]);
}

#[test]
fn the_definitions_are_small() {
    let bytes = Value::Array(tools()).to_string().len();
    println!("tools/list: {bytes} bytes, {} tokens of at most 3000 (send and receive are still to come)", bytes / 4);
    assert!(bytes / 4 <= 2400, "{bytes}");
}

#[test]
fn the_list_is_the_same_for_any_store_and_state() {
    let home = tempfile::tempdir().unwrap();
    let mut server = on_sqlite(home.path());
    let list = |server: &mut crate::server::Server| server.request("tools/list", json!({}))["result"].to_string();
    let fresh = list(&mut server);
    server.call("create_channel", json!({"name": "tasks/t"}));
    server.call("task_create", json!({"channel": "tasks/t", "subject": "s"}));
    assert_eq!(list(&mut server), fresh);
    assert_eq!(server.request("tools/list", json!({"cursor": "5"}))["result"].to_string(), fresh);
    assert_eq!(list(&mut Launch::new(home.path(), "memory:").start()), fresh);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let newer = server.request("tools/list", json!({"_meta": meta}))["result"]["tools"].clone();
    assert_eq!(newer, Value::Array(tools()), "both eras get the same definitions");
    let names: Vec<Value> = tools().into_iter().map(|tool| tool["name"].clone()).collect();
    let order = [
        "register",
        "create_channel",
        "task_create",
        "task_plan",
        "task_next",
        "task_claim",
        "task_release",
        "task_update",
        "task_get",
        "task_list",
    ];
    assert_eq!(names, order);
}
