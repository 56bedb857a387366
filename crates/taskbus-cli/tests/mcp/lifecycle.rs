//! How the process ends: with its input, with nobody reading, on a signal; and what it never does before.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskbus::store::Store as _;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};

use crate::server::{Launch, PATIENCE, Server, on_sqlite};

const SECOND: Duration = Duration::from_secs(1);

fn memory(home: &tempfile::TempDir) -> Server {
    Launch::new(home.path(), "memory:").silent()
}

#[track_caller]
fn ends_well(server: Server) {
    let (status, time, stderr) = server.end();
    assert!(status.success(), "{status} {stderr}");
    assert!(time < SECOND, "{time:?}");
    assert_eq!(stderr, "");
}

fn hello() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

#[test]
fn it_ends_with_its_input_wherever_that_ends() {
    let home = tempfile::tempdir().unwrap();
    ends_well(memory(&home));
    for part in
        ["{\"jsonrpc\":\"2.0\",\"id\":1,\"meth", "\n\n", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n"]
    {
        let mut server = memory(&home);
        server.send_bytes(part.as_bytes());
        ends_well(server);
    }
    let mut server = memory(&home);
    server.request("initialize", hello());
    ends_well(server);
    ends_well(on_sqlite(home.path()));
}

#[test]
fn a_request_right_before_the_end_is_answered() {
    let home = tempfile::tempdir().unwrap();
    on_sqlite(home.path()).call("create_channel", json!({"name": "tasks/t"}));
    for end in ["\n", ""] {
        let mut server = Launch::new(home.path(), "sqlite:taskbus.db").silent();
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "task_create", "arguments": {"channel": "tasks/t", "subject": "last words"}}});
        server.send_bytes(format!("{call}{end}").as_bytes());
        server.hang_up();
        assert!(server.exited().success());
        let rest = server.rest();
        assert_eq!((rest.len(), &rest[0]["result"]["structuredContent"]["subject"]), (1, &json!("last words")));
    }
}

#[test]
fn a_waiting_call_ends_at_once_with_the_input() {
    let home = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let mut server = on_sqlite(home.path());
        server.call("create_channel", json!({"name": "tasks/t"}));
        let ids: Vec<Value> = (0..4)
            .map(|_| json!({"name": "task_next", "arguments": {"channel": "tasks/t", "wait_seconds": 50}}))
            .map(|call| server.begin("tools/call", call))
            .collect();
        // Calls begin in order, so this answer means that the four are waiting.
        server.call("task_list", json!({"channel": "tasks/t"}));
        let begun = Instant::now();
        server.hang_up();
        assert!(server.exited().success());
        assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
        let rest = server.rest();
        for id in ids {
            let answer = rest.iter().find(|line| line["id"] == id).unwrap_or_else(|| panic!("no answer to {id}"));
            assert_eq!(answer["result"]["structuredContent"]["idle"]["advice"], "done", "{answer}");
        }
    }
}

#[test]
fn a_cancelled_wait_hands_nothing_out() {
    let home = tempfile::tempdir().unwrap();
    let mut server = on_sqlite(home.path());
    server.call("create_channel", json!({"name": "tasks/t"}));
    let wait = json!({"name": "task_next", "arguments": {"channel": "tasks/t", "wait_seconds": 50}});
    let id = server.begin("tools/call", wait.clone());
    server.call("task_list", json!({"channel": "tasks/t"}));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    // A wait that is not cancelled gets the task; had the other one still waited, it would have been first.
    let second = server.begin("tools/call", wait);
    server.call("task_create", json!({"channel": "tasks/t", "subject": "s"}));
    let taken = server.answer(&second);
    assert_eq!(taken["result"]["structuredContent"]["task"]["id"], 1, "{taken}");
    ends_well(server);
}

#[test]
fn a_full_house_of_waits_leaves_room_for_work() {
    let home = tempfile::tempdir().unwrap();
    let mut server = on_sqlite(home.path());
    server.call("create_channel", json!({"name": "tasks/t"}));
    let wait = json!({"name": "task_next", "arguments": {"channel": "tasks/t", "wait_seconds": 50}});
    let waits: Vec<Value> = (0..40).map(|_| server.begin("tools/call", wait.clone())).collect();
    // Those beyond the limit do not wait, and say so at once; the others still do.
    for id in &waits[24..] {
        assert_eq!(server.answer(id)["result"]["structuredContent"]["idle"]["advice"], "done");
    }
    for _ in 0..24 {
        server.call("task_create", json!({"channel": "tasks/t", "subject": "s"}));
    }
    let taken =
        |id: &Value, server: &mut Server| server.answer(id)["result"]["structuredContent"]["task"]["id"].as_u64();
    let mut taken: Vec<u64> = waits[..24].iter().map(|id| taken(id, &mut server).unwrap()).collect();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 24);
    ends_well(server);
}

#[test]
fn calls_made_together_take_effect_in_order() {
    let home = tempfile::tempdir().unwrap();
    let mut server = on_sqlite(home.path());
    server.call("create_channel", json!({"name": "tasks/t"}));
    let subjects: Vec<String> = (0..50).map(|n| format!("task {n:02}")).collect();
    for subject in &subjects {
        server.begin(
            "tools/call",
            json!({"name": "task_create", "arguments": {"channel": "tasks/t", "subject": subject}}),
        );
    }
    let list = server.call("task_list", json!({"channel": "tasks/t", "limit": 50}));
    let seen: Vec<&str> =
        list["tasks"].as_array().unwrap().iter().map(|task| task["subject"].as_str().unwrap()).collect();
    assert_eq!(seen, subjects);
}

#[test]
fn it_ends_when_nobody_reads() {
    let home = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_taskbus"))
        .args(["mcp", "--store", "memory:"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).unwrap();
    let (ended, exit) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait_with_output().unwrap()));
    let output = exit.recv_timeout(PATIENCE).expect("it goes on without a reader");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    drop(stdin);
}

#[test]
fn it_ends_within_a_second_when_a_reader_stops_reading() {
    let home = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_taskbus"))
        .args(["mcp", "--store", "memory:"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More answers than a pipe holds: the server is stuck in a write when its input ends.
    let list = format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    stdin.write_all(list.repeat(30).as_bytes()).unwrap();
    drop(stdin);
    let begun = Instant::now();
    let (ended, exit) = std::sync::mpsc::channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || ended.send(child.wait().unwrap()));
    assert!(exit.recv_timeout(PATIENCE).expect("it waits for its reader").success());
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    drop(stdout);
}

#[test]
fn a_signal_ends_it_and_its_sessions() {
    let home = tempfile::tempdir().unwrap();
    let mut other = on_sqlite(home.path());
    other.call("create_channel", json!({"name": "tasks/t"}));
    other.call("task_create", json!({"channel": "tasks/t", "subject": "s"}));
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut server = on_sqlite(home.path());
        server.call("task_next", json!({"channel": "tasks/t"}));
        let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert!(server.exited().success());
        // The session has ended, so the task is free at once.
        assert_eq!(other.call("task_get", json!({"task_id": 1}))["status"], "pending");
    }
}

#[test]
fn it_ends_when_its_parent_does() {
    let home = tempfile::tempdir().unwrap();
    // The server reads from a pipe that outlives its parent, a shell, and writes where we read.
    let input = home.path().join("input");
    rustix::fs::mknodat(rustix::fs::CWD, &input, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let mut keeper = std::fs::OpenOptions::new().read(true).write(true).open(&input).unwrap();
    let script = format!("'{}' mcp --store memory: <input & read line", env!("CARGO_BIN_EXE_taskbus"));
    let mut shell = std::process::Command::new("/bin/sh")
        .args(["-c", &script])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let (line, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|text| line.send(text)));
    writeln!(keeper, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).unwrap();
    assert!(seen.recv_timeout(PATIENCE).unwrap().contains("\"id\":1"));
    drop(shell.stdin.take());
    shell.wait().unwrap();
    let ended = seen.recv_timeout(PATIENCE);
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "it outlives its parent");
}

#[test]
fn a_line_has_a_limit() {
    let home = tempfile::tempdir().unwrap();
    let mut server = on_sqlite(home.path());
    server.call("create_channel", json!({"name": "tasks/t"}));
    let frame = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "task_create", "arguments": {"channel": "tasks/t", "subject": ""}}});
    let frame = frame.to_string().len();
    for (bytes, said) in [(1024 * 1024 - 1, "subject"), (1024 * 1024, "subject"), (1024 * 1024 + 1, "1048577 bytes")] {
        let subject = "x".repeat(bytes - frame);
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "task_create", "arguments": {"channel": "tasks/t", "subject": subject}}});
        assert_eq!(call.to_string().len(), bytes);
        server.send(&call);
        let refusal = server.answer(&json!(1))["result"]["structuredContent"].clone();
        assert_eq!(refusal["code"], "validation");
        assert!(refusal["message"].as_str().unwrap().contains(said), "{refusal}");
    }
    ends_well(server);
}

#[test]
fn a_huge_line_takes_no_memory_and_is_answered() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Launch::new(home.path(), "memory:").start();
    // The clients that people use put the id last.
    server.send_bytes(b"{\"method\":\"tools/call\",\"params\":{\"name\":\"task_create\",\"arguments\":{\"subject\":\"");
    let part = vec![b'x'; 1024 * 1024];
    // An optimised build looks at as much as two gigabytes in a few seconds.
    let mebibytes = if cfg!(debug_assertions) { 128 } else { 2048 };
    for _ in 0..mebibytes {
        server.send_bytes(&part);
    }
    server.send_bytes(b"\"}},\"jsonrpc\":\"2.0\",\"id\":77}\n");
    let answer = server.answer(&json!(77));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(server.request("ping", json!({}))["result"].is_object());
    let kib = peak_kib(server.pid);
    println!("peak after a line of {mebibytes} MiB: {kib} KiB");
    assert!(kib < 64 * 1024, "{kib} KiB");
}

#[test]
fn many_calls_at_once_take_little_memory() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Launch::new(home.path(), "memory:").start();
    let calls: Vec<Value> = (0..5000).map(|_| server.begin("tools/list", json!({}))).collect();
    for id in &calls {
        assert!(server.answer(id)["result"]["tools"].is_array());
    }
    let kib = peak_kib(server.pid);
    println!("peak after 5000 calls at once: {kib} KiB");
    assert!(kib < 64 * 1024, "{kib} KiB");
}

fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_log_comes_to_be_with_its_first_line() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join(".local/state/taskbus/mcp.log");
    ends_well(on_sqlite(home.path()));
    assert!(!log.exists());
    let mut server = Launch::new(home.path(), "memory:").env("TASKBUS_LOG", "debug").start();
    server.call("create_channel", json!({"name": "tasks/t"}));
    ends_well(server);
    assert!(std::fs::read_to_string(log).unwrap().contains("create_channel"));
}

#[test]
fn a_session_is_stamped_with_the_program_around_the_server() {
    let home = tempfile::tempdir().unwrap();
    let mut server = on_sqlite(home.path());
    server.call("register", json!({"name": "Zed"}));
    let store = SqliteStore::lazy(home.path().join("taskbus.db"), SqliteOptions::default());
    let engine = taskbus::engine::Engine::new(std::sync::Arc::new(store), taskbus::engine::Limits::default());
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let own = taskbus::store::Harness { pid: std::process::id(), start };
    assert_eq!(engine.session_of_harness(own).unwrap().map(|name| name.to_string()), Some("Zed".to_owned()));
    let another = taskbus::store::Harness { start: start + 1, ..own };
    assert_eq!(engine.session_of_harness(another).unwrap(), None);
}

#[test]
fn a_heartbeat_keeps_an_idle_session_alive() {
    let home = tempfile::tempdir().unwrap();
    let mut server = on_sqlite(home.path());
    server.call("register", json!({"name": "Zed"}));
    let file = home.path().join("taskbus.db");
    let alive_until = || -> i64 {
        let store = rusqlite::Connection::open(&file).unwrap();
        store.query_row("SELECT max(alive_until) FROM sessions", [], |row| row.get(0)).unwrap()
    };
    let store = SqliteStore::lazy(&file, SqliteOptions::default());
    let (first, begun) = (alive_until(), Instant::now());
    let mut seen = store.version().unwrap();
    while alive_until() == first {
        assert!(begun.elapsed() < PATIENCE, "no heartbeat");
        store.wait(seen, PATIENCE).unwrap();
        seen = store.version().unwrap();
    }
}
