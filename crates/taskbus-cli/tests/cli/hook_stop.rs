//! The hook that runs when an agent wants to stop, from outside: the input of the real clients, messages of real agents.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taskbus::engine::{Engine, Follow, Limits, ReceiveAsk, Registration};
use taskbus::store::Harness;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Content, Draft, Sort};
use taskbus_core::bus::rules::Start;
use taskbus_core::name::Identity;

use crate::common::{Place, git, run_with_input};

/// A repository whose agents are called `widget`, and a store.
struct Trial {
    place: Place,
}

/// An agent with a server of its own.
struct Agent {
    engine: Engine,
    name: Identity,
}

impl Trial {
    fn new() -> Self {
        let place = Place::new();
        let repo = place.path("widget");
        git(&place.path("work"), &["init", "-q", repo.to_str().unwrap()]);
        std::fs::create_dir(repo.join(".local")).unwrap();
        std::fs::write(repo.join(".local/taskbus.json"), "{\"identity\": \"widget\"}").unwrap();
        Self { place }
    }

    /// An agent in the program that also runs the hooks, which is this test, or in another one.
    fn agent(&self, name: &str, here: bool) -> Agent {
        let store = SqliteStore::lazy(self.place.path("tasks.db"), SqliteOptions::default());
        let engine = Engine::new(Arc::new(store), Limits::default());
        let pid = if here { std::process::id() } else { 1 };
        let harness = Some(Harness { pid, start: 0 });
        let wish = Registration { name: name.to_owned(), harness, ..Registration::default() };
        let name = engine.register(&wish).unwrap().name;
        Agent { engine, name }
    }

    #[track_caller]
    fn stop(&self, more: &Value) -> Option<Value> {
        let mut input = json!({
            "session_id": "5f0e2c1a-7a63-4a37-9c3d-0a1b2c3d4e5f",
            "transcript_path": "/home/zed/.claude/projects/x/5f0e2c1a.jsonl",
            "cwd": self.place.path("widget"),
            "permission_mode": "default",
            "hook_event_name": "Stop",
            "stop_hook_active": false,
        });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut command = self.place.bare(&["hook", "stop"]);
        command.env("TASKBUS_STORE", self.place.store());
        let ran = run_with_input(&mut command, input.to_string().as_bytes());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{input}");
        (!ran.out.is_empty()).then(|| serde_json::from_str(&ran.out).unwrap())
    }
}

impl Agent {
    fn send(&self, channel: &str, text: &str) {
        let draft = Draft {
            content: Content::new(text).unwrap(),
            sort: Sort::default(),
            subject: None,
            reply_to: None,
            metadata: None,
            tags: Vec::new(),
        };
        self.engine.send(&self.name, &ChannelName::new(channel).unwrap(), &draft, None).unwrap();
    }

    fn follow(&self, channel: &str) {
        let follow = Follow::Channel(ChannelName::new(channel).unwrap());
        self.engine.subscribe(&self.name, &follow, Start::Now).unwrap();
    }
}

fn reason(said: Option<Value>) -> String {
    let said = said.expect("the agent is kept going");
    assert_eq!((said["decision"].as_str(), said.as_object().unwrap().len()), (Some("block"), 2), "{said}");
    said["reason"].as_str().unwrap().to_owned()
}

#[test]
fn an_agent_is_told_how_many_messages_it_has_not_seen_and_where() {
    let trial = Trial::new();
    assert_eq!(trial.stop(&json!({})), None, "there is no store");
    let (zed, amp) = (trial.agent("Zed", true), trial.agent("Amp", false));
    zed.follow("general");
    assert_eq!(trial.stop(&json!({})), None, "nothing was sent");
    amp.send("general", "secret one");
    amp.send("general", "secret two");
    amp.send("dm/Zed", "secret three");
    for _ in 0..2 {
        let reason = reason(trial.stop(&json!({})));
        for words in [
            "3 messages unread for Zed",
            "general (2), dm/Zed (1)",
            "receive {\"as\": \"Zed\"}",
            "ack",
            "start it again",
        ] {
            assert!(reason.contains(words), "{words}: {reason}");
        }
        assert!(!reason.contains("secret") && !reason.contains("register as"), "{reason}");
    }
    assert_eq!(trial.stop(&json!({"stop_hook_active": true})), None);
    assert_eq!(trial.stop(&json!({"stopHookActive": true})), None);
    let ask = ReceiveAsk { wait: Duration::ZERO, ..ReceiveAsk::default() };
    zed.engine.receive(&zed.name, &ask, &|| false).unwrap();
    assert_eq!(trial.stop(&json!({})), None, "what was handed out keeps nobody");
    zed.send("general", "my own");
    assert_eq!(trial.stop(&json!({})), None, "nor does what it sent itself");
}

#[test]
fn only_claude_code_is_told_of_the_background() {
    let trial = Trial::new();
    let (_zed, amp) = (trial.agent("Zed", true), trial.agent("Amp", false));
    amp.send("dm/Zed", "x");
    assert!(reason(trial.stop(&json!({}))).contains("taskbus wait"));
    for more in [json!({"turn_id": "t", "model": "m"}), json!({"timestamp": "2026-11-30T19:00:00Z", "prompt": "x"})] {
        let reason = reason(trial.stop(&more));
        assert!(reason.contains("1 message unread for Zed") && !reason.contains("taskbus wait"), "{reason}");
    }
}

#[test]
fn who_has_not_registered_is_told_of_what_waits_for_the_name_of_the_repository() {
    let trial = Trial::new();
    let (widget, amp) = (trial.agent("widget", false), trial.agent("Amp", false));
    amp.send("dm/widget", "x");
    assert_eq!(trial.stop(&json!({})), None, "another agent has the name, and will see to it");
    widget.engine.close().unwrap();
    let reason = reason(trial.stop(&json!({})));
    assert!(reason.contains("1 message unread for widget") && reason.contains("register as widget, then"), "{reason}");
    let elsewhere = json!({"cwd": trial.place.path("work")});
    assert_eq!(trial.stop(&elsewhere), None, "a place without a name");
}
