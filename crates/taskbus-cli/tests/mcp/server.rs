//! One `taskbus mcp` process and the client's end of its pipes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take that should take no time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server and its client.
pub(crate) struct Server {
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    exit: Receiver<ExitStatus>,
    /// What it wrote to standard error, once it has ended.
    stderr: Receiver<String>,
    /// Its process id.
    pub(crate) pid: u32,
    waiting: Vec<Value>,
    next_id: u64,
}

/// How to start one.
pub(crate) struct Launch {
    command: Command,
}

impl Launch {
    /// A server with a home, an almost empty environment and this store.
    pub(crate) fn new(home: &Path, store: &str) -> Self {
        Self::of(Path::new(env!("CARGO_BIN_EXE_taskbus")), home, store)
    }

    /// The same with another copy of the program.
    pub(crate) fn of(program: &Path, home: &Path, store: &str) -> Self {
        let mut command = Command::new(program);
        command.args(["mcp", "--store", store]).current_dir(home).env_clear();
        command.env("HOME", home).env("PATH", "/usr/bin:/bin");
        Self { command }
    }

    pub(crate) fn arg(mut self, arg: &str) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// For what is rarely asked for.
    pub(crate) fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts it, without a word.
    pub(crate) fn silent(mut self) -> Server {
        let command = self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Server::new(command.spawn().unwrap())
    }

    /// Starts it and shakes hands as Codex does.
    pub(crate) fn start(self) -> Server {
        let mut server = self.silent();
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        server.request("initialize", hello);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }
}

/// A server on a SQLite store in this directory.
pub(crate) fn on_sqlite(home: &Path) -> Server {
    Launch::new(home, "sqlite:taskbus.db").start()
}

impl Server {
    fn new(mut child: Child) -> Self {
        let (line, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for text in stdout.lines().map_while(Result::ok) {
                // Standard output carries JSON and nothing else.
                let value = serde_json::from_str(&text).unwrap_or_else(|_| json!({"not JSON": text}));
                let _ = line.send(value);
            }
        });
        let (said, stderr) = channel();
        let mut errors = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            let _ = said.send(text);
        });
        let (stdin, pid) = (child.stdin.take(), child.id());
        let (ended, exit) = channel();
        std::thread::spawn(move || ended.send(child.wait().unwrap()));
        Self { stdin, lines, exit, stderr, pid, waiting: Vec::new(), next_id: 100 }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The next line, whatever it is.
    pub(crate) fn line(&mut self) -> Value {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(error) => panic!("no line from the server: {error}"),
        }
    }

    /// The answer to a request; other lines wait.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        if let Some(at) = self.waiting.iter().position(|line| line["id"] == *id) {
            return self.waiting.remove(at);
        }
        loop {
            let line = self.line();
            if line["id"] == *id {
                return line;
            }
            self.waiting.push(line);
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(&id)
    }

    /// Sends a request and does not wait.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The result of a call of a tool, refused or not.
    pub(crate) fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = answer["result"].clone();
        assert!(result.is_object(), "{tool} {arguments}: {answer}");
        result
    }

    /// What a call of a tool that must succeed answers.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments.clone());
        assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
        result["structuredContent"].clone()
    }

    /// What a call of a tool that must be refused answers.
    #[track_caller]
    pub(crate) fn refusal(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments.clone());
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        result["structuredContent"].clone()
    }

    /// Ends the server's input.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Ends the input and waits for the end: its status, how long it took, and what came on standard error.
    pub(crate) fn end(mut self) -> (ExitStatus, Duration, String) {
        let begun = Instant::now();
        self.hang_up();
        let status = self.exited();
        (status, begun.elapsed(), self.stderr.recv_timeout(PATIENCE).unwrap())
    }

    /// Waits for the end.
    pub(crate) fn exited(&self) -> ExitStatus {
        match self.exit.recv_timeout(PATIENCE) {
            Ok(status) => status,
            Err(RecvTimeoutError::Timeout) => panic!("the server is still there after {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("nobody waits for the server"),
        }
    }

    /// Everything that came and was not asked for yet, after the end.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        let mut rest = std::mem::take(&mut self.waiting);
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            rest.push(line);
        }
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin = None;
        if self.exit.recv_timeout(PATIENCE).is_err()
            && let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Every row of every table but the sessions, whose heartbeat goes on.
pub(crate) fn dump(home: &Path) -> Vec<String> {
    let store = rusqlite::Connection::open(home.join("taskbus.db")).unwrap();
    let mut tables =
        store.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'sessions'").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    tables.iter().flat_map(|table| rows(&store, table)).collect()
}

fn rows(store: &rusqlite::Connection, table: &str) -> Vec<String> {
    let mut all = store.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
    let columns = all.column_count();
    let read = |row: &rusqlite::Row<'_>| {
        let values: Vec<rusqlite::types::Value> = (0..columns).map(|at| row.get(at)).collect::<Result<_, _>>()?;
        Ok(format!("{table}: {values:?}"))
    };
    all.query_map([], read).unwrap().map(Result::unwrap).collect()
}
