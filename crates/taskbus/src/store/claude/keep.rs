//! What taskbus knows of a task beyond Claude Code's fields. It stands under one key of the metadata, which is the
//! only place that Claude Code keeps when it rewrites a file.
//!
//! Each field is read by itself: one that somebody spoiled falls back to what a task without it has, and unknown
//! ones are the task's `extra`. `seen` is a print of the rest of the file as taskbus last wrote it. When the file has another, a
//! program that knows nothing of us has changed the task: that counts as one more revision, at the file's time, by
//! nobody known.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::rank::Rank;
use taskbus_core::task::{Stamp, State, Status, Task};
use taskbus_core::text::{Body, Subject};
use taskbus_core::time::Timestamp;

/// The key in the metadata.
pub(super) const KEY: &str = "taskbus";

const SEEN: &str = "seen";
const REVISION: &str = "revision";
const HOLDER: &str = "holder";
const METADATA: &str = "metadata";
/// The fields that mean something here; all others are the task's `extra`.
const KNOWN: [&str; 20] = [
    "parent",
    "rank",
    "labels",
    "paths",
    "not_before",
    "leased_until",
    HOLDER,
    "fence",
    "reclaims",
    "parked",
    "result",
    "completed_at",
    "created_at",
    "created_by",
    "updated_at",
    "updated_by",
    METADATA,
    REVISION,
    SEEN,
    KEY,
];

/// The fields of one task.
#[derive(Clone, Debug)]
pub(super) struct Keep {
    map: Map<String, Value>,
    is_foreign: bool,
    modified: Timestamp,
    rank: Rank,
    /// When its hold ends.
    pub(super) leased_until: Option<Timestamp>,
    /// When it was completed.
    pub(super) completed_at: Option<Timestamp>,
    fence: u64,
}

/// Takes our key out of a task's metadata.
pub(super) fn take_out(metadata: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    match metadata.shift_remove(KEY) {
        Some(Value::Object(map)) => Some(map),
        // Not ours: somebody uses the same word, and keeps what they wrote.
        Some(other) => Some(Map::from_iter([(METADATA.to_owned(), other)])),
        None => None,
    }
}

impl Keep {
    /// Reads what was kept of a task whose file has the print `seen`.
    pub(super) fn read(id: &TaskId, kept: Option<&Map<String, Value>>, seen: &str, modified: Timestamp) -> Self {
        let map = kept.cloned().unwrap_or_default();
        Self {
            is_foreign: map.get(SEEN).and_then(Value::as_str).is_some_and(|print| print != seen),
            rank: field(&map, "rank").unwrap_or_else(|| plain_rank(id)),
            leased_until: field(&map, "leased_until"),
            completed_at: field(&map, "completed_at"),
            fence: field(&map, "fence").unwrap_or(0),
            modified,
            map,
        }
    }

    /// Whether another program changed the task after taskbus did.
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// What still holds, given who has the task now: one that another program took or gave back has no lease of
    /// ours, and a fence that no earlier holder has.
    pub(super) fn judged(mut self, owner: Option<&Identity>, status: Option<Status>) -> Self {
        let holder: Option<Identity> = field(&self.map, HOLDER);
        let holds = status == Some(Status::InProgress);
        if holder.is_some() && !(holds && holder.as_ref() == owner) {
            self.leased_until = None;
            self.fence += 1;
        }
        self
    }

    /// The task, with what the file itself says.
    #[expect(clippy::too_many_arguments, reason = "the fields of one file")]
    pub(super) fn into_task(
        self,
        id: TaskId,
        subject: Subject,
        description: Option<Body>,
        active_form: Option<Subject>,
        state: State,
        blocked_by: Vec<TaskId>,
        mut metadata: Map<String, Value>,
    ) -> Task {
        if let Some(shadowed) = self.map.get(METADATA) {
            metadata.insert(KEY.to_owned(), shadowed.clone());
        }
        let foreign = Stamp { at: self.modified, by: None };
        let stamp = |at, by| field(&self.map, at).map(|at| Stamp { at, by: field(&self.map, by) });
        let updated = stamp("updated_at", "updated_by").filter(|_| !self.is_foreign);
        Task {
            id,
            subject,
            description,
            active_form,
            state,
            blocked_by,
            metadata,
            parent: field(&self.map, "parent"),
            not_before: field(&self.map, "not_before"),
            labels: field(&self.map, "labels").unwrap_or_default(),
            paths: field(&self.map, "paths").unwrap_or_default(),
            result: field(&self.map, "result"),
            created: stamp("created_at", "created_by").unwrap_or_else(|| foreign.clone()),
            updated: updated.unwrap_or(foreign),
            revision: field(&self.map, REVISION).unwrap_or(1) + u64::from(self.is_foreign),
            reclaims: field(&self.map, "reclaims").unwrap_or(0),
            parked: field(&self.map, "parked").unwrap_or(false),
            extra: others(&self.map),
            rank: self.rank,
            fence: self.fence,
        }
    }
}

/// What is kept of a task.
pub(super) fn of(task: &Task, seen: String) -> Map<String, Value> {
    let mut map = Map::new();
    let holder = task.owner().filter(|_| task.status() == Status::InProgress);
    keep(&mut map, "parent", task.parent.as_ref());
    keep(&mut map, "rank", Some(&task.rank).filter(|rank| **rank != plain_rank(&task.id)));
    keep(&mut map, "labels", Some(&task.labels).filter(|set| !set.is_empty()));
    keep(&mut map, "paths", Some(&task.paths).filter(|set| !set.is_empty()));
    keep(&mut map, "not_before", task.not_before);
    keep(&mut map, "leased_until", task.leased_until());
    keep(&mut map, HOLDER, holder);
    keep(&mut map, "fence", Some(task.fence).filter(|fence| *fence != 0));
    keep(&mut map, "reclaims", Some(task.reclaims).filter(|count| *count != 0));
    keep(&mut map, "parked", Some(true).filter(|_| task.parked));
    keep(&mut map, "result", task.result.as_ref());
    keep(&mut map, "completed_at", task.completed_at());
    keep(&mut map, "created_at", Some(task.created.at));
    keep(&mut map, "created_by", task.created.by.as_ref());
    keep(&mut map, "updated_at", Some(task.updated.at));
    keep(&mut map, "updated_by", task.updated.by.as_ref());
    keep(&mut map, METADATA, task.metadata.get(KEY));
    keep(&mut map, REVISION, Some(task.revision).filter(|revision| *revision != 1));
    keep(&mut map, SEEN, Some(seen));
    map.extend(others(&task.extra));
    map
}

fn others(map: &Map<String, Value>) -> Map<String, Value> {
    let other = map.iter().filter(|(key, _)| !KNOWN.contains(&key.as_str()));
    other.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn field<T: DeserializeOwned>(map: &Map<String, Value>, key: &str) -> Option<T> {
    T::deserialize(map.get(key)?).ok()
}

fn keep(map: &mut Map<String, Value>, key: &str, value: Option<impl Serialize>) {
    if let Some(value) = value.and_then(|value| serde_json::to_value(value).ok()) {
        map.insert(key.to_owned(), value);
    }
}

/// Where a task stands that nobody moved: in the order of ids, words behind numbers.
fn plain_rank(id: &TaskId) -> Rank {
    Rank::nth(id.as_number().unwrap_or(i64::MAX as u64))
}
