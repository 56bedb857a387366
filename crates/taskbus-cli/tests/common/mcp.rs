//! A client of `taskbus mcp`: one server process, spoken to over its pipes, one call at a time.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A server.
pub struct Server {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Server {
    pub fn start(store: &OsStr) -> Self {
        let mut command = Command::new(super::program());
        Self::of(command.arg("mcp").arg("--store").arg(store))
    }

    /// A server that a command starts.
    pub fn of(command: &mut Command) -> Self {
        Self::greeted(command).0
    }

    /// The same, and how it answers the first request.
    pub fn greeted(command: &mut Command) -> (Self, Value) {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut server = Self { process, input, output, calls: 0 };
        let about = json!({"name": "test", "version": "1"});
        let hello = server
            .request("initialize", &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}));
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (server, hello)
    }

    /// A server that acts under this name.
    pub fn named(store: &OsStr, name: &str) -> Self {
        let mut server = Self::start(store);
        assert_eq!(server.ok("register", json!({"name": name}))["as"], name);
        server
    }

    /// Calls a tool: its answer, or the facts of its refusal. Waits and repeats when told to slow down.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Value> {
        loop {
            let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
            let content = result["structuredContent"].clone();
            if result["isError"] != true {
                return Ok(content);
            }
            if content["code"] != "rate_limited" {
                return Err(content);
            }
            std::thread::sleep(Duration::from_millis(content["wait_ms"].as_u64().unwrap()));
        }
    }

    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, &arguments).unwrap_or_else(|refusal| panic!("{tool} {arguments}: {refusal}"))
    }

    /// Asks for something; its result.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the server ended at {method} {params}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.calls {
                assert!(message.get("result").is_some(), "{method} {params}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Ends the process with SIGKILL.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.input = None;
        let _ended = self.process.wait();
    }
}
