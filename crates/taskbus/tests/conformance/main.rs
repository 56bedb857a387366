//! The conformance suite on every store here, and the suite's own tests: a store that is broken in one way fails in the
//! subjects that this breaks, and in no other.
#![cfg(feature = "conformance")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod broken_rows;
mod broken_store;
mod mutants;
mod places;

use taskbus::conformance::suite::run;
use taskbus::conformance::{OverRows, Report, RowPlace, StorePlace, rows, stores};

use crate::places::{MemoryPlace, SidecarPlace, SqlitePlace};

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

/// Not a check: the process that a check starts does its work here. Without a job there is nothing to do.
#[test]
fn worker() {
    places::work();
}
