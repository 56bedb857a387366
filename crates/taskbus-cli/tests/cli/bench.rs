//! The bench, in short: that it measures and in which form; not what.

use serde_json::json;

use crate::common::Place;

#[test]
fn bars_have_a_name_a_value_a_target_and_a_verdict() {
    let place = Place::new();
    let dir = place.path("work");
    let report = place.ok(&["bench", "--size", "1000", "--dir", dir.to_str().unwrap()]);
    assert!(report["machine"]["cpus"].as_u64().unwrap() > 0 && report["machine"]["sqlite"].is_string(), "{report}");
    let bars = report["bars"].as_array().unwrap();
    let names: Vec<&str> = bars.iter().map(|bar| bar["name"].as_str().unwrap()).collect();
    for name in ["create_1k", "claim_1k", "next_1k", "complete_1k", "page_1k", "ready_page_1k"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for bar in bars {
        let (value, target) = (bar["value"].as_f64().unwrap(), bar["target"].as_f64().unwrap());
        assert!(value > 0.0 && bar["unit"] == "x" && bar["met"] == json!(value <= target), "{bar}");
    }
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "nothing is left behind");
}

/// What `bench/instructions` relies on: each call is there, and a run leaves nothing behind.
#[test]
fn a_counted_call_is_made_and_measures_nothing() {
    let place = Place::new();
    let dir = place.path("work");
    for call in ["create", "next", "complete", "page"] {
        let report = place.ok(&["bench", "--count", call, "--times", "60", "--dir", dir.to_str().unwrap()]);
        assert_eq!((&report["call"], &report["times"]), (&json!(call), &json!(60)), "{report}");
    }
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "nothing is left behind");
}
