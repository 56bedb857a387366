//! Threat T18: text of tasks and messages never reaches a shell.

use serde_json::json;

use crate::common::Place;
use crate::common::mcp::Server;

const COMMANDS: [&str; 4] = ["$(touch pwned)", "`touch pwned`", "; touch pwned ;", "x'; touch pwned; '"];

#[test]
fn no_field_is_run() {
    let place = Place::new();
    for text in COMMANDS {
        place.ok(&["add", text, "--create", "--list", text, "--description", text, "--meta", &format!("k={text}")]);
        let added = place.ok(&["add", text, "--description", text, "--create"])["task"]["id"].to_string();
        place.ok(&["claim", &added]);
        place.ok(&["done", &added, "--result", text, "--note", text]);
        for args in [&["list"][..], &["show", &added, "--history"], &["log", &added], &["tree"], &["search", text]] {
            assert_eq!(place.run(args).code, 0, "{args:?}");
        }
        let mut server = Server::of(place.bare(&["mcp", "--tools", "full"]).arg("--store").arg(place.store()));
        server.ok("register", json!({"name": text}));
        server.ok("create_channel", json!({"name": text, "kind": "ordinary"}));
        server.ok("send", json!({"channel": text, "content": text, "subject": text, "tags": ["x"], "type": "note"}));
        server.ok("search", json!({"query": text}));
    }
    let listed = std::process::Command::new("find").arg(place.path("")).args(["-name", "*pwned*"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "");
}
