//! The words of the core as every surface reads and writes them, and what each policy of a list allows.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use taskbus_core::bus::channel::ChannelKind;
use taskbus_core::bus::query::Mode;
use taskbus_core::bus::retain::Step;
use taskbus_core::change::Kind;
use taskbus_core::command::Patch;
use taskbus_core::document;
use taskbus_core::id::TaskId;
use taskbus_core::policy::Policy;
use taskbus_core::task::{Stamp, Status, Task};
use taskbus_core::time::Timestamp;

#[test]
fn each_word_is_read_back() {
    assert_eq!(Status::ALL.map(Status::as_str), ["pending", "in_progress", "completed"]);
    assert_eq!(Status::ALL.map(|status| Status::from_word(status.as_str())), Status::ALL.map(Some));
    assert_eq!(ChannelKind::ALL.map(ChannelKind::as_str), ["ordinary", "memory"]);
    assert_eq!(ChannelKind::ALL.map(|kind| ChannelKind::from_word(kind.as_str())), ChannelKind::ALL.map(Some));
    assert_eq!(Mode::ALL.map(Mode::as_str), ["text", "semantic", "both"]);
    assert_eq!(Mode::ALL.map(|mode| Mode::from_word(mode.as_str())), Mode::ALL.map(Some));
    assert_eq!((Status::from_word("Pending"), ChannelKind::from_word(""), Mode::from_word("all")), (None, None, None));
}

#[test]
fn each_kind_of_revision_and_each_step_has_its_word() {
    let kinds = ["", "", "reclaimed", "forced", "deleted", "restored", "reranked"];
    assert_eq!(Kind::ALL.map(Kind::as_str), kinds);
    let steps: Vec<_> = Step::ORDER.iter().map(|step| step.as_str()).collect();
    let words = [
        "sessions",
        "abandoned tasks",
        "receipts",
        "age",
        "tombstones",
        "empty channels",
        "task lists",
        "memories",
        "capacity",
        "free space",
        "texts",
        "embeddings",
    ];
    assert_eq!(steps, words);
    let of_lists: Vec<_> = Step::ORDER.iter().filter(|step| step.is_of_lists()).map(|step| step.as_str()).collect();
    assert_eq!(of_lists, ["abandoned tasks", "receipts"]);
}

#[test]
fn each_policy_allows_its_own() {
    let of = |policy: Policy| {
        (policy.guards_owners(), policy.blocked_may_start(), policy.keeps_deleted(), policy.may_restart_completed())
    };
    assert_eq!(of(Policy::Strict), (true, false, false, false));
    assert_eq!(of(Policy::Claude), (false, true, false, true));
    assert_eq!(of(Policy::Kin), (false, true, true, true));
    let stale = [Policy::Strict, Policy::Claude, Policy::Kin].map(Policy::stale_after_ms);
    assert_eq!(stale, [None, None, Some(5 * 60 * 1000)]);
}

fn task(fields: &Value) -> Task {
    let mut all = json!({"subject": "a", "status": "pending", "rank": "V", "created_at": 1});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let stamp = Stamp { at: Timestamp::from_millis(1), by: None };
    document::decode(TaskId::Number(1), 1, stamp, &all.to_string()).unwrap()
}

#[test]
fn a_task_has_details_when_there_is_more_than_a_summary_shows() {
    let more = [
        json!({"description": "b"}),
        json!({"metadata": {"c": 1}}),
        json!({"blocked_by": [2]}),
        json!({"result": "d"}),
    ];
    assert!(more.iter().all(|fields| task(fields).has_details()));
    let none = [json!({}), json!({"labels": ["a"]}), json!({"parent": 2}), json!({"not_before": 5})];
    assert!(none.iter().all(|fields| !task(fields).has_details()));
}

#[test]
fn a_delete_says_what_it_may_not_be_combined_with() {
    assert_eq!(Patch::delete().other_than_delete(), Vec::<&str>::new());
    let release = Patch { delete: true, ..Patch::release() };
    assert_eq!(release.other_than_delete(), ["status", "owner", "leased_until"]);
}
