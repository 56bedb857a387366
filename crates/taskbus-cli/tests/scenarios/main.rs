//! The scenario scripts through the surfaces: the same steps and the same answers as on the engine, by real processes
//! over one SQLite file. Steps that need a clock that can be moved end a script early, and the output says where.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod command_line;
mod mcp;

use taskbus::conformance::{ALL, Driver, Ran, run};

/// Runs every script on a fresh driver; all but the scripts about time must run whole.
#[track_caller]
fn run_all<D: Driver>(driver: impl Fn(&std::path::Path) -> D) {
    for (name, text) in ALL {
        let place = tempfile::tempdir().unwrap();
        let ran = run(name, text, &mut driver(place.path()));
        println!("{name}: {ran:?}");
        let about_time = matches!(*name, "leases" | "sessions");
        assert!(about_time || matches!(ran, Ran::Whole(_)), "{name}: {ran:?}");
    }
}

#[test]
fn mcp_answers_as_the_scripts_say() {
    run_all(mcp::McpDriver::new);
}

#[test]
fn the_command_line_answers_as_the_scripts_say() {
    run_all(command_line::CommandLine::new);
}
