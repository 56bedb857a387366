//! Threat T13: a request line that never seems to end is passed over without being held, and is answered.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::common::Place;

/// How long the line is: what an optimised build looks at in a few seconds.
const LINE_MIB: usize = if cfg!(debug_assertions) { 128 } else { 2048 };
/// What the process may need at most, in KiB.
const MEMORY_KIB_MAX: u64 = 64 * 1024;

fn high_water_kib(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_line_of_gigabytes_is_answered_in_little_memory() {
    let place = Place::new();
    let mut command = place.bare(&["mcp", "--store", "memory:"]);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut answer = move || -> Value { serde_json::from_str(&output.next().unwrap().unwrap()).unwrap() };
    let about = json!({"name": "test", "version": "1"});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}});
    writeln!(input, "{hello}").unwrap();
    assert_eq!(answer()["id"], 1);
    input
        .write_all(br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"send","arguments":{"content":""#)
        .unwrap();
    let piece = vec![b'a'; 1 << 20];
    (0..LINE_MIB).for_each(|_| input.write_all(&piece).unwrap());
    input.write_all(b"\"}}}\n").unwrap();
    let refused = answer();
    assert_eq!(refused["id"], 2, "{refused}");
    assert!(refused.to_string().contains("1048576"), "the limit is named: {refused}");
    writeln!(input, r#"{{"jsonrpc":"2.0","id":3,"method":"ping"}}"#).unwrap();
    assert_eq!(answer()["id"], 3);
    let used = high_water_kib(&server);
    assert!(used < MEMORY_KIB_MAX, "{used} KiB");
    drop(input);
    assert!(server.wait().unwrap().success());
}
