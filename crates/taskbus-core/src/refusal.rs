//! Why a command is refused: a closed list, each with a stable code and the facts a caller needs.
//!
//! A refusal is not a failure: nothing is wrong with the store, and nothing was written. The texts name the
//! value and the next step, never a destructive command (docs/rules.md 10).

use serde_json::{Map, Value, json};

use crate::id::TaskId;
use crate::limits;
use crate::name::{Identity, ListName};
use crate::text::TextError;
use crate::time::Timestamp;

/// A refusal. The order is the order of evaluation of a keyed write (docs/rules.md 2).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// This process does not hold the identity it acts as.
    #[error("{0}")]
    NotRegistered(NotRegistered),
    /// The request itself is wrong; the caller can mend it.
    #[error("{0}")]
    Invalid(Invalid),
    /// What it names does not exist.
    #[error("{0}")]
    NotFound(Missing),
    /// The state of the task refuses it.
    #[error("{0}")]
    Conflict(Conflict),
    /// Too many writes in too short a time.
    #[error("{who} writes faster than {limit}; wait {wait_ms} ms and send the same call again")]
    RateLimited {
        /// Who.
        who: Identity,
        /// The limit, in words.
        limit: String,
        /// How long until it would pass, in milliseconds.
        wait_ms: u64,
    },
}

/// Why an identity may not act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRegistered {
    /// It never did in this process.
    #[error("{name} is not registered by this process; call register first and use the name it returns")]
    Never {
        /// The name.
        name: Identity,
    },
    /// It was silent for too long and somebody else holds the name now.
    #[error("{name} is held by another process now; call register again and use the name it returns")]
    TakenOver {
        /// The name.
        name: Identity,
    },
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A text breaks its rule.
    #[error("{field} {error}")]
    Text {
        /// The field.
        field: &'static str,
        /// What is wrong.
        error: TextError,
    },
    /// More items than allowed.
    #[error("{field} has {actual} items; at most {max} are allowed")]
    TooMany {
        /// The field.
        field: &'static str,
        /// The limit.
        max: usize,
        /// What was given.
        actual: usize,
    },
    /// A number out of its range.
    #[error("{field} is {given}; it must be from {min} to {max}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// What was given.
        given: i64,
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A metadata value that cannot be kept.
    #[error("metadata.{path} {problem}")]
    Metadata {
        /// Where, as keys and indexes joined by dots.
        path: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Before and after exclude each other.
    #[error("before and after exclude each other; name one sibling in one of them")]
    BeforeAndAfter,
    /// A delete that comes with other changes.
    #[error("delete may not be combined with {}; send them apart", .fields.join(", "))]
    DeleteCombined {
        /// The other fields.
        fields: Vec<&'static str>,
    },
    /// A task that names itself.
    #[error("task {id} cannot name itself in {field}")]
    Itself {
        /// The field.
        field: &'static str,
        /// The task.
        id: TaskId,
    },
    /// A task that is not there to be named.
    #[error("{field} names task {id}, which is not a live task of this list; task_list shows those that are")]
    NotLive {
        /// The field.
        field: &'static str,
        /// The id.
        id: TaskId,
    },
    /// A way that would close on itself.
    #[error("{field} would close a cycle: {}; leave out one of these links", ids(.path, " -> "))]
    Cycle {
        /// The field.
        field: &'static str,
        /// The way, its first and last task the same.
        path: Vec<TaskId>,
    },
    /// Nesting deeper than allowed.
    #[error("parent {parent} would nest tasks {depth} deep; at most {max} levels are kept")]
    TooDeep {
        /// The parent asked for.
        parent: TaskId,
        /// The depth it would lead to.
        depth: usize,
        /// The limit.
        max: usize,
    },
    /// The task named as a place is no sibling.
    #[error("{field} names task {id}, which has another parent; name a task with the same parent")]
    NotASibling {
        /// The field.
        field: &'static str,
        /// The id.
        id: TaskId,
    },
    /// Completed tasks are reopened first.
    #[error("task {id} is completed; set its status to pending first to reopen it")]
    ReopenFirst {
        /// The task.
        id: TaskId,
    },
    /// Nobody would hold it.
    #[error("task {id} cannot be in progress without an owner; set owner in the same call, or use task_claim")]
    OwnerMissing {
        /// The task.
        id: TaskId,
    },
    /// A lease that has already ended.
    #[error("leased_until {given} is not in the future (now is {now}); use lease_seconds for a time from now")]
    LeaseInPast {
        /// What was given, in Unix ms.
        given: i64,
        /// The time of the call, in Unix ms.
        now: i64,
    },
    /// A lease that is surely in seconds.
    #[error("leased_until {given} looks like seconds; it is in Unix milliseconds, or use lease_seconds")]
    LeaseInSeconds {
        /// What was given.
        given: i64,
    },
    /// A document that is too large.
    #[error("the task would be {actual} bytes long as stored; at most {max} are kept, so shorten it")]
    TooLarge {
        /// What it would be, in bytes.
        actual: usize,
        /// The limit, in bytes.
        max: usize,
    },
    /// A key that two tasks of a plan carry.
    #[error("two tasks of the plan have the key {key:?}; give each its own")]
    PlanKeyTwice {
        /// The key.
        key: String,
    },
    /// A reference that names nothing.
    #[error("{field} names {reference:?}, which is neither a key of the plan nor a live task of this list")]
    PlanReference {
        /// The field.
        field: &'static str,
        /// What was named.
        reference: String,
    },
    /// A reference that names two things.
    #[error("{field} names {reference:?}, which is a key of the plan and also task {id}; rename the key")]
    PlanAmbiguous {
        /// The field.
        field: &'static str,
        /// What was named.
        reference: String,
        /// The task that has this id.
        id: TaskId,
    },
    /// A way that closes on itself inside a plan.
    #[error("the plan's {field} closes a cycle: {}; leave out one of these links", .path.join(" -> "))]
    PlanCycle {
        /// The field.
        field: &'static str,
        /// The way, in keys or positions, its first and last the same.
        path: Vec<String>,
    },
    /// A cursor that no page gave out.
    #[error("cursor is not one that a page returned; leave it out to begin at the front")]
    Cursor,
}

/// What does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No live task has this id.
    #[error("there is no task {id}; task_list shows the live ones")]
    Task {
        /// The id.
        id: TaskId,
    },
    /// No tombstone has this id.
    #[error("there is no deleted task {id} to restore")]
    Tombstone {
        /// The id.
        id: TaskId,
    },
    /// No list has this name.
    #[error("there is no list {name}; make it with create_channel {{\"name\": \"{name}\", \"kind\": \"memory\"}}")]
    List {
        /// The name.
        name: ListName,
    },
    /// Nobody ever registered this name.
    #[error("{name} never registered, so it cannot own a task; name an identity that register returned")]
    Owner {
        /// The name.
        name: Identity,
    },
}

/// Why the state of a task refuses a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Somebody else holds it.
    #[error("task {id} is held by {owner}{}; take another with task_next", ending(.until.as_ref()))]
    Held {
        /// The task.
        id: TaskId,
        /// Who.
        owner: Identity,
        /// Until when, if it has a lease.
        until: Option<Timestamp>,
    },
    /// It is assigned to, or was completed by, somebody else.
    #[error("task {id} belongs to {owner}; ask them to release it, or take another with task_next")]
    Assigned {
        /// The task.
        id: TaskId,
        /// Whose.
        owner: Identity,
    },
    /// The caller's claim has ended.
    #[error("task {id} was reclaimed or handed on since fence {sent} (it is {current} now): stop working on it")]
    LeaseLost {
        /// The task.
        id: TaskId,
        /// The token sent.
        sent: u64,
        /// The token now.
        current: u64,
        /// Who holds it now.
        owner: Option<Identity>,
    },
    /// The task has changed since.
    #[error("task {id} is at revision {current}, not {sent}; read it again and decide anew")]
    Revision {
        /// The task.
        id: TaskId,
        /// The revision sent.
        sent: u64,
        /// The revision now.
        current: u64,
    },
    /// Something must be done first.
    #[error("task {id} is blocked by {}; complete those first", ids(.blockers, ", "))]
    Blocked {
        /// The task.
        id: TaskId,
        /// Its open blockers.
        blockers: Vec<TaskId>,
    },
    /// Its time has not come.
    #[error("task {id} is deferred until {until}; change not_before to start it earlier")]
    Deferred {
        /// The task.
        id: TaskId,
        /// Until when.
        until: Timestamp,
    },
    /// It has live children.
    #[error("task {id} has the children {}; move or delete those first", ids(.children, ", "))]
    Children {
        /// The task.
        id: TaskId,
        /// The children.
        children: Vec<TaskId>,
    },
    /// Bringing it back would close a cycle.
    #[error("restoring task {} would close the cycle {}; remove one of these links first", .path[0], ids(.path, " -> "))]
    RestoreCycle {
        /// The way, its first and last task the same.
        path: Vec<TaskId>,
    },
    /// The key was used for something else.
    #[error("the idempotency key {key:?} was used for another call; use a new key")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// A channel of that name exists with other settings.
    #[error("{name} exists already with other settings; use it as it is or choose another name")]
    ListExists {
        /// The name.
        name: ListName,
    },
    /// A running agent has the name that a command wants to act under.
    #[error("{name} is a running agent's name, held until its process ends; choose another with --as")]
    NameHeld {
        /// The name.
        name: Identity,
    },
}

impl Refusal {
    /// The stable code (docs/rules.md 10).
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NotRegistered(_) => "not_registered",
            Refusal::Invalid(_) => "validation",
            Refusal::NotFound(_) => "not_found",
            Refusal::Conflict(_) => "conflict",
            Refusal::RateLimited { .. } => "rate_limited",
        }
    }

    /// Whether the same call may pass later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        matches!(self, Refusal::RateLimited { .. })
    }

    /// The facts as fields, beside code, message and `retryable`.
    #[must_use]
    pub fn facts(&self) -> Map<String, Value> {
        let facts = match self {
            Refusal::NotRegistered(NotRegistered::Never { name } | NotRegistered::TakenOver { name }) => {
                json!({"as": name})
            }
            Refusal::Invalid(invalid) => invalid.facts(),
            Refusal::NotFound(missing) => missing.facts(),
            Refusal::Conflict(conflict) => conflict.facts(),
            Refusal::RateLimited { wait_ms, .. } => json!({"wait_ms": wait_ms}),
        };
        match facts {
            Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            _ => Map::new(),
        }
    }
}

impl Invalid {
    fn facts(&self) -> Value {
        match self {
            Invalid::Text { field, .. } => json!({"field": field}),
            Invalid::TooMany { field, max, .. } => json!({"field": field, "max": max}),
            Invalid::OutOfRange { field, min, max, .. } => json!({"field": field, "min": min, "max": max}),
            Invalid::Metadata { path, .. } => json!({"field": format!("metadata.{path}")}),
            Invalid::BeforeAndAfter => json!({"field": "before"}),
            Invalid::DeleteCombined { fields } => json!({"field": "delete", "fields": fields}),
            Invalid::Itself { field, id } | Invalid::NotLive { field, id } | Invalid::NotASibling { field, id } => {
                json!({"field": field, "task_id": id})
            }
            Invalid::Cycle { field, path } => json!({"field": field, "cycle": shown(path)}),
            Invalid::TooDeep { parent, depth, max } => {
                json!({"field": "parent", "task_id": parent, "depth": depth, "max": max})
            }
            Invalid::ReopenFirst { id } => json!({"field": "status", "task_id": id}),
            Invalid::OwnerMissing { id } => json!({"field": "owner", "task_id": id}),
            Invalid::LeaseInPast { now, .. } => json!({"field": "leased_until", "now": now}),
            Invalid::LeaseInSeconds { .. } => json!({"field": "leased_until"}),
            Invalid::TooLarge { max, .. } => json!({"max": max}),
            Invalid::PlanKeyTwice { key } => json!({"field": "key", "key": key}),
            Invalid::PlanReference { field, reference } => json!({"field": field, "reference": reference}),
            Invalid::PlanAmbiguous { field, reference, id } => json!({"field": field, "candidates": [reference, id]}),
            Invalid::PlanCycle { field, path } => json!({"field": field, "cycle": path}),
            Invalid::Cursor => json!({"field": "cursor"}),
        }
    }
}

impl Missing {
    fn facts(&self) -> Value {
        match self {
            Missing::Task { id } | Missing::Tombstone { id } => json!({"task_id": id}),
            Missing::List { name } => json!({"channel": name}),
            Missing::Owner { name } => json!({"field": "owner", "owner": name}),
        }
    }
}

impl Conflict {
    /// One word for the reason, beside the code.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Conflict::Held { .. } => "held",
            Conflict::Assigned { .. } => "assigned",
            Conflict::LeaseLost { .. } => "lease_lost",
            Conflict::Revision { .. } => "revision",
            Conflict::Blocked { .. } => "blocked",
            Conflict::Deferred { .. } => "deferred",
            Conflict::Children { .. } => "children",
            Conflict::RestoreCycle { .. } => "cycle",
            Conflict::KeyReused { .. } => "key_reused",
            Conflict::ListExists { .. } => "exists",
            Conflict::NameHeld { .. } => "name_held",
        }
    }

    fn facts(&self) -> Value {
        let mut facts = match self {
            Conflict::Held { id, owner, until } => json!({"task_id": id, "owner": owner, "leased_until": until}),
            Conflict::Assigned { id, owner } => json!({"task_id": id, "owner": owner}),
            Conflict::LeaseLost { id, current, owner, .. } => json!({"task_id": id, "fence": current, "owner": owner}),
            Conflict::Revision { id, current, .. } => json!({"task_id": id, "revision": current}),
            Conflict::Blocked { id, blockers } => json!({"task_id": id, "open_blockers": shown(blockers)}),
            Conflict::Deferred { id, until } => json!({"task_id": id, "not_before": until}),
            Conflict::Children { id, children } => json!({"task_id": id, "children": shown(children)}),
            Conflict::RestoreCycle { path } => json!({"cycle": shown(path)}),
            Conflict::KeyReused { key } => json!({"idempotency_key": key}),
            Conflict::ListExists { name } => json!({"channel": name}),
            Conflict::NameHeld { name } => json!({"as": name}),
        };
        facts["reason"] = self.reason().into();
        facts
    }
}

fn shown(ids: &[TaskId]) -> &[TaskId] {
    &ids[..ids.len().min(limits::IDS_SHOWN_MAX)]
}

fn ids(ids: &[TaskId], joint: &str) -> String {
    let mut text = shown(ids).iter().map(ToString::to_string).collect::<Vec<_>>().join(joint);
    if ids.len() > limits::IDS_SHOWN_MAX {
        text.push_str(&format!("{joint}… ({} in all)", ids.len()));
    }
    text
}

fn ending(until: Option<&Timestamp>) -> String {
    until.map_or_else(String::new, |at| format!(" until {at}"))
}
