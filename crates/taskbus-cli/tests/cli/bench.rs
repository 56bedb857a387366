//! The bench, in short: that it measures and in which form; not what.

use serde_json::{Value, json};

use crate::common::Place;

/// Measures a part in short; the report, after a look at its form.
fn measure(part: &str) -> Value {
    let place = Place::new();
    let dir = place.path("work");
    let report = place.ok(&["bench", "--quick", "--part", part, "--dir", dir.to_str().unwrap()]);
    assert!(report["machine"]["cpus"].as_u64().unwrap() > 0 && report["machine"]["sqlite"].is_string(), "{report}");
    assert!(["debug", "release"].contains(&report["machine"]["build"].as_str().unwrap()), "{report}");
    assert!(!report["bars"].as_array().unwrap().is_empty(), "{report}");
    report["bars"].as_array().unwrap().iter().for_each(check_bar);
    for figure in report["figures"].as_array().unwrap() {
        assert!(figure["value"].as_f64().unwrap() >= 0.0 && figure["unit"].is_string(), "{figure}");
        assert!(figure.get("target").is_none(), "{figure}");
    }
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "nothing is left behind");
    report
}

fn check_bar(bar: &Value) {
    let (value, target) = (bar["value"].as_f64().unwrap(), bar["target"].as_f64().unwrap());
    let met = match bar["bound"].as_str().unwrap() {
        "at_most" => value <= target,
        "at_least" => value >= target,
        other => panic!("{other}: {bar}"),
    };
    assert!(value >= 0.0 && bar["met"] == json!(met), "{bar}");
    assert!(["x", "ms", "bytes", "percent", "count"].contains(&bar["unit"].as_str().unwrap()), "{bar}");
}

fn names(report: &Value, of: &str) -> Vec<String> {
    report[of].as_array().unwrap().iter().map(|bar| bar["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn calls_on_lists_are_measured_at_each_size() {
    let report = measure("lists");
    let raw = &report["raw"][0];
    assert!(raw["durable_commit_us"].as_f64().unwrap() > 0.0 && raw["commit_us"].as_f64().unwrap() > 0.0, "{raw}");
    let size = raw["tasks"].as_u64().unwrap() / 1000;
    let bars = names(&report, "bars");
    for call in ["create", "claim", "claim_keyed", "next", "next_keyed", "complete", "complete_fan_out_10"] {
        for name in [format!("{call}_{size}k"), format!("{call}_relaxed_{size}k")] {
            assert!(bars.contains(&name), "{name}: {bars:?}");
        }
    }
    for call in ["add_dependency", "add_dependency_relaxed", "page", "ready_page", "reclaim_scan"] {
        assert!(bars.contains(&format!("{call}_{size}k")), "{call}: {bars:?}");
    }
    let figures = names(&report, "figures");
    for call in ["reclaim_read", "tick", "search", "open", "receive"] {
        assert!(figures.contains(&format!("{call}_{size}k")), "{call}: {figures:?}");
    }
}

#[test]
fn what_a_large_graph_makes_dear_is_measured() {
    let bars = names(&measure("graph"), "bars");
    assert!(bars[0].starts_with("add_dependency_worst_") && bars[1] == "complete_fan_out_1000", "{bars:?}");
}

#[test]
fn processes_that_drain_a_list_are_measured() {
    let bars = names(&measure("drain"), "bars");
    let expected = ["drain_apart_relaxed", "drain_batches_of_8_relaxed", "drain_apart", "drain_batches_of_8"];
    assert_eq!(bars, expected);
}

#[test]
fn processes_that_write_until_it_is_on_disk_are_measured() {
    assert_eq!(names(&measure("durable"), "bars"), ["durable_8_to_full", "durable_8_to_fdatasync"]);
}

#[test]
fn crowds_that_write_are_measured() {
    let bars = names(&measure("crowd"), "bars");
    let of = |writers: usize| ["share", "locked", "worst_wait"].map(|what| format!("crowd_{writers}_{what}"));
    assert_eq!(bars, [of(8), of(64)].concat());
}

#[test]
fn wakes_and_the_quiet_between_them_are_measured() {
    let bars = names(&measure("wake"), "bars");
    assert_eq!(bars, ["wake_1_to_poll", "wake_1_p99", "wake_32_to_poll", "wake_32_p99", "idle_cpu"]);
}

#[test]
fn lengths_of_rank_keys_are_measured_and_met() {
    let report = measure("rank");
    assert_eq!(names(&report, "bars"), ["rank_after_1m_appends", "rank_after_100k_at_one_spot", "rank_of_any"]);
    assert!(report["bars"].as_array().unwrap().iter().all(|bar| bar["met"] == true), "{report}");
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
