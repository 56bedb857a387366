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
        offer(home, "sqlite:taskbus.db", "core").start().call("register", json!({"name": "Kim"}))["lists"].clone();
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
    let (mut rob, mut kim) = (agent("rob"), agent("kim"));
    let id = create(&mut rob, "a");
    let start = json!({"taskId": id, "status": "in_progress"});
    assert_eq!(rob.call("TaskUpdate", start.clone())["owner"], "rob");
    assert_eq!(kim.refusal("TaskUpdate", start.clone())["owner"], "rob");
    drop(rob);
    assert_eq!(kim.call("TaskUpdate", start)["owner"], "kim", "who has ended holds nothing");
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
        let made = server.call("task_create", json!({"subject": "a", "as": "Sam/impl"}));
        assert_eq!((&made["created_by"], &made["channel"]), (&json!("Sam/impl"), &json!(channel)));
        let taken = server.call("task_next", json!({"channel": channel, "as": "Kim"}));
        assert_eq!((&taken["task"]["id"], &taken["task"]["owner"]), (&made["id"], &json!("Kim")));
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
