//! One row of a sidecar: a Kin task as JSON, and the task it stands for.
//!
//! A Kin row has `id`, `content`, `status`, `blockedBy`, `active_form`, `created_at`, `updated_at` and `completed_at`.
//! What a task has beyond that is kept in one more key, [`OURS`], in the form of the stored document. A row that is
//! written keeps its keys, their order, the unknown ones, and the value of every field that did not change.

use serde_json::{Map, Value, json};
use taskbus_core::content;
use taskbus_core::document;
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::rank::Rank;
use taskbus_core::task::{Stamp, Status, Task};
use taskbus_core::time::Timestamp;

use super::ids;
use super::times::{self, Style};

/// The key that holds what a Kin row has no place for.
const OURS: &str = "taskbus";
/// What a deleted row says as its status.
const DELETED: &str = "deleted";
/// Fields of the stored document that a Kin row says in its own words.
const SAID: [&str; 6] = ["subject", "status", "active_form", "blocked_by", "created_at", "completed_at"];

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// As it stands in the file.
    pub(super) raw: Map<String, Value>,
    /// What it says. `revision` and `fence` are 0 where it does not say.
    pub(super) task: Task,
    /// Whether it is a deleted one.
    pub(super) deleted: bool,
}

/// What keeps a row from being a task.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    #[error("it is no object")]
    NoObject,
    #[error("its {key} is missing or is no text")]
    NoText { key: &'static str },
    #[error("its id {id:?} cannot be an id: {reason}")]
    Id { id: String, reason: String },
    #[error("its status {status:?} is none of pending, in_progress, completed and deleted")]
    Status { status: String },
    #[error("its {key} is no list of ids")]
    NoIds { key: &'static str },
    #[error("its {key} is no time")]
    NoTime { key: &'static str },
    #[error("its {OURS} {0}")]
    Ours(String),
}

impl Row {
    /// Reads the row at this place of the file, from 0. A row without a rank of its own has the rank of its place.
    pub(super) fn read(raw: Value, place: usize) -> Result<Self, RowError> {
        let Value::Object(raw) = raw else { return Err(RowError::NoObject) };
        let id = id_of(text(&raw, "id")?)?;
        let deleted = text(&raw, "status")? == DELETED;
        let task = Reading { raw: &raw, id, deleted, place }.task()?;
        Ok(Self { raw, task, deleted })
    }

    /// The row of a task that has none yet, at this place of the file.
    pub(super) fn new(task: &Task, deleted: bool, place: usize, style: Style) -> Result<Self, RowError> {
        let raw = json!({
            "id": task.id.to_string(),
            "content": content::join(&task.subject, task.description.as_ref()),
            "status": word(task, deleted),
            "blockedBy": spelled(&task.blocked_by),
            "active_form": task.active_form.as_ref().map_or("", |form| form.as_str()),
            "created_at": times::write(task.created.at, style),
            "updated_at": times::write(task.updated.at, style),
            "completed_at": completed_at(task, style),
        });
        let Value::Object(mut raw) = raw else { unreachable!("BUG: a row is an object") };
        put_ours(&mut raw, task, deleted, place);
        Self::read(Value::Object(raw), place)
    }

    /// The row, made to say what the task is now. It is read back, so that it surely can be.
    pub(super) fn with(&self, task: &Task, deleted: bool, place: usize, style: Style) -> Result<Self, RowError> {
        let style = self.style().unwrap_or(style);
        let (old, mut raw) = (&self.task, self.raw.clone());
        let lacks = |key: &str| !self.raw.contains_key(key);
        let mut put = |key: &str, changed: bool, value: Value| {
            if changed {
                raw.insert(key.to_owned(), value);
            }
        };
        let said = |task: &Task| content::join(&task.subject, task.description.as_ref()).to_owned();
        put("content", said(old) != said(task), said(task).into());
        put("status", word(old, self.deleted) != word(task, deleted), word(task, deleted).into());
        put("blockedBy", old.blocked_by != task.blocked_by, spelled(&task.blocked_by));
        let form = task.active_form.as_ref().map_or("", |form| form.as_str());
        put("active_form", old.active_form != task.active_form, form.into());
        let (created, updated) = (task.created.at, task.updated.at);
        put("created_at", old.created.at != created || lacks("created_at"), times::write(created, style));
        put("updated_at", old.updated.at != updated || lacks("updated_at"), times::write(updated, style));
        let completed = task.completed_at();
        let unsaid = completed.is_some() && lacks("completed_at");
        put("completed_at", old.completed_at() != completed || unsaid, completed_at(task, style));
        put_ours(&mut raw, task, deleted, place);
        Self::read(Value::Object(raw), place)
    }

    /// How this row writes times.
    pub(super) fn style(&self) -> Option<Style> {
        let known = ["updated_at", "created_at"].into_iter().filter_map(|key| self.raw.get(key));
        known.filter_map(times::read).map(|(_, style)| style).next()
    }
}

fn text<'a>(raw: &'a Map<String, Value>, key: &'static str) -> Result<&'a str, RowError> {
    raw.get(key).and_then(Value::as_str).ok_or(RowError::NoText { key })
}

/// An id must be spelled as we spell it, since others name it by its letters.
fn id_of(text: &str) -> Result<TaskId, RowError> {
    let bad = |reason: String| RowError::Id { id: text.to_owned(), reason };
    let id: TaskId = text.parse().map_err(|error: taskbus_core::id::IdError| bad(error.to_string()))?;
    if id.to_string() == text { Ok(id) } else { Err(bad(format!("it would be written {id}"))) }
}

fn word(task: &Task, deleted: bool) -> &'static str {
    if deleted { DELETED } else { task.status().as_str() }
}

fn spelled(ids: &[TaskId]) -> Value {
    ids.iter().map(ToString::to_string).collect()
}

fn completed_at(task: &Task, style: Style) -> Value {
    task.completed_at().map_or(Value::Null, |at| times::write(at, style))
}

/// What a Kin row has no place for goes into its own key, and only what is not empty.
fn put_ours(raw: &mut Map<String, Value>, task: &Task, deleted: bool, place: usize) {
    let Ok(Value::Object(mut ours)) = serde_json::from_str(&document::encode(task)) else {
        unreachable!("BUG: the document of a task is a JSON object")
    };
    SAID.iter().for_each(|key| drop(ours.shift_remove(*key)));
    if task.description.as_ref().is_some_and(|body| content::is_split(&task.subject, body)) {
        ours.shift_remove("description");
    }
    if task.rank == natural_rank(place) {
        ours.shift_remove("rank");
    }
    if deleted && task.status() != Status::Pending {
        ours.insert("status".to_owned(), task.status().as_str().into());
    }
    if task.revision > 0 {
        ours.insert("revision".to_owned(), task.revision.into());
    }
    if let Some(by) = &task.updated.by {
        ours.insert("updated_by".to_owned(), by.as_str().into());
    }
    if ours.is_empty() {
        raw.shift_remove(OURS);
    } else {
        raw.insert(OURS.to_owned(), Value::Object(ours));
    }
}

/// The rank of a row that was never moved.
fn natural_rank(place: usize) -> Rank {
    Rank::nth(place as u64 + 1)
}

/// A row on the way to its task.
struct Reading<'a> {
    raw: &'a Map<String, Value>,
    id: TaskId,
    deleted: bool,
    place: usize,
}

impl Reading<'_> {
    fn task(self) -> Result<Task, RowError> {
        let mut ours = self.ours()?;
        let revision = take(&mut ours, "revision").and_then(|value| value.as_u64()).unwrap_or(0);
        let by = take(&mut ours, "updated_by").and_then(|value| value.as_str().map(str::to_owned));
        let by = by.and_then(|name| Identity::new(name).ok());
        let created = self.time("created_at")?;
        let at = self.time("updated_at")?.or(created).or_else(|| ids::minted_at(&self.id)).unwrap_or(EPOCH);
        self.say(&mut ours, created.unwrap_or(at))?;
        let text = Value::Object(ours).to_string();
        document::decode(self.id, revision, Stamp { at, by }, &text).map_err(|error| RowError::Ours(error.to_string()))
    }

    fn ours(&self) -> Result<Map<String, Value>, RowError> {
        match self.raw.get(OURS) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(ours)) => Ok(ours.clone()),
            Some(_) => Err(RowError::Ours("is no object".to_owned())),
        }
    }

    /// Puts what the Kin row says into the document.
    fn say(&self, document: &mut Map<String, Value>, created: Timestamp) -> Result<(), RowError> {
        let (subject, whole) = content::split(text(self.raw, "content")?);
        let mut put = |key: &str, value: Value| drop(document.insert(key.to_owned(), value));
        put("subject", subject.as_str().into());
        put("blocked_by", self.blocked_by()?);
        put("created_at", created.as_millis().into());
        put("completed_at", self.time("completed_at")?.unwrap_or(EPOCH).as_millis().into());
        let form = self.raw.get("active_form").and_then(Value::as_str).filter(|form| !form.is_empty());
        if let Some(form) = form {
            put("active_form", content::split(form).0.as_str().into());
        }
        let mut put_if_unsaid = |key: &str, value: &str| {
            document.entry(key).or_insert_with(|| value.into());
        };
        put_if_unsaid("rank", natural_rank(self.place).as_str());
        if let Some(whole) = whole {
            put_if_unsaid("description", whole.as_str());
        }
        self.say_status(document)
    }

    fn say_status(&self, document: &mut Map<String, Value>) -> Result<(), RowError> {
        let status = text(self.raw, "status")?;
        if self.deleted {
            document.entry("status").or_insert_with(|| Status::Pending.as_str().into());
            return Ok(());
        }
        let status = Status::from_word(status).ok_or_else(|| RowError::Status { status: status.to_owned() })?;
        document.insert("status".to_owned(), status.as_str().into());
        Ok(())
    }

    /// A missing list is one with nothing in it (seed 3, RB-168).
    fn blocked_by(&self) -> Result<Value, RowError> {
        let key = "blockedBy";
        let ids = match self.raw.get(key) {
            None | Some(Value::Null) => return Ok(json!([])),
            Some(Value::Array(ids)) => ids,
            Some(_) => return Err(RowError::NoIds { key }),
        };
        let read = |id: &Value| id.as_str().and_then(|text| text.parse::<TaskId>().ok()).ok_or(RowError::NoIds { key });
        let ids: Vec<TaskId> = ids.iter().map(read).collect::<Result<_, _>>()?;
        Ok(json!(ids))
    }

    fn time(&self, key: &'static str) -> Result<Option<Timestamp>, RowError> {
        match self.raw.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => times::read(value).map(|(time, _)| Some(time)).ok_or(RowError::NoTime { key }),
        }
    }
}

const EPOCH: Timestamp = Timestamp::from_millis(0);

fn take(map: &mut Map<String, Value>, key: &str) -> Option<Value> {
    map.shift_remove(key)
}
