//! The end of a torture run, as a table and as JSON: each phase with what was counted, what it was to reach, and what is
//! wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use owo_colors::Style;
use serde_json::{Map, Value, json};

use crate::term::failure::{DONE, REFUSED};
use crate::term::layout::{Cell, Column, Table};
use crate::term::report::Report;
use crate::term::safe::display_safe;

/// One phase.
#[derive(Debug)]
pub(super) struct Phase {
    /// Its name.
    pub(super) name: &'static str,
    /// How long it took.
    pub(super) took: Duration,
    /// What was counted.
    pub(super) counts: BTreeMap<&'static str, u64>,
    /// What a run of this length is to reach on a machine that has nothing else to do; a slow one may fall short.
    pub(super) goals: Vec<(&'static str, u64)>,
    /// What is wrong; empty when all is well.
    pub(super) wrongs: Vec<String>,
}

impl Phase {
    /// A phase in which nothing was counted yet.
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, took: Duration::ZERO, counts: BTreeMap::new(), goals: Vec::new(), wrongs: Vec::new() }
    }

    /// Notes how often something happened.
    pub(super) fn count(&mut self, what: &'static str, count: u64) {
        *self.counts.entry(what).or_default() += count;
    }

    /// The same phase of another round. Times and shares are as bad as the worse of both; all else adds up.
    fn add(&mut self, other: Phase) {
        self.took += other.took;
        for (what, count) in other.counts {
            let Some(so_far) = self.counts.get_mut(what) else {
                self.counts.insert(what, count);
                continue;
            };
            *so_far = match what {
                _ if what.ends_with("µs") => count.max(*so_far),
                _ if what.starts_with("of 1000 ") => count.min(*so_far),
                _ => *so_far + count,
            };
        }
        for (what, goal) in other.goals {
            match self.goals.iter_mut().find(|(known, _)| *known == what) {
                Some((_, so_far)) if !what.starts_with("of 1000 ") => *so_far += goal,
                Some(_) => {}
                None => self.goals.push((what, goal)),
            }
        }
        self.wrongs.extend(other.wrongs);
    }

    fn counted(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// The goals that were not reached, in words.
    fn missed(&self) -> impl Iterator<Item = String> {
        let missed = self.goals.iter().filter(|(what, goal)| self.counted(what) < *goal);
        missed.map(|(what, goal)| format!("{}: {} of {goal} {what}", self.name, self.counted(what)))
    }

    /// Something that happens sometimes must have happened: else the phase has shown nothing.
    pub(super) fn must_have(&mut self, what: &'static str) {
        if self.counted(what) == 0 {
            self.wrongs.push(format!("\"{what}\" was never seen, so this run shows nothing about it"));
        }
    }
}

/// How the torture went.
pub(super) struct TortureReport {
    /// The seed.
    pub(super) seed: u64,
    /// The command that does the same again.
    pub(super) replay: String,
    /// The phases.
    pub(super) phases: Vec<Phase>,
    /// Phases that only the test tree has.
    pub(super) elsewhere: Vec<(&'static str, &'static str)>,
    /// Where the evidence is, if there is any.
    pub(super) evidence: Option<String>,
}

impl TortureReport {
    /// The phases of another round.
    pub(super) fn add(&mut self, round: Vec<Phase>) {
        for phase in round {
            match self.phases.iter_mut().find(|known| known.name == phase.name) {
                Some(known) => known.add(phase),
                None => self.phases.push(phase),
            }
        }
    }

    /// Whether nothing is wrong.
    pub(super) fn ok(&self) -> bool {
        self.phases.iter().all(|phase| phase.wrongs.is_empty())
    }

    fn table(&self) -> Table {
        let mut table =
            Table::new([Column::left(""), Column::left("PHASE"), Column::right("S"), Column::flexible("COUNTED")]);
        for phase in &self.phases {
            let held = phase.wrongs.is_empty();
            let (mark, style) = if held { ("✓", Style::new().green()) } else { ("✗", Style::new().red()) };
            let counts: Vec<String> = phase.counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
            let seconds = format!("{:.1}", phase.took.as_secs_f64());
            table.row([
                Cell::new(mark, style),
                Cell::plain(phase.name),
                Cell::plain(seconds),
                Cell::plain(counts.join(", ")),
            ]);
        }
        table
    }

    fn wrongs(&self) -> String {
        let all = self.phases.iter().flat_map(|phase| phase.wrongs.iter().map(move |wrong| (phase.name, wrong)));
        all.map(|(phase, wrong)| format!("{phase}: {}\n", display_safe(wrong))).collect()
    }
}

impl Report for TortureReport {
    fn json(&self) -> Map<String, Value> {
        let phases = self.phases.iter().map(|phase| {
            json!({
                "name": phase.name,
                "ok": phase.wrongs.is_empty(),
                "seconds": phase.took.as_secs_f64(),
                "counts": phase.counts,
                "goals": phase.goals.iter().map(|(what, goal)| {
                    json!({"what": what, "goal": goal, "reached": phase.counted(what) >= *goal})
                }).collect::<Vec<_>>(),
                "wrongs": phase.wrongs,
            })
        });
        let elsewhere = self.elsewhere.iter().map(|(name, how)| json!({"name": name, "run": how}));
        Map::from_iter([
            ("ok".to_owned(), json!(self.ok())),
            ("seed".to_owned(), json!(self.seed)),
            ("replay".to_owned(), json!(self.replay)),
            ("phases".to_owned(), phases.collect()),
            ("elsewhere".to_owned(), elsewhere.collect()),
            ("evidence".to_owned(), json!(self.evidence)),
        ])
    }

    fn words(&self, width: Option<usize>) -> String {
        let elsewhere: String =
            self.elsewhere.iter().map(|(name, how)| format!("{name}: in the test tree, {how}\n")).collect();
        let missed: String = self
            .phases
            .iter()
            .flat_map(Phase::missed)
            .map(|line| format!("fewer than this time allows on a machine at rest: {line}\n"))
            .collect();
        let evidence =
            self.evidence.as_ref().map_or_else(String::new, |at| format!("evidence: {}\n", display_safe(at)));
        let verdict = if self.ok() { "all of it held" } else { "NOT all of it held" };
        format!(
            "{}\n{}{missed}{elsewhere}{evidence}seed {}, again with: {}\n{verdict}\n",
            self.table().render(width),
            self.wrongs(),
            self.seed,
            display_safe(&self.replay),
        )
    }

    fn exit(&self) -> u8 {
        if self.ok() { DONE } else { REFUSED }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_add_up_and_shares_do_not() {
        let round = |killed, quick| {
            let mut phase = Phase::new("a");
            phase.counts = BTreeMap::from([("killed", killed), ("of 1000 writes", quick), ("longest µs", quick)]);
            phase.goals = vec![("killed", 5), ("of 1000 writes", 990)];
            phase
        };
        let (replay, phases, elsewhere, evidence) = (String::new(), Vec::new(), Vec::new(), None);
        let mut report = TortureReport { seed: 1, replay, phases, elsewhere, evidence };
        report.add(vec![round(4, 999)]);
        report.add(vec![round(7, 991)]);
        let phase = &report.phases[0];
        assert_eq!(["killed", "of 1000 writes", "longest µs"].map(|what| phase.counted(what)), [11, 991, 999]);
        assert_eq!(
            (phase.goals.as_slice(), phase.missed().count()),
            (&[("killed", 10), ("of 1000 writes", 990)][..], 0)
        );
        assert!(report.ok());
        report.add(vec![Phase { wrongs: vec!["x".to_owned()], ..Phase::new("a") }]);
        assert!(!report.ok() && report.words(None).contains("NOT all of it held"));
    }
}
