//! Prompts and resources, and hearing of changes of resources: in both eras of the protocol, in a process that does
//! not change anything itself.

use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Launch, Server, on_sqlite};

fn newer() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}})
}

/// A server that changes things, with the list `tasks/t`.
fn writer(home: &tempfile::TempDir) -> Server {
    let mut server = on_sqlite(home.path());
    server.call("create_channel", json!({"name": "tasks/t", "kind": "memory"}));
    server
}

/// The next line, which must tell of a change of this resource.
#[track_caller]
fn hears(server: &mut Server, uri: &str) -> Value {
    let line = server.line();
    assert_eq!((&line["method"], &line["params"]["uri"]), (&json!("notifications/resources/updated"), &json!(uri)));
    line
}

fn read(server: &mut Server, uri: &str) -> Value {
    let answer = server.request("resources/read", json!({"uri": uri}));
    let contents = &answer["result"]["contents"];
    assert_eq!((contents.as_array().unwrap().len(), &contents[0]["mimeType"]), (1, &json!("application/json")));
    assert_eq!(contents[0]["uri"], uri);
    serde_json::from_str(contents[0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn prompts_are_listed_and_told() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Launch::new(home.path(), "memory:").start();
    let listed = server.request("prompts/list", json!({}))["result"]["prompts"].clone();
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|prompt| &prompt["name"]).collect();
    assert_eq!(names, [&json!("init"), &json!("work"), &json!("plan")]);
    for prompt in listed.as_array().unwrap() {
        assert!(prompt["title"].is_string() && prompt["description"].is_string(), "{prompt}");
        assert!(prompt["arguments"].as_array().unwrap().iter().all(|argument| argument["required"] == false));
        let told = server.request("prompts/get", json!({"name": prompt["name"]}))["result"]["messages"].clone();
        assert_eq!((told.as_array().unwrap().len(), &told[0]["role"]), (1, &json!("user")));
        assert!(told[0]["content"]["text"].as_str().unwrap().contains("register"), "{told}");
    }
    let plan = json!({"name": "plan", "arguments": {"goal": "Ship it", "channel": "demo"}});
    let told = server.request("prompts/get", plan)["result"]["messages"][0]["content"]["text"].clone();
    assert!(told.as_str().unwrap().contains("Ship it") && told.as_str().unwrap().contains("tasks/demo"), "{told}");
    let wrong = server.request("prompts/get", json!({"name": "plan", "arguments": {"gaol": "x"}}))["error"].clone();
    assert_eq!((&wrong["code"], &wrong["data"]["field"]), (&json!(-32602), &json!("gaol")), "{wrong}");
    let newer = server.request("prompts/get", json!({"name": "work", "_meta": newer()}))["result"].clone();
    assert_eq!(newer["resultType"], "complete");
}

#[test]
fn prompts_are_of_the_tools_that_there_are() {
    let home = tempfile::tempdir().unwrap();
    let mut kin = Launch::new(home.path(), "memory:").arg("--tools").arg("kin").start();
    assert_eq!(kin.request("prompts/list", json!({}))["result"]["prompts"], json!([]));
    assert_eq!(kin.request("prompts/get", json!({"name": "work"}))["error"]["code"], -32602);
    let mut sidecar = Launch::new(home.path(), "file:s.tasks.json").start();
    for name in ["init", "work", "plan"] {
        let told = sidecar.request("prompts/get", json!({"name": name}))["result"]["messages"][0].clone();
        assert!(!told.to_string().contains("register"), "nobody registers there: {told}");
    }
}

#[test]
fn lists_and_tasks_are_resources() {
    let home = tempfile::tempdir().unwrap();
    let mut server = writer(&home);
    server.call("create_channel", json!({"name": "tasks/Größe 2", "kind": "memory"}));
    server.call("task_create", json!({"channel": "tasks/t", "subject": "first"}));
    let listed = server.request("resources/list", json!({}))["result"]["resources"].clone();
    let uris: Vec<&Value> = listed.as_array().unwrap().iter().map(|resource| &resource["uri"]).collect();
    assert_eq!(uris, [&json!("taskbus://list/Gr%C3%B6%C3%9Fe%202"), &json!("taskbus://list/t")]);
    let templates = server.request("resources/templates/list", json!({}))["result"]["resourceTemplates"].clone();
    assert_eq!(templates[1]["uriTemplate"], "taskbus://task/{id}");
    assert_eq!(read(&mut server, "taskbus://list/Gr%C3%B6%C3%9Fe%202")["total"], 0);
    let list = read(&mut server, "taskbus://list/t");
    assert_eq!((&list["channel"], &list["tasks"][0]["subject"]), (&json!("tasks/t"), &json!("first")));
    let id = list["tasks"][0]["id"].clone();
    assert_eq!(read(&mut server, &format!("taskbus://task/{id}"))["subject"], "first");
    for uri in ["taskbus://list/none", "taskbus://task/999", "taskbus://task/x%20y", "nonsense"] {
        let missing = server.request("resources/read", json!({"uri": uri}))["error"].clone();
        assert_eq!((&missing["code"], &missing["data"]["uri"]), (&json!(-32002), &json!(uri)), "{missing}");
        let newer = server.request("resources/read", json!({"uri": uri, "_meta": newer()}));
        assert_eq!(newer["error"]["code"], -32602, "{newer}");
    }
}

#[test]
fn a_long_list_is_cut_to_what_a_conversation_takes() {
    let home = tempfile::tempdir().unwrap();
    let mut server = writer(&home);
    let tasks: Vec<Value> = (0..200).map(|n| json!({"subject": format!("task {n} {}", "x".repeat(200))})).collect();
    server.call("task_plan", json!({"channel": "tasks/t", "tasks": tasks}));
    let list = read(&mut server, "taskbus://list/t");
    assert!(list.to_string().len() <= 8192 && list["total"] == 200 && list["truncated"] == true, "{list}");
}

#[test]
fn the_older_era_hears_of_what_it_subscribed_to() {
    let home = tempfile::tempdir().unwrap();
    let (mut amp, mut zed) = (writer(&home), on_sqlite(home.path()));
    let (list, task) = ("taskbus://list/t", "taskbus://task/1");
    for uri in [list, task] {
        assert_eq!(zed.request("resources/subscribe", json!({"uri": uri}))["result"], json!({}));
    }
    let made = amp.call("task_create", json!({"channel": "tasks/t", "subject": "s"}));
    assert_eq!(made["id"], 1);
    let mut heard = [zed.line()["params"]["uri"].clone(), zed.line()["params"]["uri"].clone()];
    heard.sort_by_key(ToString::to_string);
    assert_eq!(heard, [json!(list), json!(task)], "a task that came to be is news too");
    assert_eq!(zed.request("resources/unsubscribe", json!({"uri": task}))["result"], json!({}));
    amp.call("task_claim", json!({"task_id": 1}));
    hears(&mut zed, list);
    // A change of another list is none of theirs: the next thing heard is the one after it.
    amp.call("create_channel", json!({"name": "tasks/other", "kind": "memory"}));
    amp.call("task_create", json!({"channel": "tasks/other", "subject": "s"}));
    assert_eq!(zed.request("resources/unsubscribe", json!({"uri": list}))["result"], json!({}));
    assert_eq!(zed.request("resources/subscribe", json!({"uri": task}))["result"], json!({}));
    amp.call("task_update", json!({"task_id": 1, "status": "completed"}));
    hears(&mut zed, task);
    let (status, time, stderr) = zed.end();
    assert!(status.success() && time < Duration::from_secs(1) && stderr.is_empty(), "{status} {time:?} {stderr}");
}

#[test]
fn the_newer_era_listens_and_misses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut amp = writer(&home);
    let mut zed = Launch::new(home.path(), "sqlite:taskbus.db").silent();
    let uri = "taskbus://list/t";
    let wanted = json!({"resourceSubscriptions": [uri, "nonsense"], "toolsListChanged": true});
    let id = zed.begin("subscriptions/listen", json!({"notifications": wanted, "_meta": newer()}));
    let acknowledged = zed.line();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({"resourceSubscriptions": [uri]}));
    // Whatever happened before it was heard: it is told to look once.
    let first = hears(&mut zed, uri);
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    for n in 0..3 {
        amp.call("task_create", json!({"channel": "tasks/t", "subject": format!("task {n}")}));
        hears(&mut zed, uri);
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    zed.send(&cancel);
    let again = json!({"resourceSubscriptions": ["taskbus://task/2"]});
    zed.begin("subscriptions/listen", json!({"notifications": again, "_meta": newer()}));
    assert_eq!(zed.line()["method"], "notifications/subscriptions/acknowledged");
    hears(&mut zed, "taskbus://task/2");
    amp.call("task_claim", json!({"task_id": 2}));
    hears(&mut zed, "taskbus://task/2");
    let (status, time, stderr) = zed.end();
    assert!(status.success() && time < Duration::from_secs(1) && stderr.is_empty(), "{status} {time:?} {stderr}");
}

#[test]
fn one_client_watches_so_many_resources() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Launch::new(home.path(), "memory:").start();
    for n in 1..=64 {
        let answer = server.request("resources/subscribe", json!({"uri": format!("taskbus://task/{n}")}));
        assert_eq!(answer["result"], json!({}), "{n}");
    }
    let beyond = server.request("resources/subscribe", json!({"uri": "taskbus://task/65"}))["error"].clone();
    assert!(beyond["code"] == -32602 && beyond["message"].as_str().unwrap().contains("unsubscribe"), "{beyond}");
    assert_eq!(server.request("resources/subscribe", json!({"uri": "taskbus://task/64"}))["result"], json!({}));
    server.request("resources/unsubscribe", json!({"uri": "taskbus://task/1"}));
    assert_eq!(server.request("resources/subscribe", json!({"uri": "taskbus://task/65"}))["result"], json!({}));
}
