//! The conformance suite: what a store must do, as plain functions cut by subject, and a report of how it did.
//!
//! A check gets a fresh place, opens the store there as often as it likes, and panics when something is wrong. A check
//! that needs what the store does not have says so; it never passes silently.
//!
//! ```text
//! checks on rows    (rows::CHECKS)    a RowStore: six verbs and a transaction
//! checks on stores  (stores::CHECKS)  an engine over a Store, which may be rows underneath
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::place::{OverRows, RowPlace, StorePlace};
use super::{rows, stores};

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An id is given once.
    Ids,
    /// What is put in comes out.
    Values,
    /// Lists have an order, always the same.
    Order,
    /// Rows that lack something, and rows that cannot be read.
    Shapes,
    /// All or nothing.
    Transactions,
    /// What was acknowledged is there, and others hear of it.
    Durable,
    /// One owner at a time.
    Claims,
    /// Holds that end.
    Leases,
    /// Blockers and parents.
    Graph,
    /// The order of siblings.
    Siblings,
    /// What is deleted.
    Deletes,
    /// Many at once.
    Races,
    /// The store opened again.
    Reopen,
    /// Channels and who follows them.
    Channels,
    /// Messages in order, and revisions of tasks among them.
    Messages,
    /// Memories, their revisions and vectors.
    Memories,
    /// What is found by its words.
    Search,
    /// What the maintenance needs.
    Upkeep,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Subject; 18] = [
        Subject::Ids,
        Subject::Values,
        Subject::Order,
        Subject::Shapes,
        Subject::Transactions,
        Subject::Durable,
        Subject::Claims,
        Subject::Leases,
        Subject::Graph,
        Subject::Siblings,
        Subject::Deletes,
        Subject::Races,
        Subject::Reopen,
        Subject::Channels,
        Subject::Messages,
        Subject::Memories,
        Subject::Search,
        Subject::Upkeep,
    ];

    /// Its word in a report.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Subject::Ids => "ids",
            Subject::Values => "values",
            Subject::Order => "order",
            Subject::Shapes => "shapes",
            Subject::Transactions => "transactions",
            Subject::Durable => "durable",
            Subject::Claims => "claims",
            Subject::Leases => "leases",
            Subject::Graph => "graph",
            Subject::Siblings => "siblings",
            Subject::Deletes => "deletes",
            Subject::Races => "races",
            Subject::Reopen => "reopen",
            Subject::Channels => "channels",
            Subject::Messages => "messages",
            Subject::Memories => "memories",
            Subject::Search => "search",
            Subject::Upkeep => "upkeep",
        }
    }
}

/// What a check came to when nothing was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The store did as it must.
    Held,
    /// The store lacks what the check needs; this says what.
    NotApplicable(&'static str),
}

/// One thing that a store must do, checked at a place `P`.
pub struct Check<P: ?Sized> {
    /// What it is about.
    pub subject: Subject,
    /// What must hold, as words joined by `_`.
    pub name: &'static str,
    /// Finds out, and panics when it does not hold.
    pub run: fn(&P) -> Verdict,
}

/// How one check went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it was about.
    pub subject: Subject,
    /// Its name.
    pub name: &'static str,
    /// The verdict, or what was wrong.
    pub result: Result<Verdict, String>,
}

/// How a store did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The store and the level.
    pub title: String,
    /// Every check.
    pub lines: Vec<Line>,
}

/// Runs every check, each at a place of its own.
pub fn run<P: ?Sized>(title: &str, checks: &[Check<P>], fresh: &dyn Fn() -> Box<P>) -> Report {
    let line = |check: &Check<P>| {
        let result = catch_unwind(AssertUnwindSafe(|| (check.run)(&fresh())));
        let result = result.map_err(|panic| words_of(panic.as_ref()));
        Line { subject: check.subject, name: check.name, result }
    };
    Report { title: title.to_owned(), lines: checks.iter().map(line).collect() }
}

/// Longest text of a failure in a report, in characters.
const WORDS_CHARS_MAX: usize = 1_500;

/// Runs every check on rows, and every check on an engine over them.
pub fn run_on_rows<P: RowPlace + 'static>(title: &str, fresh: fn() -> P) -> [Report; 2] {
    let rows = run::<dyn RowPlace>(&format!("{title}, rows"), rows::CHECKS, &|| Box::new(fresh()));
    let store = run::<dyn StorePlace>(title, stores::CHECKS, &|| Box::new(OverRows(fresh())));
    [rows, store]
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
    text.chars().take(WORDS_CHARS_MAX).collect()
}

/// How many checks of a subject held, did not apply, failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Held.
    pub held: usize,
    /// Did not apply.
    pub not_applicable: usize,
    /// Failed.
    pub failed: usize,
}

impl Report {
    /// The counts by subject; subjects without checks are left out.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Subject, Count> {
        let mut counts: BTreeMap<Subject, Count> = BTreeMap::new();
        for line in &self.lines {
            let count = counts.entry(line.subject).or_default();
            match line.result {
                Ok(Verdict::Held) => count.held += 1,
                Ok(Verdict::NotApplicable(_)) => count.not_applicable += 1,
                Err(_) => count.failed += 1,
            }
        }
        counts
    }

    /// The subjects in which something failed.
    #[must_use]
    pub fn failed(&self) -> BTreeSet<Subject> {
        self.lines.iter().filter(|line| line.result.is_err()).map(|line| line.subject).collect()
    }

    /// Panics when anything failed, or when nothing held.
    ///
    /// # Panics
    /// With the whole report.
    #[track_caller]
    pub fn assert_held(&self) {
        let held = self.lines.iter().any(|line| line.result == Ok(Verdict::Held));
        assert!(held && self.failed().is_empty(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for (subject, count) in self.counts() {
            let word = subject.as_str();
            write!(f, "  {word:<14}{:>3} held", count.held)?;
            if count.not_applicable > 0 {
                write!(f, ", {} not applicable", count.not_applicable)?;
            }
            writeln!(f, "{}", if count.failed > 0 { format!(", {} FAILED", count.failed) } else { String::new() })?;
            for line in self.lines.iter().filter(|line| line.subject == subject) {
                match &line.result {
                    Ok(Verdict::Held) => {}
                    Ok(Verdict::NotApplicable(lack)) => writeln!(f, "    not applicable: {}: {lack}", line.name)?,
                    Err(wrong) => writeln!(f, "    FAILED: {}: {wrong}", line.name)?,
                }
            }
        }
        Ok(())
    }
}

/// A table of counts: a line for each report, a column for each subject; `4` checks held, `4-1`: one more did not
/// apply, `4!1`: one more failed.
#[must_use]
pub fn table(reports: &[Report]) -> String {
    let first = reports.iter().map(|report| report.title.len()).max().unwrap_or(0);
    let line = |title: &str, cells: &mut dyn Iterator<Item = String>| {
        let cells =
            cells.zip(Subject::ALL).map(|(cell, subject)| format!("  {cell:>0$}", subject.as_str().len().max(4)));
        format!("{title:<first$}{}\n", cells.collect::<String>())
    };
    let mut text = line("", &mut Subject::ALL.iter().map(|subject| subject.as_str().to_owned()));
    for report in reports {
        let counts = report.counts();
        text.push_str(&line(&report.title, &mut Subject::ALL.iter().map(|subject| cell(counts.get(subject)))));
    }
    text
}

fn cell(count: Option<&Count>) -> String {
    let Some(count) = count else { return "·".to_owned() };
    let mut text = count.held.to_string();
    if count.not_applicable > 0 {
        text.push_str(&format!("-{}", count.not_applicable));
    }
    if count.failed > 0 {
        text.push_str(&format!("!{}", count.failed));
    }
    text
}
