//! The tools of the bus on a memory store: what comes back, in which form, and what is refused.
#![expect(clippy::needless_pass_by_value, reason = "arguments read better at the calls")]

use serde_json::{Map, Value, json};
use taskbus_core::limits::{RESULT_BYTES_DEFAULT, WAIT_SECONDS_MAX};

use crate::mcp::desk::{Desk, Reply};
use crate::mcp::repository::Repository;
use crate::mcp::trial::{Client, desk};
use crate::wire::error::Failure;

const CLIENT: Client = Client { name: "c", thread: None };

fn reply(desk: &Desk, tool: &str, arguments: Value) -> Result<Reply, Failure> {
    CLIENT.call(desk, tool, &arguments)
}

#[track_caller]
fn call(desk: &Desk, tool: &str, arguments: Value) -> Map<String, Value> {
    reply(desk, tool, arguments.clone()).unwrap_or_else(|failure| panic!("{tool} {arguments}: {failure:?}")).facts
}

#[track_caller]
fn refused(desk: &Desk, tool: &str, arguments: Value, code: &str, message: &str) {
    let failure = reply(desk, tool, arguments.clone()).unwrap_err();
    assert_eq!(failure.code, code, "{arguments}: {failure:?}");
    assert!(failure.message.contains(message), "{}", failure.message);
}

/// A desk at which Zed and Amp are registered.
fn pair() -> Desk {
    let desk = desk();
    for name in ["Zed", "Amp"] {
        assert_eq!(call(&desk, "register", json!({"name": name}))["as"], name);
    }
    desk
}

fn said(messages: &Value) -> Vec<&str> {
    messages.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect()
}

#[test]
fn what_is_sent_is_received_until_it_is_acknowledged() {
    let desk = pair();
    let sent = call(
        &desk,
        "send",
        json!({"as": "Zed", "channel": "general", "content": "hello", "subject": "Greeting", "type": "note",
            "tags": "Rust,env:prod", "metadata": {"k": "v"}}),
    );
    assert_eq!(sent.keys().collect::<Vec<_>>(), ["seq"]);
    let first = call(&desk, "receive", json!({"as": "Amp"}));
    let message = &first["messages"][0];
    let expected = json!({"seq": sent["seq"], "channel": "general", "sender": "Zed", "content": "hello",
        "subject": "Greeting", "type": "note", "tags": ["env:prod", "rust"], "metadata": {"k": "v"}});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(message[name], *value, "{name} of {message}");
    }
    let again = call(&desk, "receive", json!({"as": "Amp"}));
    assert_eq!((&again["redelivered"], &again["messages"]), (&json!(true), &first["messages"]));
    let answer = json!({"as": "Amp", "channel": "general", "content": "hi", "reply_to": sent["seq"]});
    call(&desk, "send", answer);
    let empty = call(&desk, "receive", json!({"as": "Amp", "ack": again["batch"]}));
    assert_eq!((&empty["messages"], empty.get("batch")), (&json!([]), None));
    let own = call(&desk, "receive", json!({"as": "Zed", "include_own": "true", "count": "1"}));
    assert_eq!(said(&own["messages"]), ["hello"]);
    assert_eq!(call(&desk, "receive", json!({"as": "Zed", "ack": "nonsense"}))["ack_ignored"], true);
}

#[test]
fn an_inbox_is_its_owners_alone() {
    let desk = pair();
    call(&desk, "send", json!({"as": "Zed", "channel": "dm/Amp", "content": "secret"}));
    assert_eq!(said(&call(&desk, "receive", json!({"as": "Amp", "channels": ["dm/Amp"]}))["messages"]), ["secret"]);
    for (owner, channel) in [("Amp", "dm/Amp"), ("Poe", "dm/Poe")] {
        refused(&desk, "history", json!({"as": "Zed", "channel": channel}), "not_found", &format!("{owner} never"));
        refused(&desk, "subscribe", json!({"as": "Zed", "channel": channel}), "validation", "inbox");
    }
    refused(&desk, "send", json!({"as": "Zed", "channel": "dm/Poe", "content": "x"}), "not_found", "never registered");
    let listed = call(&desk, "list_channels", json!({"as": "Zed"}));
    assert!(!json!(listed).to_string().contains("dm/"), "{listed:?}");
}

#[test]
fn lists_are_bare_in_the_text_and_say_when_they_were_cut() {
    let desk = pair();
    let rows = |reply: &Reply| -> Vec<Value> { serde_json::from_str(reply.text.as_ref().unwrap()).unwrap() };
    for (tool, arguments, list) in [
        ("list_channels", json!({"as": "Zed"}), "channels"),
        ("discover", json!({"as": "Zed"}), "sessions"),
        ("history", json!({"as": "Zed", "channel": "general"}), "messages"),
    ] {
        let whole = reply(&desk, tool, arguments).unwrap();
        assert_eq!(json!(rows(&whole)), whole.facts[list], "{tool}");
    }
    for n in 0..150 {
        let name = format!("general/{n:03}-{}", "x".repeat(100));
        call(&desk, "create_channel", json!({"as": "Zed", "name": name}));
    }
    let (mut seen, mut cursor, mut pages) = (Vec::new(), json!(null), 0);
    loop {
        let page = reply(&desk, "list_channels", json!({"as": "Zed", "cursor": cursor})).unwrap();
        let facts = json!(page.facts);
        assert!(
            facts.to_string().len() <= RESULT_BYTES_DEFAULT
                && page.text.as_ref().unwrap().len() <= RESULT_BYTES_DEFAULT
        );
        assert_eq!(facts["total"], 152);
        seen.extend(facts["channels"].as_array().unwrap().clone());
        pages += 1;
        if facts["truncated"] == false {
            break;
        }
        let end = rows(&page).pop().unwrap();
        assert_eq!(end, json!({"truncated": true, "total": 152, "next": facts["next"]}));
        cursor = facts["next"].clone();
    }
    assert!(pages > 2 && seen.len() == 152, "{pages} pages, {} channels", seen.len());
    for n in 0..40 {
        let content = format!("{n} {}", "x".repeat(500));
        call(&desk, "send", json!({"as": "Zed", "channel": "general", "content": content}));
    }
    let cut = reply(&desk, "history", json!({"as": "Amp", "channel": "general"})).unwrap();
    assert!(json!(cut.facts).to_string().len() <= RESULT_BYTES_DEFAULT + 64, "{}", json!(cut.facts).to_string().len());
    assert_eq!((&cut.facts["truncated"], rows(&cut).last().unwrap()["truncated"].clone()), (&json!(true), json!(true)));
    assert!(said(&cut.facts["messages"]).last().unwrap().starts_with("39 "));
    let before = cut.facts["messages"][0]["seq"].clone();
    let earlier = call(&desk, "history", json!({"as": "Amp", "channel": "general", "before": before, "count": 2}));
    assert_eq!(earlier["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn channels_have_kinds_and_task_lists_are_left_to_their_tools() {
    let desk = pair();
    let made = call(&desk, "create_channel", json!({"as": "Zed", "name": "memory/app", "kind": "memory"}));
    let expected = json!({"name": "memory/app", "kind": "memory", "messages": 0, "latest_seq": 0});
    assert_eq!(Value::Object(made), expected);
    call(&desk, "create_channel", json!({"as": "Zed", "name": "tasks/t", "kind": "memory"}));
    refused(
        &desk,
        "create_channel",
        json!({"as": "Zed", "name": "tasks/u", "kind": "ordinary"}),
        "validation",
        "memory",
    );
    refused(&desk, "create_channel", json!({"as": "Zed", "name": "talk"}), "validation", "ordinary or memory");
    call(&desk, "create_channel", json!({"as": "Zed", "name": "talk", "kind": "ordinary"}));
    refused(&desk, "create_channel", json!({"as": "Zed", "name": "talk", "kind": "memory"}), "conflict", "ordinary");
    refused(&desk, "send", json!({"as": "Zed", "channel": "tasks/t", "content": "x"}), "validation", "task_update");
    let task = call(&desk, "task_create", json!({"as": "Zed", "channel": "tasks/t", "subject": "s"}));
    refused(&desk, "edit_memory", json!({"as": "Zed", "id": task["id"], "content": "x"}), "validation", "task_update");
    let document = call(&desk, "get_memory", json!({"as": "Zed", "id": task["id"]}));
    let document: Value = serde_json::from_str(document["content"].as_str().unwrap()).unwrap();
    assert_eq!((&document["subject"], &document["status"]), (&json!("s"), &json!("pending")));
}

#[test]
fn a_subscription_is_to_a_channel_or_to_tags() {
    let desk = pair();
    call(&desk, "create_channel", json!({"as": "Zed", "name": "talk", "kind": "ordinary"}));
    call(&desk, "send", json!({"as": "Zed", "channel": "talk", "content": "old"}));
    let subscribed = call(&desk, "subscribe", json!({"as": "Amp", "channel": "talk", "from": "oldest"}));
    assert_eq!(Value::Object(subscribed), json!({"subscribed": "talk"}));
    assert_eq!(said(&call(&desk, "receive", json!({"as": "Amp"}))["messages"]), ["old"]);
    let tags = call(&desk, "subscribe", json!({"as": "Zed", "tags": ["Rust", "env*"]}));
    assert_eq!(Value::Object(tags), json!({"subscribed_tags": ["env*", "rust"]}));
    call(&desk, "send", json!({"as": "Amp", "channel": "talk", "content": "both", "tags": ["rust", "env:prod"]}));
    call(&desk, "send", json!({"as": "Amp", "channel": "talk", "content": "one", "tags": ["rust"]}));
    let heard = call(&desk, "receive", json!({"as": "Zed"}));
    assert_eq!(
        (said(&heard["messages"]), &heard["messages"][0]["matched_tags"]),
        (vec!["both"], &json!(["env:prod", "rust"]))
    );
    for (arguments, message) in [
        (json!({"as": "Zed"}), "either channel or tags"),
        (json!({"as": "Zed", "channel": "talk", "tags": ["a"]}), "either channel or tags"),
        (json!({"as": "Zed", "tags": ["a b"]}), "tags"),
    ] {
        refused(&desk, "subscribe", arguments, "validation", message);
    }
    refused(&desk, "subscribe", json!({"as": "Zed", "channel": "nowhere"}), "not_found", "nowhere");
    let gone = call(&desk, "unsubscribe", json!({"as": "Zed", "tags": ["env*", "rust"]}));
    assert_eq!(Value::Object(gone), json!({"unsubscribed_tags": ["env*", "rust"]}));
    assert_eq!(call(&desk, "unsubscribe", json!({"as": "Zed", "channel": "nowhere"}))["unsubscribed"], "nowhere");
}

#[test]
fn what_a_repository_follows_is_written_down_and_followed() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join(".git")).unwrap();
    let mut desk = desk();
    desk.repository = Repository { start: root.path().canonicalize().unwrap(), home: None };
    call(&desk, "register", json!({"name": "Zed"}));
    call(&desk, "create_channel", json!({"as": "Zed", "name": "general/app"}));
    let persistent = json!({"as": "Zed", "channel": "general/app", "persistent": true});
    assert_eq!(call(&desk, "subscribe", persistent.clone())["persistent"], true);
    let file = root.path().join(".local/taskbus.json");
    let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(written["channels"], json!(["general", "memory", "general/app"]));
    let registered = call(&desk, "register", json!({"name": "Amp"}));
    assert_eq!(registered["subscribed"], json!(["general", "general/app"]));
    assert_eq!(registered["memory_channels"], json!(["memory"]));
    call(&desk, "unsubscribe", persistent);
    let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(written["channels"], json!(["general", "memory"]));
    std::fs::write(&file, "{").unwrap();
    let registered = call(&desk, "register", json!({"name": "Jan"}));
    let why = &registered["subscribe_failed"][".local/taskbus.json"];
    assert!(why.as_str().unwrap().contains("no JSON"), "{registered:?}");
    assert_eq!(registered["subscribed"], json!(["general"]));
    refused(&desk, "subscribe", json!({"as": "Zed", "channel": "general", "persistent": true}), "validation", "JSON");
    desk.repository = Repository::default();
    refused(&desk, "subscribe", json!({"as": "Zed", "channel": "general", "persistent": true}), "validation", "Git");
}

#[test]
fn memories_are_kept_found_revised_and_deleted() {
    let desk = pair();
    let about = json!({"as": "Zed", "channel": "memory", "content": "the build needs cmake", "subject": "Build",
        "tags": ["build"], "metadata": {"k": "v"}, "type": "fact"});
    let sent = call(&desk, "send", about);
    assert_eq!(sent["memory_id"], sent["seq"]);
    let id = sent["memory_id"].clone();
    let found = call(&desk, "search", json!({"as": "Amp", "query": "cmake bui*"}));
    assert_eq!((&found["hits"][0]["memory_id"], found["hits"][0]["score"].is_number()), (&id, true));
    let edited = call(&desk, "edit_memory", json!({"as": "Amp", "id": id, "content": "the build needs ninja"}));
    assert_eq!((&edited["memory_id"], &edited["revision"], &edited["replaced"]), (&id, &json!(2), &sent["seq"]));
    let now = call(&desk, "get_memory", json!({"as": "Zed", "memory_id": format!("#{id}")}));
    assert_eq!(
        (&now["content"], &now["subject"], &now["tags"]),
        (&json!("the build needs ninja"), &json!("Build"), &json!(["build"]))
    );
    assert_eq!((now.get("metadata"), now.get("type"), &now["sender"]), (None, None, &json!("Amp")));
    let cleared = json!({"as": "Amp", "id": id, "content": "x", "subject": "", "tags": []});
    call(&desk, "edit_memory", cleared);
    let now = call(&desk, "get_memory", json!({"as": "Zed", "id": id}));
    assert_eq!((now.get("subject"), now.get("tags")), (None, None));
    let key = json!({"as": "Amp", "id": id, "idempotency_key": "k"});
    assert_eq!(call(&desk, "delete_memory", key.clone()), call(&desk, "delete_memory", key));
    refused(&desk, "get_memory", json!({"as": "Zed", "id": id}), "not_found", "no memory");
    refused(&desk, "get_memory", json!({"as": "Zed", "id": "t_1_x"}), "validation", "a number such as 7");
    refused(&desk, "search", json!({"as": "Zed", "query": "**"}), "validation", "no word");
}

#[test]
fn a_wait_for_messages_has_a_limit_and_points_to_the_command() {
    let desk = pair();
    let over = json!({"as": "Zed", "wait_seconds": WAIT_SECONDS_MAX + 1});
    refused(&desk, "receive", over, "validation", "taskbus wait");
    refused(&desk, "receive", json!({"as": "Zed", "wait_seconds": -1}), "validation", "from 0");
    call(&desk, "send", json!({"as": "Amp", "channel": "general", "content": "x"}));
    assert_eq!(said(&call(&desk, "receive", json!({"as": "Zed", "wait_seconds": 50}))["messages"]), ["x"]);
}

#[test]
fn who_is_here_is_said_with_the_program() {
    let desk = pair();
    let here = call(&desk, "discover", json!({"as": "Zed"}));
    let amp = &here["sessions"][0];
    assert_eq!((&amp["sender"], &amp["harness"], &amp["harness_version"]), (&json!("Amp"), &json!("c"), &json!("1")));
    assert!(amp["registered_at"].is_u64() && amp["context"].is_string(), "{amp}");
}

#[test]
fn registering_says_what_is_unread_and_may_begin_anew() {
    let desk = pair();
    for n in 0..3 {
        call(&desk, "send", json!({"as": "Zed", "channel": "dm/Amp", "content": n.to_string()}));
    }
    let again = call(&desk, "register", json!({"name": "Amp"}));
    assert_eq!(again["resumed"], true);
    let inbox = |answer: &Map<String, Value>| {
        let rows = answer["pending"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["channel"] == "dm/Amp").map_or(json!(0), |row| row["pending"].clone())
    };
    assert_eq!(inbox(&again), 3);
    let anew = call(&desk, "register", json!({"name": "Amp", "resume": false}));
    assert_eq!(inbox(&anew), 0, "{anew:?}");
    assert_eq!(call(&desk, "receive", json!({"as": "Amp"}))["messages"], json!([]));
}

#[test]
fn who_never_registered_hears_its_name_with_the_first_answer() {
    let desk = desk();
    let sent = call(&desk, "send", json!({"channel": "general", "content": "x"}));
    assert_eq!(sent["as"], "Roo");
    let listed = reply(&desk, "list_channels", json!({})).unwrap();
    assert_eq!(listed.facts["as"], "Roo");
}
