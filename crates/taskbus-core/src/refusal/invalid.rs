//! What can be wrong with a request itself.

use serde_json::{Value, json};

use super::{ids, shown};
use crate::bus::channel::{ChannelKind, ChannelName};
use crate::id::TaskId;
use crate::text::TextError;

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
    #[error("the {what} would be {actual} bytes long as stored; at most {max} are kept, so shorten it")]
    TooLarge {
        /// What: a task or a message.
        what: &'static str,
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
    /// A task list where messages and memories are meant.
    #[error("{channel} is a task list: {verb} goes through task_create and task_update there")]
    IsTaskList {
        /// The channel.
        channel: ChannelName,
        /// What was tried, as in "sending".
        verb: &'static str,
    },
    /// A channel whose name belongs to the bus itself.
    #[error("{channel} is an inbox, which only its owner's register makes; it cannot be {verb}")]
    IsInbox {
        /// The channel.
        channel: ChannelName,
        /// What was tried, as in "subscribed to".
        verb: &'static str,
    },
    /// A default channel, which stays.
    #[error("{channel} is a channel that every store has; it cannot be deleted")]
    IsDefault {
        /// The channel.
        channel: ChannelName,
    },
    /// A kind that is missing or not the one that the name implies.
    #[error("{channel} must be of kind {}; send that kind", .implied.map_or("ordinary or memory", ChannelKind::as_str))]
    Kind {
        /// The channel.
        channel: ChannelName,
        /// What its name implies.
        implied: Option<ChannelKind>,
    },
    /// Neither or both of two that exclude each other.
    #[error("name either {one} or {other}, not both")]
    EitherOr {
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A wait that is longer than one call may take.
    #[error("wait_seconds is {given}; one call waits at most {max}: for longer, run `taskbus wait` in the background")]
    WaitTooLong {
        /// What was given.
        given: i64,
        /// The limit.
        max: i64,
    },
    /// A search for nothing.
    #[error("query has no word to search for; name at least one")]
    NoQuery,
    /// Something that the configuration switches off.
    #[error("{what} is switched off by {key} in the configuration")]
    SwitchedOff {
        /// What.
        what: &'static str,
        /// The setting.
        key: &'static str,
    },
    /// A cursor that no page gave out.
    #[error("cursor is not one that a page returned; leave it out to begin at the front")]
    Cursor,
}

impl Invalid {
    pub(super) fn facts(&self) -> Value {
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
            Invalid::IsTaskList { channel, .. } | Invalid::IsInbox { channel, .. } | Invalid::IsDefault { channel } => {
                json!({"field": "channel", "channel": channel})
            }
            Invalid::Kind { channel, implied } => json!({"field": "kind", "channel": channel, "kind": implied}),
            Invalid::EitherOr { one, other } => json!({"field": one, "fields": [one, other]}),
            Invalid::WaitTooLong { max, .. } => json!({"field": "wait_seconds", "max": max}),
            Invalid::NoQuery => json!({"field": "query"}),
            Invalid::SwitchedOff { key, .. } => json!({"setting": key}),
            Invalid::Cursor => json!({"field": "cursor"}),
        }
    }
}
