//! The tools of Claude Code on shared lists: what they say, who may what, and what one call does together. The other
//! stores are in `tests/mcp/drop_ins.rs`.
#![expect(clippy::needless_pass_by_value, reason = "arguments read better at the calls")]

use std::sync::Arc;

use serde_json::{Value, json};
use taskbus::store::memory::MemoryStore;
use taskbus::store::{ManualClock, Store};
use taskbus_core::limits::RESULT_BYTES_DEFAULT;
use taskbus_core::name::ListName;
use taskbus_core::time::Timestamp;

use crate::mcp::desk::Desk;
use crate::mcp::trial::{Client, many, on};
use crate::wire::error::Failure;

const CLIENT: Client = Client { name: "c", thread: None };

/// An agent of this name, whose project has the list `tasks/t`, in a process of its own.
fn agent(store: &Arc<MemoryStore>, name: &str) -> Desk {
    let list = |name| Ok(ListName::from_short(name).unwrap());
    on(Arc::clone(store) as Arc<dyn Store>, many(list("usual"), list("t")), name)
}

fn alone() -> Desk {
    agent(&Arc::default(), "roo")
}

#[track_caller]
fn says(desk: &Desk, tool: &str, arguments: Value, text: &str) -> Value {
    let (said, facts, is_error) = CLIENT.hear(desk, tool, &arguments);
    assert_eq!((said.as_str(), is_error), (text, false), "{tool} {arguments}: {facts}");
    facts
}

#[track_caller]
fn refuses(desk: &Desk, tool: &str, arguments: Value, code: &str, text: &str) -> Value {
    let (said, facts, is_error) = CLIENT.hear(desk, tool, &arguments);
    assert!(is_error && facts["code"] == code, "{tool} {arguments}: {facts}");
    assert!(said.contains(text), "{said}");
    facts
}

fn create(desk: &Desk, subject: &str) -> String {
    let (_, facts, is_error) = CLIENT.hear(desk, "TaskCreate", &json!({"subject": subject, "description": ""}));
    assert!(!is_error, "{facts}");
    facts["task"]["id"].as_str().unwrap().to_owned()
}

fn get(desk: &Desk, id: &str) -> Value {
    CLIENT.hear(desk, "TaskGet", &json!({"taskId": id})).1["task"].take()
}

#[test]
fn texts_and_facts_are_those_of_claude_code() {
    let desk = alone();
    assert_eq!(says(&desk, "TaskList", json!({}), "No tasks found"), json!({"tasks": []}));
    let made = says(
        &desk,
        "TaskCreate",
        json!({"subject": "Port it", "description": "All of it", "activeForm": "Porting", "metadata": {"pr": [1, {"x": null}]}}),
        "Task #1 created successfully: Port it",
    );
    assert_eq!(made, json!({"task": {"id": "1", "subject": "Port it"}}));
    create(&desk, "Ship it");
    let facts = says(&desk, "TaskUpdate", json!({"taskId": "2", "addBlockedBy": ["1"]}), "Updated task #2 blockedBy");
    assert_eq!(facts, json!({"success": true, "taskId": "2", "updatedFields": ["blockedBy"]}));
    let whole = "Task #1: Port it\nStatus: pending\nActive form: Porting\nDescription: All of it\nBlocks: #2\nMetadata: {\"pr\":[1,{\"x\":null}]}";
    assert_eq!(
        says(&desk, "TaskGet", json!({"taskId": "1"}), whole)["task"],
        json!({"id": "1", "subject": "Port it", "description": "All of it", "status": "pending", "blocks": ["2"],
            "blockedBy": [], "activeForm": "Porting", "metadata": {"pr": [1, {"x": null}]}})
    );
    let started = "Updated task #1 status, owner\nStatus: pending -> in_progress\nOwner: roo";
    assert_eq!(
        says(&desk, "TaskUpdate", json!({"taskId": "1", "status": "in_progress"}), started),
        json!({"success": true, "taskId": "1", "updatedFields": ["status", "owner"],
            "statusChange": {"from": "pending", "to": "in_progress"}, "owner": "roo"})
    );
    let list = "#1 [in_progress] Port it (owner: roo)\n#2 [pending] Ship it [blocked by #1]";
    assert_eq!(
        says(&desk, "TaskList", json!({}), list),
        json!({"tasks": [
            {"id": "1", "subject": "Port it", "status": "in_progress", "owner": "roo", "blockedBy": []},
            {"id": "2", "subject": "Ship it", "status": "pending", "blockedBy": ["1"]},
        ]})
    );
    let done = "Updated task #1 status\nStatus: in_progress -> completed\nFree now: #2";
    let facts = says(&desk, "TaskUpdate", json!({"taskId": "1", "status": "completed"}), done);
    assert_eq!(facts["unblocked"], json!(["2"]));
    let kept = "Task #2: Ship it\nStatus: pending\nBlocked by: #1 (none open)";
    assert_eq!(says(&desk, "TaskGet", json!({"taskId": "2"}), kept)["task"]["blockedBy"], json!(["1"]));
    says(&desk, "TaskList", json!({}), "#1 [completed] Port it (owner: roo)\n#2 [pending] Ship it");
    let gone = "Updated task #1 deleted\nStatus: completed -> deleted";
    let facts = says(&desk, "TaskUpdate", json!({"taskId": "1", "status": "deleted"}), gone);
    assert_eq!(facts["updatedFields"], json!(["deleted"]));
    assert_eq!(says(&desk, "TaskGet", json!({"taskId": "1"}), "Task not found"), json!({"task": null}));
    let facts = refuses(&desk, "TaskUpdate", json!({"taskId": 1, "subject": "x"}), "not_found", "Task not found");
    assert_eq!((&facts["success"], &facts["updatedFields"]), (&json!(false), &json!([])));
    assert_eq!((&facts["error"], &facts["taskId"]), (&json!("Task not found"), &json!("1")));
}

#[test]
fn schemas_are_closed_and_aliases_are_known() {
    let desk = alone();
    create(&desk, "a");
    for (spelling, value) in [("taskId", json!("1")), ("id", json!(1)), ("task_id", json!("#1"))] {
        assert_eq!(CLIENT.hear(&desk, "TaskGet", &json!({spelling: value})).1["task"]["id"], "1");
    }
    let same = json!({"taskId": "1", "id": "1", "active_form": "Doing", "task_id": null});
    says(&desk, "TaskUpdate", same, "Updated task #1 activeForm");
    refuses(&desk, "TaskGet", json!({"taskId": "1", "id": "2"}), "validation", "taskId and id are the same field");
    refuses(&desk, "TaskUpdate", json!({"taskId": "1", "title": "x"}), "validation", "did you mean \"subject\"?");
    refuses(&desk, "TaskUpdate", json!({"status": "completed"}), "validation", "taskId is required");
    refuses(&desk, "TaskCreate", json!({"subject": "no description"}), "validation", "description is required");
    refuses(&desk, "TaskUpdate", json!({"taskId": "1", "status": "done"}), "validation", "pending, in_progress");
    refuses(&desk, "TaskUpdate", json!({"taskId": "1", "metadata": [1]}), "validation", "metadata must be an object");
    refuses(&desk, "TaskList", json!({"status": "pending"}), "validation", "no field \"status\"");
    refuses(&desk, "TaskUpdate", json!({"taskId": "1", "status": "deleted", "subject": "x"}), "validation", "subject");
}

#[test]
fn metadata_is_merged_key_by_key() {
    let desk = alone();
    create(&desk, "a");
    let merge = |metadata: Value| CLIENT.hear(&desk, "TaskUpdate", &json!({"taskId": "1", "metadata": metadata})).1;
    merge(json!({"keep": true, "list": [1, 2.5, "x"], "deep": {"a": {"b": null}}}));
    merge(json!({"list": null, "deep": {"c": 1}, "never": null}));
    assert_eq!(get(&desk, "1")["metadata"], json!({"keep": true, "deep": {"c": 1}}));
    assert_eq!(merge(json!({"keep": true}))["updatedFields"], json!([]));
    let deep = (0..20).fold(json!(1), |inner, _| json!({"x": inner}));
    assert_eq!(merge(json!({"deep": deep}))["code"], "validation");
}

#[test]
fn of_two_who_start_a_task_one_is_told_who_has_it() {
    let store = Arc::default();
    let (roo, amp) = (agent(&store, "roo"), agent(&store, "amp"));
    create(&roo, "a");
    let start = json!({"taskId": "1", "status": "in_progress"});
    says(
        &roo,
        "TaskUpdate",
        start.clone(),
        "Updated task #1 status, owner\nStatus: pending -> in_progress\nOwner: roo",
    );
    let facts =
        refuses(&amp, "TaskUpdate", start.clone(), "conflict", "task 1 is held by roo; take another one (TaskList)");
    assert_eq!((&facts["reason"], &facts["owner"]), (&json!("held"), &json!("roo")));
    for change in [json!({"status": "completed"}), json!({"subject": "x"}), json!({"status": "deleted"})] {
        let mut arguments = json!({"taskId": "1"});
        arguments.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        refuses(&amp, "TaskUpdate", arguments, "conflict", "held by roo");
    }
    says(&roo, "TaskUpdate", start.clone(), "Task #1 is as asked already: nothing was changed");
    // What roo has completed amp may take up again, in one step.
    says(
        &roo,
        "TaskUpdate",
        json!({"taskId": "1", "status": "completed"}),
        "Updated task #1 status\nStatus: in_progress -> completed",
    );
    let facts =
        says(&amp, "TaskUpdate", start, "Updated task #1 status, owner\nStatus: completed -> in_progress\nOwner: amp");
    assert_eq!(facts["statusChange"], json!({"from": "completed", "to": "in_progress"}));
}

#[test]
fn owners_are_assigned_and_taken_away() {
    let store = Arc::default();
    let (roo, amp) = (agent(&store, "roo"), agent(&store, "amp"));
    create(&roo, "a");
    create(&amp, "b");
    says(&roo, "TaskUpdate", json!({"taskId": "1", "owner": "amp"}), "Updated task #1 owner\nOwner: amp");
    refuses(&roo, "TaskUpdate", json!({"taskId": "1", "status": "in_progress"}), "conflict", "belongs to amp");
    says(
        &amp,
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
        "Updated task #1 status\nStatus: pending -> in_progress",
    );
    let back = "Updated task #1 status, owner\nStatus: in_progress -> pending\nOwner: nobody";
    assert_eq!(says(&amp, "TaskUpdate", json!({"taskId": "1", "status": "pending"}), back)["owner"], "");
    refuses(&roo, "TaskUpdate", json!({"taskId": "1", "owner": "jan"}), "not_found", "jan never registered");
    says(&roo, "TaskUpdate", json!({"taskId": "1", "owner": "amp"}), "Updated task #1 owner\nOwner: amp");
    says(&roo, "TaskUpdate", json!({"taskId": "1", "owner": ""}), "Updated task #1 owner\nOwner: nobody");
}

#[test]
fn a_blocked_task_does_not_start() {
    let desk = alone();
    create(&desk, "a");
    create(&desk, "b");
    says(&desk, "TaskUpdate", json!({"taskId": "1", "addBlocks": ["2"]}), "Updated task #1 blocks");
    assert_eq!(get(&desk, "2")["openBlockers"], json!(["1"]));
    let start = json!({"taskId": "2", "status": "in_progress"});
    let facts = refuses(&desk, "TaskUpdate", start, "conflict", "task 2 is blocked by 1; complete those first");
    assert_eq!(facts["open_blockers"], json!([1]));
}

#[test]
fn a_call_happens_whole_or_not_at_all() {
    let store = Arc::default();
    let (roo, amp) = (agent(&store, "roo"), agent(&store, "amp"));
    for subject in ["a", "b", "held"] {
        create(&roo, subject);
    }
    CLIENT.hear(&amp, "TaskUpdate", &json!({"taskId": "3", "status": "in_progress"}));
    let all = json!({"taskId": "1", "subject": "changed", "status": "in_progress", "addBlocks": ["2", "3"]});
    refuses(&roo, "TaskUpdate", all, "conflict", "task 3 is held by amp");
    let (a, b) = (get(&roo, "1"), get(&roo, "2"));
    assert_eq!((&a["subject"], &a["status"], &b["blockedBy"]), (&json!("a"), &json!("pending"), &json!([])));
    says(&roo, "TaskUpdate", json!({"taskId": "1", "addBlocks": ["2", "2"]}), "Updated task #1 blocks");
    says(
        &roo,
        "TaskUpdate",
        json!({"taskId": "1", "addBlocks": "2"}),
        "Task #1 is as asked already: nothing was changed",
    );
    refuses(
        &roo,
        "TaskUpdate",
        json!({"taskId": "2", "addBlocks": ["1"]}),
        "validation",
        "addBlockedBy would close a cycle",
    );
    refuses(
        &roo,
        "TaskUpdate",
        json!({"taskId": "2", "addBlocks": ["2"]}),
        "validation",
        "cannot name itself in addBlockedBy",
    );
    refuses(
        &roo,
        "TaskUpdate",
        json!({"taskId": "2", "addBlocks": ["9"]}),
        "not_found",
        "there is no task 9; TaskList",
    );
}

#[test]
fn a_dead_holder_keeps_nobody_from_a_task() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_796_054_400_000)));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _));
    let (roo, amp) = (agent(&store, "roo"), agent(&store, "amp"));
    create(&roo, "a");
    let start = json!({"taskId": "1", "status": "in_progress"});
    CLIENT.hear(&roo, "TaskUpdate", &start);
    clock.advance(31_000);
    let facts = CLIENT.hear(&amp, "TaskUpdate", &start).1;
    assert_eq!((&facts["success"], &facts["owner"]), (&json!(true), &json!("amp")), "{facts}");
}

#[test]
fn who_slept_while_somebody_took_its_name_goes_on_under_another() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_796_054_400_000)));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _));
    let (roo, other) = (agent(&store, "roo"), agent(&store, "roo"));
    create(&roo, "a");
    clock.advance(31_000);
    create(&other, "b");
    let facts = CLIENT.hear(&roo, "TaskUpdate", &json!({"taskId": "1", "status": "in_progress"})).1;
    assert_eq!((&facts["success"], &facts["owner"]), (&json!(true), &json!("roo2")), "{facts}");
}

#[test]
fn a_list_is_made_when_something_is_put_on_it() {
    let store = Arc::default();
    let desk = agent(&store, "roo");
    refuses(&desk, "TaskUpdate", json!({"taskId": "1", "status": "completed"}), "not_found", "Task not found");
    says(&desk, "TaskList", json!({}), "No tasks found");
    assert_eq!(desk.engine().unwrap().lists().unwrap(), []);
    create(&desk, "a");
    assert_eq!(desk.engine().unwrap().lists().unwrap()[0].name.as_str(), "tasks/t");
    // A task of another list is not there.
    CLIENT.call(&desk, "create_channel", &json!({"name": "tasks/other"})).unwrap();
    let other = CLIENT.call(&desk, "task_create", &json!({"channel": "tasks/other", "subject": "x"})).unwrap();
    let id = &other.facts["id"];
    says(&desk, "TaskGet", json!({"taskId": id}), "Task not found");
    refuses(&desk, "TaskUpdate", json!({"taskId": id, "subject": "y"}), "not_found", "Task not found");
    let nowhere = || Err(Failure::shape("list", "this is no project"));
    let lost = on(store, many(nowhere(), nowhere()), "amp");
    refuses(&lost, "TaskList", json!({}), "validation", "this is no project");
}

#[test]
fn a_long_list_shows_what_is_open_and_says_what_it_leaves_out() {
    let store = Arc::default();
    let (desk, amp) = (agent(&store, "roo"), agent(&store, "amp"));
    let long = |n: usize| format!("{n:03} {}", "é".repeat(100));
    for n in 0..90 {
        create(&desk, &long(n));
    }
    for n in 1..=60 {
        CLIENT.hear(&amp, "TaskUpdate", &json!({"taskId": n, "status": "completed"}));
    }
    CLIENT.hear(&amp, "TaskUpdate", &json!({"taskId": 90, "status": "in_progress"}));
    let (text, facts, _) = CLIENT.hear(&desk, "TaskList", &json!({}));
    assert!(text.len() <= RESULT_BYTES_DEFAULT && facts.to_string().len() <= RESULT_BYTES_DEFAULT);
    let shown = facts["tasks"].as_array().unwrap();
    let ids: Vec<u64> = shown.iter().map(|task| task["id"].as_str().unwrap().parse().unwrap()).collect();
    assert!(ids.is_sorted() && ids.contains(&90), "{ids:?}");
    let left = 90 - shown.len() as u64;
    assert!(shown.len() > 25 && shown.iter().filter(|task| task["status"] == "completed").count() < 5, "{ids:?}");
    assert_eq!((&facts["truncated"], &facts["total"]), (&json!(true), &json!(90)));
    let told: u64 = facts["leftOut"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(told, left);
    assert!(text.lines().last().unwrap().starts_with(&format!("… and {left} more (")), "{text}");
    assert_eq!(text.lines().count(), shown.len() + 1);
}

#[test]
fn a_task_is_shown_whole_whatever_its_size() {
    let desk = alone();
    let long = "é\"\n".repeat(10_000);
    CLIENT.hear(&desk, "TaskCreate", &json!({"subject": "a", "description": long}));
    let (text, facts, _) = CLIENT.hear(&desk, "TaskGet", &json!({"taskId": "1"}));
    assert_eq!(facts["task"]["description"], long);
    assert!(text.contains(&long));
    refuses(&desk, "TaskCreate", json!({"subject": "x".repeat(257), "description": ""}), "validation", "subject");
}
