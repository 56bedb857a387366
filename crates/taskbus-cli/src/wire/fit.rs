//! Makes an answer fit a budget of bytes, and says in the answer what was left out. Whole records are dropped before
//! parts of them; a text is cut between characters. Surfaces without a budget do not call this.

use serde_json::{Map, Value, json};

use super::error::cut;

/// What a task can do without, the largest use first. `task_get` shows it all.
const TEXTS: [&str; 2] = ["description", "result"];
const EXTRAS: [&str; 2] = ["metadata", "paths"];
/// What is left of a text that is cut, at least, in bytes.
const TEXT_BYTES_MIN: usize = 256;

/// The bytes of a value as compact JSON.
pub(crate) fn size(value: &impl serde::Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}

/// Cuts long texts of a task to fit `budget`, then leaves out its metadata and paths, then those texts; names them
/// all in `cut`.
pub(crate) fn task(task: &mut Map<String, Value>, budget: usize) {
    let mut cuts = Vec::new();
    for name in TEXTS {
        let over = size(task).saturating_sub(budget);
        if over > 0 && shorten(task, name, over) {
            cuts.push(name);
        }
    }
    for name in EXTRAS.into_iter().chain(TEXTS) {
        if size(task) > budget && task.remove(name).is_some() && !cuts.contains(&name) {
            cuts.push(name);
        }
    }
    if !cuts.is_empty() {
        task.insert("cut".to_owned(), json!(cuts));
    }
}

fn shorten(task: &mut Map<String, Value>, name: &str, over: usize) -> bool {
    let Some(Value::String(text)) = task.get_mut(name) else { return false };
    // Escapes make JSON longer than the text, so count what is cut in JSON and leave room for the mark.
    let target = size(text).saturating_sub(over + name.len() + 32);
    let mut kept = text.len().min(target).max(TEXT_BYTES_MIN);
    while kept > TEXT_BYTES_MIN && size(&cut(text, kept)) > target {
        kept -= kept / 8 + 1;
    }
    if text.len() <= kept.max(TEXT_BYTES_MIN) {
        return false;
    }
    *text = cut(text, kept.max(TEXT_BYTES_MIN)).into_owned();
    true
}

/// Drops records from the end of `list` until the whole answer fits `budget`; at least `least` of them stay. Says
/// how many were dropped.
pub(crate) fn records(answer: &mut Map<String, Value>, list: &str, least: usize, budget: usize) -> usize {
    let mut over = size(answer).saturating_sub(budget);
    let Some(Value::Array(items)) = answer.get_mut(list) else { return 0 };
    let mut dropped = 0;
    while over > 0 && items.len() > least {
        let gone = items.pop().map_or(0, |item| size(&item) + 1);
        over = over.saturating_sub(gone);
        dropped += 1;
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_task_that_fits_is_left_alone() {
        let whole = map(json!({"id": 1, "description": "x".repeat(300)}));
        let mut fitted = whole.clone();
        task(&mut fitted, 1000);
        assert_eq!(fitted, whole);
    }

    #[test]
    fn long_texts_are_cut_and_named() {
        for text in ["x".repeat(60_000), "\u{1b}".repeat(9_000), "é\"\\\n".repeat(9_000)] {
            let mut fitted = map(json!({"id": 1, "description": text, "result": text, "metadata": {"k": "v"}}));
            task(&mut fitted, 8192);
            assert!(size(&fitted) <= 8192, "{}", size(&fitted));
            assert_eq!(fitted["cut"], json!(["description", "result"]));
            assert!(fitted["description"].as_str().unwrap().ends_with('…'));
        }
    }

    #[test]
    fn metadata_goes_when_texts_are_not_enough() {
        let mut fitted = map(json!({"id": 1, "description": "short", "metadata": {"k": "v".repeat(9000)}}));
        task(&mut fitted, 8192);
        assert_eq!(Value::Object(fitted), json!({"id": 1, "description": "short", "cut": ["metadata"]}));
    }

    #[test]
    fn records_go_from_the_end() {
        let mut answer = map(json!({"items": vec!["x".repeat(98); 50]}));
        assert_eq!(records(&mut answer, "items", 1, 1024), 40);
        assert!(size(&answer) <= 1024);
        assert_eq!(records(&mut answer, "items", 5, 10), 5);
    }
}
