//! Threats T5 and T8: names of others, and names that look like them.

use serde_json::json;

use crate::common::Place;
use crate::common::mcp::Server;

/// A thousand names: an ordinary one with one character put somewhere that nobody sees, or that turns the rest.
fn hidden() -> Vec<String> {
    let hidden: Vec<char> =
        ['\u{ad}', '\u{34f}', '\u{61c}', '\u{115f}', '\u{17b4}', '\u{180e}', '\u{2800}', '\u{3164}']
            .into_iter()
            .chain('\u{200b}'..='\u{200f}')
            .chain('\u{2028}'..='\u{202f}')
            .chain('\u{205f}'..='\u{206f}')
            .chain(['\u{a0}', '\u{1680}', '\u{2003}', '\u{3000}', '\u{feff}', '\u{ffa0}', '\u{fffb}', '\u{fe0f}'])
            .chain(['\u{e0001}', '\u{e0041}', '\u{e007f}', '\u{e000}', '\u{f8ff}', '\u{f0000}', '\u{10fffd}'])
            .collect();
    let places = |n: usize, c: char| {
        let mut name: Vec<char> = "reviewer-agent-of-the-day".chars().collect();
        name.insert(n % (name.len() + 1), c);
        name.into_iter().collect()
    };
    (0..1000).map(|n| places(n, hidden[n % hidden.len()])).collect()
}

#[test]
fn no_name_has_characters_that_nobody_sees() {
    use taskbus_core::bus::channel::ChannelName;
    use taskbus_core::name::{Identity, ListName};
    for name in hidden() {
        assert!(Identity::new(&*name).is_err(), "{name:?}");
        assert!(ListName::from_short(&name).is_err(), "{name:?}");
        assert!(ChannelName::new(&*name).is_err(), "{name:?}");
        assert!(ChannelName::new(format!("dm/{name}")).is_err(), "{name:?}");
    }
}

#[test]
fn a_hidden_character_is_named_in_the_refusal_and_nothing_is_written() {
    let place = Place::new();
    place.ok(&["add", "one", "--create"]);
    let refused = place.run(&["add", "two", "--as", "ze\u{200b}d"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("U+200B at byte 2"), "{refused:?}");
    assert_eq!(place.ok(&["list"])["tasks"].as_array().map(Vec::len), Some(1));
}

#[test]
fn two_ways_to_write_a_letter_are_one_name() {
    let place = Place::new();
    place.ok(&["add", "one", "--create", "--list", "cafe\u{301}"]);
    let seen = place.ok(&["list", "--list", "caf\u{e9}"]);
    assert_eq!(seen["tasks"].as_array().map(Vec::len), Some(1));
    place.ok(&["claim", "1", "--as", "zoe\u{308}"]);
    assert_eq!(place.ok(&["show", "1"])["task"]["owner"], "zo\u{eb}");
    place.ok(&["done", "1", "--as", "zo\u{eb}"]);
}

#[test]
fn nobody_acts_under_a_name_that_another_process_holds() {
    let place = Place::new();
    place.ok(&["add", "one", "--create"]);
    let (mut zed, mut amp) = (Server::named(&place.store(), "Zed"), Server::named(&place.store(), "Amp"));
    zed.ok("task_claim", json!({"task_id": 1}));
    for (tool, arguments) in [
        ("task_update", json!({"task_id": 1, "status": "completed", "as": "Zed"})),
        ("task_release", json!({"task_id": 1, "as": "Zed"})),
        ("task_create", json!({"channel": "tasks/demo", "subject": "two", "as": "Zed"})),
        ("send", json!({"channel": "general", "content": "I am Zed", "as": "Zed"})),
        ("receive", json!({"as": "Zed"})),
    ] {
        let refused = amp.call(tool, &arguments).expect_err("the name is held");
        assert_eq!((&refused["code"], &refused["as"]), (&json!("not_registered"), &json!("Zed")), "{tool}: {refused}");
    }
    // Asking for the same name gets another one.
    assert_eq!(amp.ok("register", json!({"name": "Zed"}))["as"], "Zed2");
    let refused = place.refused(&["done", "1", "--as", "Zed"]);
    assert_eq!((&refused["code"], &refused["reason"]), (&json!("conflict"), &json!("name_held")), "{refused}");
    assert_eq!(zed.ok("task_get", json!({"task_id": 1}))["owner"], "Zed");
    let log = place.ok(&["log", "1"]);
    assert_eq!(log["history"].as_array().map(Vec::len), Some(2), "what was refused left nothing: {log}");
}
