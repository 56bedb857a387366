//! The scenario scripts through the surfaces: the same steps and the same answers as on the engine, by real processes
//! over one store. A script ends early at a step that a surface has no form for and on which the rest builds, and the
//! output says where.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod agent;
mod claude;
mod command_line;
mod kin;
mod mcp;

use std::path::Path;

use taskbus::conformance::{ALL, Driver, Ran, SHARED, run};

use crate::agent::Kind;
use crate::claude::ClaudeDriver;
use crate::kin::KinDriver;
use crate::mcp::McpDriver;

/// Runs a script on a fresh driver and prints how it went.
#[track_caller]
fn run_one<D: Driver>(name: &str, text: &str, driver: impl Fn(&Path) -> D) -> Ran {
    let place = tempfile::tempdir().unwrap();
    let ran = run(name, text, &mut driver(place.path()));
    println!("{name}: {ran}");
    ran
}

/// Runs every script; all but the scripts about time must run whole.
#[track_caller]
fn run_whole<D: Driver>(driver: impl Fn(&Path) -> D) {
    for (name, text) in ALL {
        let ran = run_one(name, text, &driver);
        let about_time = matches!(*name, "leases" | "sessions");
        assert!(about_time || ran.stopped.is_none(), "{name}: {ran}");
        assert!(ran.steps > 2 && ran.fields > 5 && ran.skipped <= 2, "{name}: {ran}");
    }
}

/// Runs every script as far as a set of tools has the verbs: so many steps and fields in all, at least.
#[track_caller]
fn run_far<D: Driver>(steps: usize, fields: usize, driver: impl Fn(&Path) -> D) {
    let mut all = Ran::default();
    for (name, text) in ALL {
        let ran = run_one(name, text, &driver);
        assert!(*name != "taking" || ran.stopped.is_none(), "{name} is in what every set can say: {ran}");
        let (steps, fields, skipped) = (all.steps + ran.steps, all.fields + ran.fields, all.skipped + ran.skipped);
        all = Ran { steps, fields, skipped, stopped: None };
    }
    println!("in all: {all}");
    assert!(all.steps >= steps && all.fields >= fields, "{all}");
}

/// Runs the script of all on a driver over each kind of store: every step, and so many fields.
#[track_caller]
fn run_shared<D: Driver>(fields: usize, driver: impl Fn(&Path, Kind) -> D) {
    for kind in [Kind::Sqlite, Kind::Sidecar, Kind::Directory] {
        let ran = run_one(&format!("shared, {kind:?}"), SHARED, |place| driver(place, kind));
        assert!(ran.stopped.is_none() && ran.skipped == 0, "{ran}");
        assert!(ran.steps >= 45 && ran.fields >= fields, "{ran}");
    }
}

#[test]
fn mcp_answers_as_the_scripts_say() {
    run_whole(|place| McpDriver::new(place, Kind::Sqlite));
}

#[test]
fn the_command_line_answers_as_the_scripts_say() {
    run_whole(command_line::CommandLine::new);
}

#[test]
fn the_tools_of_claude_code_answer_as_the_scripts_say() {
    run_far(110, 210, |place| ClaudeDriver::new(place, Kind::Sqlite));
}

#[test]
fn kins_tool_answers_as_the_scripts_say() {
    run_far(105, 175, |place| KinDriver::new(place, Kind::Sqlite));
}

#[test]
fn mcp_answers_alike_on_every_store() {
    run_shared(79, McpDriver::new);
}

#[test]
fn the_tools_of_claude_code_answer_alike_on_every_store() {
    run_shared(79, ClaudeDriver::new);
}

#[test]
fn kins_tool_answers_alike_on_every_store() {
    run_shared(70, KinDriver::new);
}
