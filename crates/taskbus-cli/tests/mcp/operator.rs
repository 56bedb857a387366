//! What the operator configures: a command that is asked before each write, and a server that makes vectors.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Launch, PATIENCE, Server};

/// A server of all the tools with this configuration, acting under this name.
fn configured(home: &Path, name: &str, config: &str) -> Server {
    let path = home.join(format!("{name}.toml"));
    std::fs::write(&path, config).unwrap();
    let launch = Launch::new(home, "sqlite:taskbus.db").arg("--tools").arg("full");
    let mut server = launch.env("TASKBUS_CONFIG", path.to_str().unwrap()).start();
    server.call("register", json!({"name": name}));
    server
}

#[test]
fn the_inspection_runs_in_the_process_that_sends() {
    let home = tempfile::tempdir().unwrap();
    let script = r#"question=$(cat); echo "$PPID $question" >> asked
        case $question in *secret*) echo '{"allow": false, "reason": "no secrets"}';; *) echo '{"allow": true}';; esac"#;
    let path = home.path().join("inspect.sh");
    std::fs::write(&path, script).unwrap();
    let config = format!("inspection_command = [\"/bin/sh\", \"{}\"]\n", path.display());
    let (mut zed, mut amp) = (configured(home.path(), "Zed", &config), configured(home.path(), "Amp", ""));
    zed.call("send", json!({"channel": "general", "content": "seen", "type": "note"}));
    amp.call("send", json!({"channel": "general", "content": "a secret that nobody inspects"}));
    let refused = zed.refusal("send", json!({"channel": "general", "content": "a secret"}));
    assert_eq!(
        (&refused["code"], &refused["retryable"], &refused["reason"]),
        (&json!("inspection_rejected"), &json!(false), &json!("no secrets"))
    );
    zed.call("create_channel", json!({"name": "tasks/work", "kind": "memory"}));
    let refused = zed.refusal("task_create", json!({"channel": "tasks/work", "subject": "keep the secret"}));
    assert_eq!(refused["code"], "inspection_rejected");
    let asked = std::fs::read_to_string(home.path().join("asked")).unwrap();
    let asked: Vec<(&str, &str)> = asked.lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert!(asked.iter().all(|(parent, _)| *parent == zed.pid.to_string()), "{asked:?}");
    let first: Value = serde_json::from_str(asked[0].1).unwrap();
    let payload = json!({"channel": "general", "content": "seen", "type": "note"});
    assert_eq!(first, json!({"operation": "send", "sender": "Zed", "payload": payload}));
    assert_eq!(asked.len(), 3, "{asked:?}");
    let heard = amp.call("history", json!({"channel": "general"}));
    assert_eq!(heard["messages"].as_array().map(Vec::len), Some(2), "{heard}");
}

/// Answers as an embedding server does: what is about ships points one way, everything else the other.
fn embeds(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            let header = line.to_lowercase();
            assert!(!header.starts_with("authorization") || header.trim().ends_with("bearer sk-test"), "{header}");
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let about_ships = |text: &Value| ["ship", "boat"].iter().any(|word| text.as_str().unwrap().contains(word));
        let vector = |text: &Value| if about_ships(text) { json!([1.0, 0.1]) } else { json!([0.1, 1.0]) };
        let texts = body["input"].as_array().unwrap().iter().enumerate();
        let data: Vec<Value> = texts.map(|(index, text)| json!({"index": index, "embedding": vector(text)})).collect();
        let answer = json!({"data": data}).to_string();
        let mut stream = stream;
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
    }
}

#[test]
fn memories_are_found_by_what_they_mean_once_they_were_sent() {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || embeds(&stream.unwrap()));
        }
    });
    std::fs::write(home.path().join("key"), "export KEY=sk-test\n").unwrap();
    let config =
        format!("embedding_endpoint = \"{endpoint}\"\nembedding_model = \"m\"\nembedding_api_key_file = \"key\"\n");
    let mut zed = configured(home.path(), "Zed", &config);
    let send = |zed: &mut Server, content: &str| {
        zed.call("send", json!({"channel": "memory", "content": content}))["memory_id"].clone()
    };
    send(&mut zed, "bread is baked at night");
    let boat = send(&mut zed, "the boat leaves at noon");
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Both are embedded in the background, right after they were sent.
        let found = zed.call("search", json!({"query": "ships", "mode": "semantic"}));
        assert_eq!(found.get("semantic_unavailable"), None, "{found}");
        if found["hits"].as_array().unwrap().len() == 2 {
            assert_eq!(found["hits"][0]["memory_id"], boat);
            break;
        }
        assert!(Instant::now() < deadline, "{found}");
    }
    assert_eq!(zed.call("search", json!({"query": "boat"}))["hits"][0]["memory_id"], boat);
}

#[test]
fn an_embedding_server_that_hangs_holds_neither_a_write_nor_the_end() {
    let home = tempfile::tempdir().unwrap();
    // Connections are taken by the system, and nobody ever answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
    let config = format!("embedding_endpoint = \"{endpoint}\"\nembedding_model = \"m\"\n");
    let mut zed = configured(home.path(), "Zed", &config);
    let begun = Instant::now();
    zed.call("send", json!({"channel": "memory", "content": "bread is baked at night"}));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // The pass has begun: its request is on the wire.
    let (_pass, _) = listener.accept().unwrap();
    let (status, took, errors) = zed.end();
    assert!(status.success() && errors.is_empty(), "{status}: {errors}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}
