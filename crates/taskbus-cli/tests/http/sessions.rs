//! Clients of both eras at one server: each session is somebody of its own, and so is each name that was registered.

use std::sync::Barrier;

use serde_json::{Value, json};

use crate::server::{Client, Server};

/// A client that is called so, and its name.
fn named<'a>(client: Client<'a>, name: &str) -> (Client<'a>, String) {
    let registered = client.ok("register", json!({"name": name}));
    let name = registered["as"].as_str().unwrap().to_owned();
    (client, name)
}

#[test]
fn a_client_of_each_era_works_on_a_list() {
    let server = Server::start();
    for (era, client) in [server.session(), server.alone()].into_iter().enumerate() {
        let (client, name) = named(client, ["Zed", "Amp"][era]);
        client.ok("create_channel", json!({"name": "tasks/demo", "as": name}));
        let made = client.ok("task_create", json!({"subject": "one", "as": name}));
        let next = client.ok("task_next", json!({"as": name}));
        assert_eq!(next["task"]["id"], made["id"], "{next}");
        let done = client.ok("task_update", json!({"task_id": made["id"], "status": "completed", "as": name}));
        assert_eq!(done["task"]["status"], "completed", "{done}");
    }
    let shown = server.place.ok(&["list", "--all"]);
    let owners: Vec<&Value> = shown["tasks"].as_array().unwrap().iter().map(|task| &task["owner"]).collect();
    assert_eq!(owners, [&json!("Zed"), &json!("Amp")], "{shown}");
}

#[test]
fn clients_that_wish_for_one_name_get_several() {
    let server = Server::start();
    let clients = [server.session(), server.session(), server.alone(), server.alone()];
    let mut names: Vec<String> = clients.into_iter().map(|client| named(client, "Zed").1).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn nobody_acts_under_a_name_of_another_session() {
    let server = Server::start();
    let (_zed, name) = named(server.session(), "Zed");
    let other = server.session();
    let refused = other.call("create_channel", json!({"name": "tasks/demo", "as": name})).unwrap_err();
    assert_eq!(refused["code"], "not_registered", "{refused}");
    let refused = server.alone().call("create_channel", json!({"name": "tasks/demo", "as": name})).unwrap_err();
    assert_eq!(refused["code"], "not_registered", "{refused}");
}

#[test]
fn a_write_without_a_session_and_without_a_name_is_refused() {
    let server = Server::with(&["--tools", "core,claude"]);
    let alone = server.alone();
    let refused = alone.call("create_channel", json!({"name": "tasks/demo"})).unwrap_err();
    assert_eq!((&refused["code"], &refused["field"]), (&json!("validation"), &json!("as")), "{refused}");
    let refused = alone.call("TaskCreate", json!({"subject": "a", "description": "b"})).unwrap_err();
    assert!(refused.to_string().contains("session"), "{refused}");
    let (named, name) = named(server.session(), "Zed");
    named.ok("create_channel", json!({"name": "tasks/demo", "as": name}));
    assert_eq!(alone.ok("task_list", json!({}))["tasks"], json!([]), "reading needs no name");
}

#[test]
fn a_subagent_finds_the_seat_of_its_parent() {
    let server = Server::start();
    let (alone, name) = named(server.alone(), "Zed");
    let child = format!("{name}/plan");
    alone.ok("create_channel", json!({"name": "tasks/demo", "as": child}));
    let made = alone.ok("task_create", json!({"subject": "one", "as": child}));
    assert_eq!(alone.ok("task_claim", json!({"task_id": made["id"], "as": child}))["task"]["owner"], child.as_str());
}

#[test]
fn many_clients_claim_one_task_and_one_has_it() {
    let server = Server::start();
    let (zed, name) = named(server.session(), "Zed");
    zed.ok("create_channel", json!({"name": "tasks/demo", "as": name}));
    for round in 0..10 {
        let id = zed.ok("task_create", json!({"subject": format!("round {round}"), "as": name}))["id"].clone();
        let clients: Vec<_> = [server.session(), server.session(), server.alone(), server.alone()]
            .into_iter()
            .map(|client| named(client, "Amp"))
            .collect();
        let start = Barrier::new(clients.len());
        let claim = |(client, name): &(Client<'_>, String)| {
            start.wait();
            client.call("task_claim", json!({"task_id": id, "as": name}))
        };
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let claims: Vec<_> = clients.iter().map(|client| scope.spawn(move || claim(client))).collect();
            claims.into_iter().map(|claim| claim.join().unwrap()).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    }
}

#[test]
fn a_session_that_ends_gives_up_its_name() {
    let server = Server::start();
    let (zed, name) = named(server.session(), "Zed");
    assert_eq!((name.as_str(), zed.end().status), ("Zed", 204));
    assert_eq!(zed.ask_again(), 404, "the session is gone");
    let deadline = std::time::Instant::now() + crate::server::PATIENCE;
    while named(server.session(), "Zed").1 != "Zed" {
        assert!(std::time::Instant::now() < deadline, "the name did not come free");
    }
}

#[test]
fn a_session_that_nobody_opened_is_not_found() {
    let server = Server::start();
    for forged in ["00000000-0000-4000-8000-000000000000", "1", "../x"] {
        let client = Client { session: Some(forged.to_owned()), ..server.session() };
        assert_eq!(client.ask_again(), 404, "{forged}");
    }
}
