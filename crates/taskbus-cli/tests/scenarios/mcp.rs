//! The tools of taskbus itself, the set `core`.

use std::path::Path;

use serde_json::{Map, Value, json};
use taskbus::conformance::Driver;

use crate::agent::{Kind, LIST, People};

/// A driver over a fresh store.
pub(crate) struct McpDriver {
    people: People,
    kind: Kind,
}

impl McpDriver {
    pub(crate) fn new(place: &Path, kind: Kind) -> Self {
        Self { people: People::new(kind.store(place), "core"), kind }
    }
}

impl Driver for McpDriver {
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let mut arguments = arguments.clone();
        arguments.insert("as".to_owned(), actor.into());
        if matches!(tool, "task_create" | "task_plan" | "task_next" | "task_list") {
            arguments.insert("channel".to_owned(), LIST.into());
        }
        let (agent, is_new) = self.people.agent(actor);
        // A store of files has one list, and no sessions to register.
        if is_new && self.kind == Kind::Sqlite {
            agent.tool("register", &json!({"name": actor})).unwrap();
            let list = json!({"name": LIST, "kind": "memory", "max_reclaims": 2, "as": actor});
            agent.tool("create_channel", &list).unwrap();
        }
        agent.tool(tool, &Value::Object(arguments))
    }

    fn pass(&mut self, _seconds: u64) -> bool {
        false
    }

    fn kill(&mut self, actor: &str) -> bool {
        self.people.kill(actor);
        true
    }
}
