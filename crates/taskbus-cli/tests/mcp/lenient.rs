//! One task, however a model spells it: through the pipe, the gate, the SDK and the table.

use serde_json::{Value, json};
use taskbus_core::limits::{
    LEASE_SECONDS_MAX, NEXT_COUNT_MAX, PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, REQUEST_DEPTH_MAX, WAIT_SECONDS_MAX,
};

use crate::server::{Server, on_sqlite};

fn with_tasks(home: &tempfile::TempDir) -> Server {
    let mut server = on_sqlite(home.path());
    server.call("create_channel", json!({"name": "tasks/t"}));
    for _ in 0..3 {
        server.call("task_create", json!({"channel": "tasks/t", "subject": "s"}));
    }
    server
}

#[test]
fn ids_are_the_same_in_every_spelling() {
    let home = tempfile::tempdir().unwrap();
    let mut server = with_tasks(&home);
    for id in [json!(2), json!("2"), json!("#2"), json!("002"), json!(2.0), json!("2.0"), json!(" 2 ")] {
        assert_eq!(server.call("task_get", json!({"task_id": id}))["id"], 2, "{id}");
        let made =
            server.call("task_create", json!({"channel": "tasks/t", "subject": "s", "blocked_by": id, "after": id}));
        assert_eq!(made["blocked_by"], json!([2]), "{id}");
    }
    for id in [json!(9_007_199_254_740_993_u64), json!("9007199254740993")] {
        assert_eq!(server.refusal("task_get", json!({"task_id": id}))["task_id"], 9_007_199_254_740_993_u64);
    }
    for id in [json!(0), json!(-1), json!(2.5), json!("2x"), json!(1e30), json!(true)] {
        assert_eq!(server.refusal("task_get", json!({"task_id": id}))["code"], "validation", "{id}");
    }
}

#[test]
fn values_are_read_as_models_write_them() {
    let home = tempfile::tempdir().unwrap();
    let mut server = with_tasks(&home);
    for (spelling, expected) in [
        (json!({"blocked_by": "[\"1\", 2]"}), json!({"blocked_by": [1, 2]})),
        (json!({"blocked_by": "1,2"}), json!({"blocked_by": [1, 2]})),
        (json!({"blocked_by": ["#1", 2.0]}), json!({"blocked_by": [1, 2]})),
        (json!({"labels": "rust,db"}), json!({"labels": ["db", "rust"]})),
        (json!({"labels": "[\"rust\"]"}), json!({"labels": ["rust"]})),
        (json!({"metadata": "{\"k\": \"v\"}"}), json!({"metadata": {"k": "v"}})),
        (json!({"not_before": "2026-11-30T16:00:00+01:00"}), json!({"not_before": 1_796_050_800_000_i64})),
        (json!({"not_before": "1796050800000"}), json!({"not_before": 1_796_050_800_000_i64})),
        (
            json!({"description": null, "parent": "null", "labels": ["null"], "before": 0, "after": "", "as": "undefined"}),
            json!({"rank": null}),
        ),
    ] {
        let mut call = json!({"channel": "tasks/t", "subject": "s"});
        call.as_object_mut().unwrap().extend(spelling.as_object().unwrap().clone());
        let made = server.call("task_create", call);
        for (name, value) in expected.as_object().unwrap() {
            assert!(value.is_null() || made[name] == *value, "{spelling}: {made}");
        }
        assert!(made.get("parent").is_none() && made.get("description").is_none());
    }
    let claimed = server.call("task_claim", json!({"task_id": "1", "lease_seconds": "60"}));
    assert!(claimed["task"]["leased_until"].is_u64());
    let cleared = server.call("task_update", json!({"task_id": 1, "leased_until": "0", "force": "false"}));
    assert!(cleared["task"].get("leased_until").is_none());
}

#[test]
fn missing_and_textual_arguments_are_read() {
    let home = tempfile::tempdir().unwrap();
    let mut server = with_tasks(&home);
    let mut ask = |params: Value| server.request("tools/call", params)["result"].clone();
    for params in [
        json!({"name": "register"}),
        json!({"name": "register", "arguments": null}),
        json!({"name": "register", "arguments": "{}"}),
        json!({"name": "register", "arguments": {"name": null}}),
    ] {
        let refused = ask(params.clone());
        assert_eq!(
            (&refused["isError"], &refused["structuredContent"]["field"]),
            (&json!(true), &json!("name")),
            "{params}"
        );
    }
    let textual = ask(json!({"name": "task_get", "arguments": "{\"task_id\": \"#1\"}"}));
    assert_eq!(textual["structuredContent"]["id"], 1);
    let extra = ask(json!({"name": "task_get", "arguments": {"task_id": 1, "wait_for_previous": true}}));
    assert_eq!(extra["structuredContent"]["id"], 1);
}

#[test]
fn unknown_fields_are_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let mut server = with_tasks(&home);
    for (field, nearest) in
        [("titel", "subject"), ("dependsOn", "blocked_by"), ("blockedBy", "blocked_by"), ("list", "channel")]
    {
        let refusal = server.refusal("task_create", json!({"channel": "tasks/t", "subject": "s", field: "x"}));
        assert_eq!((&refusal["field"], &refusal["nearest"]), (&json!(field), &json!(nearest)));
    }
}

#[test]
fn limits_hold_at_the_limit_and_one_past_it() {
    let home = tempfile::tempdir().unwrap();
    let mut server = with_tasks(&home);
    for (tool, field, max) in [
        ("task_next", "wait_seconds", WAIT_SECONDS_MAX),
        ("task_next", "count", NEXT_COUNT_MAX as u64),
        ("task_next", "lease_seconds", LEASE_SECONDS_MAX),
        ("task_list", "limit", PAGE_ROWS_MAX as u64),
    ] {
        let ask = |value: u64| json!({"channel": "tasks/t", field: value});
        // There are ready tasks, so no call waits.
        server.call("task_create", json!({"channel": "tasks/t", "subject": "s"}));
        server.call(tool, ask(max));
        let refusal = server.refusal(tool, ask(max + 1));
        assert_eq!((&refusal["code"], &refusal["field"]), (&json!("validation"), &json!(field)), "{refusal}");
        assert!(refusal["message"].as_str().unwrap().contains(&max.to_string()), "{refusal}");
    }
}

#[test]
fn messages_are_read_to_the_limit_of_their_depth() {
    let home = tempfile::tempdir().unwrap();
    let mut server = with_tasks(&home);
    // The message, its params and the arguments are three levels.
    let mut nested = |depth: usize| {
        let value: Value = (0..depth - 3).fold(json!(1), |inner, _| json!([inner]));
        server.refusal("task_get", json!({"task_id": value}))["message"].as_str().unwrap().to_owned()
    };
    assert!(nested(REQUEST_DEPTH_MAX).starts_with("task_id must be a task id"));
    assert!(nested(REQUEST_DEPTH_MAX + 1).contains(&format!("deeper than {REQUEST_DEPTH_MAX} levels")));
}

#[test]
fn a_page_has_its_usual_length_unless_told_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let mut server = on_sqlite(home.path());
    server.call("create_channel", json!({"name": "tasks/t"}));
    let tasks: Vec<Value> = (0..=PAGE_ROWS_DEFAULT).map(|_| json!({"subject": "s"})).collect();
    server.call("task_plan", json!({"channel": "tasks/t", "tasks": tasks}));
    let page = server.call("task_list", json!({"channel": "tasks/t"}));
    assert_eq!((page["tasks"].as_array().unwrap().len(), &page["truncated"]), (PAGE_ROWS_DEFAULT, &json!(true)));
    assert_eq!(page["total"], PAGE_ROWS_DEFAULT + 1);
    let rest = server.call("task_list", json!({"channel": "tasks/t", "cursor": page["next"]}));
    assert_eq!((rest["tasks"].as_array().unwrap().len(), &rest["truncated"]), (1, &json!(false)));
}
