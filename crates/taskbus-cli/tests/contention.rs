//! Many processes at one list: one wins each race, each task is done once, and nothing is lost when a holder dies.
//! Every server here is a real `taskbus mcp` process on a real SQLite file.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::Place;
use common::mcp::Server;
use serde_json::{Value, json};
use taskbus::engine::{Engine, Limits};
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus_core::id::TaskId;
use taskbus_core::limits;

const ROUNDS: usize = 100;
const LIST: &str = "tasks/demo";

/// Makes the list with so many ready tasks; says their ids.
fn plan(place: &Place, count: usize) -> Vec<u64> {
    let subjects: Vec<usize> = (1..=count).collect();
    let plans = subjects.chunks(limits::PLAN_TASKS_MAX).map(|part| {
        let tasks: Vec<Value> = part.iter().map(|number| json!({"subject": format!("task {number}")})).collect();
        let planned = place.run_with_input(&["plan", "-", "--create", "--json"], json!(tasks).to_string().as_bytes());
        planned.value()["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_u64().unwrap()).collect::<Vec<_>>()
    });
    plans.flatten().collect()
}

/// The engine over the same file, to look at what is really there.
fn engine(place: &Place) -> Engine {
    let store = SqliteStore::open(place.path("tasks.db"), SqliteOptions::default()).unwrap();
    Engine::new(Arc::new(store), Limits::default())
}

/// How often the history of a task has this change.
fn count(engine: &Engine, id: u64, change: &str) -> usize {
    let got = engine.get(None, &TaskId::Number(id), true).unwrap();
    got.history.unwrap().iter().filter(|entry| entry.changes.iter().any(|words| words == change)).count()
}

/// So many processes claim one ready task at the same time, round after round.
fn race(processes: usize) {
    let place = Place::new();
    let ids = plan(&place, ROUNDS);
    let start = Barrier::new(processes);
    let answers: Vec<Vec<Result<Value, Value>>> = thread::scope(|scope| {
        let runner = |number: usize| {
            let (ids, start, store) = (&ids, &start, place.store());
            scope.spawn(move || {
                let mut server = Server::named(&store, &format!("racer-{number}"));
                let claim = |id: &u64| {
                    start.wait();
                    server.call("task_claim", &json!({"task_id": id}))
                };
                let answers = ids.iter().map(claim).collect::<Vec<_>>();
                start.wait();
                answers
            })
        };
        let runners: Vec<_> = (0..processes).map(runner).collect();
        runners.into_iter().map(|runner| runner.join().unwrap()).collect()
    });
    for (round, id) in ids.iter().enumerate() {
        check_round(*id, answers.iter().map(|answers| &answers[round]));
    }
    let engine = engine(&place);
    assert!(ids.iter().all(|id| count(&engine, *id, "status: pending -> in_progress") == 1));
}

#[track_caller]
fn check_round<'a>(id: u64, answers: impl Iterator<Item = &'a Result<Value, Value>>) {
    let (won, lost): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.is_ok());
    let [Ok(winner)] = won.as_slice() else { panic!("task {id} has {} winners", won.len()) };
    for refusal in lost.into_iter().filter_map(|answer| answer.as_ref().err()) {
        let named = (&refusal["code"], &refusal["reason"], &refusal["owner"], &refusal["task_id"]);
        assert_eq!(named, (&json!("conflict"), &json!("held"), &winner["task"]["owner"], &json!(id)), "{refusal}");
    }
}

#[test]
fn two_processes_race_and_one_wins() {
    race(2);
}

#[test]
fn eight_processes_race_and_one_wins() {
    race(8);
}

#[test]
fn thirty_two_processes_race_and_one_wins() {
    race(32);
}

/// Takes tasks until there are none; says which. Several identities share the server, as the helpers of one session
/// do: each is limited in how fast it writes, the process is not.
fn drain(store: &OsStr, process: usize) -> Vec<u64> {
    const IDENTITIES: usize = 8;
    let mut server = Server::start(store);
    let names = (0..IDENTITIES).map(|number| format!("worker-{process}-{number}"));
    let mut hands: Vec<(String, Option<Value>)> = names.map(|name| (name, None)).collect();
    for (name, _) in &hands {
        server.ok("register", json!({"name": name}));
    }
    let mut taken = Vec::new();
    while !hands.is_empty() {
        hands.retain_mut(|(name, held)| {
            let mut ask = json!({"channel": LIST, "as": name});
            if let Some(task) = held.take() {
                ask["complete"] = task["id"].clone();
                ask["fence"] = task["fence"].clone();
            }
            let mut answer = server.ok("task_next", ask);
            *held = answer.get_mut("task").map(Value::take);
            taken.extend(held.iter().map(|task| task["id"].as_u64().unwrap()));
            held.is_some()
        });
    }
    taken
}

#[test]
fn four_processes_drain_ten_thousand_tasks() {
    let place = Place::new();
    let mut planned = plan(&place, 10_000);
    let mut taken: Vec<u64> = thread::scope(|scope| {
        let place = &place;
        let workers: Vec<_> = (0..4).map(|process| scope.spawn(move || drain(&place.store(), process))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    taken.sort_unstable();
    planned.sort_unstable();
    assert_eq!(taken.len(), planned.len());
    assert!(taken == planned, "each task is handed out once");
    let engine = engine(&place);
    let mut done = BTreeMap::new();
    for id in planned {
        *done.entry(count(&engine, id, "status: in_progress -> completed")).or_insert(0) += 1;
    }
    assert_eq!(done, BTreeMap::from([(1, 10_000)]), "each task is completed once");
}

/// A holder dies by SIGKILL; how long until somebody else has its task, from then on.
fn die_and_inherit(lease: Option<u64>) -> (Duration, Place) {
    let place = Place::new();
    let id = plan(&place, 1)[0];
    let mut heir = Server::named(&place.store(), "heir");
    let mut holder = Server::named(&place.store(), "holder");
    let mut claim = json!({"task_id": id});
    if let Some(seconds) = lease {
        claim["lease_seconds"] = json!(seconds);
    }
    let fence = holder.ok("task_claim", claim)["task"]["fence"].clone();
    let died = Instant::now();
    holder.kill();
    let idle = heir.ok("task_next", json!({"channel": LIST}));
    assert_eq!(idle["idle"]["advice"], "wait", "{idle}");
    let task = heir.ok("task_next", json!({"channel": LIST, "wait_seconds": 50}))["task"].clone();
    let back = died.elapsed();
    assert_eq!((&task["id"], &task["owner"]), (&json!(id), &json!("heir")));
    assert!(task["fence"].as_u64() > fence.as_u64(), "{task}");
    let late = json!({"task_id": id, "status": "completed", "fence": fence});
    let mut ghost = Server::named(&place.store(), "ghost");
    for server in [&mut ghost, &mut heir] {
        let refusal = server.call("task_update", &late).unwrap_err();
        assert_eq!((&refusal["code"], &refusal["reason"]), (&json!("conflict"), &json!("lease_lost")), "{refusal}");
    }
    (back, place)
}

#[test]
fn a_dead_holders_task_comes_back_as_its_lease_ends() {
    let (back, _place) = die_and_inherit(Some(2));
    assert!((Duration::from_secs(1)..Duration::from_secs(5)).contains(&back), "{back:?}");
}

#[test]
fn without_a_lease_it_comes_back_when_the_heartbeat_is_missed() {
    let (back, _place) = die_and_inherit(None);
    let expiry = Duration::from_millis(limits::SESSION_EXPIRY_MS.unsigned_abs());
    assert!(back > expiry / 2 && back < expiry + Duration::from_secs(5), "{back:?}");
}

#[test]
fn a_new_holder_of_a_dead_ones_name_cannot_write_with_its_fence() {
    let place = Place::new();
    let id = plan(&place, 1)[0];
    let mut first = Server::named(&place.store(), "amp");
    let fence = first.ok("task_claim", json!({"task_id": id, "lease_seconds": 1}))["task"]["fence"].clone();
    drop(first);
    let mut second = Server::named(&place.store(), "amp");
    let again = second.ok("task_next", json!({"channel": LIST, "wait_seconds": 10}))["task"].clone();
    assert_eq!(again["id"], json!(id));
    let late = json!({"task_id": id, "status": "completed", "fence": fence});
    assert_eq!(second.call("task_update", &late).unwrap_err()["reason"], "lease_lost");
    let now = json!({"task_id": id, "status": "completed", "fence": again["fence"]});
    assert_eq!(second.ok("task_update", now)["task"]["status"], "completed");
}
