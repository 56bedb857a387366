//! Whole sessions of the drop-in tools, compared with checked-in transcripts: Kin's worked example and a session of
//! thirty calls in the manner of Claude Code, each on a shared list, a sidecar and a task directory. The official SDKs
//! drive the same sessions (`tests/clients`). `UPDATE_GOLDEN=1` writes the transcripts anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::server::{Launch, Server};

/// The stores, and what their transcripts are called.
const STORES: [(&str, &str); 3] =
    [("shared", "sqlite:taskbus.db"), ("sidecar", "file:session.tasks.json"), ("directory", "claude:tasks")];

fn sessions() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/sessions"))
}

/// Plays a session; its transcript.
fn play(set: &str, store: &str) -> String {
    let steps: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(sessions().join(format!("{set}.json"))).unwrap()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut server = Launch::new(home.path(), store).arg("--tools").arg(set).env("TASKBUS_AS", "zed");
    if store.starts_with("sqlite:") {
        server = server.arg("--list").arg("demo");
    }
    let (mut server, mut names, mut transcript) = (server.start(), BTreeMap::new(), String::new());
    for step in &steps {
        let (result, line) = call(&mut server, step, &names);
        if let Some(name) = step["binds"].as_str() {
            names.insert(format!("${name}"), result["structuredContent"]["task"]["id"].clone());
        }
        assert_ne!(result["structuredContent"]["code"], "internal", "{line}");
        transcript.push_str(&line);
    }
    normal(&transcript)
}

fn call(server: &mut Server, step: &Value, names: &BTreeMap<String, Value>) -> (Value, String) {
    let (tool, arguments) = (step["tool"].as_str().unwrap(), &step["arguments"]);
    let result = server.result(tool, resolved(arguments, names));
    let (text, data) = (result["content"][0]["text"].as_str().unwrap(), result["structuredContent"].to_string());
    let mut line = format!("> {tool} {arguments}\n");
    if result["isError"] == true {
        line.push_str("refused\n");
    }
    if text != data {
        text.lines().for_each(|text| writeln!(line, "text| {text}").unwrap());
    }
    writeln!(line, "data| {data}").unwrap();
    (result, line)
}

/// Puts ids where names stand.
fn resolved(value: &Value, names: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => names.get(text).unwrap_or(value).clone(),
        Value::Array(items) => items.iter().map(|item| resolved(item, names)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), resolved(value, names)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        _ => value.clone(),
    }
}

/// What differs from run to run, made the same: ids of a sidecar are numbered as they come, times are 0.
fn normal(transcript: &str) -> String {
    let (mut out, mut rest, mut seen) = (String::new(), transcript, Vec::new());
    while let Some(at) = rest.find("t_1") {
        let (before, after) = rest.split_at(at);
        let id = &after[..after.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(after.len())];
        if !seen.contains(&id) {
            seen.push(id);
        }
        let number = seen.iter().position(|other| *other == id).unwrap() + 1;
        write!(out, "{before}t_{number}").unwrap();
        rest = &after[id.len()..];
    }
    without_times(&(out + rest))
}

fn without_times(text: &str) -> String {
    let mut parts = text.split("\"completed_at\":");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |all, part| {
        format!("{all}\"completed_at\":0{}", part.trim_start_matches(|c: char| c.is_ascii_digit()))
    })
}

#[track_caller]
fn check(set: &str) {
    for (name, store) in STORES {
        let path = sessions().join(format!("{set}.{name}.txt"));
        let played = play(set, store);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &played).unwrap();
        }
        assert_eq!(played, fs::read_to_string(&path).unwrap_or_default(), "{} is another transcript", path.display());
    }
}

#[test]
fn the_worked_example_of_kin_goes_as_written() {
    check("kin");
}

#[test]
fn a_session_in_the_manner_of_claude_code_goes_as_written() {
    let steps = fs::read_to_string(sessions().join("claude.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&steps).unwrap().as_array().unwrap().len(), 30);
    check("claude");
}

#[test]
fn normal_transcripts_hide_only_what_differs() {
    let text = r#"t_1720600000000_a1b2 t_1720600000001_ffff "t_1720600000000_a1b2" "completed_at":1720600000000} x"#;
    assert_eq!(normal(text), r#"t_1 t_2 "t_1" "completed_at":0} x"#);
    assert_eq!(
        resolved(&json!({"id": "$a", "on": ["$a", "b"]}), &[("$a".to_owned(), json!(7))].into()),
        json!({"id": 7, "on": [7, "b"]})
    );
}
