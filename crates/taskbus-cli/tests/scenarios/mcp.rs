//! Each person is an agent with a `taskbus mcp` process of its own.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Map, Value, json};
use taskbus::conformance::Driver;

/// A driver over a fresh file.
pub(crate) struct McpDriver {
    store: PathBuf,
    people: BTreeMap<String, Agent>,
}

struct Agent {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl McpDriver {
    pub(crate) fn new(place: &Path) -> Self {
        Self { store: place.join("scenario.db"), people: BTreeMap::new() }
    }

    fn agent(&mut self, actor: &str) -> &mut Agent {
        let store = self.store.clone();
        self.people.entry(actor.to_owned()).or_insert_with(|| {
            let mut agent = Agent::start(&store);
            agent.tool("register", &json!({"name": actor})).unwrap();
            let list = json!({"name": "tasks/scenario", "kind": "memory", "max_reclaims": 2, "as": actor});
            agent.tool("create_channel", &list).unwrap();
            agent
        })
    }
}

impl Driver for McpDriver {
    fn call(&mut self, actor: &str, tool: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let mut arguments = arguments.clone();
        arguments.insert("as".to_owned(), actor.into());
        if matches!(tool, "task_create" | "task_plan" | "task_next" | "task_list") {
            arguments.insert("channel".to_owned(), "tasks/scenario".into());
        }
        self.agent(actor).tool(tool, &Value::Object(arguments))
    }

    fn pass(&mut self, _seconds: u64) -> bool {
        false
    }

    fn kill(&mut self, actor: &str) -> bool {
        self.people.remove(actor);
        true
    }
}

impl Agent {
    fn start(store: &Path) -> Self {
        let store = format!("sqlite:{}", store.display());
        let mut server = Command::new(env!("CARGO_BIN_EXE_taskbus"))
            .args(["mcp", "--store", &store])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
        let mut agent = Self { server, input, output, calls: 0 };
        let about = json!({"name": "scenarios", "version": "1"});
        agent.request("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}));
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    /// Calls a tool. Text and structured content must carry the same facts.
    fn tool(&mut self, tool: &str, arguments: &Value) -> Result<Value, Value> {
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
