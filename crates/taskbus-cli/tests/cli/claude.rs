//! A task directory of Claude Code as a store, and the mirror beside it.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::{Place, run};

fn directory(place: &Place) -> String {
    format!("claude:{}", place.path("tasks/sprint").display())
}

fn file(place: &Place, id: u64) -> Value {
    serde_json::from_slice(&std::fs::read(place.path(&format!("tasks/sprint/{id}.json"))).unwrap()).unwrap()
}

/// Runs a command on the directory, which needs no name of a list.
fn in_directory(place: &Place, args: &[&str]) -> Value {
    let mut command = place.bare(&["--json"]);
    let ran = run(command.args(args).env("TASKBUS_STORE", directory(place)).env("TASKBUS_AS", "zed"));
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.value()
}

#[test]
fn a_claude_directory_is_a_store_with_one_list() {
    let place = Place::new();
    let added = in_directory(&place, &["add", "one"]);
    assert_eq!((&added["task"]["id"], &added["task"]["channel"]), (&json!(1), &json!("tasks/sprint")));
    in_directory(&place, &["add", "two", "--blocked-by", "1"]);
    assert_eq!((&file(&place, 1)["blocks"], &file(&place, 2)["blockedBy"]), (&json!(["2"]), &json!(["1"])));
    assert_eq!(in_directory(&place, &["next"])["task"]["id"], 1);
    assert_eq!((&file(&place, 1)["status"], &file(&place, 1)["owner"]), (&json!("in_progress"), &json!("zed")));
    assert_eq!(in_directory(&place, &["status"])["channel_from"], "the only one of this store");
    assert_eq!(in_directory(&place, &["doctor"])["ok"], true);
}

#[test]
fn the_doctor_tells_what_is_wrong_in_a_claude_directory() {
    let place = Place::new();
    in_directory(&place, &["add", "one"]);
    std::fs::write(place.path("tasks/sprint/2.json"), "{").unwrap();
    let mut command = place.bare(&["--json", "doctor"]);
    let ran = run(command.env("TASKBUS_STORE", directory(&place)).env("TASKBUS_AS", "zed"));
    assert!(ran.code == 1 && ran.out.contains("2.json is no task"), "{ran:?}");
    assert_eq!(in_directory(&place, &["list"])["total"], 1, "and the list stays usable");
}

#[test]
fn claude_alone_is_the_list_that_claude_code_would_use() {
    let place = Place::new();
    std::fs::create_dir(place.path("home/.claude")).unwrap();
    let status = |name: &str, value: &str| {
        let mut command = place.bare(&["--json", "status", "--store", "claude:"]);
        run(command.env(name, value))
    };
    let ran = status("CLAUDE_CODE_TASK_LIST_ID", "sprint");
    assert!(ran.value()["store"].as_str().unwrap().ends_with("home/.claude/tasks/sprint"), "{ran:?}");
    let ran = status("CLAUDE_CODE_SESSION_ID", "0a1b-2c");
    assert!(ran.value()["store"].as_str().unwrap().ends_with(".claude/tasks/0a1b-2c"), "{ran:?}");
    for (name, value) in [("CLAUDE_CODE_TASK_LIST_ID", "../x"), ("UNRELATED", "")] {
        let ran = status(name, value);
        assert_eq!(ran.code, 2, "{ran:?}");
    }
}

#[test]
fn the_mirror_brings_both_into_step_once() {
    let place = Place::new();
    place.ok(&["add", "from the list"]);
    in_directory(&place, &["add", "from the directory"]);
    let ran = place.run(&["mirror", &directory(&place), "--once"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("file 1 is task") && ran.out.contains("1 changes went to the directory"), "{ran:?}");
    assert_eq!(
        (place.ok(&["list"])["total"].clone(), in_directory(&place, &["list"])["total"].clone()),
        (json!(2), json!(2))
    );
    let again = place.run(&["mirror", &directory(&place), "--once"]);
    assert!(again.out.starts_with("0 changes went to the directory, 0 to the list"), "{again:?}");
    for odd in ["sqlite:x.db", "nonsense"] {
        assert_eq!(place.run(&["mirror", odd]).code, 2, "{odd}");
    }
}

#[test]
fn the_mirror_runs_until_it_is_told_to_end() {
    let place = Place::new();
    place.ok(&["add", "from the list"]);
    let mut command = place.command(&["--json", "mirror", &directory(&place)]);
    let mut mirror = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(mirror.stdout.take().unwrap()).lines();
    let mut event = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(event()["event"], "mirroring");
    assert_eq!(event()["event"], "file_made");
    in_directory(&place, &["done", "1"]);
    assert_eq!(event()["event"], "task_changed");
    assert_eq!(place.ok(&["show", "1"])["task"]["status"], "completed");
    let second = place.run(&["mirror", &directory(&place)]);
    assert!(second.code == 1 && second.err.contains("mirrors this directory already"), "{second:?}");
    kill_process(Pid::from_child(&mirror), Signal::TERM).unwrap();
    assert_eq!(event()["event"], "ended");
    assert!(mirror.wait().unwrap().success());
    assert_eq!(place.run(&["mirror", &directory(&place), "--once"]).code, 0, "its name is free again");
}
