//! Any bytes as what a client sends: the gate reads them as lines, and what it lets through is called. Every line has an
//! answer of the protocol's form or wants none, and what is refused changes no list. The SDK between the two is not in
//! between here; real servers get broken lines in the tests of the binary.

#[path = "../../../taskbus-core/tests/fuzz/harness.rs"]
mod harness;

use serde_json::{Map, Value, json};
use taskbus::answer::ListView;
use taskbus_core::limits::ERROR_BYTES_MAX;

use self::harness::{Made, Target};
use super::desk::{self, Asked, BUDGET, Desk};
use super::gate::{Gate, Verdict};
use super::resources::{self, Resource};
use super::table::Offer;
use super::trial::{Client, desk_with_list};
use crate::options::ToolSet;
use crate::term::safe::{display_safe, display_safe_lines};

const WORDS: [&str; 44] = [
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"task_update\",\"arguments\":{\"task_id\":1,",
    "\"task_create\"",
    "\"task_list\"",
    "\"task_next\"",
    "\"send\"",
    "\"receive\"",
    "\"search\"",
    "\"history\"",
    "\"subscribe\"",
    "\"create_channel\"",
    "\"resources/read\"",
    "\"prompts/get\"",
    "\"channel\":\"tasks/t\"",
    "\"status\":\"completed\"",
    "\"owner\":\"\"",
    "\"force\":true",
    "\"delete\":true",
    "\"fence\":0",
    "\"cursor\":\"",
    "\"idempotency_key\":\"k\"",
    "\"parent\":1",
    "\"blocked_by\":[2]",
    "\"before\":2",
    "\"labels\":\"a,b\"",
    "\"metadata\":{\"k\":null}",
    "\"lease_seconds\":",
    "\"not_before\":\"2026-01-01T00:00:00Z\"",
    "\"as\":\"Roo\"",
    "\"arguments\":null",
    "\"arguments\":\"{}\"",
    "\"params\":[]",
    "\"id\":null",
    "null",
    "true",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "\n",
    "\\ud800",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];

#[test]
fn whatever_is_sent_is_answered_in_form_and_a_refusal_changes_nothing() {
    let corpus = include_str!("../../tests/corpus/requests.txt");
    Target { name: "requests", corpus, words: &WORDS, take: send }.hunt_both(2_500);
}

#[test]
fn whatever_is_shown_drives_no_terminal() {
    let words =
        &["\u{1b}[", "\u{1b}]52;c;", "\u{7}", "\u{9b}", "\\u{1b}", "\u{2066}", "\u{fe0f}", "a\u{301}", "\n", "\t"];
    let corpus = include_str!("../../tests/corpus/shown.txt");
    Target { name: "shown", corpus, words, take: show }.hunt_both(20_000);
}

fn show(input: &[u8]) -> Made {
    let text = &*String::from_utf8_lossy(input);
    let (line, lines) = (display_safe(text), display_safe_lines(text));
    assert!(!line.chars().any(drives), "{line:?}");
    assert_eq!(display_safe(&line), line, "what is safe is left alone");
    assert_eq!(lines.matches(['\n', '\t']).count(), text.matches(['\n', '\t']).count());
    assert_eq!(
        display_safe(&lines).replace("\\n", "\n").replace("\\t", "\t"),
        line.replace("\\n", "\n").replace("\\t", "\t")
    );
    Made::of(line == text)
}

/// Whether a character moves a cursor, turns text around or hides it.
fn drives(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A desk with two tasks, one of them held, and a message.
fn desk() -> Desk {
    let (desk, zed) = (desk_with_list(), Client::named("c"));
    zed.call(&desk, "task_create", &json!({"channel": "tasks/t", "subject": "first"})).unwrap();
    zed.call(&desk, "task_create", &json!({"channel": "tasks/t", "subject": "second", "blocked_by": [1]})).unwrap();
    zed.call(&desk, "task_claim", &json!({"task_id": 1})).unwrap();
    zed.call(&desk, "send", &json!({"channel": "general", "content": "words to find"})).unwrap();
    desk
}

fn send(input: &[u8]) -> Made {
    let (desk, mut gate) = (desk(), Gate::default());
    // In two pieces, as a pipe may hand them out.
    let (first, second) = input.split_at(input.len() / 2);
    let mut verdicts = gate.push(first);
    verdicts.extend(gate.push(second));
    verdicts.extend(gate.end());
    let taken = verdicts.iter().filter(|verdict| judged(&desk, verdict)).count();
    Made::of(taken > 0)
}

/// Whether something was done for it.
fn judged(desk: &Desk, verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Answer(answer) => {
            assert!(answer["jsonrpc"] == "2.0" && !answer["id"].is_object() && !answer["id"].is_array(), "{answer}");
            let error = &answer["error"];
            let is_error = error["code"].is_i64() && error["message"].as_str().is_some_and(|said| !said.is_empty());
            assert!(is_error != (answer["result"]["isError"] == true), "one of the two: {answer}");
            assert!(!answer.to_string().contains('\n') && answer.to_string().len() < 4 * ERROR_BYTES_MAX, "{answer}");
            false
        }
        Verdict::Notification(message) => {
            assert!(message["method"].is_string() && message.get("id").is_none(), "{message}");
            false
        }
        Verdict::Request { id, message, .. } => {
            assert!(id == &message["id"] && message["params"].is_object(), "{message}");
            called(desk, message["method"].as_str().unwrap(), message["params"].as_object().unwrap())
        }
    }
}

fn called(desk: &Desk, method: &str, params: &Map<String, Value>) -> bool {
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    match method {
        "tools/call" => {
            let arguments = params["arguments"].as_object().expect("the gate sees to it").clone();
            text("name").is_some_and(|name| tool(desk, &name, arguments))
        }
        "resources/read" => {
            let resource = text("uri").and_then(|uri| Resource::parse(&uri));
            resource.is_some_and(|resource| resource.read(&desk.engine().unwrap()).unwrap().is_some())
        }
        "resources/list" => resources::lists(&desk.engine().unwrap(), text("cursor").as_deref()).is_ok(),
        "prompts/get" => {
            let offer = Offer::of(&ToolSet::ALL, false);
            let prompt = text("name").and_then(|name| offer.prompts.iter().find(|prompt| prompt.name == name));
            let arguments = params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
            prompt.is_some_and(|prompt| prompt.told(arguments, false).is_ok())
        }
        _ => false,
    }
}

fn tool(desk: &Desk, name: &str, arguments: Map<String, Value>) -> bool {
    let Some(offered) = Offer::of(&ToolSet::ALL, false).find(name) else { return false };
    let (before, never) = (lists(desk), || false);
    let asked = Asked { thread: None, client: "c", version: "1", cancelled: &never, hurry: &never, impatient: true };
    match desk::call(desk, offered.tool, arguments, &asked) {
        Ok(reply) => {
            let (text, facts) = reply.into_text();
            assert!(text.len() <= 2 * BUDGET && facts.is_object(), "{name} has {} bytes", text.len());
            true
        }
        Err(failure) => {
            assert!(failure.code != "internal", "{name}: {failure:?}");
            assert!(!failure.message.is_empty() && failure.message.len() <= 4 * ERROR_BYTES_MAX, "{name}: {failure:?}");
            assert_eq!(lists(desk), before, "{name} was refused and changed something: {failure:?}");
            false
        }
    }
}

fn lists(desk: &Desk) -> Vec<ListView> {
    desk.engine().unwrap().lists().unwrap()
}
