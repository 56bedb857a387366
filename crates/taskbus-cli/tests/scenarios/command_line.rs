//! Each call is one command, `--as` its person.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use taskbus::conformance::Driver;

/// A driver over a fresh file.
pub(crate) struct CommandLine {
    store: PathBuf,
}

impl CommandLine {
    pub(crate) fn new(place: &Path) -> Self {
        let fresh = Self { store: place.join("scenario.db") };
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let first = fresh.run("zed", &words(&["add", "makes the list", "--create"]), "").unwrap();
        fresh.run("zed", &words(&["rm", &first["task"]["id"].to_string()]), "").unwrap();
        fresh
    }

    fn run(&self, actor: &str, words: &[String], input: &str) -> Result<Value, Value> {
        let store = format!("sqlite:{}", self.store.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_taskbus"))
            .args(words)
            .args(["--json", "--list", "scenario", "--store", &store, "--as", actor])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        command.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = command.wait_with_output().unwrap();
        let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["schema_version"], 1, "{answer}");
        match answer["error"].take() {
            Value::Null => Ok(answer),
            error => Err(error),
        }
    }
}

impl Driver for CommandLine {
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let input = arguments.get("tasks").map_or_else(String::new, Value::to_string);
        self.run(actor, &words(tool, arguments), &input)
    }

    /// A delete is a verb of its own here, so it cannot come with a change; a time out of range is wrong usage.
    fn can(&self, _tool: &str, arguments: &Map<String, Value>) -> bool {
        let usage = matches!(arguments.get("lease_seconds").and_then(Value::as_str), Some("0" | "604801"));
        let mixed = arguments.contains_key("delete") && arguments.contains_key("subject");
        !usage && !mixed
    }

    /// A plan that cannot be read is refused with its line, before the rules see it.
    fn has_facts(&self, tool: &str) -> bool {
        tool != "task_plan"
    }

    fn pass(&mut self, _seconds: u64) -> bool {
        false
    }

    fn kill(&mut self, _actor: &str) -> bool {
        false
    }
}

fn words(tool: &str, arguments: &Map<String, Value>) -> Vec<String> {
    let mut arguments = arguments.clone();
    let deletes = arguments.remove("delete").map(|delete| text(&delete) == "true");
    let view = arguments.remove("view").map_or_else(|| "list".to_owned(), |view| text(&view));
    let verb = match (tool, deletes) {
        ("task_create", _) => "add",
        ("task_plan", _) => "plan",
        ("task_next", _) => "next",
        ("task_claim", _) => "claim",
        ("task_release", _) => "release",
        ("task_get", _) => "show",
        ("task_list", _) => &view,
        (_, Some(true)) => "rm",
        (_, Some(false)) => "restore",
        _ => "update",
    };
    let mut words = vec![verb.to_owned()];
    words.extend(arguments.remove("task_id").map(|id| text(&id)));
    if verb == "plan" {
        return words.into_iter().chain(["-".to_owned(), "--create".to_owned()]).collect();
    }
    if matches!(verb, "claim" | "next") && !arguments.contains_key("lease_seconds") {
        words.extend(["--lease".to_owned(), "none".to_owned()]);
    }
    words.extend(arguments.iter().flat_map(|(key, value)| options(verb, key, value)));
    words
}

fn options(verb: &str, key: &str, value: &Value) -> Vec<String> {
    let option = match (verb, key) {
        (_, "lease_seconds") => return vec!["--lease".to_owned(), format!("{}s", text(value))],
        (_, "force") => return vec!["--force".to_owned()],
        (_, "metadata") => return metadata(value),
        ("list" | "ready" | "blocked", "parent") => "below".to_owned(),
        (_, "labels") => "label".to_owned(),
        (_, "paths") => "path".to_owned(),
        (_, "idempotency_key") => "key".to_owned(),
        (_, key) => key.replace('_', "-"),
    };
    let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    values.iter().map(|value| format!("--{option}={}", text(value))).collect()
}

fn metadata(value: &Value) -> Vec<String> {
    let pairs = value.as_object().cloned().unwrap_or_default();
    pairs.iter().map(|(key, value)| format!("--meta={key}={}", text(value))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| json!(value).to_string(), str::to_owned)
}
