//! The configuration, from outside: where it is found, what it does, and what a broken one breaks.

use serde_json::{Value, json};

use crate::common::{Place, Ran, run, run_with_input};

fn write_config(place: &Place, text: &str) {
    let dir = place.path("home/.config/taskbus");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.toml"), text).unwrap();
}

fn value(place: &Place, args: &[&str], key: &str) -> Value {
    let mut all = vec!["--json", "config"];
    all.extend(args);
    let report = run(&mut place.bare(&all)).value();
    let row = report["keys"].as_array().unwrap().iter().find(|row| row["key"] == key).unwrap().clone();
    json!([row["value"], row["from"]])
}

#[test]
fn the_file_is_found_and_each_value_says_where_it_comes_from() {
    let place = Place::new();
    assert_eq!(value(&place, &[], "log_level"), json!(["info", "default"]));
    write_config(&place, "log_level = \"warn\"\n");
    assert_eq!(value(&place, &[], "log_level"), json!(["warn", "the file"]));
    let other = place.write("other.toml", "log_level = \"error\"\n");
    assert_eq!(value(&place, &["--config", &other], "log_level"), json!(["error", "the file"]));
    let ran = run(place.bare(&["config"]).env("TASKBUS_CONFIG", &other).env("TASKBUS_LOG_LEVEL", "debug"));
    assert!(ran.out.contains("other.toml") && ran.out.contains("TASKBUS_LOG_LEVEL"), "{ran:?}");
    let absent = run(&mut place.bare(&["config", "--config", "nowhere.toml"]));
    assert!(absent.code == 0 && absent.out.contains("nowhere.toml (not there"), "{absent:?}");
}

#[test]
fn the_file_says_where_tasks_are_kept() {
    let place = Place::new();
    let made = |name: &str| place.path(name).is_file();
    let add = |place: &Place| run(&mut place.bare(&["--json", "add", "one", "--list", "demo"])).code;
    write_config(&place, "data_directory = \"~/bus\"\n");
    assert!(add(&place) == 0 && made("home/bus/taskbus.db"));
    write_config(&place, &format!("store = \"sqlite:{}\"\n", place.path("named.db").display()));
    assert!(add(&place) == 0 && made("named.db"));
    let ran = run(place.bare(&["--json", "list", "--list", "demo"]).env("TASKBUS_DATA_DIR", place.path("home/bus")));
    assert_eq!(ran.value()["total"], 1, "the store that is named goes before the directory");
    let flag = format!("sqlite:{}", place.path("flag.db").display());
    assert!(run(&mut place.bare(&["add", "one", "--list", "demo", "--store", &flag])).code == 0 && made("flag.db"));
}

#[test]
fn limits_reach_the_engine() {
    let place = Place::new();
    let mut add = place.command(&["--json", "add", &"x".repeat(100), "--description", &"y".repeat(40_000)]);
    let ran = run(add.env("TASKBUS_SEND_KIB_PER_SECOND", "64"));
    assert_eq!(ran.code, 0, "{ran:?}");
    write_config(&place, "send_messages_per_second = 1\n");
    let calls = |n: u64| -> String {
        (1..=n).map(|id| call(id, "task_create", &json!({"channel": "tasks/demo", "subject": "x"}))).collect()
    };
    let answers = served(&place, &calls(4));
    assert!(answers.contains("rate_limited"), "{answers}");
}

#[test]
fn a_broken_configuration_is_told_and_breaks_nothing_else() {
    let place = Place::new();
    write_config(&place, "receive_max_count = 0\n");
    let ran = run(&mut place.bare(&["list", "--list", "demo"]));
    assert_eq!(ran.code, 2);
    for word in ["config.toml", "receive_max_count is 0", "from 1 to 10000"] {
        assert!(ran.err.contains(word), "{ran:?}");
    }
    let doctor = run(&mut place.bare(&["doctor"]));
    assert!(doctor.out.contains("receive_max_count"), "{doctor:?}");
    let answers = served(&place, &call(1, "task_list", &json!({"channel": "tasks/demo"})));
    assert!(answers.contains("\"serverInfo\"") && answers.contains("\"isError\":true"), "{answers}");
    assert!(answers.contains("receive_max_count is 0") && answers.contains("restart this server"), "{answers}");
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// What `taskbus mcp` answers to these lines behind a handshake.
fn served(place: &Place, lines: &str) -> String {
    let about =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let Ran { code, out, .. } =
        run_with_input(&mut place.command(&["mcp"]), format!("{hello}\n{ready}\n{lines}").as_bytes());
    assert_eq!(code, 0, "{out}");
    out
}
