//! A small MCP client for the demo and the torture: it starts a `taskbus mcp` of its own and speaks JSON-RPC with it
//! over a pair of pipes, the way an agent's host does. One call at a time; nothing of the engine is used here.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;
use serde_json::{Map, Value, json};

const PROTOCOL: &str = "2025-11-25";

/// A server and the pipes to it.
pub(crate) struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    calls: u64,
}

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The tool refused: `{code, message, retryable, …facts}`.
    #[error("the server refused: {}", .0.get("message").and_then(Value::as_str).unwrap_or("without a word"))]
    Refused(Map<String, Value>),
    /// The server cannot be reached or does not keep to the protocol.
    #[error("the MCP server {0}")]
    Broken(String),
}

impl Client {
    /// Starts a server on a store and shakes hands; `about` is the name of the client.
    pub(crate) fn start(store: &OsStr, about: &str) -> Result<Self, CallError> {
        let program = std::env::current_exe().map_err(|error| CallError::Broken(format!("is not found: {error}")))?;
        let mut command = Command::new(program);
        command.arg("mcp").arg("--store").arg(store).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().map_err(|error| CallError::Broken(format!("does not start: {error}")))?;
        let output = BufReader::new(server.stdout.take().expect("BUG: the output was piped"));
        let input = server.stdin.take();
        let mut client = Self { server, input, output, calls: 0 };
        client.shake_hands(about)?;
        Ok(client)
    }

    /// The server's process.
    pub(crate) fn server(&self) -> Pid {
        Pid::from_child(&self.server)
    }

    fn shake_hands(&mut self, about: &str) -> Result<(), CallError> {
        let about = json!({"name": about, "version": env!("CARGO_PKG_VERSION")});
        self.request("initialize", &json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about}))?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    }

    /// Calls a tool. One that is told to slow down waits as long as it is told and repeats itself.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Map<String, Value>, CallError> {
        loop {
            match self.call_once(tool, arguments) {
                Err(CallError::Refused(refusal)) if refusal.get("code") == Some(&json!("rate_limited")) => {
                    let wait_ms = refusal.get("wait_ms").and_then(Value::as_u64).unwrap_or(1);
                    thread::sleep(Duration::from_millis(wait_ms));
                }
                answer => return answer,
            }
        }
    }

    fn call_once(&mut self, tool: &str, arguments: &Value) -> Result<Map<String, Value>, CallError> {
        let mut result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let failed = result.get("isError") == Some(&json!(true));
        match result.get_mut("structuredContent").map(Value::take) {
            Some(Value::Object(facts)) if failed => Err(CallError::Refused(facts)),
            Some(Value::Object(answer)) => Ok(answer),
            _ => Err(CallError::Broken(format!("answered {tool} without structured content"))),
        }
    }

    /// Sends a request and reads until its answer comes; notifications in between are passed over.
    fn request(&mut self, method: &str, params: &Value) -> Result<Value, CallError> {
        self.calls += 1;
        let id = json!(self.calls);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut message = self.receive()?;
            if message.get("id") != Some(&id) {
                continue;
            }
            return match message.get_mut("result").map(Value::take) {
                Some(result) => Ok(result),
                None => Err(CallError::Broken(format!("refused {method}: {message}"))),
            };
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), CallError> {
        let input = self.input.as_mut().ok_or_else(|| CallError::Broken("was told to end".to_owned()))?;
        let written = input.write_all(format!("{message}\n").as_bytes()).and_then(|()| input.flush());
        written.map_err(|error| CallError::Broken(format!("does not read: {error}")))
    }

    fn receive(&mut self) -> Result<Value, CallError> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err(CallError::Broken("has ended".to_owned())),
            Ok(_) => serde_json::from_str(&line).map_err(|error| CallError::Broken(format!("speaks no JSON: {error}"))),
            Err(error) => Err(CallError::Broken(format!("does not write: {error}"))),
        }
    }
}

impl Drop for Client {
    /// The end of its input ends the server; one that is gone already needs no telling.
    fn drop(&mut self) {
        self.input = None;
        let _ended = self.server.wait();
    }
}
