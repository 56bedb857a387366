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

/// The sets, and how many tokens each may cost.
const SETS: [(&str, usize); 4] = [("core", 3000), ("full", 5000), ("claude", 800), ("kin", 400)];

fn tools() -> Vec<Value> {
    tools_of("core", "memory:")
}

fn tools_of(sets: &str, store: &str) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let mut server = Launch::new(home.path(), store).arg("--tools").arg(sets).start();
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
        // An open object says what its values are; only free data may be anything.
        if at.ends_with(".metadata") && schema["additionalProperties"] == true {
            return;
        }
        return lint(&format!("{at}.*"), &schema["additionalProperties"]);
    };
    assert_eq!(schema["additionalProperties"], false, "{at} is open");
    for (name, property) in properties {
        assert!(name.len() <= 25 && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_'), "{at}.{name}");
        lint(&format!("{at}.{name}"), property);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(properties.contains_key(name.as_str().unwrap()), "{at} requires {name}");
    }
}

#[test]
fn every_client_can_read_the_definitions() {
    for tool in SETS.into_iter().flat_map(|(set, _)| tools_of(set, "memory:")) {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 25 && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_'), "{name}");
        assert!(!tool["title"].as_str().unwrap().is_empty());
        assert!((1..=600).contains(&tool["description"].as_str().unwrap().len()), "{name}");
        lint(name, &tool["inputSchema"]);
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool.get("outputSchema").is_none(), "{name}");
    }
}

#[test]
fn the_tools_of_the_bus_take_a_name() {
    for tool in tools_of("full", "memory:") {
        let name = tool["name"].as_str().unwrap();
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        assert!(properties.contains_key("as") != (name == "register"), "{name}");
        assert!(properties.keys().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')), "{name}");
    }
}

/// Names, fields and what is required, as Claude Code documents its own tools.
#[test]
fn the_tools_of_claude_code_have_its_inputs() {
    let fields = |tool: &Value| -> Vec<String> {
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        let of = |shape: &Value| shape["items"]["type"].as_str().map_or_else(String::new, |item| format!(" of {item}"));
        let shown =
            |(name, shape): (&String, &Value)| format!("{name}: {}{}", shape["type"].as_str().unwrap(), of(shape));
        properties.iter().map(shown).collect()
    };
    let tools = tools_of("claude", "memory:");
    let [create, get, update, list] = tools.as_slice() else { panic!("{tools:?}") };
    assert_eq!(
        (&create["name"], fields(create)),
        (
            &json!("TaskCreate"),
            ["subject: string", "description: string", "activeForm: string", "metadata: object"]
                .map(String::from)
                .into()
        )
    );
    assert_eq!(create["inputSchema"]["required"], json!(["subject", "description"]));
    assert_eq!((&get["name"], fields(get)), (&json!("TaskGet"), vec!["taskId: string".to_owned()]));
    assert_eq!((&list["name"], fields(list)), (&json!("TaskList"), vec![]));
    let expected = [
        "taskId: string",
        "status: string",
        "subject: string",
        "description: string",
        "activeForm: string",
        "owner: string",
        "addBlocks: array of string",
        "addBlockedBy: array of string",
        "metadata: object",
    ];
    assert_eq!((&update["name"], fields(update)), (&json!("TaskUpdate"), expected.map(String::from).into()));
    assert_eq!(update["inputSchema"]["required"], json!(["taskId"]));
    let statuses = &update["inputSchema"]["properties"]["status"]["enum"];
    assert_eq!(statuses, &json!(["pending", "in_progress", "completed", "deleted"]));
}

#[test]
fn the_tool_of_kin_has_its_inputs() {
    let tools = tools_of("kin", "memory:");
    let [tasks] = tools.as_slice() else { panic!("{tools:?}") };
    assert_eq!(tasks["name"], "tasks");
    let schema = &tasks["inputSchema"];
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["action", "id", "content", "status", "blockedBy", "active_form", "status_filter"]);
    let actions = &schema["properties"]["action"]["enum"];
    assert_eq!(actions, &json!(["add", "update", "complete", "remove", "list", "blocked"]));
    assert_eq!(schema["required"], json!(["action"]));
}

#[test]
fn sets_come_in_our_order_and_no_tool_twice() {
    let names = |sets: &str, store: &str| -> Vec<String> {
        tools_of(sets, store).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = names("core,claude,kin", "memory:");
    assert_eq!(
        (all.len(), &all[12..]),
        (17, &["TaskCreate", "TaskGet", "TaskUpdate", "TaskList", "tasks"].map(String::from)[..])
    );
    assert_eq!(names("kin,core,claude,kin", "memory:"), all);
    let home = tempfile::tempdir().unwrap();
    let mut repeated = Launch::new(home.path(), "memory:");
    repeated = ["--tools", "kin", "--tools", "core"].into_iter().fold(repeated, Launch::arg);
    let listed = repeated.start().request("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(listed, Value::Array(tools_of("core,kin", "memory:")));
    // Where the store is one list without sessions, nobody registers and no list is made.
    assert_eq!(names("core,kin", "file:s.tasks.json"), [&all[2..10], &all[16..]].concat());
    assert_eq!(names("claude", "claude:tasks"), all[12..16]);
    let full = names("full", "memory:");
    assert_eq!((full.len(), &full[..12]), (21, &all[..12]), "full has core in it");
    assert_eq!((names("full,core", "memory:"), names("full", "file:s.tasks.json")), (full, all[2..10].to_vec()));
}

#[test]
fn annotations_are_there_and_honest() {
    let mut loaded = Vec::new();
    const READERS: [&str; 9] = [
        "task_get",
        "task_list",
        "TaskGet",
        "TaskList",
        "list_channels",
        "history",
        "search",
        "get_memory",
        "discover",
    ];
    const REMOVERS: [&str; 5] = ["task_update", "TaskUpdate", "tasks", "edit_memory", "delete_memory"];
    const REPEATERS: [&str; 6] = ["task_create", "task_plan", "task_next", "TaskCreate", "send", "receive"];
    for tool in tools_of("full,claude,kin", "memory:") {
        let name = tool["name"].as_str().unwrap().to_owned();
        let hint = |hint: &str| tool["annotations"][hint].as_bool().unwrap_or_else(|| panic!("{name} has no {hint}"));
        let one_of = |names: &[&str]| names.contains(&name.as_str());
        assert_eq!(hint("readOnlyHint"), one_of(&READERS), "{name}");
        assert_eq!(hint("destructiveHint"), one_of(&REMOVERS), "{name}");
        assert!(!hint("openWorldHint"), "{name}");
        assert_eq!(hint("idempotentHint"), !one_of(&REMOVERS) && !one_of(&REPEATERS), "{name}");
        if tool["_meta"]["anthropic/alwaysLoad"] == true {
            loaded.push(name);
        }
    }
    let core = ["register", "task_next", "task_update", "task_list"];
    assert_eq!(loaded, [&core[..], &["TaskCreate", "TaskGet", "TaskUpdate", "TaskList", "tasks"]].concat());
}

#[test]
fn the_definitions_are_small() {
    for (set, tokens_max) in SETS {
        let bytes = Value::Array(tools_of(set, "memory:")).to_string().len();
        println!("{set}: tools/list has {bytes} bytes, {} tokens of at most {tokens_max}", bytes / 4);
        assert!(bytes / 4 <= tokens_max, "{set} {bytes}");
    }
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
        "send",
        "receive",
    ];
    assert_eq!(names, order);
}
