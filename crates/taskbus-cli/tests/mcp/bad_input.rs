//! Every field of every published tool × everything that models and mischief send. Each pair has a stated answer; a
//! refusal has the common form and leaves the database as it was. A field that is not stated here fails the test.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::server::{Launch, Server, dump};

/// What is sent.
const BAD: [(Bad, &str); 13] = [
    (Bad::WrongType, r#"{"x":1}"#),
    (Bad::Null, "null"),
    (Bad::NullText, r#""null""#),
    (Bad::Empty, r#""""#),
    (Bad::Long, ""),
    (Bad::Control, r#""a\u0007b""#),
    (Bad::Surrogate, r#""a\ud800b""#),
    (Bad::Nul, r#""a\u0000b""#),
    (Bad::Turned, ""),
    (Bad::Hidden, ""),
    (Bad::Huge, "1e400"),
    (Bad::Large, "99999999999999999999"),
    (Bad::Nested, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    WrongType,
    Null,
    NullText,
    Empty,
    Long,
    Control,
    Surrogate,
    Nul,
    /// Text from right to left.
    Turned,
    /// Text with a character that nobody sees.
    Hidden,
    Huge,
    Large,
    Nested,
}

/// How a field is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One line of text.
    Line,
    /// A name, known or not.
    Name,
    /// A line that an empty text clears.
    ClearableLine,
    /// Text of several lines.
    Body,
    /// The same, cleared by an empty one.
    ClearableBody,
    /// A name that must be known already.
    Known,
    /// The same, cleared by an empty text.
    ClearableKnown,
    /// A relative path.
    Path,
    /// A key, which may also be a number.
    Key,
    /// Words between anything that is no word.
    Query,
    /// Text that only has to be the same as another, whatever it is.
    Token,
    /// Something with a grammar of its own: no text of ours fits it.
    Strict,
}

/// What the answer must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Refused with one of these codes.
    Refused(&'static [&'static str]),
    /// As if the field had not been sent.
    Absent,
    /// Taken as it is.
    Taken,
}

/// How each field is read, by its name; `tool.field` where tools differ.
fn kind(tool: &str, field: &str) -> Kind {
    match (tool, field) {
        ("task_update", "owner") => Kind::ClearableKnown,
        ("task_update", "description") => Kind::ClearableBody,
        ("task_update", "active_form") => Kind::ClearableLine,
        ("register", "context") => Kind::Line,
        ("register", "name" | "parent") | ("task_list", "owner") => Kind::Name,
        ("receive", "ack") | ("list_channels" | "discover", "cursor") => Kind::Token,
        ("receive", "channels") => Kind::Name,
        ("send" | "subscribe", "channel") => Kind::Known,
        ("history" | "search" | "unsubscribe", "channel") | ("search", "sender") => Kind::Name,
        ("edit_memory", "subject") => Kind::ClearableLine,
        ("send" | "edit_memory", "content") => Kind::Body,
        ("search", "query") => Kind::Query,
        ("send" | "edit_memory", "type") => Kind::Line,
        (
            "register" | "send" | "receive" | "subscribe" | "unsubscribe" | "history" | "search" | "get_memory"
            | "edit_memory" | "delete_memory",
            "resume" | "reply_to" | "tags" | "include_own" | "from" | "persistent" | "before" | "after" | "mode"
            | "since" | "until" | "thread" | "id",
        ) => Kind::Strict,
        (_, "subject" | "active_form" | "idempotency_key") => Kind::Line,
        (_, "description" | "result" | "note") => Kind::Body,
        (_, "as") => Kind::Known,
        (_, "paths") => Kind::Path,
        (_, "tasks[].key") => Kind::Key,
        (_, "tasks[].subject" | "tasks[].active_form") => Kind::Line,
        (_, "tasks[].description") => Kind::Body,
        (_, "tasks[].paths") => Kind::Path,
        (
            _,
            "tasks" | "tasks[].parent" | "tasks[].blocked_by" | "tasks[].not_before" | "tasks[].labels"
            | "tasks[].metadata" | "name" | "kind" | "max_reclaims" | "channel" | "parent" | "before" | "after"
            | "blocked_by" | "not_before" | "labels" | "metadata" | "complete" | "fence" | "count" | "lease_seconds"
            | "leased_until" | "wait_seconds" | "task_id" | "if_revision" | "status" | "add_blocked_by"
            | "remove_blocked_by" | "delete" | "force" | "history" | "view" | "label" | "cursor" | "limit",
        ) => Kind::Strict,
        _ => panic!("the answers for {tool}.{field} are not stated"),
    }
}

const INVALID: Answer = Answer::Refused(&["validation"]);
const UNKNOWN: Answer = Answer::Refused(&["not_found", "not_registered"]);

fn expected(tool: &str, field: &str, bad: Bad) -> Answer {
    let kind = kind(tool, field);
    match (bad, kind) {
        (Bad::Hidden, Kind::Name | Kind::Known | Kind::ClearableKnown) => INVALID,
        (Bad::Hidden, _) => expected(tool, field, Bad::Turned),
        // What the gate refuses whatever the field.
        (Bad::Surrogate | Bad::Huge | Bad::Nested, _) => INVALID,
        (Bad::WrongType, _) => INVALID,
        (Bad::Null | Bad::NullText, _) => Answer::Absent,
        (Bad::Long | Bad::Nul | Bad::Control | Bad::Turned, Kind::Token) => Answer::Taken,
        (Bad::Nul | Bad::Control | Bad::Turned, Kind::Query) => Answer::Taken,
        (Bad::Empty, Kind::ClearableLine | Kind::ClearableBody | Kind::ClearableKnown) => Answer::Taken,
        (Bad::Empty, _) => Answer::Absent,
        (Bad::Long | Bad::Nul, _) => INVALID,
        (Bad::Control, Kind::Body | Kind::ClearableBody) => Answer::Taken,
        (Bad::Control, _) => INVALID,
        (Bad::Turned, Kind::Known | Kind::ClearableKnown) => UNKNOWN,
        (Bad::Turned | Bad::Large, Kind::Strict) => INVALID,
        (Bad::Turned, _) => Answer::Taken,
        (Bad::Large, Kind::Key) => Answer::Taken,
        (Bad::Large, _) => INVALID,
    }
}

/// Arguments with which the tool does its work, as JSON texts by field.
fn base(tool: &str, field: &str) -> Vec<(&'static str, String)> {
    let base = |pairs: &[(&'static str, &str)]| pairs.iter().map(|(name, json)| (*name, (*json).to_owned())).collect();
    let channel = ("channel", r#""tasks/t""#);
    match (tool, field) {
        ("register", _) => base(&[("name", r#""Amp""#)]),
        ("create_channel", _) => base(&[("name", r#""tasks/t""#)]),
        ("task_create", _) => base(&[channel, ("subject", r#""s""#)]),
        ("task_plan", _) => base(&[channel, ("tasks", r#"[{"subject":"s"}]"#)]),
        ("task_next", "result" | "fence") => base(&[channel, ("complete", "1")]),
        ("task_next" | "task_list", _) => base(&[channel]),
        ("task_claim" | "task_release" | "task_update" | "task_get", _) => base(&[("task_id", "2")]),
        ("send", _) => base(&[("channel", r#""general""#), ("content", r#""c""#)]),
        ("subscribe" | "unsubscribe", "tags" | "channel") | ("receive" | "list_channels" | "discover", _) => base(&[]),
        ("subscribe" | "unsubscribe" | "history", _) => base(&[("channel", r#""general""#)]),
        ("search", _) => base(&[("query", r#""needle""#)]),
        ("get_memory", _) => base(&[("id", MEMORY)]),
        ("edit_memory", _) => base(&[("id", MEMORY), ("content", r#""c""#)]),
        // Each call has one of its own to delete.
        ("delete_memory", _) => vec![("id", DOOMED.fetch_add(1, Ordering::SeqCst).to_string())],
        _ => panic!("no arguments are stated for {tool}"),
    }
}

/// The memory that is read and edited; behind it come those that are deleted.
const MEMORY: &str = "3";
static DOOMED: AtomicU64 = AtomicU64::new(4);

fn arguments(tool: &str, field: &str, value: &str) -> String {
    let mut fields = base(tool, field);
    match field.strip_prefix("tasks[].") {
        Some("subject") => set(&mut fields, "tasks", format!(r#"[{{"subject":{value}}}]"#)),
        Some(inner) => set(&mut fields, "tasks", format!(r#"[{{"subject":"s","{inner}":{value}}}]"#)),
        None => set(&mut fields, field, value.to_owned()),
    }
    let fields: Vec<String> = fields.iter().map(|(name, json)| format!(r#""{name}":{json}"#)).collect();
    format!("{{{}}}", fields.join(","))
}

fn set(fields: &mut Vec<(&'static str, String)>, name: &str, json: String) {
    fields.retain(|(known, _)| *known != name);
    fields.push((Box::leak(name.to_owned().into_boxed_str()), json));
}

/// The values that differ from call to call.
fn value(bad: Bad, text: &str, tool: &str) -> String {
    match bad {
        Bad::Long => format!("\"{}\"", "x".repeat(100_000)),
        // A key belongs to one call, so each tool gets its own.
        Bad::Turned => format!("\"\u{5d0}\u{5d1} {tool}\""),
        Bad::Hidden => format!("\"\u{202e}{tool}\""),
        _ => text.to_owned(),
    }
}

fn call(server: &mut Server, tool: &str, arguments: &str) -> Value {
    let id = json!(format!("call {tool}"));
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    server.send_bytes(format!("{line}\n").as_bytes());
    let answer = server.answer(&id);
    assert!(answer["result"].is_object(), "{tool} {arguments}: {answer}");
    answer["result"].clone()
}

#[track_caller]
fn is_refusal(result: &Value, codes: &[&str], asked: &str) {
    let refusal = &result["structuredContent"];
    assert_eq!(result["isError"], true, "taken: {asked}");
    assert!(codes.contains(&refusal["code"].as_str().unwrap()), "{asked}: {refusal}");
    let message = refusal["message"].as_str().unwrap();
    assert!((10..=1024).contains(&message.len()), "{asked}: {} bytes", message.len());
    assert!(
        !result.to_string().contains(['\u{202e}', '\u{7}', '\0']) && !message.contains(char::is_control),
        "{message:?}"
    );
    assert_eq!(refusal["retryable"], false);
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, *refusal);
}

/// The published fields of a tool, those of a plan's tasks too, and which are required.
fn fields(tool: &Value) -> Vec<(String, bool)> {
    let mut fields = listed("", &tool["inputSchema"]);
    let name = tool["name"].as_str().unwrap();
    for (field, required) in &mut fields {
        // Without a list of its own, this server needs the channel; a subscription is to a channel or to tags.
        *required |= name.starts_with("task_") && field == "channel";
        *required |= name.ends_with("subscribe") && matches!(field.as_str(), "channel" | "tags");
    }
    if let Some(item) = tool["inputSchema"]["properties"].get("tasks") {
        fields.extend(listed("tasks[].", &item["items"]));
    }
    fields
}

fn listed(before: &str, schema: &Value) -> Vec<(String, bool)> {
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
    let names = schema["properties"].as_object().unwrap().keys();
    names.map(|name| (format!("{before}{name}"), required(name))).collect()
}

fn prepared(home: &tempfile::TempDir) -> Server {
    let mut server = Launch::new(home.path(), "sqlite:taskbus.db").arg("--tools").arg("full").start();
    // With the only name, so that no call takes one on the way.
    server.call("register", json!({"name": "Zed"}));
    server.call("create_channel", json!({"name": "tasks/t"}));
    for subject in ["finished on the way", "worked on"] {
        server.call("task_create", json!({"channel": "tasks/t", "subject": subject}));
    }
    for n in 0..40 {
        let kept = server.call("send", json!({"channel": "memory", "content": format!("memory {n}")}));
        assert!(n > 0 || kept["memory_id"] == json!(MEMORY.parse::<u64>().unwrap()), "{kept}");
    }
    server
}

/// The database without what its maintenance keeps for itself, which a tick may change at any time.
fn kept(home: &Path) -> Vec<String> {
    let own = |row: &String| ["upkeep:", "texts", "text_words:"].iter().any(|table| row.starts_with(table));
    dump(home).into_iter().filter(|row| !own(row)).collect()
}

#[test]
fn every_field_has_an_answer_to_everything() {
    let home = tempfile::tempdir().unwrap();
    let mut server = prepared(&home);
    let mut tools = server.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone();
    // With a second name, calls that name none would take another one.
    tools.sort_by_key(|tool| tool["name"] == "register");
    let (mut refused, mut taken) = (0, 0);
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        for (field, required) in fields(tool) {
            for (bad, text) in BAD {
                let arguments = arguments(name, &field, &value(bad, text, name));
                let asked = format!("{name}.{field} {bad:?}");
                let before = kept(home.path());
                let result = call(&mut server, name, &arguments);
                match expected(name, &field, bad) {
                    Answer::Refused(codes) => {
                        is_refusal(&result, codes, &asked);
                        let after = kept(home.path());
                        let changed: Vec<&String> = after.iter().filter(|row| !before.contains(row)).collect();
                        assert_eq!(after, before, "{asked} changed the database: {changed:?}");
                        refused += 1;
                    }
                    Answer::Absent if required => is_refusal(&result, &["validation"], &asked),
                    Answer::Absent | Answer::Taken => {
                        assert_eq!(result["isError"], false, "{asked}: {result}");
                        taken += 1;
                    }
                }
            }
        }
        let unknown = call(&mut server, name, r#"{"no_such_field":1}"#);
        is_refusal(&unknown, &["validation"], name);
        assert!(unknown["structuredContent"]["message"].as_str().unwrap().contains("no_such_field"), "{unknown}");
    }
    println!("{refused} refused and unchanged, {taken} taken or absent");
}
