//! The end of the demo, as tables and as JSON.

use std::time::Duration;

use owo_colors::Style;
use serde_json::{Map, Value, json};

use super::play::Story;
use super::verdict::{Check, Record};
use crate::term::failure::{DONE, REFUSED};
use crate::term::layout::{Cell, Column, Table};
use crate::term::report::Report;
use crate::term::safe::display_safe;

/// How the demo went.
pub(super) struct DemoReport {
    /// Where.
    pub(super) store: String,
    /// On which list.
    pub(super) channel: String,
    /// How many tasks.
    pub(super) tasks: usize,
    /// What happened.
    pub(super) story: Story,
    /// What the store says of it.
    pub(super) record: Record,
    /// What must hold.
    pub(super) checks: Vec<Check>,
    /// How long it took, from the first worker's start to the last one's end.
    pub(super) took: Duration,
}

impl DemoReport {
    fn ok(&self) -> bool {
        self.checks.iter().all(|check| check.held)
    }

    fn refused(&self) -> usize {
        self.story.workers.iter().map(|fate| fate.refused).sum()
    }

    fn workers(&self) -> Table {
        let columns =
            [Column::left("WORKER"), Column::right("DONE"), Column::right("REFUSED"), Column::flexible("END")];
        let mut table = Table::new(columns);
        let done = self.record.done_by();
        for fate in &self.story.workers {
            let count = done.get(&fate.name).copied().unwrap_or(0);
            let texts = [fate.name.clone(), count.to_string(), fate.refused.to_string(), fate.end.clone()];
            table.row(texts.map(Cell::plain));
        }
        table
    }

    fn checked(&self) -> Table {
        let mut table = Table::new([Column::left(""), Column::left(""), Column::flexible("")]);
        for check in &self.checks {
            let (mark, style) = if check.held { ("✓", Style::new().green()) } else { ("✗", Style::new().red()) };
            table.row([Cell::new(mark, style), Cell::plain(check.name), Cell::plain(&check.detail)]);
        }
        table
    }

    /// What did not hold, in full: a table cuts it.
    fn broken(&self) -> String {
        let broken = self.checks.iter().filter(|check| !check.held);
        broken.map(|check| format!("{}: {}\n", check.name, display_safe(&check.detail))).collect()
    }
}

impl Report for DemoReport {
    fn json(&self) -> Map<String, Value> {
        let done = self.record.done_by();
        let workers = self.story.workers.iter().map(|fate| {
            let count = done.get(&fate.name).copied().unwrap_or(0);
            json!({"name": fate.name, "done": count, "refused": fate.refused, "end": fate.end})
        });
        let checks = self.checks.iter().map(|c| json!({"name": c.name, "held": c.held, "detail": c.detail}));
        Map::from_iter([
            ("ok".to_owned(), json!(self.ok())),
            ("store".to_owned(), json!(self.store)),
            ("channel".to_owned(), json!(self.channel)),
            ("tasks".to_owned(), json!(self.tasks)),
            ("done".to_owned(), json!(done.values().sum::<usize>())),
            ("workers".to_owned(), workers.collect()),
            ("killed".to_owned(), json!(self.story.victims.len())),
            ("reclaims".to_owned(), json!(self.record.reclaims())),
            ("claims_refused".to_owned(), json!(self.refused())),
            ("seconds".to_owned(), json!(self.took.as_secs_f64())),
            ("checks".to_owned(), checks.collect()),
        ])
    }

    fn words(&self, width: Option<usize>) -> String {
        let verdict = if self.ok() { "all of it held" } else { "NOT all of it held" };
        format!(
            "{} tasks on {} in {}\n\n{}\n{}\n{}{} done, {} reclaimed, {} claims refused, {:.1} s: {verdict}\n",
            self.tasks,
            display_safe(&self.channel),
            display_safe(&self.store),
            self.workers().render(width),
            self.checked().render(width),
            self.broken(),
            self.record.done_by().values().sum::<usize>(),
            self.record.reclaims(),
            self.refused(),
            self.took.as_secs_f64(),
        )
    }

    fn exit(&self) -> u8 {
        if self.ok() { DONE } else { REFUSED }
    }
}
