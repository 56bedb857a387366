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

#[derive(Serialize, Deserialize)]
struct Document {
    subject: Subject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<Body>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    active_form: Option<Subject>,
    status: Status,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    owner: String,
    #[serde(default, skip_serializing_if = "is_none_or_zero")]
    parent: Option<Value>,
    #[serde(default)]
    rank: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blocked_by: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "is_zero")]
    leased_until: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    not_before: i64,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    labels: BTreeSet<Label>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    paths: BTreeSet<PathGlob>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Note>,
    #[serde(default, skip_serializing_if = "is_zero")]
    completed_at: i64,
    #[serde(default)]
    created_at: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    created_by: String,
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    fence: u64,
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    reclaims: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    parked: bool,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Writes the document of a task.
#[must_use]
pub fn encode(task: &Task) -> String {
    let document = Document {
        subject: task.subject.clone(),
        description: task.description.clone(),
        active_form: task.active_form.clone(),
        status: task.status(),
        owner: name_or_empty(task.owner()),
        parent: task.parent.as_ref().map(|id| serde_json::json!(id)),
        rank: task.rank.as_str().to_owned(),
        blocked_by: task.blocked_by.clone(),
        leased_until: millis(task.leased_until()),
        not_before: millis(task.not_before),
        labels: task.labels.clone(),
        paths: task.paths.clone(),
        metadata: task.metadata.clone(),
        result: task.result.clone(),
        completed_at: millis(task.completed_at()),
        created_at: task.created.at.as_millis(),
        created_by: name_or_empty(task.created.by.as_ref()),
        fence: task.fence,
        reclaims: task.reclaims,
        parked: task.parked,
        extra: task.extra.clone(),
    };
    serde_json::to_string(&document).expect("BUG: a task is always JSON")
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

fn name_or_empty(name: Option<&Identity>) -> String {
    name.map_or_else(String::new, ToString::to_string)
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

fn is_none_or_zero(value: &Option<Value>) -> bool {
    value.as_ref().is_none_or(is_zero_value)
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
