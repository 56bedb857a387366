//! One `taskbus serve` process, and clients that speak to it by hand.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::Place;

/// How long anything may take that should take no time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server on the store of a place of its own.
pub(crate) struct Server {
    pub(crate) place: Place,
    pub(crate) port: u16,
    process: Child,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// A server with more arguments.
    pub(crate) fn with(args: &[&str]) -> Self {
        let place = Place::new();
        let mut command = place.bare(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(args).env("TASKBUS_STORE", place.store()).env("TASKBUS_LIST", "demo");
        let (process, line) = listening(&mut command);
        let port = line.split(':').nth(3).and_then(|rest| rest.split('/').next()).unwrap().parse().unwrap();
        Self { place, port, process }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// What it holds of the machine's memory.
    pub(crate) fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Waits for the end.
    pub(crate) fn exited(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request as it stands, and reads until the server closes.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that has seen enough does not read the rest.
        let _unread = stream.write_all(request);
        answer(&mut stream)
    }

    /// A request with these headers, to this server by its own name unless they say otherwise.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.raw(request(method, path, headers, body).as_bytes())
    }

    /// A message to `/mcp`.
    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.ask("POST", "/mcp", &[MCP.as_slice(), headers].concat(), &message.to_string())
    }

    /// A client of the older era, which has a session.
    pub(crate) fn session(&self) -> Client<'_> {
        let about = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
        let hello = self.post(&[], &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        assert_eq!(hello.message()["result"]["protocolVersion"], "2025-11-25", "{hello:?}");
        let id = hello.header("mcp-session-id").unwrap().to_owned();
        let client = Client { server: self, session: Some(id) };
        let told =
            self.post(&client.headers("", ""), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(told.status, 202, "{told:?}");
        client
    }

    /// A client of the newer era, whose requests stand alone.
    pub(crate) fn alone(&self) -> Client<'_> {
        Client { server: self, session: None }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// What every request to `/mcp` says.
pub(crate) const MCP: [(&str, &str); 2] =
    [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];

/// A client.
pub(crate) struct Client<'a> {
    pub(crate) server: &'a Server,
    pub(crate) session: Option<String>,
}

impl Client<'_> {
    fn headers<'b>(&'b self, method: &'b str, name: &'b str) -> Vec<(&'b str, &'b str)> {
        match &self.session {
            Some(id) => vec![("Mcp-Session-Id", id), ("MCP-Protocol-Version", "2025-11-25")],
            None => vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", name)],
        }
    }

    /// The result of a call, refused or not.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let mut params = json!({"name": tool, "arguments": arguments});
        if self.session.is_none() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "2"},
            });
        }
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let answer = self.server.post(&self.headers("tools/call", tool), &message);
        let result = answer.message()["result"].clone();
        let content = result["structuredContent"].clone();
        assert!(content.is_object(), "{tool} {arguments}: {answer:?}");
        if result["isError"] == true { Err(content) } else { Ok(content) }
    }

    pub(crate) fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments.clone()).unwrap_or_else(|refusal| panic!("{tool} {arguments}: {refusal}"))
    }

    /// The status of one more request.
    pub(crate) fn ask_again(&self) -> u16 {
        let message = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/list"});
        self.server.post(&self.headers("tools/list", ""), &message).status
    }

    /// Ends the session.
    pub(crate) fn end(&self) -> Answer {
        self.server.ask("DELETE", "/mcp", &self.headers("", ""), "")
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The message in the body, or the last in a stream.
    #[track_caller]
    pub(crate) fn message(&self) -> Value {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: ")).rfind(|data| !data.is_empty());
        serde_json::from_str(data.unwrap_or(&self.body)).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A request whose answer ends its connection.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    let own = [("Host", "localhost")].into_iter().filter(|_| !headers.iter().any(|(name, _)| *name == "Host"));
    for (name, value) in own.chain(headers.iter().copied()) {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    text
}

/// Reads an answer until the server closes.
pub(crate) fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A connection that was cut has said what it had to say.
    let _cut = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let answer = Answer { status, head: head.to_owned(), body: body.to_owned() };
    match answer.header("transfer-encoding") {
        Some("chunked") => Answer { body: unchunked(body), ..answer },
        _ => answer,
    }
}

fn unchunked(mut rest: &str) -> String {
    let mut whole = String::new();
    while let Some((length, behind)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&behind[..length]);
        rest = behind[length..].trim_start_matches("\r\n");
    }
    whole
}

/// Starts a server and waits until it says where it listens.
pub(crate) fn listening(command: &mut Command) -> (Child, String) {
    let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("serving MCP at") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "the server ended before it listened");
    }
    (process, line)
}
