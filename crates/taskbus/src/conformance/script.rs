//! The form of a scenario script: one line a step.
//!
//! ```text
//! # a remark
//! zed: create A subject="Port it" labels=rust   -> status=pending revision=1
//! amp: claim A lease_seconds=60                 -> owner=amp fence=1
//! zed: claim A                                  ! conflict reason=held owner=amp
//! clock +61
//! amp dies
//! ```
//!
//! Capital names stand for task ids. `create` and `plan` bind them: `plan A B/A C<A,B` makes B under A, and C
//! blocked by both.

use serde_json::{Map, Value, json};

/// One line of a script.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Its number, from 1.
    pub line: usize,
    /// What it does.
    pub deed: Deed,
}

/// What a line does.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// Time passes, in seconds.
    Clock(u64),
    /// Somebody's process is gone.
    Dies(String),
    /// Somebody calls a tool.
    Call { actor: String, tool: &'static str, arguments: Map<String, Value>, binds: Option<String>, expected: Expected },
}

/// What must come back.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The refusal's code; none when the call must succeed.
    pub refusal: Option<String>,
    /// Fields and their values.
    pub fields: Vec<(String, String)>,
}

impl Expected {
    /// Whether the list is another one afterwards.
    pub(super) fn is_change(&self, tool: &str) -> bool {
        let says = |key: &str, value: &str| self.fields.iter().any(|(name, told)| name == key && told == value);
        let reads = matches!(tool, "task_get" | "task_list");
        self.refusal.is_none() && !reads && !says("replaced", "0") && !says("took", "")
    }
}

/// Reads a script.
///
/// # Panics
/// On a line that is no step: scripts are part of the tests.
pub(super) fn parse(text: &str) -> Vec<Step> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let steps = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    steps.map(|(line, text)| Step { line, deed: deed(line, text) }).collect()
}

fn deed(line: usize, text: &str) -> Deed {
    if let Some(seconds) = text.strip_prefix("clock +") {
        return Deed::Clock(seconds.parse().unwrap_or_else(|_| panic!("line {line}: no number of seconds: {seconds}")));
    }
    if let Some(actor) = text.strip_suffix(" dies") {
        return Deed::Dies(actor.to_owned());
    }
    let (call, expected) = expectation(text);
    let Some((actor, call)) = call.split_once(": ") else { panic!("line {line}: no step: {text}") };
    let mut words = words(call).into_iter();
    let verb = words.next().unwrap_or_else(|| panic!("line {line}: no verb"));
    let words: Vec<String> = words.collect();
    let (tool, arguments, binds) = call_of(line, &verb, &words);
    Deed::Call { actor: actor.trim().to_owned(), tool, arguments, binds, expected }
}

fn expectation(text: &str) -> (&str, Expected) {
    if let Some((call, rest)) = text.split_once(" -> ") {
        return (call, Expected { refusal: None, fields: words(rest).iter().map(|w| pair(w)).collect() });
    }
    if let Some((call, rest)) = text.split_once(" ! ") {
        let mut rest = words(rest).into_iter();
        return (call, Expected { refusal: rest.next(), fields: rest.map(|w| pair(&w)).collect() });
    }
    (text, Expected { refusal: None, fields: Vec::new() })
}

fn pair(word: &str) -> (String, String) {
    let (key, value) = word.split_once('=').unwrap_or((word, "true"));
    (key.to_owned(), value.to_owned())
}

/// Splits at blanks outside quotes; quotes go away.
fn words(text: &str) -> Vec<String> {
    let (mut found, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => {
                if !word.is_empty() {
                    found.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if !word.is_empty() {
        found.push(word);
    }
    found
}

type Call = (&'static str, Map<String, Value>, Option<String>);

fn call_of(line: usize, verb: &str, words: &[String]) -> Call {
    let named = |words: &[String]| words.first().cloned();
    match verb {
        "create" => {
            let name = named(words).unwrap_or_else(|| panic!("line {line}: create what?"));
            let mut arguments = json!({"subject": name}).as_object().cloned().unwrap_or_default();
            arguments.extend(fields(&words[1..]));
            ("task_create", arguments, Some(name))
        }
        "plan" => ("task_plan", plan(words), None),
        "next" => ("task_next", fields(words), None),
        "list" => ("task_list", fields(words), None),
        "claim" | "release" | "complete" | "delete" | "update" | "get" => {
            let mut arguments = json!({"task_id": named(words)}).as_object().cloned().unwrap_or_default();
            arguments.extend(fields(&words[1..]));
            let (tool, extra) = match verb {
                "claim" => ("task_claim", None),
                "release" => ("task_release", None),
                "complete" => ("task_update", Some(("status", json!("completed")))),
                "delete" => ("task_update", Some(("delete", json!(true)))),
                "get" => ("task_get", None),
                _ => ("task_update", None),
            };
            arguments.extend(extra.map(|(key, value)| (key.to_owned(), value)));
            (tool, arguments, None)
        }
        _ => panic!("line {line}: no verb {verb}"),
    }
}

const LISTS: [&str; 5] = ["blocked_by", "add_blocked_by", "remove_blocked_by", "labels", "paths"];

fn fields(words: &[String]) -> Map<String, Value> {
    let mut arguments = Map::new();
    for (key, value) in words.iter().map(|word| pair(word)) {
        if let Some(name) = key.strip_prefix("metadata.") {
            arguments.entry("metadata").or_insert_with(|| json!({}))[name] = value.into();
        } else if LISTS.contains(&key.as_str()) {
            arguments.insert(key, value.split(',').collect());
        } else {
            arguments.insert(key, value.into());
        }
    }
    arguments
}

fn plan(words: &[String]) -> Map<String, Value> {
    let tasks: Vec<Value> = words.iter().map(|word| planned(word)).collect();
    json!({"tasks": tasks}).as_object().cloned().unwrap_or_default()
}

fn planned(word: &str) -> Value {
    let (rest, blockers) = word.split_once('<').unwrap_or((word, ""));
    let (key, parent) = rest.split_once('/').unwrap_or((rest, ""));
    let blockers: Vec<&str> = blockers.split(',').filter(|b| !b.is_empty()).collect();
    let mut task = json!({"key": key, "subject": key, "blocked_by": blockers});
    if !parent.is_empty() {
        task["parent"] = parent.into();
    }
    task
}
