//! The tools of Claude Code and of Kin in real processes: which list they work on, and stores of one list.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Launch, Server};

const DIRTY: &str = "{\"version\": 1, \"tasks\": [";

fn offer(home: &tempfile::TempDir, store: &str, sets: &str) -> Launch {
    Launch::new(home.path(), store).arg("--tools").arg(sets)
}

fn create(server: &mut Server, subject: &str) -> Value {
    server.call("TaskCreate", json!({"subject": subject, "description": ""}))["task"]["id"].clone()
}

fn lists(home: &tempfile::TempDir) -> Vec<String> {
    let lists =
        offer(home, "sqlite:taskbus.db", "core").start().call("register", json!({"name": "Amp"}))["lists"].clone();
    lists.as_array().into_iter().flatten().map(|list| list["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_list_is_claude_codes_own_else_the_named_one_else_the_projects() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("widget");
    fs::create_dir_all(project.join(".git")).unwrap();
    let start = |arguments: &[&str], own: &str| {
        let launch = offer(&home, "sqlite:../taskbus.db", "claude,kin").env("CLAUDE_CODE_TASK_LIST_ID", own);
        let mut launch = arguments.iter().fold(launch, |launch, argument| launch.arg(argument));
        launch.command().current_dir(&project);
        launch.start()
    };
    create(&mut start(&["--list", "named"], "sprint"), "a");
    assert_eq!(lists(&home), ["tasks/sprint"]);
    let mut both = start(&["--list", "named"], "sprint");
    both.call("tasks", json!({"action": "add", "content": "b"}));
    create(&mut start(&["--list", "other"], ""), "c");
    create(&mut start(&[], ""), "d");
    assert_eq!(lists(&home), ["tasks/named", "tasks/other", "tasks/sprint", "tasks/widget"]);
    assert_eq!(both.call("TaskList", json!({}))["tasks"][0]["subject"], "a");
    assert_eq!(both.call("tasks", json!({"action": "list"}))["tasks"][0]["content"], "b");
}

#[test]
fn two_sessions_share_a_list_and_one_starts_a_task() {
    let home = tempfile::tempdir().unwrap();
    let agent =
        |name| offer(&home, "sqlite:taskbus.db", "claude").arg("--list").arg("t").env("TASKBUS_AS", name).start();
    let (mut roo, mut amp) = (agent("roo"), agent("amp"));
    let id = create(&mut roo, "a");
    let start = json!({"taskId": id, "status": "in_progress"});
    assert_eq!(roo.call("TaskUpdate", start.clone())["owner"], "roo");
    assert_eq!(amp.refusal("TaskUpdate", start.clone())["owner"], "roo");
    drop(roo);
    assert_eq!(amp.call("TaskUpdate", start)["owner"], "amp", "who has ended holds nothing");
}

#[test]
fn what_cannot_be_read_is_an_answer_and_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s.tasks.json");
    fs::write(&path, DIRTY).unwrap();
    let mut server = offer(&home, "file:s.tasks.json", "kin,claude,core").start();
    assert!(server.request("tools/list", json!({}))["result"]["tools"].is_array());
    for (tool, arguments) in [
        ("tasks", json!({"action": "list"})),
        ("TaskList", json!({})),
        ("TaskUpdate", json!({"taskId": "t_1", "status": "completed"})),
        ("task_list", json!({})),
    ] {
        let refusal = server.refusal(tool, arguments);
        assert_eq!((&refusal["code"], &refusal["reason"]), (&json!("internal"), &json!("store_damaged")), "{refusal}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), DIRTY);
    fs::write(&path, "{\"version\": 1, \"tasks\": []}").unwrap();
    assert_eq!(server.call("tasks", json!({"action": "list"}))["tasks"], json!([]));
}

#[test]
fn the_usual_tools_work_on_a_store_of_one_list_under_any_name() {
    let home = tempfile::tempdir().unwrap();
    for (store, channel) in [("file:s.tasks.json", "tasks/s"), ("claude:dir", "tasks/dir")] {
        let mut server = offer(&home, store, "core").start();
        let made = server.call("task_create", json!({"subject": "a", "as": "Zed/impl"}));
        assert_eq!((&made["created_by"], &made["channel"]), (&json!("Zed/impl"), &json!(channel)));
        let taken = server.call("task_next", json!({"channel": channel, "as": "Amp"}));
        assert_eq!((&taken["task"]["id"], &taken["task"]["owner"]), (&made["id"], &json!("Amp")));
        assert_eq!(server.call("task_list", json!({"as": "nobody yet"}))["total"], 1);
        let other = server.refusal("task_list", json!({"channel": "tasks/other"}));
        assert!(other["message"].as_str().unwrap().contains(&format!("has one list, {channel},")), "{other}");
    }
}

#[test]
fn a_task_directory_is_written_as_claude_code_writes_it() {
    let home = tempfile::tempdir().unwrap();
    let mut server = offer(&home, "claude:dir", "claude").start();
    let (a, b) = (create(&mut server, "a"), create(&mut server, "b"));
    server.call("TaskUpdate", json!({"taskId": a, "addBlocks": [b], "metadata": {"k": [1]}}));
    let file = |id: u8| -> Value {
        serde_json::from_slice(&fs::read(home.path().join(format!("dir/{id}.json"))).unwrap()).unwrap()
    };
    assert_eq!((&file(1)["blocks"], &file(2)["blockedBy"]), (&json!(["2"]), &json!(["1"])));
    assert_eq!(file(1)["metadata"]["k"], json!([1]));
    let mut started = server.call("TaskUpdate", json!({"taskId": b, "status": "in_progress"}));
    assert!(started["warnings"][0].take().as_str().unwrap().contains("blocked by 1"));
    server.call("TaskUpdate", json!({"taskId": a, "status": "deleted"}));
    assert_eq!((file(2)["blockedBy"].clone(), home.path().join("dir/1.json").exists()), (json!([]), false));
    assert_eq!(create(&mut server, "c"), "3", "no id is given twice");
}

/// What no model should send, and some do.
fn odd_values() -> Vec<Value> {
    let deep = (0..20).fold(json!(1), |inner, _| json!([inner]));
    let texts = [
        "",
        " ",
        "null",
        "0",
        "-1",
        "1.5",
        "#1",
        "007",
        "a\u{0}b",
        "\u{1b}[2J",
        "\u{200b}",
        "../x",
        "[1",
        "é".repeat(200).as_str(),
    ]
    .map(|text| json!(text));
    let others = [json!(null), json!(true), json!(0), json!(-7), json!(1.5), json!(1e300), json!(u64::MAX), json!([])];
    let more = [
        json!([null]),
        json!([[1]]),
        json!(["1", "1"]),
        json!({}),
        json!({"k": null}),
        deep,
        json!("x".repeat(70_000)),
    ];
    texts.into_iter().chain(others).chain(more).collect()
}

#[test]
fn whatever_is_sent_is_answered_and_a_refusal_changes_nothing() {
    for store in ["sqlite:taskbus.db", "file:s.tasks.json", "claude:dir"] {
        let home = tempfile::tempdir().unwrap();
        let mut launch = offer(&home, store, "claude,kin");
        if store.starts_with("sqlite") {
            launch = launch.arg("--list").arg("t");
        }
        let mut server = launch.start();
        let id = create(&mut server, "a");
        let tools = server.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone();
        let (mut refused, mut taken) = (0, 0);
        let mut before = server.call("tasks", json!({"action": "list"}));
        // The tool that makes tasks comes last, so that the list stays short.
        for tool in tools.iter().rev() {
            let name = tool["name"].as_str().unwrap();
            for field in tool["inputSchema"]["properties"].as_object().unwrap().keys() {
                for odd in odd_values() {
                    let mut arguments = match name {
                        "TaskCreate" => json!({"subject": "s", "description": ""}),
                        "tasks" => json!({"action": "update", "id": id}),
                        _ => json!({"taskId": id}),
                    };
                    arguments[field] = odd;
                    let result = server.result(name, arguments.clone());
                    let facts = &result["structuredContent"];
                    assert_ne!(facts["code"], "internal", "{store} {name} {field}: {facts}");
                    let after = server.call("tasks", json!({"action": "list"}));
                    if result["isError"] == true && facts["code"] != "rate_limited" {
                        assert_eq!(after, before, "{store} {name} {field}: {facts}");
                        refused += 1;
                    } else {
                        taken += 1;
                    }
                    before = after;
                }
            }
        }
        println!("{store}: {refused} refused and unchanged, {taken} taken");
        assert!(refused > 150 && taken > 50, "{refused} {taken}");
    }
}
