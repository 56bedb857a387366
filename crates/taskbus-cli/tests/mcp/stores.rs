//! Stores that cannot be had. The handshake never notices; a call says what is wrong and what to do; what is there
//! is left as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Launch, Server, on_sqlite};

/// The bar for the handshake.
const HANDSHAKE: Duration = Duration::from_millis(100);
/// Other work runs on the machine of a test, so the best of several counts.
const TRIES: usize = 5;

fn shake(home: &Path, store: &str) -> (Server, Duration) {
    let begun = Instant::now();
    let mut server = Launch::new(home, store).start();
    let answer = server.request("tools/list", json!({}));
    assert!(answer["result"]["tools"].is_array(), "{answer}");
    (server, begun.elapsed())
}

/// From the start of the process to the list of tools.
#[track_caller]
fn shakes_hands_at_once(home: &Path, store: &str) {
    let best = (0..TRIES).map(|_| shake(home, store).1).min().unwrap();
    println!("handshake on {store}: {best:?}");
    assert!(best < HANDSHAKE, "{best:?}");
}

#[track_caller]
fn says(refusal: &Value, reason: &str, words: &[&str]) {
    assert_eq!((&refusal["code"], &refusal["reason"]), (&json!("internal"), &json!(reason)), "{refusal}");
    let message = refusal["message"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "no {word:?} in: {message}");
    }
}

#[test]
fn a_missing_store_is_made_by_the_first_call() {
    let home = tempfile::tempdir().unwrap();
    let store = "sqlite:new/dir/taskbus.db";
    shakes_hands_at_once(home.path(), store);
    assert!(!home.path().join("new").exists(), "the handshake opened the store");
    let (mut server, _) = shake(home.path(), store);
    assert_eq!(server.call("register", json!({"name": "Zed"}))["as"], "Zed");
    assert!(home.path().join("new/dir/taskbus.db").exists());
}

#[test]
fn a_store_that_is_none_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("taskbus.db");
    for content in [&b"This is a diary, not a database.\n"[..], &[0; 4096], &[0xff; 100]] {
        fs::write(&file, content).unwrap();
        shakes_hands_at_once(home.path(), "sqlite:taskbus.db");
        let (mut server, _) = shake(home.path(), "sqlite:taskbus.db");
        for (tool, arguments) in [("register", json!({"name": "Zed"})), ("task_list", json!({"channel": "tasks/t"}))] {
            says(&server.refusal(tool, arguments), "store_damaged", &["taskbus.db", "left untouched"]);
        }
        drop(server);
        assert_eq!(fs::read(&file).unwrap(), content);
    }
}

#[test]
fn a_damaged_store_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("taskbus.db");
    on_sqlite(home.path()).call("create_channel", json!({"name": "tasks/t"}));
    let mut content = fs::read(&file).unwrap();
    content[..100].fill(0x55);
    fs::write(&file, &content).unwrap();
    shakes_hands_at_once(home.path(), "sqlite:taskbus.db");
    let (mut server, _) = shake(home.path(), "sqlite:taskbus.db");
    says(&server.refusal("register", json!({"name": "Zed"})), "store_damaged", &["taskbus.db", "left untouched"]);
    drop(server);
    assert_eq!(fs::read(&file).unwrap(), content);
}

/// Runs as nobody when the test runs as root, whom no permission stops. The program is one that nobody may reach.
fn unprivileged(home: &Path) -> Server {
    let launch = Launch::of(&home.join("program"), home, "sqlite:taskbus.db");
    if rustix::process::geteuid().is_root() { launch.user(65_534).start() } else { launch.start() }
}

#[test]
fn a_store_that_may_not_be_written_can_be_read() {
    let home = tempfile::tempdir().unwrap();
    let mut server = on_sqlite(home.path());
    server.call("create_channel", json!({"name": "tasks/t"}));
    server.call("task_create", json!({"channel": "tasks/t", "subject": "s"}));
    drop(server);
    fs::copy(env!("CARGO_BIN_EXE_taskbus"), home.path().join("program")).unwrap();
    for name in fs::read_dir(home.path()).unwrap() {
        fs::set_permissions(name.unwrap().path(), fs::Permissions::from_mode(0o444)).unwrap();
    }
    fs::set_permissions(home.path().join("program"), fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let begun = Instant::now();
    let mut server = unprivileged(home.path());
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(server.call("task_list", json!({"channel": "tasks/t"}))["total"], 1);
    assert_eq!(server.call("task_get", json!({"task_id": 1}))["subject"], "s");
    let refusal = server.refusal("task_next", json!({"channel": "tasks/t"}));
    says(&refusal, "store_read_only", &["taskbus.db", "reading works", "write access"]);
    assert_eq!(refusal["retryable"], false);
    drop(server);
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_store_that_is_locked_says_so_after_a_while() {
    let home = tempfile::tempdir().unwrap();
    on_sqlite(home.path()).call("create_channel", json!({"name": "tasks/t"}));
    let locker = rusqlite::Connection::open(home.path().join("taskbus.db")).unwrap();
    locker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    shakes_hands_at_once(home.path(), "sqlite:taskbus.db");
    let (mut server, _) = shake(home.path(), "sqlite:taskbus.db");
    let refusal = server.refusal("register", json!({"name": "Zed"}));
    says(&refusal, "store_busy", &["taskbus.db", "nothing was written", "same call again"]);
    assert_eq!(refusal["retryable"], true);
    // A call that waits for the lock does not keep the process from ending.
    server.begin("tools/call", json!({"name": "register", "arguments": {"name": "Amp"}}));
    server.request("ping", json!({}));
    let (status, time, _) = server.end();
    assert!(status.success() && time < Duration::from_secs(1), "{time:?}");
    locker.execute_batch("ROLLBACK").unwrap();
    let (mut server, _) = shake(home.path(), "sqlite:taskbus.db");
    assert_eq!(server.call("register", json!({"name": "Amp"}))["as"], "Amp");
}

#[test]
fn a_store_with_a_wrong_name_is_explained() {
    let home = tempfile::tempdir().unwrap();
    for store in ["postgres://h/d", "sqlite:", "x.db"] {
        shakes_hands_at_once(home.path(), store);
        let (mut server, _) = shake(home.path(), store);
        says(&server.refusal("register", json!({"name": "Zed"})), "store_unavailable", &["sqlite:PATH"]);
    }
}

impl Launch {
    fn user(mut self, id: u32) -> Self {
        self.command().uid(id);
        self
    }
}
