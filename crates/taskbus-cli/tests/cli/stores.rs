//! The other stores by their names: a Kin sidecar and a task directory of Claude Code.

use std::ffi::OsStr;
use std::fs;

use serde_json::{Value, json};

use crate::common::mcp::Server;
use crate::common::{Place, run};

fn file(place: &Place, name: &str) -> Value {
    serde_json::from_slice(&fs::read(place.path("work").join(name)).unwrap()).unwrap()
}

/// Runs a command on another store; its answer.
#[track_caller]
fn on(place: &Place, store: &str, args: &[&str]) -> Value {
    let mut command = place.bare(&["--json", "--store", store, "--as", "zed"]);
    let ran = run(command.args(args));
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    ran.value()
}

#[test]
fn a_sidecar_is_a_store() {
    let place = Place::new();
    for store in ["file:s-1.tasks.json", "file:.?session=s-1"] {
        let id = on(&place, store, &["add", "Seed fixtures"])["task"]["id"].clone();
        assert!(id.as_str().unwrap().starts_with("t_"), "{id}");
        on(&place, store, &["done", id.as_str().unwrap()]);
        let listed = on(&place, store, &["list"]);
        assert_eq!((&listed["channel"], &listed["tasks"][0]["status"]), (&json!("tasks/s-1"), &json!("completed")));
    }
    let rows = file(&place, "s-1.tasks.json")["tasks"].as_array().unwrap().len();
    assert_eq!(rows, 2, "both names are one file");
}

#[test]
fn a_command_does_not_take_a_task_from_the_session_that_works_on_it() {
    let place = Place::new();
    let store = "file:s.tasks.json";
    let id = on(&place, store, &["add", "Takes long"])["task"]["id"].clone();
    on(&place, store, &["claim", id.as_str().unwrap()]);
    // Ten minutes later.
    let mut aged = file(&place, "s.tasks.json");
    let then = aged["tasks"][0]["updated_at"].as_i64().unwrap() - 600_000;
    aged["tasks"][0]["updated_at"] = then.into();
    place.write("s.tasks.json", aged.to_string());
    for command in [&["list"][..], &["status"], &["show", id.as_str().unwrap()], &["doctor"], &["add", "another"]] {
        on(&place, store, command);
        let row = &file(&place, "s.tasks.json")["tasks"][0];
        assert_eq!((&row["status"], &row["updated_at"]), (&json!("in_progress"), &json!(then)), "{command:?}");
    }
    let mut session = Server::start(OsStr::new(&format!("file:{}", place.path("work").join("s.tasks.json").display())));
    let listed = session.ok("task_list", json!({}));
    assert_eq!(listed["tasks"][0]["status"], "pending", "a session that begins gives it back: {listed}");
}

#[test]
fn a_task_directory_is_a_store() {
    let place = Place::new();
    fs::create_dir_all(place.path("work").join("tasks")).unwrap();
    let made = on(&place, "claude:tasks/sprint", &["add", "Port it", "--description", "All of it"]);
    assert_eq!(made["task"]["id"], 1);
    let stored = file(&place, "tasks/sprint/1.json");
    assert_eq!((&stored["subject"], &stored["description"]), (&json!("Port it"), &json!("All of it")));
    fs::create_dir_all(place.path("home").join(".claude/tasks")).unwrap();
    let mut resolved = place.bare(&["add", "Found", "--store", "claude:"]);
    assert_eq!(run(resolved.env("CLAUDE_CODE_TASK_LIST_ID", "found")).code, 0);
    assert!(place.path("home").join(".claude/tasks/found/1.json").exists());
}

#[test]
fn status_says_what_is_not_there() {
    let place = Place::new();
    let status = on(&place, "file:s.tasks.json", &["status"]);
    let why = status["no_bus_tools"].as_str().unwrap();
    assert!(why.contains("register") && why.contains("sqlite:PATH"), "{why}");
    assert_eq!((&status["liveness"], &status["channel"]), (&json!(false), &json!("tasks/s")));
    assert!(place.ok(&["status"]).get("no_bus_tools").is_none());
    let checked = on(&place, "file:s.tasks.json", &["doctor"])["checks"].to_string();
    assert!(checked.contains("s.tasks.json, 1 list, "), "{checked}");
}

#[test]
fn what_is_wrong_with_a_name_is_wrong_usage() {
    let place = Place::new();
    for store in ["file:", "file:x?session=../y", "file:x?id=5", "claude:", "claude:~/x"] {
        let ran = run(place.bare(&["list", "--store", store]).env_remove("CLAUDE_CODE_SESSION_ID"));
        assert_eq!(ran.code, 2, "{store}: {ran:?}");
    }
    let other = run(&mut place.bare(&["list", "--store", "file:s.tasks.json", "--list", "other"]));
    assert!(other.code == 2 && other.err.contains("has one list, tasks/s,"), "{other:?}");
}

#[test]
fn what_cannot_be_read_is_left_as_it_is() {
    let place = Place::new();
    let path = place.write("s.tasks.json", "{\"tasks\": [");
    for command in ["list", "doctor"] {
        let ran = run(&mut place.bare(&[command, "--store", "file:s.tasks.json"]));
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(format!("{}{}", ran.out, ran.err).contains("left untouched"), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(path).unwrap(), "{\"tasks\": [");
}

#[test]
fn doctor_tells_what_another_program_left_in_a_directory() {
    let place = Place::new();
    fs::create_dir(place.path("work").join("tasks")).unwrap();
    let task = |id: u8, blocker: u8| {
        json!({"id": id.to_string(), "subject": "s", "description": "", "status": "pending", "blocks": [],
            "blockedBy": [blocker.to_string()]})
    };
    place.write("tasks/1.json", task(1, 2).to_string());
    place.write("tasks/2.json", task(2, 1).to_string());
    let ran = run(&mut place.bare(&["doctor", "--store", "claude:tasks"]));
    assert!(ran.code == 1 && ran.out.contains("in a circle: 1 -> 2 -> 1"), "{ran:?}");
}
