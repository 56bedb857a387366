//! Each tool on a memory store: every field of the table is used, and every answer keeps its budget.
#![expect(clippy::needless_pass_by_value, reason = "arguments read better at the calls")]

use serde_json::{Map, Value, json};
use taskbus_core::limits::{RESULT_BYTES_DEFAULT, WAIT_SECONDS_MAX};

use crate::mcp::desk::{Asked, Desk, Reply};
use crate::mcp::field::Kind;
use crate::mcp::table::Offer;
use crate::mcp::trial::{Client, desk_with_list, offered};
use crate::options::ToolSet;
use crate::wire::error::Failure;

const CLIENT: Client = Client { name: "c", thread: None };

fn try_call(desk: &Desk, tool: &str, arguments: Value) -> Result<Reply, Failure> {
    CLIENT.call(desk, tool, &arguments)
}

#[track_caller]
fn call(desk: &Desk, tool: &str, arguments: Value) -> Map<String, Value> {
    try_call(desk, tool, arguments.clone()).unwrap_or_else(|failure| panic!("{tool} {arguments}: {failure:?}")).facts
}

#[track_caller]
fn refused(desk: &Desk, tool: &str, arguments: Value, code: &str, message: &str) {
    let failure = try_call(desk, tool, arguments.clone()).unwrap_err();
    assert_eq!(failure.code, code, "{arguments}: {failure:?}");
    assert!(failure.message.contains(message), "{}", failure.message);
}

fn add(desk: &Desk, arguments: Value) -> Value {
    let mut given = json!({"channel": "tasks/t", "subject": "s"});
    given.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
    call(desk, "task_create", given)["id"].clone()
}

fn bytes(reply: &Reply) -> usize {
    let facts = serde_json::to_string(&reply.facts).unwrap().len();
    facts.max(reply.text.as_ref().map_or(0, String::len))
}

/// A value that a field takes, whatever the state of the list.
fn some_value(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Clearable | Kind::Reference => json!("x"),
        Kind::IdText => json!("1"),
        Kind::IdTexts => json!(["1"]),
        Kind::Data => json!({"k": [1]}),
        Kind::Word(words) => json!(words[0]),
        Kind::Flag => json!(true),
        Kind::Integer { min, .. } => json!(min.max(1)),
        Kind::Id | Kind::IdOrNone | Kind::Seq => json!(1),
        Kind::Millis => json!(4_000_000_000_000_i64),
        Kind::Date => json!("2026-01-01T00:00:00Z"),
        Kind::Ids => json!([1]),
        Kind::Words | Kind::Texts => json!(["x"]),
        Kind::References => json!([1]),
        Kind::Metadata => json!({"k": "v"}),
        Kind::Items(fields) => {
            let item: Map<String, Value> =
                fields.iter().map(|field| (field.name.to_owned(), some_value(field.kind))).collect();
            json!([item])
        }
    }
}

/// Sends each field alone, with what is required. Each call must be read to its end: nothing may be left over,
/// which the desk asserts, and no field may meet a reader of another kind, which panics.
#[test]
fn every_field_of_every_tool_is_used() {
    for tool in Offer::of(&[ToolSet::Full], false).tools.iter().map(|offered| offered.tool) {
        for field in tool.fields {
            let desk = desk_with_list();
            add(&desk, json!({}));
            let mut arguments = Map::new();
            for given in tool.fields.iter().filter(|given| given.required || given.name == field.name) {
                arguments.insert(given.name.to_owned(), some_value(given.kind));
            }
            if tool.name == "create_channel" || tool.name == "register" {
                arguments.insert("name".to_owned(), json!(if tool.name == "register" { "Amp" } else { "tasks/new" }));
            }
            if tool.fields.iter().any(|field| field.name == "channel") {
                arguments.insert("channel".to_owned(), json!("tasks/t"));
            }
            if let Err(failure) = try_call(&desk, tool.name, Value::Object(arguments.clone())) {
                assert_ne!(failure.code, "internal", "{} {arguments:?}: {failure:?}", tool.name);
            }
        }
    }
}

#[test]
fn everything_said_of_a_task_is_kept() {
    let desk = desk_with_list();
    let (a, b) = (add(&desk, json!({})), add(&desk, json!({})));
    let id = add(
        &desk,
        json!({"subject": "Long", "description": "d", "active_form": "Doing", "parent": a, "blocked_by": [b],
            "not_before": "2026-01-01T00:00:00Z", "labels": "rust,db", "paths": ["src/**"], "metadata": {"k": "v", "e": ""}}),
    );
    let task = call(&desk, "task_get", json!({"task_id": id}));
    let expected = json!({"subject": "Long", "description": "d", "active_form": "Doing", "parent": a,
        "blocked_by": [b], "not_before": 1_767_225_600_000_i64, "labels": ["db", "rust"], "paths": ["src/**"],
        "metadata": {"k": "v"}, "ready": false, "open_blockers": [b]});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(task[name], *value, "{name}");
    }
    let cleared = call(
        &desk,
        "task_update",
        json!({"task_id": id, "description": "", "active_form": "", "parent": 0, "not_before": 0, "labels": [],
            "paths": [], "metadata": {"k": ""}, "remove_blocked_by": b}),
    );
    let left: Vec<&String> = cleared["task"].as_object().unwrap().keys().collect();
    for name in ["description", "active_form", "parent", "not_before", "labels", "paths", "metadata", "blocked_by"] {
        assert!(!left.iter().any(|left| *left == name), "{name} is left: {cleared:?}");
    }
}

#[test]
fn a_task_goes_through_its_life() {
    let desk = desk_with_list();
    let (a, b) = (add(&desk, json!({})), add(&desk, json!({"blocked_by": [1]})));
    let taken = call(&desk, "task_next", json!({"channel": "tasks/t", "lease_seconds": "60"}));
    assert_eq!((&taken["task"]["id"], &taken["task"]["owner"], &taken["as"]), (&a, &json!("Roo"), &json!("Roo")));
    refused(&desk, "task_claim", json!({"task_id": b}), "conflict", "blocked by 1");
    let released = call(&desk, "task_release", json!({"task_id": a, "note": "later", "fence": 1}));
    assert_eq!(released["task"]["status"], "pending");
    call(&desk, "task_claim", json!({"task_id": a, "if_revision": 3}));
    let next = call(&desk, "task_next", json!({"channel": "tasks/t", "complete": a, "result": "done", "fence": 2}));
    assert_eq!(
        (&next["completed"]["task"]["status"], &next["completed"]["unblocked"]),
        (&json!("completed"), &json!([b]))
    );
    assert_eq!(next["task"]["id"], b);
    let done = call(&desk, "task_update", json!({"task_id": b, "status": "completed"}));
    assert_eq!(done["task"]["status"], "completed");
    let idle = call(&desk, "task_next", json!({"channel": "tasks/t", "count": 2}));
    assert_eq!((&idle["idle"]["advice"], idle.get("task")), (&json!("done"), None));
    let gone = call(&desk, "task_update", json!({"task_id": a, "delete": "true"}));
    assert_eq!(gone["deleted"], true);
}

#[test]
fn what_excludes_each_other_is_refused() {
    let desk = desk_with_list();
    let id = add(&desk, json!({}));
    refused(&desk, "task_update", json!({"task_id": id, "before": 2, "after": 3}), "validation", "exclude each other");
    refused(
        &desk,
        "task_claim",
        json!({"task_id": id, "lease_seconds": 5, "leased_until": 9}),
        "validation",
        "exclude",
    );
    refused(&desk, "task_next", json!({"channel": "tasks/t", "result": "x"}), "validation", "name it in complete");
    refused(&desk, "task_create", json!({"subject": "x"}), "validation", "channel is required");
    refused(&desk, "task_create", json!({"channel": "t", "subject": "x"}), "validation", "tasks/<name>");
}

#[test]
fn a_long_list_comes_in_pages_that_fit() {
    let desk = desk_with_list();
    let subjects: Vec<Value> = (0..120).map(|n| json!({"subject": format!("{n:03} {}", "x".repeat(250))})).collect();
    call(&desk, "task_plan", json!({"channel": "tasks/t", "tasks": subjects}));
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let ask = json!({"channel": "tasks/t", "cursor": cursor, "limit": 200});
        let reply = try_call(&desk, "task_list", ask).unwrap();
        assert!(bytes(&reply) <= RESULT_BYTES_DEFAULT, "{}", bytes(&reply));
        let text: Vec<Value> = serde_json::from_str(reply.text.as_ref().unwrap()).unwrap();
        let tasks = reply.facts["tasks"].as_array().unwrap();
        seen.extend(tasks.iter().map(|task| task["subject"].clone()));
        assert_eq!((reply.facts["total"].as_u64(), &text[..tasks.len()]), (Some(120), &tasks[..]));
        if reply.facts["truncated"] == false {
            assert_eq!(text.len(), tasks.len());
            break;
        }
        cursor = reply.facts["next"].clone();
        assert_eq!(text[tasks.len()], json!({"truncated": true, "total": 120, "next": cursor}));
    }
    assert_eq!(seen.len(), 120);
    assert!(seen.is_sorted_by_key(|subject| subject.as_str().unwrap().to_owned()));
}

#[test]
fn a_large_plan_answers_within_the_budget() {
    let desk = desk_with_list();
    let tasks: Vec<Value> = (0..1000).map(|n| json!({"key": format!("key-{n}"), "subject": "s"})).collect();
    let reply = try_call(&desk, "task_plan", json!({"channel": "tasks/t", "tasks": tasks})).unwrap();
    assert!(bytes(&reply) <= RESULT_BYTES_DEFAULT, "{}", bytes(&reply));
    assert_eq!((&reply.facts["total"], &reply.facts["truncated"]), (&json!(1000), &json!(true)));
    assert_eq!(reply.facts["tasks"][0]["key"], "key-0");
}

#[test]
fn only_a_task_asked_for_alone_is_larger_than_the_budget() {
    let desk = desk_with_list();
    let long = "é\"\n".repeat(10_000);
    let id = add(&desk, json!({"description": long}));
    let written = try_call(&desk, "task_update", json!({"task_id": id, "subject": "t"})).unwrap();
    assert!(bytes(&written) <= RESULT_BYTES_DEFAULT, "{}", bytes(&written));
    assert_eq!(written.facts["task"]["cut"], json!(["description"]));
    let read = call(&desk, "task_get", json!({"task_id": id}));
    assert_eq!(read["description"], long);
    let taken = call(&desk, "task_next", json!({"channel": "tasks/t"}));
    assert_eq!(taken["task"]["description"], long);
    for _ in 0..20 {
        add(&desk, json!({"description": "é\"\n".repeat(2_000)}));
    }
    let several = try_call(&desk, "task_next", json!({"channel": "tasks/t", "count": 16})).unwrap();
    assert_eq!(several.facts["tasks"].as_array().unwrap().len(), 16);
    assert!(bytes(&several) <= RESULT_BYTES_DEFAULT, "{}", bytes(&several));
}

#[test]
fn a_long_history_is_shown_from_its_end() {
    let desk = desk_with_list();
    let id = add(&desk, json!({}));
    for n in 0..40 {
        call(&desk, "task_update", json!({"task_id": id, "note": format!("{n} {}", "n".repeat(1000))}));
    }
    let reply = try_call(&desk, "task_get", json!({"task_id": id, "history": true})).unwrap();
    assert!(bytes(&reply) <= RESULT_BYTES_DEFAULT, "{}", bytes(&reply));
    let history = reply.facts["history"].as_array().unwrap();
    assert!(history[0]["note"].as_str().unwrap().starts_with("39 "), "{}", history[0]);
    assert_eq!(reply.facts["history_left_out"], 41 - history.len());
}

#[test]
fn a_cancelled_call_gives_its_task_back() {
    let desk = desk_with_list();
    let id = add(&desk, json!({}));
    let (yes, tool) = (|| true, offered("task_next").tool);
    let asked = Asked { thread: None, client: "c", version: "", cancelled: &yes, hurry: &yes, impatient: false };
    let arguments = json!({"channel": "tasks/t", "wait_seconds": 50});
    crate::mcp::desk::call(&desk, tool, arguments.as_object().unwrap().clone(), &asked).unwrap();
    let task = call(&desk, "task_get", json!({"task_id": id}));
    assert_eq!((&task["status"], task.get("owner")), (&json!("pending"), None));
}

#[test]
fn registering_shows_who_and_what_there_is() {
    let desk = desk_with_list();
    let first = call(&desk, "register", json!({"name": "Zed", "context": "tests"}));
    assert_eq!((&first["as"], &first["resumed"]), (&json!("Zed"), &json!(false)));
    assert_eq!(first["lists"][0]["name"], "tasks/t");
    let child = call(&desk, "register", json!({"name": "impl", "parent": "Zed"}));
    assert_eq!((&child["as"], &child["others"][0]["sender"]), (&json!("Zed/impl"), &json!("Roo")));
    let written = call(&desk, "task_create", json!({"channel": "tasks/t", "subject": "s", "as": "Zed/impl"}));
    assert_eq!((&written["created_by"], written.get("as")), (&json!("Zed/impl"), None));
    refused(&desk, "task_create", json!({"channel": "tasks/t", "subject": "s", "as": "Amp"}), "not_registered", "Amp");
    refused(&desk, "register", json!({"name": "a/b"}), "validation", "name the parent in `parent`");
}

#[test]
fn a_wait_has_a_limit() {
    let desk = desk_with_list();
    let waiting = |seconds: u64| json!({"channel": "tasks/t", "wait_seconds": seconds});
    add(&desk, json!({}));
    assert!(call(&desk, "task_next", waiting(WAIT_SECONDS_MAX)).contains_key("task"));
    refused(&desk, "task_next", waiting(WAIT_SECONDS_MAX + 1), "validation", "50");
}
