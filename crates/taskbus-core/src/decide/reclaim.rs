//! Returning abandoned tasks to the queue (docs/rules.md 4).
//!
//! A task is abandoned when it is in progress and its lease has ended, or its owner has no live session.

use super::{Facts, Stop, World};
use crate::change::{Change, Kind};
use crate::id::TaskId;
use crate::neighbourhood::{Look, Neighbourhood};
use crate::policy::Policy;
use crate::task::{Stamp, State, Status, Task};
use crate::time::Timestamp;

/// Whether a task is abandoned at the time of the call. Never, on a list whose policy keeps no owners.
///
/// # Errors
/// [`LookupError`](crate::neighbourhood::LookupError) when the store fails.
pub fn is_abandoned(task: &Task, list: &dyn Neighbourhood, facts: &Facts) -> Look<bool> {
    let State::InProgress { owner, lease } = &task.state else { return Ok(false) };
    if !list.rules()?.policy.guards_owners() {
        return Ok(false);
    }
    if lease.is_some_and(|until| until <= facts.now) {
        return Ok(true);
    }
    match owner {
        Some(owner) => Ok(!list.is_alive(owner, facts.now)?),
        None => Ok(true),
    }
}

/// Fixes up one task: one revision of kind `reclaimed`, signed by the caller. Says whether there was something to fix.
///
/// # Errors
/// [`Stop::Lookup`] when the store fails.
pub fn reclaim_one(id: &TaskId, world: &mut dyn World, facts: &Facts) -> Result<bool, Stop> {
    Ok(fixed_up(id, world, facts)?.is_some_and(|(_, reclaimed)| reclaimed))
}

/// The live task with this id, fixed up if it was abandoned, and whether it was.
pub(super) fn fixed_up(id: &TaskId, world: &mut dyn World, facts: &Facts) -> Result<Option<(Task, bool)>, Stop> {
    let Some(task) = world.task(id)? else { return Ok(None) };
    if !is_abandoned(&task, world, facts)? {
        return Ok(Some((task, false)));
    }
    let max = world.rules()?.max_reclaims;
    let change = reclaimed(task, max, facts);
    world.apply(change.clone())?;
    Ok(Some((change.task, true)))
}

/// Fixes up every abandoned task among the next `limit` suspects of the list, in the order of their ids, so that every
/// store writes the same revisions; says how many.
///
/// # Errors
/// [`Stop::Lookup`] when the store fails.
pub fn reclaim_all(world: &mut dyn World, facts: &Facts, limit: usize) -> Result<usize, Stop> {
    let mut count = 0;
    let mut suspects = world.suspects(facts.now, limit)?;
    suspects.sort();
    for id in suspects {
        count += usize::from(reclaim_one(&id, world, facts)?);
    }
    Ok(count)
}

/// What a list gives back when it is opened: a task in progress that nobody changed for longer than its policy allows,
/// by time alone, as such a list keeps no owners. Strictly longer; a change that lies in the future, because a clock
/// went back, gives back nothing.
#[must_use]
pub fn recovered(task: &Task, policy: Policy, now: Timestamp) -> Option<Change> {
    let age_ms = now.as_millis().saturating_sub(task.updated.at.as_millis());
    let stale = task.status() == Status::InProgress && policy.stale_after_ms().is_some_and(|limit| age_ms > limit);
    stale.then(|| reclaimed(task.clone(), 0, &Facts { now, caller: None }))
}

/// The fence rises, so that a late write under the old claim is refused even to the same name (ADR 0005).
fn reclaimed(mut task: Task, max_reclaims: u32, facts: &Facts) -> Change {
    task.state = State::Pending { assignee: None };
    task.fence += 1;
    task.reclaims = task.reclaims.saturating_add(1);
    task.parked = max_reclaims > 0 && task.reclaims > max_reclaims;
    task.revision += 1;
    task.updated = Stamp { at: facts.now, by: facts.caller.clone() };
    Change { kind: Kind::Reclaimed, task, note: None }
}
