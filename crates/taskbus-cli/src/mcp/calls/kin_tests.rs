//! Kin's tool on a sidecar and on a shared list.
#![expect(clippy::needless_pass_by_value, reason = "arguments read better at the calls")]

use std::sync::Arc;

use serde_json::{Value, json};
use taskbus::store::memory::MemoryStore;
use taskbus::store::sidecar::{Options, Sidecar};
use taskbus::store::small::Small;
use taskbus_core::limits::RESULT_BYTES_DEFAULT;
use taskbus_core::name::ListName;
use tempfile::TempDir;

use crate::mcp::desk::{Desk, Lists};
use crate::mcp::trial::{Client, many, on};

const CLIENT: Client = Client { name: "c", thread: None };

/// A session of Kin with its sidecar.
fn session(dir: &TempDir) -> Desk {
    let sidecar = Sidecar::of_session(dir.path(), "s-1", Options::default()).unwrap();
    on(Arc::new(Small::new(sidecar).unwrap()), Lists::One { named: None }, "kin")
}

/// The tool over a shared list.
fn shared(store: &Arc<MemoryStore>, name: &str) -> Desk {
    let list = || Ok(ListName::from_short("t").unwrap());
    on(Arc::clone(store) as Arc<_>, many(list(), list()), name)
}

#[track_caller]
fn does(desk: &Desk, arguments: Value) -> Value {
    let (text, facts, is_error) = CLIENT.hear(desk, "tasks", &arguments);
    assert!(!is_error, "{arguments}: {facts}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), facts);
    assert_eq!(facts["action"], arguments["action"]);
    facts
}

#[track_caller]
fn refuses(desk: &Desk, arguments: Value, code: &str, words: &str) {
    let (_, facts, is_error) = CLIENT.hear(desk, "tasks", &arguments);
    assert!(is_error && facts["code"] == code, "{arguments}: {facts}");
    assert!(facts["message"].as_str().unwrap().contains(words), "{facts}");
}

fn add(desk: &Desk, content: &str, blocked_by: &[&Value]) -> Value {
    does(desk, json!({"action": "add", "content": content, "blockedBy": blocked_by}))["task"]["id"].clone()
}

fn row<'a>(facts: &'a Value, id: &Value) -> &'a Value {
    facts["snapshot"]["tasks"].as_array().unwrap().iter().find(|row| row["id"] == *id).unwrap()
}

fn ids(rows: &Value) -> Vec<Value> {
    rows.as_array().unwrap().iter().map(|row| row["id"].clone()).collect()
}

#[test]
fn rows_are_compact_and_show_both_ends() {
    let dir = tempfile::tempdir().unwrap();
    let desk = session(&dir);
    let first = add(&desk, "Provision the dev DB", &[]);
    let added = does(&desk, json!({"action": "add", "content": "Seed dev fixtures", "blockedBy": [first]}));
    let second = added["task"]["id"].clone();
    assert_eq!(
        added,
        json!({
            "action": "add",
            "task": {"id": second, "content": "Seed dev fixtures", "status": "pending", "blockedBy": [first]},
            "snapshot": {"tasks": [
                {"id": first, "content": "Provision the dev DB", "status": "pending", "blocks": [second]},
                {"id": second, "content": "Seed dev fixtures", "status": "pending", "blockedBy": [first]},
            ]},
        })
    );
    let done = does(&desk, json!({"action": "complete", "id": first}));
    assert_eq!((&done["task"]["status"], done["task"].get("owner")), (&json!("completed"), None));
    assert!(done["task"]["completed_at"].is_i64(), "{done}");
    let form = json!({"action": "update", "id": second, "active_form": "Seeding", "status": "in_progress"});
    assert_eq!(does(&desk, form)["task"]["active_form"], "Seeding");
    let back = does(&desk, json!({"action": "update", "id": first, "status": "pending", "active_form": ""}));
    assert_eq!(back["task"].get("completed_at"), None);
    let listed = does(&desk, json!({"action": "list", "status_filter": "in_progress"}));
    assert_eq!((ids(&listed["tasks"]), ids(&listed["snapshot"]["tasks"]).len()), (vec![second], 2));
}

#[test]
fn any_status_goes_on_a_sidecar() {
    let dir = tempfile::tempdir().unwrap();
    let desk = session(&dir);
    let first = add(&desk, "first", &[]);
    let second = add(&desk, "second", &[&first]);
    let started = does(&desk, json!({"action": "update", "id": second, "status": "in_progress"}));
    assert!(started["warnings"][0].as_str().unwrap().contains("blocked"), "{started}");
    for status in ["completed", "in_progress", "deleted", "completed", "deleted", "in_progress", "pending"] {
        let moved = does(&desk, json!({"action": "update", "id": second, "status": status}));
        assert_eq!(moved["task"]["status"], status);
        assert_eq!(row(&moved, &first)["blocks"], json!([second]), "a deleted row still names its blocker");
    }
    does(&desk, json!({"action": "remove", "id": first}));
    assert_eq!(does(&desk, json!({"action": "blocked"}))["tasks"], json!([]), "a deleted blocker blocks nothing");
    let removed = does(&desk, json!({"action": "list", "status_filter": "deleted"}));
    assert_eq!(ids(&removed["tasks"]), std::slice::from_ref(&first));
    let again = does(&desk, json!({"action": "remove", "id": first}));
    assert_eq!(again["task"]["status"], "deleted");
    // A row that is deleted can be changed in its place, and be waited for.
    let edited = does(&desk, json!({"action": "update", "id": first, "content": "first, once"}));
    assert_eq!((&edited["task"]["content"], &edited["task"]["status"]), (&json!("first, once"), &json!("deleted")));
}

#[test]
fn blockers_are_replaced_and_cycles_refused() {
    let dir = tempfile::tempdir().unwrap();
    let desk = session(&dir);
    let [a, b, c] = ["a", "b", "c"].map(|content| add(&desk, content, &[]));
    let wait = |id: &Value, on: Value| json!({"action": "update", "id": id, "blockedBy": on});
    does(&desk, wait(&a, json!([b, c])));
    assert_eq!(does(&desk, wait(&a, json!([c])))["task"]["blockedBy"], json!([c]));
    does(&desk, wait(&b, json!(a)));
    refuses(&desk, wait(&c, json!([b])), "validation", "cycle");
    refuses(&desk, wait(&c, json!([c])), "validation", "itself");
    refuses(
        &desk,
        wait(&c, json!(["t_0000000000001_dead"])),
        "validation",
        "blockedBy names task t_0000000000001_dead",
    );
    refuses(&desk, json!({"action": "add", "content": "x", "blockedBy": ["t_1_x"]}), "validation", "blockedBy names");
    assert_eq!(ids(&does(&desk, json!({"action": "blocked"}))["tasks"]), [a.clone(), b.clone()]);
    assert_eq!(does(&desk, wait(&a, json!([])))["task"].get("blockedBy"), None);
    assert_eq!(does(&desk, json!({"action": "list"}))["tasks"].as_array().unwrap().len(), 3, "nothing was added");
}

#[test]
fn an_action_takes_its_own_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let desk = session(&dir);
    let id = add(&desk, "a", &[]);
    for (arguments, words) in [
        (json!({}), "action is required"),
        (json!({"action": "delete", "id": id}), "add, update, complete, remove, list, blocked"),
        (json!({"action": "add"}), "action add needs content"),
        (json!({"action": "update", "content": "x"}), "action update needs id"),
        (json!({"action": "complete"}), "action complete needs id"),
        (json!({"action": "remove", "id": id, "status": "deleted"}), "action remove takes no status; it takes id"),
        (json!({"action": "add", "content": "x", "id": id}), "action add takes no id"),
        (json!({"action": "add", "content": "x", "status": "completed"}), "action add takes no status"),
        (json!({"action": "list", "status": "pending"}), "action list takes no status; it takes status_filter"),
        (json!({"action": "blocked", "status_filter": "pending"}), "it takes nothing else"),
        (json!({"action": "update", "id": id, "blocked_by": []}), "did you mean \"blockedBy\"?"),
        (json!({"action": "update", "id": id, "status": "done"}), "status must be one of"),
    ] {
        refuses(&desk, arguments, "validation", words);
    }
    refuses(&desk, json!({"action": "complete", "id": "t_1_gone"}), "not_found", "action list shows the live ones");
    does(&desk, json!({"action": "add", "content": "x", "status": "pending", "blockedBy": null, "id": ""}));
}

#[test]
fn a_content_may_be_long() {
    let dir = tempfile::tempdir().unwrap();
    let desk = session(&dir);
    let long = format!("first line\n{}", "more ".repeat(1000));
    let added = does(&desk, json!({"action": "add", "content": long}));
    assert_eq!(added["task"]["content"], long);
    let shown = added["snapshot"]["tasks"][0]["content"].as_str().unwrap();
    assert!(shown.ends_with('…') && shown.len() < 600, "{}", shown.len());
    let id = &added["task"]["id"];
    assert_eq!(does(&desk, json!({"action": "update", "id": id, "content": "short"}))["task"]["content"], "short");
    assert_eq!(does(&desk, json!({"action": "update", "id": id, "content": long}))["task"]["content"], long);
}

#[test]
fn on_a_shared_list_its_rules_hold() {
    let store = Arc::default();
    let (roo, amp) = (shared(&store, "roo"), shared(&store, "amp"));
    assert_eq!(
        does(&roo, json!({"action": "list"})),
        json!({"action": "list", "tasks": [], "snapshot": {"tasks": []}})
    );
    refuses(&roo, json!({"action": "complete", "id": "1"}), "not_found", "there is no task 1");
    let a = add(&roo, "a", &[]);
    let b = add(&roo, "b", &[&a]);
    assert_eq!((&a, &b), (&json!("1"), &json!("2")), "the ids of the list, as text");
    refuses(&roo, json!({"action": "update", "id": b, "status": "in_progress"}), "conflict", "blocked by 1");
    let started = does(&roo, json!({"action": "update", "id": a, "status": "in_progress"}));
    assert_eq!(started["task"]["owner"], "roo");
    refuses(&amp, json!({"action": "complete", "id": a}), "conflict", "held by roo; take another one");
    does(&roo, json!({"action": "complete", "id": a}));
    refuses(&roo, json!({"action": "update", "id": a, "status": "in_progress"}), "validation", "to pending first");
    let removed = does(&amp, json!({"action": "remove", "id": b}));
    assert_eq!((&removed["task"]["status"], &row(&removed, &b)["status"]), (&json!("deleted"), &json!("deleted")));
    let back = does(&amp, json!({"action": "update", "id": b, "status": "in_progress"}));
    assert_eq!((&back["task"]["status"], &back["task"]["owner"]), (&json!("in_progress"), &json!("amp")));
    refuses(&roo, json!({"action": "remove", "id": b}), "conflict", "held by amp");
}

#[test]
fn a_description_of_another_tool_is_not_lost() {
    let desk = shared(&Arc::default(), "roo");
    let id = add(&desk, "a", &[]);
    CLIENT.call(&desk, "task_update", &json!({"task_id": id, "description": "the long form"})).unwrap();
    let renamed = does(&desk, json!({"action": "update", "id": id, "content": "a, better"}));
    assert_eq!(renamed["task"]["content"], "a, better");
    refuses(&desk, json!({"action": "update", "id": id, "content": "two\nlines"}), "validation", "has a description");
    let kept = CLIENT.call(&desk, "task_get", &json!({"task_id": id})).unwrap().facts;
    assert_eq!((&kept["subject"], &kept["description"]), (&json!("a, better"), &json!("the long form")));
}

#[test]
fn a_large_graph_is_cut_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let desk = session(&dir);
    let long = "é".repeat(100);
    let all: Vec<Value> = (0..60).map(|_| add(&desk, &long, &[])).collect();
    let busy = does(&desk, json!({"action": "update", "id": all[59], "status": "in_progress"}));
    for facts in [busy, does(&desk, json!({"action": "list"}))] {
        assert!(facts.to_string().len() <= RESULT_BYTES_DEFAULT, "{}", facts.to_string().len());
        let snapshot = &facts["snapshot"];
        assert_eq!((&snapshot["truncated"], &snapshot["total"]), (&json!(true), &json!(60)));
        let shown = ids(&snapshot["tasks"]);
        assert!(shown.len() > 10 && shown.contains(&all[59]), "what is in progress is shown: {shown:?}");
        assert!(shown.iter().zip(&shown[1..]).all(|(a, b)| a.as_str() < b.as_str()), "{shown:?}");
    }
    let filtered = does(&desk, json!({"action": "list", "status_filter": "pending"}));
    assert_eq!((&filtered["truncated"], &filtered["total"]), (&json!(true), &json!(59)));
}
