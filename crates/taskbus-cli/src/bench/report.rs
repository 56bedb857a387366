//! The bars, as a table and as JSON. Both forms are stable: docs/performance.md says what their fields mean.

use owo_colors::Style;
use serde_json::{Map, Value, json};

use super::bar::Bar;
use super::lists::samples::short;
use super::raw::sqlite_version;
use crate::term::layout::{Cell, Column, Table};
use crate::term::report::Report;

/// What was measured.
#[derive(Default)]
pub(super) struct BenchReport {
    /// Bars, and figures without a target.
    pub(super) bars: Vec<Bar>,
    /// A bare transaction beside each list, in microseconds: on disk, and not waiting for it.
    pub(super) raw: Vec<(usize, f64, f64)>,
}

fn machine() -> Map<String, Value> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Map::from_iter([
        ("os".to_owned(), json!(std::env::consts::OS)),
        ("arch".to_owned(), json!(std::env::consts::ARCH)),
        ("cpus".to_owned(), json!(cpus)),
        ("sqlite".to_owned(), json!(sqlite_version())),
        ("build".to_owned(), json!(build())),
    ])
}

/// How the binary was built.
pub(super) fn build() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

/// To a tenth.
fn micros(of: f64) -> f64 {
    (of * 10.0).round() / 10.0
}

impl BenchReport {
    /// Those with a target, or those without.
    fn all(&self, with_target: bool) -> impl Iterator<Item = &Bar> {
        self.bars.iter().filter(move |bar| bar.met().is_some() == with_target)
    }

    fn missed(&self) -> usize {
        self.bars.iter().filter(|bar| bar.met() == Some(false)).count()
    }

    fn table(&self, width: Option<usize>) -> String {
        let mut table =
            Table::new([Column::left("BAR"), Column::right("VALUE"), Column::right("TARGET"), Column::left("")]);
        for bar in self.all(true).chain(self.all(false)) {
            let (mark, style) = match bar.met() {
                Some(true) => ("✓", Style::new().green()),
                Some(false) => ("✗", Style::new().red()),
                None => ("", Style::new()),
            };
            let (value, target) = (Cell::plain(bar.value_words()), Cell::plain(bar.target_words()));
            table.row([Cell::plain(&bar.name), value, target, Cell::new(mark, style)]);
        }
        table.render(width)
    }
}

impl Report for BenchReport {
    fn json(&self) -> Map<String, Value> {
        let raw = self.raw.iter().map(|(tasks, durable, relaxed)| {
            json!({"tasks": tasks, "durable_commit_us": micros(*durable), "commit_us": micros(*relaxed)})
        });
        Map::from_iter([
            ("machine".to_owned(), machine().into()),
            ("raw".to_owned(), raw.collect()),
            ("bars".to_owned(), self.all(true).map(Bar::json).collect()),
            ("figures".to_owned(), self.all(false).map(Bar::json).collect()),
        ])
    }

    fn words(&self, width: Option<usize>) -> String {
        let mut words = self.table(width);
        let (bars, missed) = (self.all(true).count(), self.missed());
        words.push_str(&format!("\n{} of {bars} bars met. × is times a bare loop of the same run.\n", bars - missed));
        for (tasks, durable, relaxed) in &self.raw {
            let (size, durable, relaxed) = (short(*tasks), micros(*durable), micros(*relaxed));
            words
                .push_str(&format!("at {size}: a bare transaction takes {durable} µs on disk, {relaxed} µs without\n"));
        }
        if cfg!(debug_assertions) {
            words.push_str("This is a debug build: its figures say little. Use cargo run --release -- bench.\n");
        }
        words
    }
}
