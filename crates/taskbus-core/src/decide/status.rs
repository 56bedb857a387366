//! What a patch makes of the status, the owner and the lease (docs/rules.md 3).

use super::{Facts, Stop};
use crate::command::{LeaseAsk, Patch};
use crate::limits;
use crate::name::Identity;
use crate::neighbourhood::Neighbourhood;
use crate::policy::Policy;
use crate::refusal::{Conflict, Invalid, Missing};
use crate::task::{State, Status, Task};
use crate::time::Timestamp;

/// Every named owner must have registered before; the caller has.
pub(super) fn check_owner_known(patch: &Patch, list: &dyn Neighbourhood, facts: &Facts) -> Result<(), Stop> {
    let Some(Some(owner)) = &patch.owner else { return Ok(()) };
    if facts.caller.as_ref() == Some(owner) || !list.rules()?.policy.guards_owners() || list.is_known(owner)? {
        return Ok(());
    }
    Err(Missing::Owner { name: owner.clone() }.into())
}

/// The state after the patch, the lease aside. `task` is as before in its state, as after in everything else.
pub(super) fn next_state(task: &Task, patch: &Patch, policy: Policy, facts: &Facts) -> Result<State, Stop> {
    let target = patch.status.unwrap_or(task.status());
    let caller = || facts.caller.clone();
    let named = || patch.owner.clone().flatten();
    let kept = || patch.owner.clone().unwrap_or_else(|| task.owner().cloned());
    let state = match (task.status(), target) {
        (Status::Pending, Status::Pending) if is_release(patch) => task.state.clone(),
        (Status::Pending, Status::Pending) => State::Pending { assignee: kept() },
        (Status::InProgress | Status::Completed, Status::Pending) => State::Pending { assignee: named() },
        (Status::Completed, Status::InProgress) if !policy.may_restart_completed() => {
            return Err(Invalid::ReopenFirst { id: task.id.clone() }.into());
        }
        (Status::Completed, Status::InProgress) => holding(task, named().or_else(caller), None, policy)?,
        (Status::Pending, Status::InProgress) if policy.guards_owners() => holding(task, kept(), None, policy)?,
        (Status::Pending, Status::InProgress) => holding(task, kept().or_else(caller), None, policy)?,
        (Status::InProgress, Status::InProgress) => {
            let owner = kept();
            let lease = task.leased_until().filter(|_| owner.as_ref() == task.owner());
            holding(task, owner, lease, policy)?
        }
        (Status::Pending, Status::Completed) => State::Completed { by: kept().or_else(caller), at: facts.now },
        (Status::InProgress, Status::Completed) => {
            State::Completed { by: named().or_else(|| task.owner().cloned()), at: facts.now }
        }
        (Status::Completed, Status::Completed) => {
            State::Completed { by: kept(), at: task.completed_at().unwrap_or(facts.now) }
        }
    };
    Ok(state)
}

/// Releasing something pending changes nothing, its assignment neither; to unassign, clear the owner alone.
fn is_release(patch: &Patch) -> bool {
    patch.status == Some(Status::Pending) && patch.owner == Some(None)
}

fn holding(task: &Task, owner: Option<Identity>, lease: Option<Timestamp>, policy: Policy) -> Result<State, Stop> {
    if owner.is_none() && policy.guards_owners() {
        return Err(Invalid::OwnerMissing { id: task.id.clone() }.into());
    }
    Ok(State::InProgress { owner, lease })
}

/// A task that starts must not be blocked or deferred. Returns a warning where the policy lets it pass.
pub(super) fn check_start(
    task: &Task,
    policy: Policy,
    list: &dyn Neighbourhood,
    facts: &Facts,
) -> Result<Option<String>, Stop> {
    let id = task.id.clone();
    let blockers = list.open_of(&task.blocked_by)?;
    if let Some(until) = task.not_before.filter(|at| *at > facts.now && blockers.is_empty())
        && policy.guards_owners()
    {
        return Err(Conflict::Deferred { id, until }.into());
    }
    if blockers.is_empty() {
        return Ok(None);
    }
    let conflict = Conflict::Blocked { id, blockers };
    if policy.blocked_may_start() { Ok(Some(conflict.to_string())) } else { Err(conflict.into()) }
}

/// The end of the lease asked for; `Some(None)` for none, `None` when nothing was asked. Checked even when the task
/// will not be in progress.
pub(super) fn lease_end(ask: Option<LeaseAsk>, facts: &Facts) -> Result<Option<Option<Timestamp>>, Stop> {
    match ask {
        None => Ok(None),
        Some(LeaseAsk::Clear) => Ok(Some(None)),
        Some(LeaseAsk::Until(at)) => checked(at, facts.now).map(|at| Some(Some(at))),
        Some(LeaseAsk::Seconds(seconds)) if (1..=limits::LEASE_SECONDS_MAX).contains(&seconds) => {
            Ok(Some(Some(facts.now.plus_millis(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000)))))
        }
        Some(LeaseAsk::Seconds(seconds)) => Err(Invalid::OutOfRange {
            field: "lease_seconds",
            given: i64::try_from(seconds).unwrap_or(i64::MAX),
            min: 1,
            max: limits::LEASE_SECONDS_MAX.cast_signed(),
        }
        .into()),
    }
}

fn checked(at: Timestamp, now: Timestamp) -> Result<Timestamp, Stop> {
    let given = at.as_millis();
    if given > limits::TIME_MS_MAX {
        let (field, min, max) = ("leased_until", now.as_millis(), limits::TIME_MS_MAX);
        return Err(Invalid::OutOfRange { field, given, min, max }.into());
    }
    if given > 0 && given < limits::LEASE_MS_MIN {
        return Err(Invalid::LeaseInSeconds { given }.into());
    }
    if at <= now {
        return Err(Invalid::LeaseInPast { given, now: now.as_millis() }.into());
    }
    Ok(at)
}

/// The state with the lease put in; only a task in progress has one.
pub(super) fn with_lease(state: State, end: Option<Option<Timestamp>>) -> State {
    match (state, end) {
        (State::InProgress { owner, .. }, Some(lease)) => State::InProgress { owner, lease },
        (state, _) => state,
    }
}
