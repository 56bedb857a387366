//! The bars, as a table and as JSON.

use owo_colors::Style;
use serde_json::{Map, Value, json};

use super::field::Mode;
use super::raw::sqlite_version;
use super::samples::{Bar, Name, Samples, short};
use crate::term::layout::{Cell, Column, Table};
use crate::term::report::Report;

/// What was measured.
pub(super) struct BenchReport {
    bars: Vec<Bar>,
    /// Microseconds of a bare transaction at each size: on disk, and not waiting for it.
    raw: Vec<(usize, u128, u128)>,
}

impl BenchReport {
    /// Makes bars of the samples.
    pub(super) fn new(samples: &Samples, sizes: &[usize]) -> Self {
        let micros = |mode, tasks| samples.median(Name::Raw, mode, tasks).map_or(0, |took| took.as_micros());
        let raw = sizes.iter().map(|tasks| (*tasks, micros(Mode::Durable, *tasks), micros(Mode::Relaxed, *tasks)));
        Self { bars: samples.bars(sizes), raw: raw.collect() }
    }
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

impl Report for BenchReport {
    fn json(&self) -> Map<String, Value> {
        let bars = self.bars.iter().map(
            |bar| json!({"name": bar.name, "value": bar.value, "target": bar.target, "unit": "x", "met": bar.met()}),
        );
        let raw = self.raw.iter().map(
            |(tasks, durable, relaxed)| json!({"tasks": tasks, "durable_commit_us": durable, "commit_us": relaxed}),
        );
        Map::from_iter([
            ("machine".to_owned(), machine().into()),
            ("raw".to_owned(), raw.collect()),
            ("bars".to_owned(), bars.collect()),
        ])
    }

    fn words(&self, width: Option<usize>) -> String {
        let mut table =
            Table::new([Column::left("BAR"), Column::right("TIMES"), Column::right("AT MOST"), Column::left("")]);
        for bar in &self.bars {
            let (mark, style) = if bar.met() { ("✓", Style::new().green()) } else { ("✗", Style::new().red()) };
            table.row([
                Cell::plain(&bar.name),
                Cell::plain(format!("{:.2}", bar.value)),
                Cell::plain(format!("{:.1}", bar.target)),
                Cell::new(mark, style),
            ]);
        }
        let mut words = table.render(width);
        words.push_str(
            "\nTimes a bare SQLite transaction of the same run, by the median; the last ones: large list to small.\n",
        );
        for (tasks, durable, relaxed) in &self.raw {
            words.push_str(&format!(
                "at {}: a bare transaction takes {durable} µs on disk, {relaxed} µs without\n",
                short(*tasks)
            ));
        }
        if cfg!(debug_assertions) {
            words.push_str("This is a debug build: its figures say little. Use cargo run --release -- bench.\n");
        }
        words
    }
}
