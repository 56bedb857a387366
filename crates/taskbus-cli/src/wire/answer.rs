//! The engine's answers as JSON objects, in the shapes that agentbus gives its task tools. Key order is for reading and
//! is stable.

use serde_json::{Map, Value, json};
use taskbus::answer::{Got, ListPage, PlannedTask, Registered, SessionView, Taken, Written};

use super::object;

/// What `next` handed out: `{task}` for one, `{tasks}` when more than one was asked for, `idle` when there is none.
pub(crate) fn taken(taken: &Taken, asked: usize) -> Map<String, Value> {
    let mut answer = Map::new();
    match taken.tasks.as_slice() {
        [] => {}
        [one] if asked <= 1 => {
            answer.insert("task".to_owned(), object(one).into());
        }
        tasks => {
            answer.insert("tasks".to_owned(), tasks.iter().map(|task| Value::Object(object(task))).collect());
        }
    }
    if let Some(written) = &taken.completed {
        answer.insert("completed".to_owned(), completed(written).into());
    }
    if let Some(idle) = &taken.idle {
        answer.insert("idle".to_owned(), object(idle).into());
    }
    answer
}

/// What completing on the way did: the caller knows the task, so only what changed.
fn completed(written: &Written) -> Map<String, Value> {
    let mut short = object(written);
    let task = &written.task;
    short.insert("task".to_owned(), json!({"id": task.id, "status": task.status, "revision": task.revision}));
    short
}

/// What a plan made.
pub(crate) fn planned(tasks: &[PlannedTask]) -> Map<String, Value> {
    Map::from_iter([("tasks".to_owned(), json!(tasks))])
}

/// What an update did.
pub(crate) fn written(written: &Written) -> Map<String, Value> {
    object(written)
}

/// One task, with more on request.
pub(crate) fn got(got: &Got) -> Map<String, Value> {
    object(got)
}

/// A page of a list.
pub(crate) fn page(page: &ListPage) -> Map<String, Value> {
    object(page)
}

/// A page as a bare array of its rows; when more follow, its last element says how to go on.
pub(crate) fn bare(page: &Map<String, Value>, list: &str) -> Value {
    let mut rows = page.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
    if page.get("truncated") == Some(&json!(true)) {
        let told = ["truncated", "total", "next"].into_iter();
        let end = told.filter_map(|name| Some((name.to_owned(), page.get(name)?.clone())));
        rows.push(Value::Object(end.collect()));
    }
    Value::Array(rows)
}

/// A name that was taken.
pub(crate) fn registered(registered: &Registered) -> Map<String, Value> {
    let mut facts = object(registered);
    if let Some(others) = facts.get_mut("others") {
        *others = registered.others.iter().map(|other| Value::Object(session(other))).collect();
    }
    facts
}

/// A session, under the name that its messages carry; of its program the name, and behind it the version.
pub(crate) fn session(view: &SessionView) -> Map<String, Value> {
    let (program, version) = view.client.rsplit_once(' ').unwrap_or((&view.client, ""));
    let fields = [
        ("sender", json!(view.name)),
        ("context", json!(view.context)),
        ("registered_at", json!(view.registered_at)),
        ("harness", json!(program)),
        ("harness_version", json!(version)),
    ];
    let told = fields.into_iter().filter(|(name, value)| !name.starts_with("harness") || *value != json!(""));
    told.map(|(name, value)| (name.to_owned(), value)).collect()
}
