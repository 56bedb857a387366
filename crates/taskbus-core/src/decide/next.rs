//! Taking the first ready task that fits (docs/rules.md 7).
//!
//! In one transaction: fix up the list, complete what the caller has finished, then claim: first what is assigned to
//! the caller, then what is assigned to nobody, in tree order; never what is assigned to somebody else.

use std::collections::BTreeSet;

use super::create::check_items;
use super::{Effect, Facts, Outcome, Stop, World, reclaim, status, update};
use crate::command::{Finish, Next, Patch};
use crate::glob::PathGlob;
use crate::id::TaskId;
use crate::limits;
use crate::name::{Identity, Label};
use crate::neighbourhood::{Neighbourhood, ReadyScan, Tally};
use crate::refusal::{Invalid, Missing, NotRegistered, Refusal};
use crate::task::Task;

/// Suspects looked at by one call; the rest is for the next call or the tick.
const FIX_UP_MAX: usize = 1000;
/// Ready tasks looked at in one go.
const SCAN: usize = 32;

pub(super) fn next(next: &Next, world: &mut dyn World, facts: &Facts) -> Result<Outcome, Stop> {
    check_shape(next, facts)?;
    let caller = facts.caller.clone().ok_or_else(nobody)?;
    reclaim::reclaim_all(world, facts, FIX_UP_MAX)?;
    let completed = next.complete.as_ref().map(|finish| complete(finish, world, facts)).transpose()?;
    check_parent(next, world)?;
    let mut tasks = Vec::new();
    while tasks.len() < next.count {
        let Some(id) = first_fitting(next, &caller, world, facts)? else { break };
        let claim = Patch::claim(caller.clone(), next.lease);
        tasks.push(update::update(&id, &claim, world, facts)?.task);
    }
    Ok(Outcome::Taken { tasks, completed })
}

fn check_shape(next: &Next, facts: &Facts) -> Result<(), Stop> {
    check_items("labels", next.labels.len(), limits::LABELS_MAX)?;
    status::lease_end(next.lease, facts)?;
    let (min, max) = (1, i64::try_from(limits::NEXT_COUNT_MAX).unwrap_or(i64::MAX));
    let given = i64::try_from(next.count).unwrap_or(i64::MAX);
    if !(min..=max).contains(&given) {
        return Err(Invalid::OutOfRange { field: "count", given, min, max }.into());
    }
    Ok(())
}

fn nobody() -> Stop {
    let name = Identity::new("nobody").expect("BUG: a constant name is valid");
    Stop::Refused(Refusal::NotRegistered(NotRegistered::Never { name }))
}

fn complete(finish: &Finish, world: &mut dyn World, facts: &Facts) -> Result<Effect, Stop> {
    let patch = Patch { fence: finish.fence, ..Patch::complete(finish.result.clone()) };
    update::update(&finish.id, &patch, world, facts)
}

fn check_parent(next: &Next, world: &dyn World) -> Result<(), Stop> {
    let Some(parent) = &next.parent else { return Ok(()) };
    if world.live_of(std::slice::from_ref(parent))?.is_empty() {
        return Err(Missing::Task { id: parent.clone() }.into());
    }
    Ok(())
}

fn first_fitting(
    next: &Next,
    caller: &Identity,
    list: &dyn Neighbourhood,
    facts: &Facts,
) -> Result<Option<TaskId>, Stop> {
    for assigned_to in [Some(caller.clone()), None] {
        let scan = ReadyScan { assigned_to, below: next.parent.clone(), now: facts.now, behind: None, limit: 1 };
        if let Some(id) = scan_for(scan, &next.labels, list)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Reads the front row alone first, as that one mostly fits, then batches.
fn scan_for(mut scan: ReadyScan, worker: &BTreeSet<Label>, list: &dyn Neighbourhood) -> Result<Option<TaskId>, Stop> {
    loop {
        let batch = list.ready(&scan)?;
        for task in &batch {
            if fits(task, worker, list)? {
                return Ok(Some(task.id.clone()));
            }
        }
        if batch.len() < scan.limit {
            return Ok(None);
        }
        scan.behind = batch.last().map(|task| task.id.clone());
        scan.limit = SCAN;
    }
}

fn fits(task: &Task, worker: &BTreeSet<Label>, list: &dyn Neighbourhood) -> Result<bool, Stop> {
    if !task.labels.is_subset(worker) {
        return Ok(false);
    }
    Ok(task.paths.is_empty() || !is_kept_apart(&task.paths, &list.paths_in_use()?))
}

/// What to expect of a list that has nothing for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Something will become ready by itself: others are at work, or a time will come.
    Wait,
    /// All is done.
    Done,
    /// Nothing will become ready unless somebody changes something, the caller perhaps: it may hold what is left.
    Stuck,
}

/// What to expect, given the counts of the list and whether anybody but the caller holds a task.
#[must_use]
pub fn outlook(tally: &Tally, others_at_work: bool) -> Outlook {
    if others_at_work || tally.deferred + tally.ready > 0 {
        Outlook::Wait
    } else if tally.pending() + tally.in_progress == 0 {
        Outlook::Done
    } else {
        Outlook::Stuck
    }
}

/// Whether a task with these paths must wait because an in-progress one could touch the same file.
#[must_use]
pub fn is_kept_apart(paths: &BTreeSet<PathGlob>, in_use: &[(TaskId, Vec<PathGlob>)]) -> bool {
    in_use.iter().flat_map(|(_, used)| used).any(|used| paths.iter().any(|path| path.overlaps(used)))
}
