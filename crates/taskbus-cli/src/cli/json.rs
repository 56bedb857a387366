//! The JSON of the command line: the shared wire forms, with empty lists written out as `[]`, so that a script never
//! meets a missing one.

use serde_json::{Map, Value};
use taskbus::answer::{Got, HistoryEntry, ListPage, Summary, Taken, TaskView, Written};

use crate::wire;

const TASK_LISTS: [&str; 5] = ["open_blockers", "blocked_by", "blocks", "labels", "paths"];
const SUMMARY_LISTS: [&str; 2] = ["open_blockers", "labels"];
const WRITTEN_LISTS: [&str; 3] = ["unblocked", "open_children", "warnings"];
const GOT_LISTS: [&str; 2] = ["not_ready", "open_children"];

/// A task whole.
pub(crate) fn task(task: &TaskView) -> Map<String, Value> {
    filled(wire::object(task), &TASK_LISTS)
}

/// A task in a page.
pub(crate) fn summary(row: &Summary) -> Map<String, Value> {
    filled(wire::object(row), &SUMMARY_LISTS)
}

/// One task, with more on request.
pub(crate) fn got(got: &Got) -> Map<String, Value> {
    let mut json = filled(filled(wire::answer::got(got), &TASK_LISTS), &GOT_LISTS);
    json.extend(got.history.as_deref().map(|entries| ("history".to_owned(), history(entries))));
    json
}

/// What happened to a task.
pub(crate) fn history(entries: &[HistoryEntry]) -> Value {
    entries.iter().map(|entry| Value::Object(filled(wire::object(entry), &["changes"]))).collect()
}

/// What an update did.
pub(crate) fn written(written: &Written) -> Map<String, Value> {
    let mut json = filled(wire::answer::written(written), &WRITTEN_LISTS);
    json.insert("task".to_owned(), task(&written.task).into());
    json
}

/// What `next` handed out.
pub(crate) fn taken(taken: &Taken, asked: usize) -> Map<String, Value> {
    let mut json = wire::answer::taken(taken, asked);
    let tasks = || taken.tasks.iter().map(task);
    if json.contains_key("task") {
        json.extend(tasks().map(|task| ("task".to_owned(), task.into())));
    } else if asked > 1 || json.contains_key("tasks") {
        json.insert("tasks".to_owned(), tasks().collect());
    }
    json
}

/// A page.
pub(crate) fn page(page: &ListPage) -> Map<String, Value> {
    let mut json = wire::answer::page(page);
    json.insert("tasks".to_owned(), page.tasks.iter().map(summary).collect());
    json
}

fn filled(mut map: Map<String, Value>, lists: &[&str]) -> Map<String, Value> {
    for list in lists {
        map.entry(*list).or_insert_with(|| Value::Array(Vec::new()));
    }
    map
}
