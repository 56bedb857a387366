//! What the drivers over MCP share: a `taskbus mcp` process for each person, over one store.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The list that the scripts run on, in every kind of store.
pub(crate) const LIST: &str = "tasks/scenario";

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Sidecar,
    Directory,
}

impl Kind {
    /// A fresh store of this kind, as `--store` takes it.
    pub(crate) fn store(self, place: &Path) -> String {
        let place = place.display();
        match self {
            Self::Sqlite => format!("sqlite:{place}/scenario.db"),
            Self::Sidecar => format!("file:{place}/scenario.tasks.json"),
            Self::Directory => format!("claude:{place}/scenario"),
        }
    }
}

/// The people of a script, each with a process of their own from their first call on.
pub(crate) struct People {
    store: String,
    tools: &'static str,
    agents: BTreeMap<String, Agent>,
}

impl People {
    pub(crate) fn new(store: String, tools: &'static str) -> Self {
        Self { store, tools, agents: BTreeMap::new() }
    }

    /// Somebody's process, and whether it is new.
    pub(crate) fn agent(&mut self, actor: &str) -> (&mut Agent, bool) {
        let is_new = !self.agents.contains_key(actor);
        let start = || Agent::start(&self.store, self.tools, actor);
        (self.agents.entry(actor.to_owned()).or_insert_with(start), is_new)
    }

    pub(crate) fn kill(&mut self, actor: &str) {
        self.agents.remove(actor);
    }
}

/// One process and the client's end of its pipes.
pub(crate) struct Agent {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Agent {
    fn start(store: &str, tools: &str, actor: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taskbus"));
        command.args(["mcp", "--store", store, "--tools", tools]).env("TASKBUS_AS", actor);
        if store.starts_with("sqlite:") {
            command.args(["--list", LIST]);
        }
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
        let mut agent = Self { server, input, output, calls: 0 };
        let about = json!({"name": "scenarios", "version": "1"});
        agent.request("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}));
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    /// Calls a tool: the structured answer, or the structured refusal.
    pub(crate) fn tool(&mut self, tool: &str, arguments: &Value) -> Result<Value, Value> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        let facts = result["structuredContent"].clone();
        assert!(facts.is_object(), "{tool}: {result}");
        if result["isError"] == true { Err(facts) } else { Ok(facts) }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has ended");
            let mut message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].take();
            }
        }
    }
}

/// Without a goodbye.
impl Drop for Agent {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}
