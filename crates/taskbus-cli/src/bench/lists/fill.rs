//! What a list is filled with: tasks of which some are ready, some done and most blocked, many in one transaction.

use std::ops::Range;
use std::path::Path;

use taskbus_core::command::{Draft, Planned};
use taskbus_core::id::TaskId;
use taskbus_core::limits;
use taskbus_core::text::{Body, Subject};

use super::field::{Field, plan};
use crate::term::failure::Failure;

/// Tasks in a group: a hub that others wait for, those others, a free task, and some that are done.
const GROUP: usize = 10;
/// How many wait for a hub.
const FAN_OUT: usize = 2;
/// How many wait for a large hub.
const FAN_OUT_LARGE: usize = 10;
/// Large hubs.
const LARGE_HUBS: usize = 20;
/// Tasks with a word that a search looks for, however many tasks there are.
const WITH_WORD: usize = 20;
/// That word.
pub(super) const WORD: &str = "needle";

/// The tasks that calls are made on.
#[derive(Default)]
pub(in crate::bench) struct Filled {
    /// Ready, each waited for by two.
    pub(super) hubs: Vec<TaskId>,
    /// Ready, each waited for by ten.
    pub(super) large_hubs: Vec<TaskId>,
    /// Ready, waited for by one.
    pub(super) free: Vec<TaskId>,
}

impl Field {
    /// A list of so many tasks, and the large hubs beside them; `filled` hears how many there are.
    pub(in crate::bench) fn fill(dir: &Path, tasks: usize, filled: &dyn Fn(u64)) -> Result<Self, Failure> {
        let mut field = Self::empty(dir)?;
        for start in (0..tasks).step_by(limits::PLAN_TASKS_MAX) {
            let numbers = start..tasks.min(start + limits::PLAN_TASKS_MAX);
            field.plan_groups(numbers.clone(), tasks / WITH_WORD)?;
            filled(numbers.end as u64);
        }
        field.plan_large_hubs()?;
        field.relaxed.store().index_texts()?;
        Ok(field)
    }

    fn plan_groups(&mut self, numbers: Range<usize>, word_each: usize) -> Result<(), Failure> {
        let planned = numbers.clone().map(|number| member(number, number % word_each == 0)).collect();
        for (number, id) in numbers.zip(plan(&self.relaxed, &self.caller, planned)?) {
            match number % GROUP {
                0 => self.tasks.hubs.push(id),
                3 => self.tasks.free.push(id),
                _ => {}
            }
        }
        Ok(())
    }

    fn plan_large_hubs(&mut self) -> Result<(), Failure> {
        let size = FAN_OUT_LARGE + 1;
        let planned = (0..LARGE_HUBS).flat_map(|hub| (0..size).map(move |at| large_member(hub, at))).collect();
        self.tasks.large_hubs.extend(plan(&self.relaxed, &self.caller, planned)?.into_iter().step_by(size));
        Ok(())
    }
}

fn member(number: usize, has_word: bool) -> Planned {
    let (group, place) = (number / GROUP, number % GROUP);
    let key = |place: usize| format!("g{group}.{place}");
    let blocked_by = match place {
        1..=FAN_OUT => vec![key(0)],
        9 => vec![key(3)],
        _ => Vec::new(),
    };
    let subject = if has_word { format!("task {number} {WORD}") } else { format!("task {number}") };
    Planned {
        key: Some(key(place)),
        draft: draft(&subject),
        parent: (place > 3 && place < 9).then(|| key(0)),
        blocked_by,
        done: place > 3 && place < 9,
    }
}

fn large_member(hub: usize, at: usize) -> Planned {
    let key = |at: usize| format!("h{hub}.{at}");
    let blocked_by = if at == 0 { Vec::new() } else { vec![key(0)] };
    Planned { key: Some(key(at)), draft: draft(&format!("hub {hub} {at}")), parent: None, blocked_by, done: false }
}

/// A task as somebody may write it.
pub(in crate::bench) fn draft(subject: &str) -> Draft {
    let description = Body::new(format!("What there is to say about {subject}, in a sentence or two. ").repeat(3));
    let description = Some(description.expect("BUG: a short text is a description"));
    Draft { description, ..Draft::new(Subject::new(subject).expect("BUG: a short line is a subject")) }
}

/// A task of a plan that waits for nothing.
pub(in crate::bench) fn plain(subject: &str) -> Planned {
    Planned { key: None, draft: draft(subject), parent: None, blocked_by: Vec::new(), done: false }
}
