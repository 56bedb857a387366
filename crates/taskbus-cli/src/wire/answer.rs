//! The engine's answers as JSON objects, in the shapes that agentbus gives its task tools. Key order is for reading and
//! is stable.

use serde_json::{Map, Value, json};
use taskbus::answer::{Got, ListPage, ListView, PlannedTask, Registered, Taken, Written};

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

/// A page as a bare array of summaries; when more follow, its last element says how to go on.
pub(crate) fn rows(page: &ListPage) -> Value {
    let mut rows: Vec<Value> = page.tasks.iter().map(|task| Value::Object(object(task))).collect();
    if page.truncated {
        let mut end = Map::from_iter([("truncated".to_owned(), json!(true)), ("total".to_owned(), json!(page.total))]);
        end.extend(page.next.iter().map(|next| ("next".to_owned(), json!(next))));
        rows.push(Value::Object(end));
    }
    Value::Array(rows)
}

/// A list that was made, in the shape of a channel.
pub(crate) fn channel(list: &ListView) -> Map<String, Value> {
    let fields = [
        ("name", json!(list.name)),
        ("kind", json!("memory")),
        ("messages", json!(list.tasks)),
        ("latest_seq", json!(list.latest_seq)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A name that was taken.
pub(crate) fn registered(registered: &Registered) -> Map<String, Value> {
    object(registered)
}
