//! The torture, as a user starts it, in short.

use serde_json::{Value, json};

use crate::common::Place;

#[test]
fn ten_seconds_hold_and_say_what_they_saw() {
    let place = Place::new();
    let report = place.run(&["--json", "torture", "--seconds", "10", "--seed", "11"]).value();
    assert_eq!(
        (&report["ok"], &report["seed"], &report["evidence"]),
        (&json!(true), &json!(11), &Value::Null),
        "{report}"
    );
    assert!(report["replay"].as_str().unwrap().starts_with("taskbus torture --seconds 10 --seed 11"), "{report}");
    let phases = report["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["storm", "race and load", "power", "rude world", "verdict"]);
    let counted = |phase: usize, what: &str| phases[phase]["counts"][what].as_u64().unwrap_or(0);
    for what in ["killed", "frozen past the lease", "acknowledged", "recovered", "wrong calls refused"] {
        assert!(counted(0, what) > 0, "{what}: {report}");
    }
    let (races, refused) = (counted(1, "races with one winner"), counted(1, "claims refused"));
    assert!(races > 0 && refused == 63 * races && counted(1, "rings left open") > 0, "{report}");
    assert!(counted(2, "images with a torn tail that hold all") > 0 && counted(3, "files that may not grow") > 0);
    assert_eq!(counted(4, "forgeries found out"), 2);
    assert_eq!(report["elsewhere"].as_array().unwrap().len(), 2, "{report}");
    let left = |name: &str| name.starts_with("taskbus-torture-");
    let there = std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(there.filter(|name| left(name.to_str().unwrap())).count(), 0, "nothing is left behind");
}

#[test]
fn what_cannot_be_tested_is_usage() {
    let place = Place::new();
    for args in [
        &["torture", "--store", "memory:"][..],
        &["torture", "--seconds", "3"],
        &["torture", "--seconds", "60", "--minutes", "2"],
    ] {
        assert_eq!(place.run(args).code, 2, "{args:?}");
    }
}
