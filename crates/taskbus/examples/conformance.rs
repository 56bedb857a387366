//! The conformance suite on every store of this library, as one table: `cargo run -p taskbus --features conformance
//! --example conformance`. What failed is told above the table, and what did not apply with `--all`.

use std::process::ExitCode;

use taskbus::conformance::suite::run;
use taskbus::conformance::{OverRows, Report, RowPlace, StorePlace, rows, stores, table};

use crate::places::{ClaudePlace, MemoryPlace, SidecarPlace, SqlitePlace};

#[path = "../tests/conformance/places.rs"]
#[allow(clippy::unwrap_used)]
mod places;

fn on_rows<P: RowPlace + 'static>(title: &str, fresh: fn() -> P) -> Report {
    eprintln!("{title} …");
    run::<dyn RowPlace>(title, rows::CHECKS, &|| Box::new(fresh()))
}

fn on_store<P: StorePlace + 'static>(title: &str, fresh: fn() -> P) -> Report {
    eprintln!("{title} …");
    run::<dyn StorePlace>(title, stores::CHECKS, &|| Box::new(fresh()))
}

fn main() -> ExitCode {
    if places::work() {
        return ExitCode::SUCCESS;
    }
    let reports = [
        on_store("memory", MemoryPlace::new),
        on_store("sqlite", SqlitePlace::new),
        on_rows("sidecar: rows", SidecarPlace::kin),
        on_store("sidecar", || OverRows(SidecarPlace::kin())),
        on_store("sidecar, strict", || OverRows(SidecarPlace::strict())),
        on_rows("claude directory: rows", ClaudePlace::shared),
        on_store("claude directory", || OverRows(ClaudePlace::shared())),
        on_store("claude directory, strict", || OverRows(ClaudePlace::strict())),
    ];
    let all = std::env::args().any(|argument| argument == "--all");
    let told = |report: &&Report| all || !report.failed().is_empty();
    let failed = reports.iter().any(|report| !report.failed().is_empty());
    eprintln!("{}", reports.iter().filter(told).map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    eprintln!("{}4-1: one more check does not apply; 4!1: one more failed", table(&reports));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
