//! The conformance suite on every store here, and the suite's own tests: a store that is broken in one way fails in the
//! subjects that this breaks, and in no other.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod broken_bus;
mod broken_rows;
mod broken_store;
mod mutants;
mod places;

use std::process::Command;
use std::sync::Arc;
use taskbus::conformance::suite::run;

use taskbus::conformance::{
    ALL, EngineDriver, OverRows, Report, RowPlace, SHARED, StorePlace, rows, run as run_script, stores,
};
use taskbus::store::small::Small;
use taskbus_core::neighbourhood::ListRules;

use crate::places::{ClaudePlace, MemoryPlace, SidecarPlace, SqlitePlace};

/// Prints how a store did, and fails if it failed.
#[track_caller]
fn held(report: &Report) {
    println!("{report}");
    report.assert_held();
}

#[track_caller]
fn rows_hold<P: RowPlace + 'static>(title: &str, fresh: fn() -> P) {
    held(&run::<dyn RowPlace>(title, rows::CHECKS, &|| Box::new(fresh())));
}

#[track_caller]
fn store_holds<P: StorePlace + 'static>(title: &str, fresh: fn() -> P) {
    held(&run::<dyn StorePlace>(title, stores::CHECKS, &|| Box::new(fresh())));
}

#[test]
fn the_memory_store_holds() {
    store_holds("memory", MemoryPlace::new);
}

#[test]
fn sqlite_holds() {
    store_holds("sqlite", SqlitePlace::new);
}

#[test]
fn the_rows_of_a_sidecar_hold() {
    rows_hold("sidecar, rows", SidecarPlace::kin);
}

#[test]
fn a_sidecar_holds_as_kin_uses_it() {
    store_holds("sidecar", || OverRows(SidecarPlace::kin()));
}

#[test]
fn a_sidecar_holds_under_the_strict_policy() {
    store_holds("sidecar, strict", || OverRows(SidecarPlace::strict()));
}

#[test]
fn the_rows_of_a_claude_directory_hold() {
    rows_hold("claude directory, rows", ClaudePlace::shared);
}

#[test]
fn a_claude_directory_holds_as_it_is_shared() {
    store_holds("claude directory", || OverRows(ClaudePlace::shared()));
}

#[test]
fn a_claude_directory_holds_under_the_strict_policy() {
    store_holds("claude directory, strict", || OverRows(ClaudePlace::strict()));
}

/// Scenario scripts on rows. Without sessions nobody is seen to die; all else is as the scripts say.
#[track_caller]
fn scripts_hold(scripts: &[(&str, &str)], fresh: impl Fn() -> Box<dyn RowPlace>) {
    for (name, text) in scripts {
        let place = fresh();
        let rows = place.open();
        let (list, rules) = (rows.list_name(), ListRules { policy: rows.policy(), max_reclaims: rows.max_reclaims() });
        let store = Arc::new(Small::new(rows).unwrap());
        let mut driver = EngineDriver::on_list(store, place.clock().unwrap(), list, rules);
        let ran = run_script(name, text, &mut driver);
        println!("{name}: {ran}");
        assert_eq!(ran.stopped.is_some(), *name == "sessions", "only this one needs sessions");
        assert!(ran.steps > 3 && ran.fields > 5 && ran.skipped == 0, "{name}: {ran}");
    }
}

#[test]
fn a_sidecar_answers_as_the_scripts_say() {
    scripts_hold(ALL, || Box::new(SidecarPlace::strict()));
}

#[test]
fn a_claude_directory_answers_as_the_scripts_say() {
    scripts_hold(ALL, || Box::new(ClaudePlace::strict()));
}

#[test]
fn files_answer_under_their_own_policies_as_the_script_of_all_says() {
    scripts_hold(&[("shared", SHARED)], || Box::new(SidecarPlace::kin()));
    scripts_hold(&[("shared", SHARED)], || Box::new(ClaudePlace::shared()));
}

/// The example is run as a third party would run it. It is built with the tests; a run of this test alone builds it.
#[test]
fn a_store_of_somebody_else_holds() {
    let target = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned();
    let example = target.join("examples/custom_store");
    if !example.is_file() {
        let build = ["build", "-p", "taskbus", "--features", "conformance", "--example", "custom_store"];
        assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    }
    let ran = Command::new(example).output().unwrap();
    let report = String::from_utf8(ran.stderr).unwrap();
    println!("{report}");
    assert!(ran.status.success() && report.contains("text files, rows"), "{report}");
    assert!(include_str!("../../examples/custom_store.rs").lines().count() < 150);
}

/// Not a check: the process that a check starts does its work here. Without a job there is nothing to do.
#[test]
fn worker() {
    places::work();
}
