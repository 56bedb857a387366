//! Two servers on one store: who wins, and what the loser is told.

use serde_json::{Value, json};

use crate::server::{Server, on_sqlite};

fn pair(home: &tempfile::TempDir) -> [Server; 2] {
    let mut servers = [on_sqlite(home.path()), on_sqlite(home.path())];
    servers[0].call("register", json!({"name": "Zed"}));
    servers[1].call("register", json!({"name": "Amp"}));
    servers[0].call("create_channel", json!({"name": "tasks/t"}));
    servers
}

#[test]
fn one_of_two_claims_wins_and_the_other_is_told_who() {
    let home = tempfile::tempdir().unwrap();
    let [mut zed, mut amp] = pair(&home);
    for round in 1..=20 {
        let id = zed.call("task_create", json!({"channel": "tasks/t", "subject": "s"}))["id"].clone();
        let claim = json!({"name": "task_claim", "arguments": {"task_id": id}});
        let (first, second) = (zed.begin("tools/call", claim.clone()), amp.begin("tools/call", claim));
        let answers = [("Zed", zed.answer(&first)), ("Amp", amp.answer(&second))];
        let (won, lost): (Vec<_>, Vec<_>) =
            answers.iter().partition(|(_, answer)| answer["result"]["isError"] == false);
        assert_eq!((won.len(), lost.len()), (1, 1), "round {round}: {answers:?}");
        let refusal = &lost[0].1["result"]["structuredContent"];
        assert_eq!((&refusal["code"], &refusal["reason"]), (&json!("conflict"), &json!("held")), "{refusal}");
        assert_eq!(refusal["owner"], won[0].0);
        assert!(refusal["message"].as_str().unwrap().contains(won[0].0), "{refusal}");
    }
}

#[test]
fn every_door_gives_the_same_refusal() {
    let home = tempfile::tempdir().unwrap();
    let [mut zed, mut amp] = pair(&home);
    let id = zed.call("task_create", json!({"channel": "tasks/t", "subject": "s"}))["id"].clone();
    zed.call("task_claim", json!({"task_id": id}));
    let by_claim = amp.refusal("task_claim", json!({"task_id": id}));
    let same = amp.refusal("task_update", json!({"task_id": id, "status": "in_progress", "owner": "Amp"}));
    assert_eq!(same, by_claim);
    assert_eq!(amp.refusal("task_update", json!({"task_id": id, "status": "completed"})), by_claim);
    assert_eq!(amp.refusal("task_release", json!({"task_id": id})), by_claim);
    let idle = amp.call("task_next", json!({"channel": "tasks/t"}))["idle"].clone();
    assert_eq!((&idle["advice"], &idle["holders"][0]["owner"]), (&json!("wait"), &json!("Zed")));
}

#[test]
fn a_waiting_server_hears_of_another_ones_task() {
    let home = tempfile::tempdir().unwrap();
    let [mut zed, mut amp] = pair(&home);
    let id =
        amp.begin("tools/call", json!({"name": "task_next", "arguments": {"channel": "tasks/t", "wait_seconds": 50}}));
    amp.call("task_list", json!({"channel": "tasks/t"}));
    let made = zed.call("task_create", json!({"channel": "tasks/t", "subject": "s"}));
    let taken = amp.answer(&id)["result"]["structuredContent"]["task"].clone();
    assert_eq!((&taken["id"], &taken["owner"]), (&made["id"], &json!("Amp")));
}

#[test]
fn a_dead_servers_task_comes_back_and_its_fence_is_old() {
    let home = tempfile::tempdir().unwrap();
    let [mut zed, mut amp] = pair(&home);
    let id = zed.call("task_create", json!({"channel": "tasks/t", "subject": "s"}))["id"].clone();
    let fence = zed.call("task_claim", json!({"task_id": id}))["task"]["fence"].clone();
    drop(zed);
    assert_eq!(amp.call("task_next", json!({"channel": "tasks/t"}))["task"]["id"], id);
    let mut zed = on_sqlite(home.path());
    assert_eq!(zed.call("register", json!({"name": "Zed"}))["as"], "Zed");
    let late = zed.refusal("task_update", json!({"task_id": id, "status": "completed", "fence": fence}));
    assert_eq!((&late["reason"], &late["owner"]), (&json!("lease_lost"), &json!("Amp")), "{late}");
}

#[test]
fn text_and_structure_carry_the_same_facts() {
    let home = tempfile::tempdir().unwrap();
    let [mut zed, _amp] = pair(&home);
    for (tool, arguments) in [
        ("task_create", json!({"channel": "tasks/t", "subject": "s"})),
        ("task_get", json!({"task_id": 1, "history": true})),
        ("task_next", json!({"channel": "tasks/t"})),
        ("task_get", json!({"task_id": 99})),
        ("task_claim", json!({"task_id": "seven"})),
    ] {
        let result = zed.result(tool, arguments);
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((text, result["content"].as_array().unwrap().len()), (result["structuredContent"].clone(), 1));
    }
    let listed = zed.result("task_list", json!({"channel": "tasks/t"}));
    let text: Value = serde_json::from_str(listed["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, listed["structuredContent"]["tasks"]);
}
