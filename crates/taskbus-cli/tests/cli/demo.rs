//! The demo, as a user starts it.

use serde_json::{Value, json};

use crate::common::Place;

#[track_caller]
fn check(place: &Place, args: &[&str]) -> Value {
    let ran = place.run(&[&["--json", "demo"], args].concat());
    let report = ran.value();
    assert_eq!((ran.code, &report["ok"]), (0, &json!(true)), "{report}");
    for check in report["checks"].as_array().unwrap() {
        assert_eq!(check["held"], true, "{report}");
    }
    report
}

#[test]
fn a_worker_dies_and_nothing_is_lost() {
    let place = Place::new();
    let store = place.store();
    let report = check(&place, &["--store", store.to_str().unwrap()]);
    assert!(report["tasks"].as_u64().unwrap() > 50 && report["done"] == report["tasks"], "{report}");
    assert_eq!((&report["killed"], &report["reclaims"], &report["claims_refused"]), (&json!(1), &json!(1), &json!(3)));
    assert_eq!(report["workers"].as_array().unwrap().len(), 4);
    assert_eq!(place.ok(&["list", "--list", "demo", "--status", "completed"])["total"], report["tasks"]);
    assert_eq!(place.ok(&["doctor"])["ok"], true);
    let again = check(&place, &["--store", store.to_str().unwrap(), "--workers", "2", "--tasks", "5", "--kill", "0"]);
    assert_eq!((&again["channel"], &again["done"], &again["reclaims"]), (&json!("tasks/demo-2"), &json!(5), &json!(0)));
}

#[test]
fn one_worker_and_one_task_are_enough() {
    let place = Place::new();
    let report = check(&place, &["--store", place.store().to_str().unwrap(), "--workers", "1", "--tasks", "1"]);
    assert_eq!((&report["done"], &report["killed"], &report["claims_refused"]), (&json!(1), &json!(0), &json!(0)));
}

#[test]
fn several_may_die() {
    let place = Place::new();
    let report =
        check(&place, &["--store", place.store().to_str().unwrap(), "--workers", "6", "--kill", "3", "--tasks", "100"]);
    assert_eq!((&report["done"], &report["killed"], &report["reclaims"]), (&json!(100), &json!(3), &json!(3)));
}

#[test]
fn the_end_is_a_table() {
    let place = Place::new();
    let ran = place.run(&["demo", "--store", place.store().to_str().unwrap(), "--workers", "2", "--tasks", "8"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in ["WORKER", "worker-1", "killed with #", "✓", "order respected", "all of it held"] {
        assert!(ran.out.contains(part), "{part}: {ran:?}");
    }
    assert!(ran.err.contains("came back") && ran.err.contains("lease_lost"), "{ran:?}");
}
