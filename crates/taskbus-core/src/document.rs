//! The stored form of a task: one JSON object, the truth from which every index is derived.
//!
//! Empty fields are left out; fields that this version does not know come back as they were. The id, the
//! revision number and the last stamp live in the row around the document, not in it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::glob::PathGlob;
use crate::id::TaskId;
use crate::name::{Identity, Label};
use crate::rank::Rank;
use crate::task::{Stamp, State, Status, Task};
use crate::text::{Body, Note, Subject};
use crate::time::Timestamp;

/// Why a stored document is no task.
#[derive(Debug, thiserror::Error)]
#[error("the stored document of task {id} cannot be read: {source}")]
pub struct DocumentError {
    /// Which task.
    pub id: TaskId,
    /// What is wrong.
    pub source: serde_json::Error,
}

/// How a document is read.
#[derive(Deserialize)]
struct Document {
    subject: Subject,
    #[serde(default)]
    description: Option<Body>,
    #[serde(default)]
    active_form: Option<Subject>,
    status: Status,
    #[serde(default)]
    owner: String,
    #[serde(default)]
    parent: Option<Value>,
    #[serde(default)]
    rank: String,
    #[serde(default)]
    blocked_by: Vec<TaskId>,
    #[serde(default)]
    leased_until: i64,
    #[serde(default)]
    not_before: i64,
    #[serde(default)]
    labels: BTreeSet<Label>,
    #[serde(default)]
    paths: BTreeSet<PathGlob>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default)]
    result: Option<Note>,
    #[serde(default)]
    completed_at: i64,
    #[serde(default)]
    created_at: i64,
    #[serde(default)]
    created_by: String,
    #[serde(default)]
    fence: u64,
    #[serde(default)]
    reclaims: u32,
    #[serde(default)]
    parked: bool,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// How it is written: the same fields, copied from nowhere.
#[derive(Serialize)]
struct Written<'a> {
    subject: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_form: Option<&'a str>,
    status: Status,
    #[serde(skip_serializing_if = "str::is_empty")]
    owner: &'a str,
    #[serde(skip_serializing_if = "is_none_or_zero")]
    parent: Option<&'a TaskId>,
    rank: &'a str,
    #[serde(skip_serializing_if = "<[TaskId]>::is_empty")]
    blocked_by: &'a [TaskId],
    #[serde(skip_serializing_if = "is_zero")]
    leased_until: i64,
    #[serde(skip_serializing_if = "is_zero")]
    not_before: i64,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    labels: &'a BTreeSet<Label>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    paths: &'a BTreeSet<PathGlob>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    completed_at: i64,
    created_at: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    created_by: &'a str,
    #[serde(skip_serializing_if = "is_zero_u64")]
    fence: u64,
    #[serde(skip_serializing_if = "is_zero_u32")]
    reclaims: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    parked: bool,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

/// Writes the document of a task.
#[must_use]
pub fn encode(task: &Task) -> String {
    let document = Written {
        subject: task.subject.as_str(),
        description: task.description.as_ref().map(Body::as_str),
        active_form: task.active_form.as_ref().map(Subject::as_str),
        status: task.status(),
        owner: name_or_empty(task.owner()),
        parent: task.parent.as_ref(),
        rank: task.rank.as_str(),
        blocked_by: &task.blocked_by,
        leased_until: millis(task.leased_until()),
        not_before: millis(task.not_before),
        labels: &task.labels,
        paths: &task.paths,
        metadata: &task.metadata,
        result: task.result.as_ref().map(Note::as_str),
        completed_at: millis(task.completed_at()),
        created_at: task.created.at.as_millis(),
        created_by: name_or_empty(task.created.by.as_ref()),
        fence: task.fence,
        reclaims: task.reclaims,
        parked: task.parked,
        extra: &task.extra,
    };
    serde_json::to_string(&document).expect("BUG: a task is always JSON")
}

/// The bytes of the document, if they are more than `max`. A task that cannot reach that, whatever has to be escaped in
/// it, is not written for this.
#[must_use]
pub fn size_over(task: &Task, max: usize) -> Option<usize> {
    let is_small = task.metadata.is_empty() && task.extra.is_empty() && at_most(task) <= max;
    if is_small { None } else { Some(encode(task).len()).filter(|size| *size > max) }
}

/// No document of a task without free data is longer.
fn at_most(task: &Task) -> usize {
    // Names of fields, numbers and times; and an escaped byte is six.
    const FRAME: usize = 1024;
    const ESCAPED: usize = 6;
    let texts = [
        task.description.as_ref().map(Body::as_str),
        task.active_form.as_ref().map(Subject::as_str),
        task.result.as_ref().map(Note::as_str),
        task.owner().map(Identity::as_str),
        task.created.by.as_ref().map(Identity::as_str),
    ];
    let texts: usize = texts.iter().flatten().map(|text| text.len()).sum();
    let labels: usize = task.labels.iter().map(|label| label.as_str().len() + 1).sum();
    let paths: usize = task.paths.iter().map(|path| path.as_str().len() + 1).sum();
    let ids: usize = task.blocked_by.iter().chain(&task.parent).map(|id| id.to_string().len() + 1).sum();
    FRAME + ESCAPED * (texts + task.subject.as_str().len() + task.rank.as_str().len() + labels + paths + ids)
}

/// Reads the document of a task; `id`, `revision` and `updated` come from the row around it.
///
/// # Errors
/// [`DocumentError`] when it is no JSON object with a valid subject and status, or a known field is malformed.
pub fn decode(id: TaskId, revision: u64, updated: Stamp, text: &str) -> Result<Task, DocumentError> {
    let document: Document = serde_json::from_str(text).map_err(|source| DocumentError { id: id.clone(), source })?;
    document.into_task(id.clone(), revision, updated).map_err(|source| DocumentError { id, source })
}

impl Document {
    fn into_task(self, id: TaskId, revision: u64, updated: Stamp) -> Result<Task, serde_json::Error> {
        let owner = identity(self.owner)?;
        let state = match self.status {
            Status::Pending => State::Pending { assignee: owner },
            Status::InProgress => State::InProgress { owner, lease: time(self.leased_until) },
            Status::Completed => State::Completed { by: owner, at: time(self.completed_at).unwrap_or(updated.at) },
        };
        let parent = match self.parent {
            None => None,
            Some(value) if is_zero_value(&value) => None,
            Some(value) => Some(serde_json::from_value(value)?),
        };
        Ok(Task {
            id,
            subject: self.subject,
            description: self.description,
            active_form: self.active_form,
            state,
            parent,
            rank: Rank::from_stored(self.rank),
            blocked_by: self.blocked_by,
            not_before: time(self.not_before),
            labels: self.labels,
            paths: self.paths,
            metadata: self.metadata,
            result: self.result,
            created: Stamp { at: time(self.created_at).unwrap_or(updated.at), by: identity(self.created_by)? },
            updated,
            revision,
            fence: self.fence,
            reclaims: self.reclaims,
            parked: self.parked,
            extra: self.extra,
        })
    }
}

fn name_or_empty(name: Option<&Identity>) -> &str {
    name.map_or("", Identity::as_str)
}

fn identity(text: String) -> Result<Option<Identity>, serde_json::Error> {
    if text.is_empty() {
        return Ok(None);
    }
    Identity::new(text).map(Some).map_err(|error| serde::de::Error::custom(format!("owner {error}")))
}

fn millis(time: Option<Timestamp>) -> i64 {
    time.map_or(0, Timestamp::as_millis)
}

fn time(millis: i64) -> Option<Timestamp> {
    (millis != 0).then(|| Timestamp::from_millis(millis))
}

fn is_zero_value(value: &Value) -> bool {
    value.is_null() || value.as_u64() == Some(0)
}

fn is_none_or_zero(parent: &Option<&TaskId>) -> bool {
    parent.is_none_or(|id| id.as_number() == Some(0))
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn is_zero_u64(number: &u64) -> bool {
    *number == 0
}

fn is_zero_u32(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        Stamp { at: Timestamp::from_millis(5), by: Some(Identity::new("Zed").unwrap()) }
    }

    #[test]
    fn the_seeds_document_reads_and_unknown_fields_survive() {
        let text = r#"{"subject":"Port the limiter tests","description":"…","status":"pending","owner":"",
            "parent":0,"rank":"V","blocked_by":[12,15],"leased_until":0,"metadata":{"k":"v"},"colour":{"a":[1]}}"#;
        let task = decode(TaskId::Number(7), 3, stamp(), text).unwrap();
        assert_eq!((task.parent.as_ref(), task.owner(), task.blocked_by.len()), (None, None, 2));
        let again = decode(TaskId::Number(7), 3, stamp(), &encode(&task)).unwrap();
        assert_eq!(again, task);
        assert!(encode(&task).contains(r#""colour":{"a":[1]}"#));
    }

    #[test]
    fn what_is_no_task_says_so() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"subject":"a"}"#,
            r#"{"subject":"","status":"pending"}"#,
            r#"{"subject":"a","status":"gone"}"#,
        ] {
            let error = decode(TaskId::Number(7), 1, stamp(), text).unwrap_err();
            assert!(error.to_string().contains("task 7"), "{error}");
        }
    }
}
