//! Whether what the clients were told and what the store says are one story. Pure: a history in, violations and counts
//! out, without any search, because the revisions hand out a total order.
//!
//! ```text
//!  revisions ─▶ log      each follows from the one before it: numbers, fences, owners, leases
//!            ─▶ replay   each is what the rules give for the deed that a client says it did, at that place
//!  clients   ─▶ answers  nothing acknowledged is missing, nothing came twice, all of it in the order of real time
//!  messages  ─▶ mail     sent once, delivered until acknowledged, and then never again
//! ```
//!
//! `replay` uses the rules of the product; `log` and `answers` do not, so that a rule that is wrong is seen too.

mod answers;
mod log;
mod mail;
mod replay;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use taskbus::store::RevisionRow;
use taskbus_core::bus::message::Message;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::ListRules;

use super::record::{Begin, Line, Number};
use super::told::Told;

/// Violations told one by one; the rest is only counted.
const TOLD_MAX: usize = 50;

/// All that is known of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The settings of the list.
    pub(super) rules: ListRules,
    /// Every revision of every task of the list, in the order of their numbers.
    pub(super) revisions: Vec<RevisionRow>,
    /// Every message that is no revision.
    pub(super) messages: Vec<Message>,
    /// What the clients did, each in its own order.
    pub(super) acts: Vec<Act>,
    /// What is unread at the end, by who would get it.
    pub(super) unread: BTreeMap<Identity, Vec<u64>>,
}

/// A deed, with everything that came of it.
#[derive(Clone, Debug)]
pub(super) struct Act {
    /// As it was first tried.
    pub(super) begin: Begin,
    /// The answers, each with the time.
    pub(super) answers: Vec<(u64, Told)>,
}

impl Act {
    /// What it came to, if anybody was told.
    pub(super) fn told(&self) -> Option<&Told> {
        self.answers.first().map(|(_, told)| told)
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// Which promise is broken, in a word.
    pub(super) kind: Kind,
    /// What happened.
    pub(super) words: String,
}

/// The promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// What was acknowledged is not there.
    Lost,
    /// Something is there that nobody did.
    Unexpected,
    /// The rules would not have allowed it, or would have written something else.
    Unruly,
    /// Two had it at once, or it was taken from a living owner.
    Owner,
    /// A fence or a number did not go up by what it must.
    Order,
    /// A late writer, or a wrong key, was not refused.
    Stale,
    /// The same call had two effects or two answers.
    Twice,
    /// An answer does not fit what is stored.
    Answer,
    /// Something was seen before it was done, or was gone after it.
    Time,
    /// A message was lost, came again after it was acknowledged, or came out of order.
    Mail,
    /// A call failed that should not have.
    Failed,
}

impl Kind {
    /// The word.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::Lost => "lost",
            Kind::Unexpected => "unexpected",
            Kind::Unruly => "unruly",
            Kind::Owner => "owner",
            Kind::Order => "order",
            Kind::Stale => "stale",
            Kind::Twice => "twice",
            Kind::Answer => "answer",
            Kind::Time => "time",
            Kind::Mail => "mail",
            Kind::Failed => "failed",
        }
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.words)
    }
}

/// What was found, and how much there was to look at.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// What is wrong.
    pub(super) violations: Vec<Violation>,
    /// How many more there are.
    pub(super) more: usize,
    /// How often each thing was seen.
    pub(super) counts: BTreeMap<&'static str, u64>,
}

impl Findings {
    fn wrong(&mut self, kind: Kind, words: impl Into<String>) {
        if self.violations.len() < TOLD_MAX {
            self.violations.push(Violation { kind, words: words.into() });
        } else {
            self.more += 1;
        }
    }

    fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    fn add(&mut self, what: &'static str, more: u64) {
        *self.counts.entry(what).or_default() += more;
    }

    /// How often something was seen.
    #[cfg(test)]
    pub(super) fn counted(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }
}

/// The acts that lines tell of, in the order in which each client tried them first.
pub(super) fn acts(lines: impl IntoIterator<Item = Line>) -> Vec<Act> {
    let mut acts: Vec<Act> = Vec::new();
    let mut places: BTreeMap<Number, usize> = BTreeMap::new();
    for line in lines {
        match line {
            Line::Begin(begin) => {
                places.entry(begin.number).or_insert_with(|| {
                    acts.push(Act { begin, answers: Vec::new() });
                    acts.len() - 1
                });
            }
            Line::End { number, at, told } => {
                if let Some(place) = places.get(&number) {
                    acts[*place].answers.push((at, told));
                }
            }
        }
    }
    acts
}

/// Checks everything.
pub(super) fn check(history: &History) -> Findings {
    let mut findings = Findings::default();
    log::check(history, &mut findings);
    let written = replay::check(history, &mut findings);
    answers::check(history, &written, &mut findings);
    mail::check(history, &mut findings);
    findings
}
