//! A look at everything: each revision read again in order, each derived row computed anew from the documents, and
//! compared with what is stored. Row by row: memory does not grow with the store, but for the words of the full-text
//! index, which only the doctor looks at.
//!
//! ```text
//!  integrity, schema ─▶ revisions: chain, history ─▶ rows of live tasks ─▶ edges, labels, tombstones ─▶ counters ─▶ bus
//! ```

use super::error::{Answer, Fault};
use super::scope::Scope;
use crate::store::verdict::{Difference, Progress, TOLD_MAX, Verdict};

mod beside;
mod counters;
#[cfg(test)]
mod edits;
mod revisions;
mod rows;
mod schema;

const INTEGRITY: &str = "PRAGMA integrity_check";
const STEPS: &str = "SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM tasks)";
/// Between two words about how far it is.
const STRIDE: u64 = 1000;

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// At the history too: whether each revision may follow the one before.
    History,
    /// At the full-text index too: whether it knows just the words that it should.
    Words,
}

/// What was found so far.
pub(super) struct Findings<'p> {
    pub(super) verdict: Verdict,
    steps: (u64, u64),
    progress: &'p mut Progress<'p>,
}

impl Findings<'_> {
    pub(super) fn push(&mut self, what: String) {
        self.add(Difference { seq: None, task: None, column: None, what });
    }

    pub(super) fn extend(&mut self, all: impl IntoIterator<Item = String>) {
        all.into_iter().for_each(|what| self.push(what));
    }

    fn revision(&mut self, seq: i64, task: i64, what: &str) {
        let what = format!("revision {seq} of task {task}: {what}");
        self.add(Difference { seq: Some(seq), task: Some(task), column: None, what });
    }

    fn task(&mut self, task: i64, column: Option<&'static str>, what: String) {
        self.add(Difference { seq: None, task: Some(task), column, what });
    }

    fn add(&mut self, difference: Difference) {
        if self.verdict.differences.len() < TOLD_MAX {
            self.verdict.differences.push(difference);
        } else {
            self.verdict.more += 1;
        }
    }

    fn step(&mut self) {
        self.steps.0 += 1;
        if self.steps.0.is_multiple_of(STRIDE) {
            (self.progress)(self.steps.0, self.steps.1);
        }
    }
}

impl Scope<'_> {
    /// Everything that does not add up.
    pub(super) fn verify_all<'p>(&self, look: Look, progress: &'p mut Progress<'p>) -> Answer<Verdict> {
        let steps = (0, self.one(STEPS, [], |row| row.get(0))?.unwrap_or(0));
        let verdict = Verdict {
            store: self.store_id()?,
            epoch: self.epoch.get(),
            seq: self.seq.get(),
            head: self.head()?.to_string(),
            ..Verdict::default()
        };
        let mut found = Findings { verdict, steps, progress };
        let whole: Vec<String> = self.all(INTEGRITY, [], |row| row.get(0))?;
        found.extend(whole.into_iter().filter(|line| line != "ok"));
        self.check_schema(&mut found)?;
        self.check_revisions(look, &mut found)?;
        self.check_rows(&mut found)?;
        self.check_beside(&mut found)?;
        self.check_counters(&mut found)?;
        self.check_bus(look == Look::Words, &mut found)?;
        Ok(found.verdict)
    }
}

/// A row that cannot be read is a finding, a file that cannot be read is a failure.
pub(super) fn readable<T>(answer: Answer<T>) -> Answer<Result<T, String>> {
    match answer {
        Ok(value) => Ok(Ok(value)),
        Err(fault) if fault.is_about_a_row() => Ok(Err(fault.to_string())),
        Err(Fault::Sql(rusqlite::Error::QueryReturnedNoRows)) => Ok(Err("what it refers to is not there".to_owned())),
        Err(fault) => Err(fault),
    }
}
