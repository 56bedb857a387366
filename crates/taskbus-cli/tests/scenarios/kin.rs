//! Kin's tool. Each change answers the task and the whole graph; what a task waits for is set whole, and reading one
//! task is looking for it in the graph.

use std::path::Path;

use serde_json::{Map, Value, json};
use taskbus::conformance::Driver;

use crate::agent::{Kind, People};

/// A driver over a fresh store.
pub(crate) struct KinDriver {
    people: People,
    kind: Kind,
}

impl KinDriver {
    pub(crate) fn new(place: &Path, kind: Kind) -> Self {
        Self { people: People::new(kind.store(place), "kin"), kind }
    }

    fn act(&mut self, actor: &str, action: &str, mut arguments: Value) -> Result<Value, Value> {
        arguments["action"] = action.into();
        // The fields of a refusal have the names of the tool.
        let field = if action == "add" { "blocked_by" } else { "add_blocked_by" };
        self.people.agent(actor).0.tool("tasks", &arguments).map_err(|mut refusal| {
            if refusal["field"] == "blockedBy" {
                refusal["field"] = field.into();
            }
            refusal
        })
    }

    /// A change of one task, and what it answers about it.
    fn change(&mut self, actor: &str, action: &str, arguments: Value) -> Result<Value, Value> {
        let mut told = self.act(actor, action, arguments)?;
        let row = told["snapshot"]["tasks"].as_array().unwrap().iter().find(|row| row["id"] == told["task"]["id"]);
        assert!(row.is_none_or(|row| *row == told["task"]), "the task is as the graph shows it: {told}");
        let task = named(told["task"].take());
        Ok(json!({"deleted": task["status"] == "deleted", "task": task}))
    }

    fn update(&mut self, actor: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let id = &arguments["task_id"];
        if arguments.contains_key("delete") {
            return self.change(actor, "remove", json!({"id": id}));
        }
        if arguments.len() == 2 && arguments.get("status").is_some_and(|status| status == "completed") {
            return self.change(actor, "complete", json!({"id": id}));
        }
        let mut changes = json!({"id": id});
        for (field, value) in arguments {
            match field.as_str() {
                "add_blocked_by" => changes["blockedBy"] = self.with_blockers(actor, id, value)?,
                "subject" => changes["content"] = value.clone(),
                "status" => changes["status"] = value.clone(),
                _ => {}
            }
        }
        self.change(actor, "update", changes)
    }

    /// What the task waits for, and these.
    fn with_blockers(&mut self, actor: &str, id: &Value, more: &Value) -> Result<Value, Value> {
        let task = self.get(actor, id)?;
        let all = [&task["task"]["blocked_by"], more].into_iter().filter_map(Value::as_array);
        Ok(all.flatten().cloned().collect())
    }

    /// The rows that are not deleted.
    fn rows(&mut self, actor: &str, action: &str) -> Result<Vec<Value>, Value> {
        let mut told = self.act(actor, action, json!({}))?;
        let rows = told["tasks"].as_array_mut().map(std::mem::take).unwrap();
        Ok(rows.into_iter().filter(|row| row["status"] != "deleted").map(named).collect())
    }

    fn get(&mut self, actor: &str, id: &Value) -> Result<Value, Value> {
        let task = self.rows(actor, "list")?.into_iter().find(|row| row["id"] == *id);
        task.map(|task| json!({"task": task})).ok_or_else(|| json!({"code": "not_found", "task_id": id}))
    }
}

/// What an answer of this tool tells.
const TOLD: [&str; 8] = ["id", "subject", "status", "owner", "blocked_by", "blocks", "deleted", "order"];

impl Driver for KinDriver {
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let id = arguments.get("task_id");
        match tool {
            "task_create" => {
                let made = json!({"content": arguments["subject"], "blockedBy": arguments.get("blocked_by")});
                self.change(actor, "add", made)
            }
            "task_claim" => self.change(actor, "update", json!({"id": id, "status": "in_progress"})),
            "task_release" => self.change(actor, "update", json!({"id": id, "status": "pending"})),
            "task_update" => self.update(actor, arguments),
            "task_get" => self.get(actor, id.unwrap()),
            "task_list" => {
                let action = if arguments.contains_key("view") { "blocked" } else { "list" };
                Ok(json!({"tasks": self.rows(actor, action)?}))
            }
            _ => panic!("{tool} has no form"),
        }
    }

    /// One text, a status, and what it waits for; to start a task is to take it.
    fn can(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        let only = |fields: &[&str]| arguments.keys().all(|key| fields.contains(&key.as_str()));
        let is = |field: &str, word: &str| arguments.get(field).is_some_and(|value| value == word);
        let removes = arguments.get("delete") == Some(&json!(true));
        match tool {
            "task_create" => only(&["subject", "blocked_by"]),
            "task_claim" | "task_release" | "task_get" => only(&["task_id"]),
            "task_update" if removes => only(&["task_id", "delete"]),
            "task_update" => only(&["task_id", "status", "subject", "add_blocked_by"]) && !is("status", "in_progress"),
            "task_list" => arguments.is_empty() || (only(&["view"]) && is("view", "blocked")),
            _ => false,
        }
    }

    /// An owner is told where owners are kept.
    fn tells(&self, _tool: &str, field: &str) -> bool {
        TOLD.contains(&field) && (field != "owner" || self.kind == Kind::Sqlite)
    }

    fn pass(&mut self, _seconds: u64) -> bool {
        false
    }

    fn kill(&mut self, actor: &str) -> bool {
        self.people.kill(actor);
        true
    }
}

fn named(mut row: Value) -> Value {
    row["subject"] = row["content"].take();
    row["blocked_by"] = row["blockedBy"].take();
    row
}
