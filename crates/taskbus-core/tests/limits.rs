//! Every limit of the core, at the limit and one past it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use taskbus_core::board::Board;
use taskbus_core::command::{Command, Draft, LeaseAsk, Next, Patch, Planned};
use taskbus_core::decide::{self, Facts, Outcome};
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::limits;
use taskbus_core::name::{Identity, Key, Label, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::session::display_name;
use taskbus_core::text::{Body, Subject, TextError};
use taskbus_core::time::Timestamp;

const NOW: i64 = 1_796_054_400_000;

/// Passes `max` and refuses `max + 1`.
#[track_caller]
fn check(max: usize, passes: impl Fn(usize) -> bool) {
    assert!(passes(max), "{max} must pass");
    assert!(!passes(max + 1), "{} must be refused", max + 1);
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn me() -> Identity {
    Identity::new("me").unwrap()
}

/// A list with one live worker, who asks.
fn list() -> (Board, Facts) {
    let mut board = Board::new(ListRules::default());
    board.set_alive(me(), Timestamp::from_millis(i64::MAX));
    (board, Facts { now: Timestamp::from_millis(NOW), caller: Some(me()) })
}

fn draft() -> Draft {
    Draft::new(Subject::new("a").unwrap())
}

fn planned(draft: Draft) -> Planned {
    Planned { key: None, draft, parent: None, blocked_by: Vec::new(), done: false }
}

fn runs(command: &Command) -> bool {
    let (mut board, facts) = list();
    decide::run(command, &mut board, &facts).is_ok()
}

fn creates(draft: Draft) -> bool {
    runs(&Command::Create(Box::new(draft)))
}

fn plans(tasks: Vec<Planned>) -> bool {
    runs(&Command::Plan(tasks))
}

/// A list of so many tasks, and a change of the first.
fn changes(tasks: usize, patch: impl Fn(&[TaskId]) -> Patch) -> bool {
    let (mut board, facts) = list();
    let plan = Command::Plan(vec![planned(draft()); tasks]);
    let Ok(Outcome::Planned(made)) = decide::run(&plan, &mut board, &facts) else { panic!("{tasks} tasks") };
    let ids: Vec<TaskId> = made.into_iter().map(|(_, id)| id).collect();
    decide::run(&Command::Update(ids[0].clone(), Box::new(patch(&ids))), &mut board, &facts).is_ok()
}

#[test]
fn texts_and_names() {
    check(limits::SUBJECT_BYTES_MAX, |n| Subject::new(text(n)).is_ok());
    check(limits::IDENTITY_BYTES_MAX, |n| Identity::new(text(n)).is_ok());
    check(limits::LIST_NAME_BYTES_MAX, |n| ListName::from_short(&text(n)).is_ok());
    check(limits::KEY_BYTES_MAX, |n| Key::new(text(n)).is_ok());
    check(limits::LABEL_CHARS_MAX, |n| Label::new(text(n)).is_ok());
    check(limits::PATH_BYTES_MAX, |n| PathGlob::new(text(n)).is_ok());
}

#[test]
fn a_parent_counts_alone_and_in_the_name_that_it_heads() {
    let too_long = |parent: usize| match display_name("a", Some(&text(parent)), 1) {
        Err(TextError::TooLong { max, .. }) => max,
        other => panic!("{other:?}"),
    };
    assert_eq!(too_long(limits::PARENT_BYTES_MAX), limits::IDENTITY_BYTES_MAX);
    assert_eq!(too_long(limits::PARENT_BYTES_MAX + 1), limits::PARENT_BYTES_MAX);
}

#[test]
fn the_size_of_a_task() {
    let whole = limits::MESSAGE_KIB_MAX * 1024;
    check(whole, |n| Body::new(text(n)).is_ok());
    let described = |bytes| creates(Draft { description: Some(Body::new(text(bytes)).unwrap()), ..draft() });
    assert!(described(whole - 1024) && !described(whole), "the document counts, not only its description");
}

#[test]
fn numbers_of_items() {
    let labels = |n: usize| (0..n).map(|at| Label::new(format!("l{at}")).unwrap()).collect();
    check(limits::LABELS_MAX, |n| creates(Draft { labels: labels(n), ..draft() }));
    check(limits::LABELS_MAX, |n| runs(&Command::Next(Box::new(Next { labels: labels(n), ..Next::default() }))));
    let paths = |n: usize| (0..n).map(|at| PathGlob::new(format!("p{at}")).unwrap()).collect();
    check(limits::PATHS_MAX, |n| creates(Draft { paths: paths(n), ..draft() }));
    check(limits::NEXT_COUNT_MAX, |count| runs(&Command::Next(Box::new(Next { count, ..Next::default() }))));
    check(limits::PLAN_TASKS_MAX, |n| plans(vec![planned(draft()); n]));
    check(limits::BLOCKERS_MAX, |n| {
        changes(n + 1, |ids| Patch { add_blocked_by: ids[1..].to_vec(), ..Patch::default() })
    });
}

#[test]
fn keys_of_a_plan() {
    check(limits::PLAN_KEY_BYTES_MAX, |n| plans(vec![Planned { key: Some(text(n)), ..planned(draft()) }]));
}

#[test]
fn metadata() {
    let with = |key: String, value: Value| creates(Draft { metadata: BTreeMap::from([(key, value)]), ..draft() });
    check(limits::METADATA_KEY_BYTES_MAX, |n| with(text(n), json!("v")));
    let nested = |levels: usize| {
        (1..levels).fold(json!("v"), |inner, _| Value::Object(Map::from_iter([("k".to_owned(), inner)])))
    };
    check(limits::METADATA_DEPTH_MAX, |n| with("k".to_owned(), nested(n)));
}

#[test]
fn the_depth_of_a_tree() {
    let (mut board, facts) = list();
    let mut parent = None;
    for level in 1..=limits::TREE_DEPTH_MAX {
        let command = Command::Create(Box::new(Draft { parent, ..draft() }));
        let Ok(Outcome::Created(task)) = decide::run(&command, &mut board, &facts) else { panic!("level {level}") };
        parent = Some(task.id);
    }
    let deeper = Command::Create(Box::new(Draft { parent, ..draft() }));
    assert!(decide::run(&deeper, &mut board, &facts).is_err());
}

#[test]
fn leases_and_times() {
    let claim = |lease| changes(1, |_| Patch::claim(me(), Some(lease)));
    check(limits::LEASE_SECONDS_MAX as usize, |n| claim(LeaseAsk::Seconds(n as u64)));
    assert!(!claim(LeaseAsk::Seconds(0)));
    let until = |millis| claim(LeaseAsk::Until(Timestamp::from_millis(millis)));
    assert!(until(NOW + 1) && !until(NOW), "a lease ends in the future");
    check(limits::TIME_MS_MAX as usize, |n| until(n as i64));
    let deferred = |millis| creates(Draft { not_before: Some(Timestamp::from_millis(millis)), ..draft() });
    assert!(deferred(limits::LEASE_MS_MIN) && !deferred(limits::LEASE_MS_MIN - 1), "that would be in seconds");
}

/// What users were told: a limit that changes is a change of the interface.
#[test]
fn the_figures_are_those_that_are_documented() {
    let bytes = [
        limits::NOTE_BYTES_MAX,
        limits::SIDECAR_BYTES_MAX,
        limits::REQUEST_BYTES_MAX,
        limits::RESULT_BYTES_DEFAULT,
        limits::TASK_FILE_BYTES_MAX,
        limits::QUERY_BYTES_MAX,
        limits::RESULT_BYTES_MAX,
        limits::INSPECTION_BYTES_MAX,
    ];
    let kib = [16, 16 * 1024, 1024, 8, 4 * 1024, 4, 4 * 1024, 64];
    assert_eq!(bytes, kib.map(|kib| kib * 1024));
    assert_eq!(limits::LEASE_SECONDS_MAX, 7 * 24 * 60 * 60, "a week");
    let day = 24 * 60 * 60 * 1000;
    assert_eq!(limits::LEASE_MS_MIN, 11_323 * day, "2001 begins");
    assert_eq!(limits::TIME_MS_MAX, 2_932_897 * day - 1, "9999 ends");
}
