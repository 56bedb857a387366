//! The tools of Claude Code. A change answers which fields it changed, so that what the task is then is asked of
//! `TaskGet`; making a task that waits for others takes two calls.

use std::path::Path;

use serde_json::{Map, Value, json};
use taskbus::conformance::Driver;

use crate::agent::{Kind, People};

/// A driver over a fresh store.
pub(crate) struct ClaudeDriver {
    people: People,
}

impl ClaudeDriver {
    pub(crate) fn new(place: &Path, kind: Kind) -> Self {
        Self { people: People::new(kind.store(place), "claude") }
    }

    fn tool(&mut self, actor: &str, tool: &str, arguments: &Value) -> Result<Value, Value> {
        self.people.agent(actor).0.tool(tool, arguments).map_err(refusal)
    }

    fn create(&mut self, actor: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let mut made = json!({"description": ""});
        for (field, value) in arguments.iter().filter(|(field, _)| *field != "blocked_by") {
            made[field] = value.clone();
        }
        let id = self.tool(actor, "TaskCreate", &made)?["task"]["id"].clone();
        if let Some(blockers) = arguments.get("blocked_by") {
            self.tool(actor, "TaskUpdate", &json!({"taskId": id, "addBlockedBy": blockers}))?;
        }
        self.get(actor, &id)
    }

    fn update(&mut self, actor: &str, arguments: &Value) -> Result<Value, Value> {
        let id = arguments["taskId"].clone();
        let told = self.tool(actor, "TaskUpdate", arguments)?;
        let fields = told["updatedFields"].as_array().unwrap();
        let mut answer = if fields.contains(&json!("deleted")) { json!({}) } else { self.get(actor, &id)? };
        answer["replaced"] = json!(i32::from(!fields.is_empty()));
        answer["deleted"] = json!(fields.contains(&json!("deleted")));
        answer["unblocked"] = told["unblocked"].clone();
        answer["open_children"] = told["openChildren"].clone();
        answer["parent_complete"] = told["parentComplete"].clone();
        Ok(answer)
    }

    /// What the tool says of a task that is not there is no refusal.
    fn get(&mut self, actor: &str, id: &Value) -> Result<Value, Value> {
        let mut task = self.tool(actor, "TaskGet", &json!({"taskId": id}))?["task"].take();
        if task.is_null() {
            return Err(json!({"code": "not_found", "task_id": id}));
        }
        task["blocked_by"] = task["blockedBy"].take();
        task["open_blockers"] = task["openBlockers"].take();
        task["blocked"] = json!(task["open_blockers"].is_array());
        Ok(json!({"task": task}))
    }
}

/// What an answer of these tools tells.
const TOLD: [&str; 16] = [
    "id",
    "subject",
    "description",
    "status",
    "owner",
    "parent",
    "blocked",
    "blocked_by",
    "blocks",
    "open_blockers",
    "replaced",
    "deleted",
    "unblocked",
    "open_children",
    "parent_complete",
    "order",
];

/// What a change can say.
const FIELDS: [&str; 8] =
    ["task_id", "status", "owner", "subject", "description", "add_blocked_by", "metadata", "delete"];

impl Driver for ClaudeDriver {
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let id = arguments.get("task_id").map(|id| json!(id)).unwrap_or_default();
        match tool {
            "task_create" => self.create(actor, arguments),
            "task_claim" => self.update(actor, &json!({"taskId": id, "status": "in_progress"})),
            "task_release" => self.update(actor, &json!({"taskId": id, "status": "pending"})),
            "task_update" => self.update(actor, &changes(arguments)),
            "task_get" => self.get(actor, &id),
            "task_list" => self.tool(actor, "TaskList", &json!({})),
            _ => panic!("{tool} has no form"),
        }
    }

    /// No leases, fences, keys, parents or places. To start a task is to take it; a task that is made and cannot wait
    /// as asked is made all the same.
    fn can(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        let only = |fields: &[&str]| arguments.keys().all(|key| fields.contains(&key.as_str()));
        let starts = arguments.get("status").is_some_and(|status| status == "in_progress");
        let restores = arguments.get("delete").is_some_and(|delete| delete == "false");
        match tool {
            "task_create" => {
                only(&["subject", "description", "metadata", "blocked_by"]) && !waits_for_nothing(arguments)
            }
            "task_claim" | "task_release" | "task_get" => only(&["task_id"]),
            "task_update" => only(&FIELDS) && !restores && (!starts || arguments.contains_key("owner")),
            "task_list" => arguments.is_empty(),
            _ => false,
        }
    }

    fn tells(&self, _tool: &str, field: &str) -> bool {
        TOLD.contains(&field) || field.starts_with("metadata.")
    }

    fn pass(&mut self, _seconds: u64) -> bool {
        false
    }

    fn kill(&mut self, actor: &str) -> bool {
        self.people.kill(actor);
        true
    }
}

/// Whether a blocker is a number: in a script, one that is not there.
fn waits_for_nothing(arguments: &Map<String, Value>) -> bool {
    let blockers = arguments.get("blocked_by").and_then(Value::as_array).into_iter().flatten();
    blockers.filter_map(Value::as_str).any(|blocker| blocker.parse::<u64>().is_ok())
}

fn changes(arguments: &Map<String, Value>) -> Value {
    let mut changes = json!({});
    for (field, value) in arguments {
        match field.as_str() {
            "task_id" => changes["taskId"] = value.clone(),
            "add_blocked_by" => changes["addBlockedBy"] = value.clone(),
            "delete" => changes["status"] = "deleted".into(),
            "metadata" => changes["metadata"] = removing(value),
            field => changes[field] = value.clone(),
        }
    }
    changes
}

/// What is empty in a script is null here.
fn removing(metadata: &Value) -> Value {
    let fields = metadata.as_object().cloned().unwrap_or_default().into_iter();
    let null = |value: Value| if value == "" { Value::Null } else { value };
    Value::Object(fields.map(|(key, value)| (key, null(value))).collect())
}

/// The fields of a refusal have the names of the tools.
fn refusal(mut refusal: Value) -> Value {
    if refusal["field"] == "addBlockedBy" {
        refusal["field"] = "add_blocked_by".into();
    }
    refusal
}
