//! A task file of Claude Code, read leniently and written so that nothing is lost that we do not understand.
//!
//! Reading takes what other programs are known to write (numbers as ids, missing lists, `null`, quotes). Writing
//! starts from what was read: a field that did not change keeps its spelling, unknown keys keep their places, and
//! what Claude Code insists on (both lists, ids as text) is put right. What only taskbus knows goes into one key of
//! the metadata ([`super::keep`]), because Claude Code drops top-level keys that it does not know.

use serde_json::{Map, Value};
use taskbus_core::id::TaskId;
use taskbus_core::task::{State, Status, Task};
use taskbus_core::time::Timestamp;

use super::keep::{self, Keep};
use super::text;

const ID: &str = "id";
const SUBJECT: &str = "subject";
const DESCRIPTION: &str = "description";
const ACTIVE_FORM: &str = "activeForm";
const OWNER: &str = "owner";
const STATUS: &str = "status";
const BLOCKS: &str = "blocks";
const BLOCKED_BY: &str = "blockedBy";
const METADATA: &str = "metadata";
/// The order in which Claude Code writes its keys.
const ORDER: [&str; 9] = [ID, SUBJECT, DESCRIPTION, ACTIVE_FORM, OWNER, STATUS, BLOCKS, BLOCKED_BY, METADATA];
/// A status that some writers store instead of removing the file.
const DELETED: &str = "deleted";

/// Why a file is no task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not a regular file: a link, a pipe, a directory.
    #[error("it is no regular file")]
    NoFile,
    /// More bytes than a task may have.
    #[error("it is larger than a task may be")]
    TooLarge,
    /// The operating system would not give its bytes.
    #[error("it cannot be read: {0}")]
    Closed(std::io::ErrorKind),
    /// Not JSON, perhaps because it is being written.
    #[error("it is no JSON: {0}")]
    Json(String),
    /// JSON, but no object.
    #[error("it is no JSON object")]
    NoObject,
    /// No subject, or one that is no text.
    #[error("it has no subject")]
    NoSubject,
    /// No status, or none that is known.
    #[error("its status is {0}, not pending, in_progress or completed")]
    Status(String),
    /// Metadata that is no object.
    #[error("its metadata is no object")]
    Metadata,
}

/// A task file as read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TaskFile {
    raw: Map<String, Value>,
    /// The task; `blocked_by` is what the file says, dead ids included.
    pub(super) task: Task,
    /// What the file says that waits for it.
    pub(super) blocks: Vec<TaskId>,
    /// Whether it says that it is deleted.
    pub(super) is_deleted: bool,
    /// Whether somebody changed it who knows nothing of taskbus, since taskbus last did.
    pub(super) is_foreign: bool,
}

impl TaskFile {
    /// Reads a file. `modified` stands in for the times that Claude Code does not keep.
    pub(super) fn read(id: &TaskId, bytes: &[u8], modified: Timestamp) -> Result<Self, Fault> {
        let raw = object(bytes)?;
        let status = status(&raw)?;
        let Some(subject) = raw.get(SUBJECT).and_then(Value::as_str).map(text::subject) else {
            return Err(Fault::NoSubject);
        };
        let mut metadata = metadata(&raw)?;
        let seen = seen(&raw);
        let keep = Keep::read(id, keep::take_out(&mut metadata).as_ref(), &seen, modified);
        let owner = raw.get(OWNER).and_then(words).as_deref().and_then(text::owner);
        let is_foreign = keep.is_foreign();
        let keep = keep.judged(owner.as_ref(), status);
        let state = match status.unwrap_or(Status::Pending) {
            Status::Pending => State::Pending { assignee: owner },
            Status::InProgress => State::InProgress { owner, lease: keep.leased_until },
            Status::Completed => State::Completed { by: owner, at: keep.completed_at.unwrap_or(modified) },
        };
        let description = raw.get(DESCRIPTION).and_then(any_text).as_deref().and_then(text::body);
        let active_form = raw.get(ACTIVE_FORM).and_then(Value::as_str).and_then(text::label);
        let blocked_by = ids(raw.get(BLOCKED_BY));
        let task = keep.into_task(id.clone(), subject, description, active_form, state, blocked_by, metadata);
        Ok(Self { blocks: ids(raw.get(BLOCKS)), is_deleted: status.is_none(), task, is_foreign, raw })
    }

    /// The id that the file itself gives, if that is another than its name.
    pub(super) fn other_id(&self) -> Option<String> {
        let inside = self.raw.get(ID).and_then(words)?;
        (inside.parse().as_ref() != Ok(&self.task.id)).then_some(inside)
    }

    /// What stands in a list of ids and is none.
    pub(super) fn odd_ids(&self) -> Vec<String> {
        let listed = [BLOCKS, BLOCKED_BY].into_iter().flat_map(|key| items(self.raw.get(key)));
        listed.filter(|item| id_of(item).is_none()).map(ToString::to_string).collect()
    }
}

/// The bytes of the file of a task, given what the file was.
pub(super) fn write(old: Option<&TaskFile>, task: &Task, blocks: &[TaskId]) -> Vec<u8> {
    let mut raw = old.map(|file| file.raw.clone()).unwrap_or_default();
    let was = old.map(|file| &file.task);
    put(&mut raw, ID, Some(Value::from(task.id.to_string())));
    if was.is_none_or(|was| was.subject != task.subject) {
        put(&mut raw, SUBJECT, Some(task.subject.as_str().into()));
    }
    if was.is_none_or(|was| was.description != task.description) || !raw.get(DESCRIPTION).is_some_and(Value::is_string)
    {
        put(&mut raw, DESCRIPTION, Some(task.description.as_ref().map_or("", |text| text.as_str()).into()));
    }
    if was.is_none_or(|was| was.active_form != task.active_form) || raw.get(ACTIVE_FORM).is_some_and(Value::is_null) {
        put(&mut raw, ACTIVE_FORM, task.active_form.as_ref().map(|text| text.as_str().into()));
    }
    if was.is_none_or(|was| was.owner() != task.owner()) || !raw.get(OWNER).is_none_or(Value::is_string) {
        put(&mut raw, OWNER, task.owner().map(|name| name.as_str().into()));
    }
    put(&mut raw, STATUS, Some(task.status().as_str().into()));
    let (waiting, blockers) = (listed(raw.get(BLOCKS), blocks), listed(raw.get(BLOCKED_BY), &task.blocked_by));
    put(&mut raw, BLOCKS, Some(waiting));
    put(&mut raw, BLOCKED_BY, Some(blockers));
    put_metadata(&mut raw, was, task);
    pretty(&raw)
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, Fault> {
    let json = |error: &dyn ToString| Fault::Json(error.to_string());
    let text = std::str::from_utf8(bytes).map_err(|error| json(&error))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = serde_json::from_str(text).or_else(|error| match text::mended(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    });
    match parsed.map_err(|error| json(&error))? {
        Value::Object(map) => Ok(map),
        _ => Err(Fault::NoObject),
    }
}

/// The status; none for a deleted task.
fn status(raw: &Map<String, Value>) -> Result<Option<Status>, Fault> {
    match raw.get(STATUS).and_then(Value::as_str) {
        Some(DELETED) => Ok(None),
        Some(word) if Status::from_word(word).is_some() => Ok(Status::from_word(word)),
        Some(word) => Err(Fault::Status(format!("{:?}", word.chars().take(32).collect::<String>()))),
        None => Err(Fault::Status("missing".to_owned())),
    }
}

fn metadata(raw: &Map<String, Value>) -> Result<Map<String, Value>, Fault> {
    match raw.get(METADATA) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(_) => Err(Fault::Metadata),
    }
}

/// A short print of everything that another program changes when it changes the task. What waits for it is left
/// out, because that is written along with the other task.
fn seen(raw: &Map<String, Value>) -> String {
    let mut metadata = raw.get(METADATA).and_then(Value::as_object).cloned().unwrap_or_default();
    keep::take_out(&mut metadata);
    let blockers: Vec<String> = ids(raw.get(BLOCKED_BY)).iter().map(ToString::to_string).collect();
    let plain = [SUBJECT, DESCRIPTION, ACTIVE_FORM, OWNER, STATUS].map(|key| raw.get(key));
    let all = serde_json::to_string(&(plain, blockers, metadata)).expect("BUG: JSON values are JSON");
    blake3::hash(all.as_bytes()).to_hex()[..12].to_owned()
}

fn put_metadata(raw: &mut Map<String, Value>, was: Option<&Task>, task: &Task) {
    let mut metadata = match raw.get(METADATA) {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    keep::take_out(&mut metadata);
    if was.is_none_or(|was| was.metadata != task.metadata) {
        metadata.retain(|key, _| task.metadata.contains_key(key));
        metadata.extend(task.metadata.clone());
        metadata.shift_remove(keep::KEY);
    }
    put(raw, METADATA, Some(Value::Object(metadata.clone())));
    let kept = keep::of(task, seen(raw));
    metadata.insert(keep::KEY.to_owned(), Value::Object(kept));
    put(raw, METADATA, Some(Value::Object(metadata)));
}

/// Sets or removes a key; a new one takes its place in Claude Code's order.
fn put(raw: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match (value, raw.get_mut(key)) {
        (None, _) => drop(raw.shift_remove(key)),
        (Some(value), Some(place)) => *place = value,
        (Some(value), None) => {
            let before = ORDER.iter().take_while(|other| **other != key);
            let at = before.filter_map(|other| raw.keys().position(|name| name == other)).max().map_or(0, |at| at + 1);
            raw.shift_insert(at, key.to_owned(), value);
        }
    }
}

/// A list of ids as text: what is wanted, in the order in which it stood; what is no id stays if it is text.
fn listed(old: Option<&Value>, wanted: &[TaskId]) -> Value {
    let mut missing: Vec<&TaskId> = wanted.iter().collect();
    let mut list = Vec::new();
    for item in items(old) {
        match id_of(item) {
            Some(id) => {
                if let Some(at) = missing.iter().position(|wanted| **wanted == id) {
                    list.push(Value::from(missing.remove(at).to_string()));
                }
            }
            None if item.is_string() => list.push(item.clone()),
            None => {}
        }
    }
    list.extend(missing.into_iter().map(|id| Value::from(id.to_string())));
    Value::Array(list)
}

/// The ids in a list, each once.
fn ids(value: Option<&Value>) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for id in items(value).filter_map(id_of) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// A list, or one value that stands for a list of one.
fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let (many, one) = match value {
        None | Some(Value::Null) => (None, None),
        Some(Value::Array(items)) => (Some(items), None),
        Some(one) => (None, Some(one)),
    };
    many.into_iter().flatten().chain(one)
}

fn id_of(value: &Value) -> Option<TaskId> {
    words(value)?.parse().ok()
}

/// Text, or anything else but nothing as JSON.
fn any_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// Text, or a number as text.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// As Claude Code writes it: two spaces, no line end.
fn pretty(raw: &Map<String, Value>) -> Vec<u8> {
    serde_json::to_vec_pretty(raw).expect("BUG: JSON values are JSON")
}

#[cfg(test)]
mod tests {
    use taskbus_core::name::{Identity, Label};
    use taskbus_core::text::Note;

    use super::*;

    const THEN: Timestamp = Timestamp::from_millis(1_796_054_400_000);

    fn read(text: &str) -> Result<TaskFile, Fault> {
        TaskFile::read(&TaskId::Number(7), text.as_bytes(), THEN)
    }

    fn numbers(ids: &[TaskId]) -> Vec<u64> {
        ids.iter().filter_map(TaskId::as_number).collect()
    }

    /// What Claude Code writes when it makes a task.
    const CLAUDES: &str = r#"{
  "id": "7",
  "subject": "Port the tests",
  "description": "All of them",
  "activeForm": "Porting the tests",
  "owner": "worker-1",
  "status": "in_progress",
  "blocks": [
    "9"
  ],
  "blockedBy": [],
  "metadata": {
    "area": "core"
  }
}"#;

    /// A file without what taskbus keeps for itself, as text.
    fn without_ours(bytes: &[u8]) -> String {
        let mut raw = object(bytes).unwrap();
        let mut metadata = metadata(&raw).unwrap();
        keep::take_out(&mut metadata);
        put(&mut raw, METADATA, Some(Value::Object(metadata)));
        String::from_utf8(pretty(&raw)).unwrap()
    }

    #[test]
    fn what_claude_code_writes_is_read_and_handed_back_as_it_was() {
        let file = read(CLAUDES).unwrap();
        let task = &file.task;
        assert_eq!((task.subject.as_str(), task.revision, task.fence), ("Port the tests", 1, 0));
        assert_eq!((task.owner().unwrap().as_str(), task.status()), ("worker-1", Status::InProgress));
        assert_eq!(task.metadata["area"], "core");
        assert_eq!((task.created.clone(), task.updated.at), (task.updated.clone(), THEN));
        assert_eq!(without_ours(&write(Some(&file), task, &file.blocks)), CLAUDES);
    }

    #[test]
    fn a_new_file_has_claude_codes_form() {
        let mut task = read(r#"{"subject":"New","status":"pending"}"#).unwrap().task;
        task.blocked_by = vec![TaskId::Number(3)];
        let text = without_ours(&write(None, &task, &[]));
        let expected = "{\n  \"id\": \"7\",\n  \"subject\": \"New\",\n  \"description\": \"\",\n  \"status\": \"pending\",\n  \"blocks\": [],\n  \"blockedBy\": [\n    \"3\"\n  ],\n  \"metadata\": {}\n}";
        assert_eq!(text, expected);
    }

    #[test]
    fn everything_that_a_task_has_comes_back() {
        let mut task = read(CLAUDES).unwrap().task;
        task.parent = Some(TaskId::Number(2));
        task.rank = taskbus_core::rank::Rank::nth(99);
        task.labels = [Label::new("rust").unwrap()].into();
        task.paths = [taskbus_core::glob::PathGlob::new("src/**").unwrap()].into();
        task.not_before = Some(THEN.plus_millis(5));
        task.result = Some(Note::new("ported").unwrap());
        task.state = State::InProgress { owner: Some(Identity::new("Zed").unwrap()), lease: Some(THEN.plus_millis(9)) };
        task.blocked_by = vec![TaskId::Number(3), TaskId::Text("word".into())];
        task.metadata.insert("taskbus".to_owned(), serde_json::json!({"not": "ours"}));
        task.extra.insert("colour".to_owned(), serde_json::json!([1, {"a": null}]));
        task.updated = taskbus_core::task::Stamp { at: THEN.plus_millis(1), by: Some(Identity::new("Zed").unwrap()) };
        (task.revision, task.fence, task.reclaims, task.parked) = (12, 3, 2, true);
        let later = THEN.plus_millis(1_000_000);
        let again = TaskFile::read(&task.id, &write(None, &task, &[]), later).unwrap();
        assert_eq!((again.task, again.is_foreign), (task.clone(), false));
        task.state = State::Completed { by: None, at: THEN };
        assert_eq!(TaskFile::read(&task.id, &write(None, &task, &[]), later).unwrap().task, task);
    }

    #[test]
    fn unknown_keys_keep_their_places() {
        let text = r#"{"zeta":1,"status":"pending","subject":"a","x":{"deep":[1,2]},"blockedBy":["2"],"id":7}"#;
        let file = read(text).unwrap();
        let mut task = file.task.clone();
        task.state = State::InProgress { owner: Some(Identity::new("Zed").unwrap()), lease: None };
        let written = object(&write(Some(&file), &task, &[])).unwrap();
        let keys: Vec<&str> = written.keys().map(String::as_str).collect();
        // What was there keeps its order; what is new stands behind what it follows in Claude Code's own order.
        let kept: Vec<&&str> = keys.iter().filter(|key| text.contains(&format!("\"{key}\""))).collect();
        assert_eq!(kept, [&"zeta", &"status", &"subject", &"x", &"blockedBy", &"id"]);
        assert_eq!(keys.len(), 10, "{keys:?}");
        assert_eq!((&written["x"], &written["id"]), (&serde_json::json!({"deep": [1, 2]}), &Value::from("7")));
    }

    #[test]
    fn what_other_writers_are_known_to_write_is_read() {
        let file = read(
            r##"{"id":7,"subject":" two\nlines ","description":null,"owner":"\"worker\"","activeForm":null,
            "status":"pending","blockedBy":[3,"4","#5",3,"x y",{}],"blocks":"9","metadata":null}"##,
        )
        .unwrap();
        assert_eq!((file.task.subject.as_str(), file.task.owner().unwrap().as_str()), ("two lines", "worker"));
        assert_eq!((numbers(&file.task.blocked_by), numbers(&file.blocks)), (vec![3, 4, 5], vec![9]));
        assert_eq!((file.odd_ids(), file.other_id()), (vec!["\"x y\"".to_owned(), "{}".to_owned()], None));
        assert!(file.task.description.is_none() && file.task.active_form.is_none() && file.task.metadata.is_empty());
        // Put right for Claude Code's eyes, and otherwise as it was.
        let written = object(&write(Some(&file), &file.task, &file.blocks)).unwrap();
        assert_eq!(
            (&written["subject"], &written["owner"]),
            (&Value::from(" two\nlines "), &Value::from("\"worker\""))
        );
        assert_eq!((&written["description"], written.get("activeForm")), (&Value::from(""), None));
        assert_eq!(written["blockedBy"], serde_json::json!(["3", "4", "5", "x y"]));
        let bare = read(r#"{"subject":"a","status":"completed","id":"8"}"#).unwrap();
        assert_eq!((bare.task.completed_at(), bare.other_id().as_deref()), (Some(THEN), Some("8")));
        assert!(read(r#"{"subject":"a","status":"deleted"}"#).unwrap().is_deleted);
        assert_eq!(
            read("\u{feff}{\"subject\":\"cut \\ud83d\",\"status\":\"pending\"}").unwrap().task.subject.as_str(),
            "cut \u{fffd}"
        );
    }

    #[test]
    fn what_is_no_task_says_why() {
        let fault = |text: &str| read(text).unwrap_err();
        assert!(matches!(fault(""), Fault::Json(_)));
        assert!(matches!(fault(r#"{"subject":"a","sta"#), Fault::Json(_)));
        assert!(matches!(TaskFile::read(&TaskId::Number(7), b"\xff", THEN), Err(Fault::Json(_))));
        assert_eq!(fault("[]"), Fault::NoObject);
        assert_eq!(fault(r#"{"status":"pending"}"#), Fault::NoSubject);
        assert_eq!(
            fault(r#"{"subject":"a"}"#).to_string(),
            "its status is missing, not pending, in_progress or completed"
        );
        assert!(fault(r#"{"subject":"a","status":"open\u001b"}"#).to_string().contains(r#""open\u{1b}""#));
        assert_eq!(fault(r#"{"subject":"a","status":"pending","metadata":[]}"#), Fault::Metadata);
    }

    /// The file after taskbus wrote it and another program then changed one thing.
    fn changed_by_another(task: &Task, change: impl FnOnce(&mut Map<String, Value>)) -> TaskFile {
        let mut raw = object(&write(None, task, &[])).unwrap();
        change(&mut raw);
        TaskFile::read(&task.id, &pretty(&raw), THEN.plus_millis(77)).unwrap()
    }

    #[test]
    fn a_change_by_another_program_counts_as_a_revision() {
        let mut task = read(CLAUDES).unwrap().task;
        (task.revision, task.fence) = (4, 2);
        let zed = Some(Identity::new("Zed").unwrap());
        task.state = State::InProgress { owner: zed.clone(), lease: Some(THEN.plus_millis(1)) };
        let edit = |key: &'static str, value: Value| changed_by_another(&task, |raw| put(raw, key, Some(value)));
        let unchanged = edit("blocks", serde_json::json!(["12"]));
        assert_eq!((unchanged.task.revision, unchanged.is_foreign), (4, false), "the other end of an edge");
        let edited = edit("description", "other".into());
        assert_eq!((edited.task.revision, edited.task.fence, edited.is_foreign), (5, 2, true));
        assert_eq!((edited.task.updated.at, &edited.task.updated.by), (THEN.plus_millis(77), &None));
        assert_eq!((edited.task.leased_until(), edited.task.owner()), (task.leased_until(), zed.as_ref()));
        let taken = edit("owner", "Amp".into());
        assert_eq!((taken.task.revision, taken.task.fence, taken.task.leased_until()), (5, 3, None), "the fence rose");
        let done = edit("status", "completed".into());
        assert_eq!((done.task.fence, done.task.completed_at()), (3, Some(THEN.plus_millis(77))));
        let metadata = changed_by_another(&task, |raw| raw["metadata"]["more"] = Value::from(1));
        assert_eq!((metadata.task.revision, &metadata.task.metadata["more"]), (5, &Value::from(1)));
    }

    #[test]
    fn what_somebody_spoiled_of_ours_falls_back_alone() {
        let mut task = read(CLAUDES).unwrap().task;
        (task.revision, task.parked, task.parent) = (4, true, Some(TaskId::Number(2)));
        let spoiled = changed_by_another(&task, |raw| {
            raw["metadata"]["taskbus"]["parent"] = Value::from("no id");
            raw["metadata"]["taskbus"]["revision"] = Value::from(-1);
            raw["metadata"]["taskbus"]["new in 9.0"] = Value::from(9);
        });
        assert_eq!((&spoiled.task.parent, spoiled.task.revision, spoiled.task.parked), (&None, 1, true));
        let again = object(&write(Some(&spoiled), &spoiled.task, &[])).unwrap();
        assert_eq!(again["metadata"]["taskbus"]["new in 9.0"], 9);
        let replaced = changed_by_another(&task, |raw| raw["metadata"]["taskbus"] = Value::from("mine"));
        assert_eq!(replaced.task.metadata["taskbus"], "mine");
        let rewritten = write(Some(&replaced), &replaced.task, &[]);
        assert_eq!(TaskFile::read(&task.id, &rewritten, THEN).unwrap().task.metadata["taskbus"], "mine");
    }
}
