//! Each refusal as a caller gets it: its code, whether the same call may pass later, what it says, and its facts.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::refusal::{Conflict, Inspection, Invalid, Missing, NotRegistered, Refusal};
use taskbus_core::text::TextError;
use taskbus_core::time::Timestamp;

fn id(number: u64) -> TaskId {
    TaskId::Number(number)
}

fn who(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn channel(name: &str) -> ChannelName {
    ChannelName::new(name).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[track_caller]
fn told(refusal: impl Into<Refusal>, code: &str, words: &str, facts: Value) {
    let (refusal, Value::Object(facts)) = (refusal.into(), facts) else { panic!("facts are an object") };
    assert_eq!(refusal.code(), code);
    assert_eq!(refusal.facts(), facts, "{refusal}");
    assert!(refusal.to_string().contains(words), "{refusal}");
    let passes_later =
        matches!(refusal, Refusal::RateLimited { .. } | Refusal::Inspection(Inspection::Unavailable { .. }));
    assert_eq!(refusal.retryable(), passes_later, "{refusal}");
}

#[test]
fn conflicts_name_what_is_in_the_way() {
    let conflict = |conflict: Conflict, words, facts| told(conflict, "conflict", words, facts);
    let (zed, seven) = (|| who("zed"), || id(7));
    let held = Conflict::Held { id: seven(), owner: zed(), until: None };
    conflict(held, "task 7 is held by zed; take", json!({"task_id": 7, "owner": "zed", "reason": "held"}));
    let leased = Conflict::Held { id: seven(), owner: zed(), until: Some(at(5)) };
    let facts = json!({"task_id": 7, "owner": "zed", "leased_until": 5, "reason": "held"});
    conflict(leased, "held by zed until 1970-01-01T00:00:00.005Z;", facts);
    let assigned = Conflict::Assigned { id: seven(), owner: zed() };
    conflict(assigned, "belongs to zed", json!({"task_id": 7, "owner": "zed", "reason": "assigned"}));
    let lost = Conflict::LeaseLost { id: seven(), sent: 1, current: 2, owner: Some(zed()) };
    let facts = json!({"task_id": 7, "fence": 2, "owner": "zed", "reason": "lease_lost"});
    conflict(lost, "since fence 1 (it is 2 now)", facts);
    let revision = Conflict::Revision { id: seven(), sent: 1, current: 2 };
    conflict(revision, "is at revision 2, not 1", json!({"task_id": 7, "revision": 2, "reason": "revision"}));
    let blocked = Conflict::Blocked { id: seven(), blockers: vec![id(1), id(2)] };
    conflict(blocked, "blocked by 1, 2;", json!({"task_id": 7, "open_blockers": [1, 2], "reason": "blocked"}));
    let deferred = Conflict::Deferred { id: seven(), until: at(5) };
    conflict(deferred, "deferred until 1970", json!({"task_id": 7, "not_before": 5, "reason": "deferred"}));
    let children = Conflict::Children { id: seven(), children: vec![id(8)] };
    conflict(children, "has the children 8;", json!({"task_id": 7, "children": [8], "reason": "children"}));
    let cycle = Conflict::RestoreCycle { path: vec![id(7), id(8), id(7)] };
    conflict(cycle, "cycle 7 -> 8 -> 7;", json!({"cycle": [7, 8, 7], "reason": "cycle"}));
    let reused = Conflict::KeyReused { key: "k".to_owned() };
    conflict(reused, "\"k\" was used", json!({"idempotency_key": "k", "reason": "key_reused"}));
    let list = Conflict::ListExists { name: ListName::new("tasks/a").unwrap() };
    conflict(list, "tasks/a exists", json!({"channel": "tasks/a", "reason": "exists"}));
    let there = Conflict::ChannelExists { name: channel("a"), kind: ChannelKind::Memory };
    conflict(there, "of kind memory", json!({"channel": "a", "kind": "memory", "reason": "exists"}));
    let read = Conflict::Subscribed { name: channel("a"), subscribers: vec![zed(), who("amp")] };
    let facts = json!({"channel": "a", "subscribers": ["zed", "amp"], "reason": "subscribed"});
    conflict(read, "read by zed, amp;", facts);
    conflict(Conflict::NameHeld { name: zed() }, "zed is a running", json!({"as": "zed", "reason": "name_held"}));
}

#[test]
fn what_is_missing_is_named() {
    let missing = |missing: Missing, words, facts| told(missing, "not_found", words, facts);
    missing(Missing::Task { id: id(7) }, "no task 7", json!({"task_id": 7}));
    missing(Missing::Tombstone { id: id(7) }, "no deleted task 7", json!({"task_id": 7}));
    missing(Missing::List { name: ListName::new("tasks/a").unwrap() }, "tasks/a", json!({"channel": "tasks/a"}));
    missing(Missing::Channel { name: channel("a") }, "no channel a", json!({"channel": "a"}));
    let inbox = Missing::Inbox { name: channel("a"), owner: who("zed") };
    missing(inbox, "zed never registered", json!({"channel": "a"}));
    missing(Missing::Message { field: "reply_to", seq: 3 }, "message 3", json!({"field": "reply_to", "seq": 3}));
    missing(Missing::Memory { id: 3 }, "no memory 3", json!({"id": 3}));
    missing(Missing::Subscription { who: who("zed") }, "zed is subscribed to none", json!({"as": "zed"}));
    missing(Missing::Owner { name: who("zed") }, "zed never", json!({"field": "owner", "owner": "zed"}));
}

#[test]
fn bad_requests_name_the_field() {
    let invalid = |invalid: Invalid, words, facts| told(invalid, "validation", words, facts);
    let text = Invalid::Text { field: "subject", error: TextError::Empty };
    invalid(text, "subject ", json!({"field": "subject"}));
    let many = Invalid::TooMany { field: "labels", max: 10, actual: 11 };
    invalid(many, "labels has 11 items; at most 10", json!({"field": "labels", "max": 10}));
    let range = Invalid::OutOfRange { field: "count", given: 0, min: 1, max: 16 };
    invalid(range, "count is 0; it must be from 1 to 16", json!({"field": "count", "min": 1, "max": 16}));
    let metadata = Invalid::Metadata { path: "a.0".to_owned(), problem: "is wrong" };
    invalid(metadata, "metadata.a.0 is wrong", json!({"field": "metadata.a.0"}));
    invalid(Invalid::BeforeAndAfter, "exclude", json!({"field": "before"}));
    let combined = Invalid::DeleteCombined { fields: vec!["owner", "note"] };
    invalid(combined, "owner, note", json!({"field": "delete", "fields": ["owner", "note"]}));
    let on_a_task = json!({"field": "parent", "task_id": 7});
    invalid(Invalid::Itself { field: "parent", id: id(7) }, "7", on_a_task.clone());
    invalid(Invalid::NotLive { field: "parent", id: id(7) }, "7", on_a_task.clone());
    invalid(Invalid::NotASibling { field: "parent", id: id(7) }, "7", on_a_task);
    let cycle = Invalid::Cycle { field: "parent", path: vec![id(1), id(2), id(1)] };
    invalid(cycle, "1 -> 2 -> 1", json!({"field": "parent", "cycle": [1, 2, 1]}));
    let deep = Invalid::TooDeep { parent: id(7), depth: 1001, max: 1000 };
    invalid(deep, "1001", json!({"field": "parent", "task_id": 7, "depth": 1001, "max": 1000}));
    invalid(Invalid::ReopenFirst { id: id(7) }, "7", json!({"field": "status", "task_id": 7}));
    invalid(Invalid::OwnerMissing { id: id(7) }, "7", json!({"field": "owner", "task_id": 7}));
    invalid(Invalid::LeaseInPast { given: 4, now: 5 }, "4", json!({"field": "leased_until", "now": 5}));
    invalid(Invalid::LeaseInSeconds { given: 4 }, "4", json!({"field": "leased_until"}));
    invalid(Invalid::TooLarge { what: "the task", actual: 9, max: 8 }, "the task", json!({"max": 8}));
    invalid(Invalid::PlanKeyTwice { key: "a".to_owned() }, "a", json!({"field": "key", "key": "a"}));
    let reference = Invalid::PlanReference { field: "parent", reference: "b".to_owned() };
    invalid(reference, "b", json!({"field": "parent", "reference": "b"}));
    let ambiguous = Invalid::PlanAmbiguous { field: "parent", reference: "7".to_owned(), id: id(7) };
    invalid(ambiguous, "7", json!({"field": "parent", "candidates": ["7", 7]}));
    let plan = Invalid::PlanCycle { field: "parent", path: vec!["a".to_owned(), "a".to_owned()] };
    invalid(plan, "a", json!({"field": "parent", "cycle": ["a", "a"]}));
    let on_a_channel = json!({"field": "channel", "channel": "a"});
    invalid(Invalid::IsTaskList { channel: channel("a"), verb: "posted to" }, "posted to", on_a_channel.clone());
    invalid(Invalid::IsInbox { channel: channel("a"), verb: "deleted" }, "deleted", on_a_channel.clone());
    invalid(Invalid::IsDefault { channel: channel("a") }, "a", on_a_channel);
    let kind = Invalid::Kind { channel: channel("a"), implied: Some(ChannelKind::Memory) };
    invalid(kind, "a", json!({"field": "kind", "channel": "a", "kind": "memory"}));
    let either = Invalid::EitherOr { one: "id", other: "key" };
    invalid(either, "id", json!({"field": "id", "fields": ["id", "key"]}));
    invalid(Invalid::WaitTooLong { given: 51, max: 50 }, "51", json!({"field": "wait_seconds", "max": 50}));
    invalid(Invalid::NoQuery, "query", json!({"field": "query"}));
    let off = Invalid::SwitchedOff { what: "search", key: "search_key" };
    invalid(off, "search_key", json!({"setting": "search_key"}));
    invalid(Invalid::Cursor, "cursor", json!({"field": "cursor"}));
}

#[test]
fn the_others_say_when_to_try_again() {
    let never = Refusal::NotRegistered(NotRegistered::Never { name: who("zed") });
    told(never, "not_registered", "call register first", json!({"as": "zed"}));
    let taken = Refusal::NotRegistered(NotRegistered::TakenOver { name: who("zed") });
    told(taken, "not_registered", "another process", json!({"as": "zed"}));
    let rate = Refusal::RateLimited { who: who("zed"), limit: "100 writes a second".to_owned(), wait_ms: 7 };
    told(rate, "rate_limited", "wait 7 ms", json!({"wait_ms": 7}));
    let full = Refusal::CapacityExhausted { used_mib: 9, budget_mib: 8 };
    told(full, "capacity_exhausted", "9 MiB of 8", json!({"used_mib": 9, "budget_mib": 8}));
    told(Refusal::Polling { waits: 3 }, "polling", "3 waited calls", json!({"waits": 3}));
    let rejected = Refusal::Inspection(Inspection::Rejected { reason: "no".to_owned() });
    told(rejected, "inspection_rejected", "refused this: no", json!({"reason": "no"}));
    let away = Refusal::Inspection(Inspection::Unavailable { reason: "no".to_owned() });
    told(away, "inspection_unavailable", "no verdict: no", json!({"reason": "no"}));
}

/// However many are in the way, an answer stays short and says that there are more.
#[test]
fn a_long_list_of_ids_is_cut() {
    let blocked = |count| Conflict::Blocked { id: id(1), blockers: (1..=count).map(id).collect() };
    let shown = |count| Refusal::from(blocked(count)).facts()["open_blockers"].as_array().unwrap().len();
    assert_eq!((shown(63), shown(64), shown(65)), (63, 64, 64));
    assert!(blocked(65).to_string().contains(", 64, and more;"), "{}", blocked(65));
    assert!(!blocked(64).to_string().contains("and more"), "{}", blocked(64));
    let subscribers = (0..65).map(|number| who(&format!("zed{number}"))).collect();
    let read = Refusal::from(Conflict::Subscribed { name: channel("a"), subscribers });
    assert_eq!(read.facts()["subscribers"].as_array().unwrap().len(), 64);
    assert!(read.to_string().contains("zed63;") && !read.to_string().contains("zed64"), "{read}");
}
