//! Hooks, from outside: what the real clients put on standard input, and what they read then.

use serde_json::{Value, json};

use crate::common::mcp::Server;
use crate::common::{Place, Ran, git, run_with_input};

/// A repository that its agents know, and a store.
struct Trial {
    place: Place,
}

impl Trial {
    fn new() -> Self {
        let place = Place::new();
        let repo = place.path("widget");
        git(&place.path("work"), &["init", "-q", repo.to_str().unwrap()]);
        let trial = Self { place };
        assert_eq!(trial.command(&["init"]).output().unwrap().status.code(), Some(0));
        trial
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.place.bare(args);
        command.current_dir(self.place.path("widget")).env("TASKBUS_STORE", self.place.store());
        command
    }

    /// What a hook says to this input. It always ends well.
    #[track_caller]
    fn hook(&self, event: &str, input: &Value) -> Option<Value> {
        let Ran { code, out, err } = run_with_input(&mut self.command(&["hook", event]), input.to_string().as_bytes());
        assert_eq!((code, err.as_str()), (0, ""), "{event} {input}");
        (!out.is_empty()).then(|| serde_json::from_str(&out).unwrap())
    }

    fn cli(&self, args: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(args);
        crate::common::run(&mut self.command(&all)).value()
    }

    fn server(&self) -> Server {
        Server::start(&self.place.store())
    }
}

/// What Claude Code says of every moment.
fn claude(event: &str, more: &Value) -> Value {
    let mut input = json!({
        "session_id": "5f0e2c1a-7a63-4a37-9c3d-0a1b2c3d4e5f",
        "transcript_path": "/home/zed/.claude/projects/x/5f0e2c1a.jsonl",
        "cwd": "",
        "permission_mode": "default",
        "hook_event_name": event,
    });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

fn call_of_a_subagent(tool: &str, arguments: &Value) -> Value {
    let more = json!({"tool_name": tool, "tool_input": arguments, "tool_use_id": "toolu_1", "agent_id": "a61f0c2", "agent_type": "Explore"});
    claude("PreToolUse", &more)
}

#[test]
fn a_session_is_told_who_it_is_where_the_repository_says_so() {
    let trial = Trial::new();
    for ending in ["", "-wal", "-shm"] {
        let _not_there = std::fs::remove_file(trial.place.path(&format!("tasks.db{ending}")));
    }
    let input = claude("SessionStart", &json!({"source": "startup", "model": "m"}));
    let said = trial.hook("session-start", &input).unwrap();
    let output = &said["hookSpecificOutput"];
    assert_eq!(
        (said.as_object().unwrap().len(), output.as_object().unwrap().len()),
        (1, 2),
        "Codex refuses other fields"
    );
    assert_eq!(output["hookEventName"], "SessionStart");
    let text = output["additionalContext"].as_str().unwrap();
    assert!(text.contains("you are widget") && !text.contains("tasks ready"), "{text}");
    assert!(!trial.place.path("tasks.db").exists(), "a hook makes no store");
    trial.cli(&["add", "one", "--create"]);
    let said = trial.hook("session-start", &input).unwrap();
    assert!(said.to_string().contains("On tasks/widget: 1 tasks ready, 0 in progress, 0 that wait."), "{said}");
    let elsewhere = json!({"cwd": trial.place.path("work"), "source": "startup"});
    assert_eq!(trial.hook("session-start", &claude("SessionStart", &elsewhere)), None);
    let gemini = json!({"session_id": "s", "transcript_path": "", "cwd": "", "hook_event_name": "SessionStart", "timestamp": "2026-11-30T19:00:00Z", "source": "startup"});
    assert!(trial.hook("session-start", &gemini).is_some());
}

#[test]
fn a_call_of_a_subagent_gets_its_name() {
    let trial = Trial::new();
    let input = call_of_a_subagent("mcp__taskbus__task_next", &json!({"channel": "tasks/widget", "count": 2}));
    let said = trial.hook("pre-tool-use", &input).unwrap();
    let expected = json!({"channel": "tasks/widget", "count": 2, "as": "claude-code-2c3d4e5f/explore-a61f0c2"});
    assert_eq!(said, json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": expected}}));
}

#[test]
fn the_name_of_a_subagent_stands_below_the_one_that_its_parent_took() {
    let trial = Trial::new();
    let mut server = trial.server();
    server.ok("register", json!({"name": "Zed"}));
    let input = call_of_a_subagent("mcp__taskbus__task_next", &json!({"channel": "tasks/widget"}));
    let said = trial.hook("pre-tool-use", &input).unwrap();
    let arguments = said["hookSpecificOutput"]["updatedInput"].clone();
    assert_eq!(arguments["as"], "Zed/explore-a61f0c2");
    trial.cli(&["add", "one", "--create"]);
    let taken = server.ok("task_next", arguments.clone());
    assert_eq!(taken["task"]["owner"], "Zed/explore-a61f0c2", "{taken}");
    let own = server.ok("task_next", json!({"channel": "tasks/widget"}));
    assert_eq!(own["idle"]["holders"][0]["owner"], "Zed/explore-a61f0c2", "the parent did not take it: {own}");
}

#[test]
fn other_calls_are_left_as_they_are() {
    let trial = Trial::new();
    for (tool, arguments) in [
        ("mcp__taskbus__task_next", json!({"as": "Zed"})),
        ("mcp__taskbus__register", json!({"name": "Zed"})),
        ("mcp__taskbus__TaskCreate", json!({"subject": "x"})),
        ("mcp__taskbus__tasks", json!({"action": "list"})),
        ("mcp__other__task_next", json!({})),
        ("Bash", json!({"command": "ls"})),
    ] {
        assert_eq!(trial.hook("pre-tool-use", &call_of_a_subagent(tool, &arguments)), None, "{tool} {arguments}");
    }
    let own = claude("PreToolUse", &json!({"tool_name": "mcp__taskbus__task_next", "tool_input": {}}));
    assert_eq!(trial.hook("pre-tool-use", &own), None, "the agent itself is told apart by its connection");
    let empty = call_of_a_subagent("mcp__taskbus__task_next", &json!({"as": ""}));
    assert!(trial.hook("pre-tool-use", &empty).is_some());
}

#[test]
fn a_subagent_is_told_its_name_if_its_parent_is_there() {
    let trial = Trial::new();
    let input = claude("SubagentStart", &json!({"agent_id": "a61f0c2", "agent_type": "Explore"}));
    assert_eq!(trial.hook("subagent-start", &input), None, "there is no store");
    let mut server = trial.server();
    server.ok("register", json!({"name": "Zed"}));
    let said = trial.hook("subagent-start", &input).unwrap();
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "SubagentStart");
    let text = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    for words in ["Only if you were asked", "Zed/explore-a61f0c2", "\"parent\": \"Zed\"", "Do not start taskbus wait"] {
        assert!(text.contains(words), "{text}");
    }
    drop(server);
    assert_eq!(trial.hook("subagent-start", &input), None, "its parent is gone");
}

#[test]
fn whatever_goes_wrong_a_hook_says_nothing_and_ends_well() {
    let trial = Trial::new();
    let events = ["session-start", "stop", "subagent-start", "pre-tool-use", "task-created", "task-completed"];
    std::fs::write(trial.place.path("tasks.db"), "this is no database, and long enough to be looked at").unwrap();
    std::fs::write(trial.place.path("widget/.local/taskbus.json"), "{").unwrap();
    for event in events {
        let inputs: [&[u8]; 5] = [b"", b"{", b"[]", b"\xff", b"{\"cwd\": 5, \"agent_id\": {}, \"tool_input\": []}"];
        for input in inputs {
            let ran = run_with_input(&mut trial.command(&["hook", event]), input);
            assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""), "{event} {input:?}");
        }
        let whole = claude(event, &json!({"agent_id": "a1", "task_id": "1", "task_subject": "x", "source": "startup"}));
        assert_eq!(trial.hook(event, &whole), None, "{event}");
    }
    let log = std::fs::read_to_string(trial.place.path("home/.local/state/taskbus/hook.log")).unwrap();
    assert!(log.contains("a hook reads a JSON object") && log.contains("taskbus.json"), "{log}");
    let later = run_with_input(&mut trial.command(&["hook", "a-later-moment"]), b"{}");
    assert_eq!((later.code, later.out.as_str(), later.err.as_str()), (0, "", ""));
    let broken = run_with_input(trial.command(&["hook", "stop"]).env("TASKBUS_LOG_LEVEL", "loud"), b"{}");
    assert_eq!((broken.code, broken.out.as_str(), broken.err.as_str()), (0, "", ""));
    assert!(run_with_input(&mut trial.command(&["hook", "--help"]), b"").out.contains("pre-tool-use"));
}

#[test]
fn tasks_of_the_agents_own_are_shown_where_the_repository_wants_it() {
    let trial = Trial::new();
    trial.cli(&["add", "shared", "--create"]);
    let task = json!({"task_id": "4", "task_subject": "Read the code", "task_description": "All of it."});
    let (created, completed) = (claude("TaskCreated", &task), claude("TaskCompleted", &task));
    assert_eq!(trial.hook("task-created", &created), None);
    assert_eq!(trial.cli(&["list"])["total"], 1, "nobody has asked for it");
    let file = trial.place.path("widget/.local/taskbus.json");
    let text = std::fs::read_to_string(&file).unwrap().replacen('{', "{\"mirror_tasks\": true,", 1);
    std::fs::write(&file, text).unwrap();
    for _ in 0..2 {
        assert_eq!(trial.hook("task-created", &created), None);
    }
    let list = trial.cli(&["list"]);
    assert_eq!(list["total"], 2, "{list}");
    let shown = trial.cli(&["show", "2"]);
    let shown = shown.get("task").unwrap_or(&shown);
    assert_eq!(
        (&shown["subject"], &shown["owner"]),
        (&json!("Read the code"), &json!("claude-code-2c3d4e5f/own-tasks"))
    );
    let taken = trial.cli(&["next", "--as", "Amp", "--count", "5"]);
    assert_eq!(taken["tasks"].as_array().unwrap().len(), 1, "nobody else takes it: {taken}");
    trial.hook("task-completed", &completed);
    let shown = trial.cli(&["show", "2"]);
    assert_eq!(shown.get("task").unwrap_or(&shown)["status"], "completed");
    assert_eq!(trial.hook("task-completed", &completed), None, "once is enough");
}
