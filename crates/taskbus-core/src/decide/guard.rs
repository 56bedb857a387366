//! Who may change a task: preconditions the caller names, and the owner guard (docs/rules.md 4).

use super::{Facts, Stop};
use crate::command::Patch;
use crate::name::Identity;
use crate::policy::Policy;
use crate::refusal::Conflict;
use crate::task::{State, Task};

/// Refuses when the task has moved on since the revision or the claim that the caller names.
pub(super) fn check_preconditions(task: &Task, patch: &Patch) -> Result<(), Stop> {
    if let Some(sent) = patch.if_revision.filter(|sent| *sent != task.revision) {
        return Err(Conflict::Revision { id: task.id.clone(), sent, current: task.revision }.into());
    }
    if let Some(sent) = patch.fence.filter(|sent| *sent != task.fence) {
        let owner = task.owner().cloned();
        return Err(Conflict::LeaseLost { id: task.id.clone(), sent, current: task.fence, owner }.into());
    }
    Ok(())
}

/// Refuses what only the owner may do. `Ok(true)` when `force` really bypassed the guard.
pub(super) fn check_owner(task: &Task, patch: &Patch, policy: Policy, facts: &Facts) -> Result<bool, Stop> {
    if !policy.guards_owners() {
        return Ok(false);
    }
    match objection(task, patch, facts.caller.as_ref()) {
        None => Ok(false),
        Some(_) if patch.force => Ok(true),
        Some(conflict) => Err(conflict.into()),
    }
}

/// While a task is in progress only its owner changes it; nobody takes what belongs to somebody else.
fn objection(task: &Task, patch: &Patch, caller: Option<&Identity>) -> Option<Conflict> {
    let owner = task.owner().filter(|owner| Some(*owner) != caller)?.clone();
    let id = task.id.clone();
    if let State::InProgress { lease, .. } = task.state {
        return Some(Conflict::Held { id, owner, until: lease });
    }
    let takes = matches!(&patch.owner, Some(Some(wanted)) if *wanted != owner);
    takes.then_some(Conflict::Assigned { id, owner })
}
