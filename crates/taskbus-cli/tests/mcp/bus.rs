//! The bus over real processes: who hears what, in which order, and what a cancelled wait leaves behind.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskbus::store::Store as _;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};

use crate::server::{Launch, Server, on_sqlite};

/// A server with all of the bus, acting under this name.
fn named(home: &Path, name: &str) -> Server {
    let mut server = Launch::new(home, "sqlite:taskbus.db").arg("--tools").arg("full").start();
    assert_eq!(server.call("register", json!({"name": name}))["as"], name);
    server
}

fn said(received: &Value) -> Vec<&str> {
    received["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect()
}

#[test]
fn processes_share_names_and_messages() {
    let home = tempfile::tempdir().unwrap();
    let (mut zed, mut amp) = (named(home.path(), "Zed"), named(home.path(), "Amp"));
    let second = amp.call("register", json!({"name": "Zed"}));
    assert_eq!((&second["as"], &second["others"][1]["sender"]), (&json!("Zed2"), &json!("Zed")));
    let wait = json!({"name": "receive", "arguments": {"as": "Amp", "wait_seconds": 50}});
    let waiting = amp.begin("tools/call", wait);
    amp.call("discover", json!({"as": "Amp"}));
    let sent = zed.call("send", json!({"channel": "general", "content": "hello", "subject": "Greeting"}));
    let heard = amp.answer(&waiting)["result"]["structuredContent"].clone();
    assert_eq!((said(&heard), &heard["messages"][0]["seq"]), (vec!["hello"], &sent["seq"]));
    amp.call("send", json!({"as": "Zed2", "channel": "dm/Zed", "content": "for you", "reply_to": sent["seq"]}));
    let letter = zed.call("receive", json!({}));
    assert_eq!((said(&letter), &letter["messages"][0]["sender"]), (vec!["for you"], &json!("Zed2")));
    // Not registered in this process: whoever has the name elsewhere does not act here.
    let stranger = amp.refusal("send", json!({"as": "Zed", "channel": "general", "content": "x"}));
    assert_eq!(stranger["code"], "not_registered");
}

#[test]
fn names_asked_for_at_once_differ() {
    let home = tempfile::tempdir().unwrap();
    let mut servers: Vec<Server> = (0..3).map(|_| on_sqlite(home.path())).collect();
    let register = json!({"name": "register", "arguments": {"name": "Sam"}});
    let ids: Vec<Value> = servers.iter_mut().map(|server| server.begin("tools/call", register.clone())).collect();
    let names =
        servers.iter_mut().zip(&ids).map(|(server, id)| server.answer(id)["result"]["structuredContent"]["as"].clone());
    let mut names: Vec<String> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["Sam", "Sam2", "Sam3"]);
}

/// Thirty seconds, for real.
#[test]
fn a_killed_process_holds_its_name_until_its_heartbeat_is_missed() {
    let home = tempfile::tempdir().unwrap();
    let (dead, mut amp) = (named(home.path(), "Zed"), named(home.path(), "Amp"));
    let pid = rustix::process::Pid::from_raw(i32::try_from(dead.pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    dead.exited();
    let killed = Instant::now();
    assert_eq!(amp.call("register", json!({"name": "Zed"}))["as"], "Zed2");
    let store = SqliteStore::lazy(home.path().join("taskbus.db"), SqliteOptions::default());
    let lives = |amp: &mut Server| amp.call("discover", json!({"as": "Amp"})).to_string().contains("\"Zed\"");
    while lives(&mut amp) {
        assert!(killed.elapsed() < Duration::from_secs(40), "it lives on");
        // Heartbeats of the others come in between, and are looked past.
        store.wait(store.version().unwrap(), Duration::from_secs(1)).unwrap();
    }
    let held = killed.elapsed();
    println!("the name was held for {held:.1?} after the kill");
    assert!(held > Duration::from_secs(20), "{held:?}");
    let mut heir = on_sqlite(home.path());
    assert_eq!(heir.call("register", json!({"name": "Zed"}))["as"], "Zed");
}

#[test]
fn the_inspection_command_runs_in_the_process_that_sends() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("config.toml");
    let script = "cat > seen.json; echo '{\"allow\": false, \"reason\": \"not here\"}'";
    std::fs::write(&config, format!("inspection_command = [\"/bin/sh\", \"-c\", {}]\n", json!(script))).unwrap();
    let launch = Launch::new(home.path(), "sqlite:taskbus.db").env("TASKBUS_CONFIG", config.to_str().unwrap());
    let (mut inspected, mut free) = (launch.start(), on_sqlite(home.path()));
    inspected.call("register", json!({"name": "Zed"}));
    let refusal = inspected.refusal("send", json!({"channel": "general", "content": "hello"}));
    assert_eq!((&refusal["code"], &refusal["retryable"]), (&json!("inspection_rejected"), &json!(false)));
    assert!(refusal["message"].as_str().unwrap().contains("not here"), "{refusal}");
    let seen: Value = serde_json::from_slice(&std::fs::read(home.path().join("seen.json")).unwrap()).unwrap();
    assert_eq!((&seen["operation"], &seen["sender"]), (&json!("send"), &json!("Zed")));
    std::fs::remove_file(home.path().join("seen.json")).unwrap();
    free.call("send", json!({"channel": "general", "content": "hello"}));
    assert!(!home.path().join("seen.json").exists(), "it ran for another process");
}

#[test]
fn a_memory_edited_in_one_process_is_read_in_another() {
    let home = tempfile::tempdir().unwrap();
    let (mut zed, mut amp) = (named(home.path(), "Zed"), named(home.path(), "Amp"));
    let kept = zed.call("send", json!({"channel": "memory", "content": "the build needs cmake"}));
    let id = kept["memory_id"].clone();
    amp.call("edit_memory", json!({"id": id, "content": "the build needs ninja"}));
    let now = zed.call("get_memory", json!({"id": id}));
    assert_eq!(
        (&now["content"], &now["revision"], &now["sender"]),
        (&json!("the build needs ninja"), &json!(2), &json!("Amp"))
    );
    assert_eq!(zed.call("search", json!({"query": "cmake"}))["hits"], json!([]));
    assert_eq!(zed.call("search", json!({"query": "ninja"}))["hits"][0]["memory_id"], id);
    amp.call("delete_memory", json!({"id": id}));
    assert_eq!(zed.refusal("get_memory", json!({"id": id}))["code"], "not_found");
}

/// What a subscriber hears of a list until `done` says that it was all.
fn hear_all(server: &mut Server, done: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let (mut heard, mut ack) = (Vec::new(), json!(null));
    while !done(&heard) {
        let received = server.call("receive", json!({"ack": ack, "wait_seconds": 20, "channels": ["tasks/t"]}));
        let messages = received["messages"].as_array().unwrap();
        assert!(!messages.is_empty(), "nothing more came after {} messages: {received}", heard.len());
        heard.extend(messages.clone());
        ack = received["batch"].clone();
    }
    heard
}

/// Two processes want the same tasks; a third one, which is subscribed to the list, hears of every revision in order.
#[test]
fn a_subscriber_hears_every_revision_of_a_contended_list_in_order() {
    const TASKS: usize = 20;
    let home = tempfile::tempdir().unwrap();
    let (mut zed, mut amp, mut roo) = (named(home.path(), "Zed"), named(home.path(), "Amp"), named(home.path(), "Roo"));
    zed.call("create_channel", json!({"name": "tasks/t", "kind": "memory"}));
    roo.call("subscribe", json!({"channel": "tasks/t"}));
    let mut winners = BTreeMap::new();
    for n in 0..TASKS {
        let id = zed.call("task_create", json!({"channel": "tasks/t", "subject": format!("task {n}")}))["id"].clone();
        let claim = json!({"name": "task_claim", "arguments": {"task_id": id}});
        let (first, second) = (zed.begin("tools/call", claim.clone()), amp.begin("tools/call", claim));
        let won = [("Zed", zed.answer(&first)), ("Amp", amp.answer(&second))]
            .into_iter()
            .filter(|(_, answer)| answer["result"]["isError"] == false)
            .map(|(name, _)| name)
            .collect::<Vec<_>>();
        assert_eq!(won.len(), 1, "task {id} went to {won:?}");
        let winner = if won[0] == "Zed" { &mut zed } else { &mut amp };
        winner.call("task_update", json!({"task_id": id, "status": "completed"}));
        winners.insert(id.as_u64().unwrap(), won[0]);
    }
    zed.call("task_update", json!({"task_id": winners.keys().next().unwrap(), "delete": true, "force": true}));
    let heard = hear_all(&mut roo, |heard| heard.iter().any(|message| message["type"] == "deleted"));
    let seqs: Vec<u64> = heard.iter().map(|message| message["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let mut revisions: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for message in &heard {
        revisions.entry(message["memory_id"].as_u64().unwrap()).or_default().push(message.clone());
    }
    assert_eq!(revisions.keys().collect::<Vec<_>>(), winners.keys().collect::<Vec<_>>());
    for (id, revisions) in &revisions {
        let numbers: Vec<u64> = revisions.iter().map(|message| message["revision"].as_u64().unwrap()).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "task {id}: {numbers:?}");
        let owner = |at: usize| -> Value {
            let document: Value = serde_json::from_str(revisions[at]["content"].as_str().unwrap()).unwrap();
            document["owner"].clone()
        };
        assert_eq!((owner(1), owner(2)), (json!(winners[id]), json!(winners[id])), "task {id}");
        assert_eq!(revisions[1]["sender"], winners[id]);
    }
    let deleted = heard.last().unwrap();
    assert_eq!((&deleted["content"], &deleted["sender"]), (&json!(""), &json!("Zed")));
}

#[test]
fn a_cancelled_wait_leaves_no_batch_behind_and_the_end_of_input_ends_it() {
    let home = tempfile::tempdir().unwrap();
    let (mut zed, mut amp) = (named(home.path(), "Zed"), named(home.path(), "Amp"));
    let wait = json!({"name": "receive", "arguments": {"wait_seconds": 50}});
    let cancelled = amp.begin("tools/call", wait.clone());
    amp.call("discover", json!({}));
    amp.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": cancelled}}));
    // A call that is cancelled gives up its place, so the next wait gets what comes, and gets it as new.
    let second = amp.begin("tools/call", wait.clone());
    amp.call("discover", json!({}));
    zed.call("send", json!({"channel": "general", "content": "hello"}));
    let heard = amp.answer(&second)["result"]["structuredContent"].clone();
    assert_eq!((said(&heard), heard.get("redelivered")), (vec!["hello"], None), "{heard}");
    amp.call("receive", json!({"ack": heard["batch"]}));
    amp.begin("tools/call", wait);
    amp.call("discover", json!({}));
    let (status, time, stderr) = amp.end();
    assert!(status.success() && time.as_millis() < 1000 && stderr.is_empty(), "{status} {time:?} {stderr}");
    zed.call("send", json!({"channel": "general", "content": "again"}));
    let mut amp = named(home.path(), "Amp");
    let later = amp.call("receive", json!({}));
    assert_eq!((said(&later), later.get("redelivered")), (vec!["again"], None), "{later}");
}

/// What is punctuation to a program is punctuation to a search, and letters are the same in any case.
#[test]
fn a_search_takes_any_text() {
    let home = tempfile::tempdir().unwrap();
    let mut zed = named(home.path(), "Zed");
    let texts = [
        "C++ \"quoted\" AND (parens) NOT near*",
        "naïve Größe STRASSE",
        "foo-bar: baz/qux@example.org",
        "日本語 の 検索",
    ];
    for text in texts {
        zed.call("send", json!({"channel": "general", "content": text}));
    }
    for (query, found) in [
        ("c++", vec![0]),
        ("\"quoted\"", vec![0]),
        ("and (parens)", vec![0]),
        ("NOT", vec![0]),
        ("par*", vec![0]),
        ("PARENS) OR \"", vec![]),
        ("größe", vec![1]),
        ("GRÖSSE", vec![1]),
        ("straße", vec![1]),
        ("NAÏVE", vec![1]),
        ("nai\u{308}ve", vec![1]),
        ("foo-bar", vec![2]),
        ("baz/qux", vec![2]),
        ("example.org:", vec![2]),
        ("foo AND bar", vec![]),
        ("検索", vec![3]),
        ("col:umn", vec![]),
        ("'; DROP TABLE messages; --", vec![]),
        ("near(", vec![0]),
        ("^start", vec![]),
        ("a\u{0301}", vec![]),
        ("\"\"", vec![]),
    ] {
        let hits = zed.call("search", json!({"query": query}))["hits"].clone();
        let hits: Vec<&str> = hits.as_array().unwrap().iter().map(|hit| hit["content"].as_str().unwrap()).collect();
        let expected: Vec<&str> = found.iter().map(|at: &usize| texts[*at]).collect();
        assert_eq!(hits, expected, "{query:?}");
    }
    for nothing in ["*", "**  *"] {
        let refusal = zed.refusal("search", json!({"query": nothing}));
        assert_eq!((&refusal["code"], &refusal["field"]), (&json!("validation"), &json!("query")), "{nothing:?}");
    }
}

#[test]
fn pages_of_a_search_end_without_duplicates_while_another_process_writes() {
    let home = tempfile::tempdir().unwrap();
    let (mut zed, mut amp) = (named(home.path(), "Zed"), named(home.path(), "Amp"));
    for n in 0..60 {
        zed.call("send", json!({"channel": "general", "content": format!("needle {n} {}", "x".repeat(200))}));
    }
    let (mut seen, mut cursor, mut pages) = (Vec::new(), json!(null), 0);
    loop {
        let page = zed
            .call("search", json!({"query": "needle", "cursor": cursor, "count": 20, "until": 4_000_000_000_000_i64}));
        assert!(page.to_string().len() <= 8192 + 64, "{}", page.to_string().len());
        seen.extend(page["hits"].as_array().unwrap().iter().map(|hit| hit["seq"].as_u64().unwrap()));
        pages += 1;
        amp.call("send", json!({"channel": "general", "content": format!("straw {pages}")}));
        let Some(next) = page.get("next") else { break };
        cursor = next.clone();
    }
    let all = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((seen.len(), all), (60, 60), "{pages} pages");
}

#[test]
fn a_search_by_meaning_falls_back_when_nobody_answers_for_it() {
    let home = tempfile::tempdir().unwrap();
    // A port that was free a moment ago: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = home.path().join("config.toml");
    let text = format!("embedding_endpoint = \"http://127.0.0.1:{port}/v1/embeddings\"\nembedding_model = \"m\"\n");
    std::fs::write(&config, text).unwrap();
    let mut server = Launch::new(home.path(), "sqlite:taskbus.db")
        .arg("--tools")
        .arg("full")
        .env("TASKBUS_CONFIG", config.to_str().unwrap())
        .start();
    server.call("send", json!({"channel": "memory", "content": "the build needs cmake"}));
    for mode in ["both", "semantic"] {
        let found = server.call("search", json!({"query": "cmake", "mode": mode}));
        assert_eq!(
            (found["hits"].as_array().unwrap().len(), &found["semantic_unavailable"]),
            (1, &json!(true)),
            "{mode}"
        );
    }
    assert_eq!(server.call("search", json!({"query": "cmake", "mode": "text"})).get("semantic_unavailable"), None);
}

#[test]
fn stores_without_a_bus_do_not_offer_its_tools() {
    let home = tempfile::tempdir().unwrap();
    let mut sidecar = Launch::new(home.path(), "file:s.tasks.json").arg("--tools").arg("full").start();
    let tools = sidecar.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.iter().all(|name| name.starts_with("task_")) && names.len() == 8, "{names:?}");
    let unknown = sidecar.request("tools/call", json!({"name": "send", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}
