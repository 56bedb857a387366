//! Making one task.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::update::check_size;
use super::{Facts, Stop, World, links, place};
use crate::change::{Change, Kind};
use crate::command::Draft;
use crate::id::TaskId;
use crate::limits;
use crate::rank::Rank;
use crate::refusal::Invalid;
use crate::task::{Stamp, State, Task};
use crate::text::no_nul;

pub(super) fn create(draft: &Draft, world: &mut dyn World, facts: &Facts) -> Result<Task, Stop> {
    check_shape(draft)?;
    let blocked_by = links::deduplicated(draft.blocked_by.iter().cloned());
    links::check_count("blocked_by", &blocked_by)?;
    links::check_blockers("blocked_by", &blocked_by, world)?;
    if let Some(parent) = &draft.parent {
        links::check_live("parent", std::slice::from_ref(parent), world)?;
        links::check_depth(parent, 0, world)?;
    }
    let rank = place::rank_at(None, draft.place.as_ref(), draft.parent.as_ref(), world, facts)?;
    let id = mint_one(world)?;
    let task = task_from(draft, id, rank, blocked_by, facts);
    check_size(&task)?;
    world.apply(Change { kind: Kind::Created, task: task.clone(), note: None })?;
    Ok(task)
}

fn mint_one(world: &mut dyn World) -> Result<TaskId, Stop> {
    Ok(world.mint(1)?.pop().expect("BUG: a store mints as many ids as it is asked for"))
}

/// The first revision of a task.
pub(super) fn task_from(draft: &Draft, id: TaskId, rank: Rank, blocked_by: Vec<TaskId>, facts: &Facts) -> Task {
    let stamp = Stamp { at: facts.now, by: facts.caller.clone() };
    Task {
        id,
        subject: draft.subject.clone(),
        description: draft.description.clone(),
        active_form: draft.active_form.clone(),
        state: State::Pending { assignee: None },
        parent: draft.parent.clone(),
        rank,
        blocked_by,
        not_before: draft.not_before,
        labels: draft.labels.clone(),
        paths: draft.paths.clone(),
        metadata: draft.metadata.iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Map<_, _>>(),
        result: None,
        created: stamp.clone(),
        updated: stamp,
        revision: 1,
        fence: 0,
        reclaims: 0,
        parked: false,
        extra: Map::new(),
    }
}

/// What can be said of a draft without looking at the list.
pub(super) fn check_shape(draft: &Draft) -> Result<(), Stop> {
    check_items("labels", draft.labels.len(), limits::LABELS_MAX)?;
    check_items("paths", draft.paths.len(), limits::PATHS_MAX)?;
    check_not_before(draft.not_before.map(crate::time::Timestamp::as_millis))?;
    check_metadata(&draft.metadata)
}

pub(super) fn check_items(field: &'static str, actual: usize, max: usize) -> Result<(), Stop> {
    if actual > max { Err(Invalid::TooMany { field, max, actual }.into()) } else { Ok(()) }
}

/// A time in seconds would lie before 2001 when read as milliseconds.
pub(super) fn check_not_before(given: Option<i64>) -> Result<(), Stop> {
    let (field, min, max) = ("not_before", limits::LEASE_MS_MIN, limits::TIME_MS_MAX);
    match given.filter(|given| !(min..=max).contains(given)) {
        Some(given) => Err(Invalid::OutOfRange { field, given, min, max }.into()),
        None => Ok(()),
    }
}

pub(super) fn check_metadata(metadata: &BTreeMap<String, Value>) -> Result<(), Stop> {
    metadata.iter().try_for_each(|(key, value)| check_entry(key, value))
}

/// One entry: a short key, values nested at most 16 deep, no NUL anywhere. Iterative, as depth is the caller's.
pub(super) fn check_entry(key: &str, value: &Value) -> Result<(), Stop> {
    check_key(key, key)?;
    let mut todo = vec![(key.to_owned(), value, 1)];
    while let Some((path, value, depth)) = todo.pop() {
        if depth > limits::METADATA_DEPTH_MAX {
            return Err(Invalid::Metadata { path, problem: "is nested deeper than 16 levels" }.into());
        }
        match value {
            Value::String(text) if no_nul(text).is_err() => {
                return Err(Invalid::Metadata { path, problem: "has a NUL character" }.into());
            }
            Value::Array(items) => {
                todo.extend(items.iter().enumerate().map(|(at, item)| (format!("{path}.{at}"), item, depth + 1)));
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    check_key(&format!("{path}.{key}"), key)?;
                    todo.push((format!("{path}.{key}"), value, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(())
}

fn check_key(path: &str, key: &str) -> Result<(), Stop> {
    let problem = if key.is_empty() {
        "has an empty key"
    } else if key.len() > limits::METADATA_KEY_BYTES_MAX {
        "has a key longer than 256 bytes"
    } else if no_nul(key).is_err() {
        "has a NUL character in its key"
    } else {
        return Ok(());
    };
    let path = path.chars().take(64).collect::<String>().escape_debug().to_string();
    Err(Invalid::Metadata { path, problem }.into())
}
