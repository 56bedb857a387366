//! Whether a revision may follow the one before it: the rules looked at from behind, for whoever replays a history.
//!
//! It sees one task and knows neither the list around it nor who was alive, so that it cannot say whether a call should
//! have been refused. What it says is that no call can have led from the one revision to the other. Called by
//! `taskbus verify`; decides nothing about new changes, which is [`decide`](crate::decide)'s alone.

use crate::change::Kind;
use crate::policy::Policy;
use crate::task::{State, Status, Task};

/// Why a revision cannot follow the one before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unlawful {
    /// Something other than a creation without a task, or a creation of one that is there.
    #[error("{kind:?} does not follow {before:?}")]
    Order {
        /// What the revision before did; none for the first.
        before: Option<Kind>,
        /// What this one does.
        kind: Kind,
    },
    /// A number that counts up by rules is another.
    #[error("the {field} is {is}, not {expected}")]
    Count {
        /// Which number.
        field: &'static str,
        /// What it is.
        is: u64,
        /// What it has to be.
        expected: u64,
    },
    /// A field that such a change leaves as it is differs.
    #[error("the {field} differs, which no {kind:?} revision changes so")]
    Field {
        /// Which field.
        field: &'static str,
        /// What the revision does.
        kind: Kind,
    },
    /// Somebody changed what another one holds, without force.
    #[error("it was changed by somebody who does not hold it, without force")]
    Owner,
}

/// Whether a revision of this kind, with the task as it is afterwards, may follow `before`.
///
/// # Errors
/// [`Unlawful`]: the first thing that does not fit.
pub fn follows(before: Option<(&Task, Kind)>, kind: Kind, after: &Task, policy: Policy) -> Result<(), Unlawful> {
    let Some((before, last)) = before else { return begins(kind, after) };
    let lives = last != Kind::Deleted;
    let fits = match kind {
        Kind::Created => false,
        Kind::Restored => !lives,
        Kind::Deleted => lives || policy.keeps_deleted(),
        Kind::Reclaimed => lives && before.status() == Status::InProgress,
        Kind::Changed | Kind::Forced | Kind::Reranked => lives,
    };
    if !fits || before.id != after.id {
        return Err(Unlawful::Order { before: Some(last), kind });
    }
    count("revision", after.revision, before.revision + 1)?;
    let expected = match kind {
        Kind::Deleted if !lives => edited(before, after),
        Kind::Created | Kind::Deleted => before.clone(),
        Kind::Reclaimed => reclaimed(before, after),
        Kind::Restored => restored(before, after),
        Kind::Reranked => Task { rank: after.rank.clone(), ..before.clone() },
        Kind::Changed | Kind::Forced => changed(before, kind, after, policy)?,
    };
    count("fence", after.fence, expected.fence)?;
    same(&expected, after, kind)?;
    guarded(before, last, kind, after, policy)
}

fn begins(kind: Kind, task: &Task) -> Result<(), Unlawful> {
    if kind != Kind::Created {
        return Err(Unlawful::Order { before: None, kind });
    }
    count("revision", task.revision, 1)?;
    count("fence", task.fence, 0)?;
    if task.state != (State::Pending { assignee: None }) {
        return Err(Unlawful::Field { field: "status", kind });
    }
    if task.created == task.updated { Ok(()) } else { Err(Unlawful::Field { field: "time of creation", kind }) }
}

fn count(field: &'static str, is: u64, expected: u64) -> Result<(), Unlawful> {
    if is == expected { Ok(()) } else { Err(Unlawful::Count { field, is, expected }) }
}

/// A deleted task on a list that keeps those: its fields change, and it stays deleted.
fn edited(before: &Task, after: &Task) -> Task {
    let (state, created) = (before.state.clone(), before.created.clone());
    let (fence, reclaims, parked, extra) = (before.fence, before.reclaims, before.parked, before.extra.clone());
    Task { state, created, fence, reclaims, parked, extra, ..after.clone() }
}

fn reclaimed(before: &Task, after: &Task) -> Task {
    let reclaims = before.reclaims.saturating_add(1);
    Task { state: pending(), fence: before.fence + 1, reclaims, parked: after.parked, ..before.clone() }
}

fn restored(before: &Task, after: &Task) -> Task {
    let held = before.status() == Status::InProgress;
    let state = if held { pending() } else { before.state.clone() };
    let mut blocked_by = before.blocked_by.clone();
    // What is gone meanwhile blocks no more.
    blocked_by.retain(|blocker| after.blocked_by.contains(blocker));
    Task { state, fence: before.fence + u64::from(held), blocked_by, ..before.clone() }
}

fn pending() -> State {
    State::Pending { assignee: None }
}

/// An ordinary change may touch everything but what counts up, and where the task comes from.
fn changed(before: &Task, kind: Kind, after: &Task, policy: Policy) -> Result<Task, Unlawful> {
    let (was, is) = (before.status(), after.status());
    let restarts = was == Status::Completed && is == Status::InProgress && !policy.may_restart_completed();
    if restarts || (is == Status::InProgress && after.owner().is_none() && policy.guards_owners()) {
        return Err(Unlawful::Field { field: "status", kind });
    }
    check_times(before, kind, after)?;
    let claimed = is == Status::InProgress && (was != Status::InProgress || before.owner() != after.owner());
    let completed = was != Status::Completed && is == Status::Completed;
    let fence = before.fence + u64::from(claimed || kind == Kind::Forced);
    let reclaims = if completed || before.parked { 0 } else { before.reclaims };
    let (created, extra) = (before.created.clone(), before.extra.clone());
    Ok(Task { created, extra, fence, reclaims, parked: false, ..after.clone() })
}

/// A new lease ends after the change, and what is completed now was completed now.
fn check_times(before: &Task, kind: Kind, after: &Task) -> Result<(), Unlawful> {
    let new = after.leased_until().filter(|until| before.leased_until() != Some(*until));
    if new.is_some_and(|until| until <= after.updated.at) {
        return Err(Unlawful::Field { field: "end of the lease", kind });
    }
    match (before.completed_at(), after.completed_at()) {
        (None, Some(at)) if at != after.updated.at => Err(Unlawful::Field { field: "time of completion", kind }),
        (Some(was), Some(at)) if was != at => Err(Unlawful::Field { field: "time of completion", kind }),
        _ => Ok(()),
    }
}

/// Nobody changes what another one holds, or takes what is another one's, without force. Whoever completes a task and
/// clears its owner in one call is its owner of record afterwards, as after two calls: that takes nothing.
fn guarded(before: &Task, last: Kind, kind: Kind, after: &Task, policy: Policy) -> Result<(), Unlawful> {
    let plain = kind == Kind::Changed || (kind == Kind::Deleted && last != Kind::Forced);
    let by = after.updated.by.as_ref();
    let Some(owner) = before.owner().filter(|owner| plain && Some(*owner) != by) else { return Ok(()) };
    let held = before.status() == Status::InProgress;
    let completes = before.completed_at().is_none() && after.completed_at().is_some() && after.owner() == by;
    let takes = !completes && after.owner().is_some_and(|new| new != owner);
    if policy.guards_owners() && (held || takes) { Err(Unlawful::Owner) } else { Ok(()) }
}

/// The stamp and the number of the revision are new in each.
fn same(expected: &Task, after: &Task, kind: Kind) -> Result<(), Unlawful> {
    let fields = [
        ("subject", expected.subject == after.subject),
        ("description", expected.description == after.description),
        ("active form", expected.active_form == after.active_form),
        ("status", expected.state == after.state),
        ("parent", expected.parent == after.parent),
        ("rank", expected.rank == after.rank),
        ("blockers", expected.blocked_by == after.blocked_by),
        ("time before which it is not ready", expected.not_before == after.not_before),
        ("labels", expected.labels == after.labels),
        ("paths", expected.paths == after.paths),
        ("metadata", expected.metadata == after.metadata),
        ("result", expected.result == after.result),
        ("creation", expected.created == after.created),
        ("reclaims", expected.reclaims == after.reclaims),
        ("parking", expected.parked == after.parked),
        ("unknown fields", expected.extra == after.extra),
    ];
    match fields.iter().find(|(_, same)| !same) {
        Some((field, _)) => Err(Unlawful::Field { field, kind }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document;
    use crate::id::TaskId;
    use crate::name::Identity;
    use crate::task::Stamp;
    use crate::time::Timestamp;

    fn who(name: &str) -> Identity {
        Identity::new(name).unwrap()
    }

    fn stamp(at: i64, by: &str) -> Stamp {
        Stamp { at: Timestamp::from_millis(at), by: Some(who(by)) }
    }

    fn fresh() -> Task {
        let text = json!({"subject": "a", "status": "pending", "rank": "V", "created_at": 5, "created_by": "zed"});
        document::decode(TaskId::Number(7), 1, stamp(5, "zed"), &text.to_string()).unwrap()
    }

    fn then(task: &Task, by: &str, f: impl FnOnce(&mut Task)) -> Task {
        let mut task = task.clone();
        task.revision += 1;
        task.updated = stamp(task.updated.at.as_millis() + 1, by);
        f(&mut task);
        task
    }

    fn claimed(task: &Task, by: &str) -> Task {
        then(task, by, |task| {
            task.state = State::InProgress { owner: Some(who(by)), lease: Some(Timestamp::from_millis(99)) };
            task.fence += 1;
        })
    }

    #[track_caller]
    fn lawful(before: &Task, last: Kind, kind: Kind, after: &Task) {
        assert_eq!(follows(Some((before, last)), kind, after, Policy::Strict), Ok(()));
    }

    #[track_caller]
    fn unlawful(before: &Task, last: Kind, kind: Kind, after: &Task, words: &str) {
        let error = follows(Some((before, last)), kind, after, Policy::Strict).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn a_life_from_creation_to_restoration() {
        let task = fresh();
        assert_eq!(follows(None, Kind::Created, &task, Policy::Strict), Ok(()));
        let held = claimed(&task, "amp");
        lawful(&task, Kind::Created, Kind::Changed, &held);
        let back = then(&held, "jan", |task| {
            task.state = pending();
            (task.fence, task.reclaims) = (task.fence + 1, 1);
        });
        lawful(&held, Kind::Changed, Kind::Reclaimed, &back);
        let done = then(&back, "jan", |task| {
            task.state = State::Completed { by: Some(who("jan")), at: task.updated.at };
            task.reclaims = 0;
        });
        lawful(&back, Kind::Reclaimed, Kind::Changed, &done);
        let gone = then(&done, "zed", |_| {});
        lawful(&done, Kind::Changed, Kind::Deleted, &gone);
        lawful(&gone, Kind::Deleted, Kind::Restored, &then(&gone, "zed", |_| {}));
    }

    #[test]
    fn what_no_call_does_is_told() {
        let task = fresh();
        let held = claimed(&task, "amp");
        let changed = Kind::Changed;
        assert!(follows(None, changed, &task, Policy::Strict).is_err());
        unlawful(&task, Kind::Created, Kind::Created, &held, "does not follow");
        unlawful(&task, Kind::Deleted, changed, &held, "does not follow");
        unlawful(&task, changed, Kind::Restored, &held, "does not follow");
        unlawful(&task, changed, Kind::Reclaimed, &then(&task, "amp", |_| {}), "does not follow");
        unlawful(&task, changed, changed, &Task { revision: 3, ..held.clone() }, "revision is 3, not 2");
        unlawful(&task, changed, changed, &Task { fence: 0, ..held.clone() }, "fence is 0, not 1");
        unlawful(&held, changed, changed, &then(&held, "jan", |_| {}), "without force");
        unlawful(&held, changed, Kind::Deleted, &then(&held, "jan", |_| {}), "without force");
        unlawful(&held, changed, Kind::Forced, &then(&held, "jan", |_| {}), "fence is 1, not 2");
        let early = then(&held, "amp", |task| {
            task.state = State::InProgress { owner: Some(who("amp")), lease: Some(Timestamp::from_millis(3)) };
        });
        unlawful(&held, changed, changed, &early, "end of the lease");
        let renamed = then(&held, "amp", |task| task.subject = crate::text::Subject::new("b").unwrap());
        unlawful(&held, changed, Kind::Reranked, &renamed, "subject differs");
        lawful(&held, changed, changed, &renamed);
        let done = then(&held, "amp", |task| task.state = State::Completed { by: None, at: task.updated.at });
        let again = claimed(&done, "amp");
        unlawful(&done, changed, changed, &again, "status");
        assert_eq!(follows(Some((&done, changed)), changed, &again, Policy::Claude), Ok(()));
        unlawful(&held, changed, changed, &then(&held, "amp", |task| task.created.at = task.updated.at), "creation");
    }

    #[test]
    fn completing_what_is_assigned_to_another_takes_it_only_for_a_third() {
        let assigned = then(&fresh(), "zed", |task| task.state = State::Pending { assignee: Some(who("zed")) });
        let completed = |by: &str| {
            then(&assigned, "amp", |task| task.state = State::Completed { by: Some(who(by)), at: task.updated.at })
        };
        lawful(&assigned, Kind::Changed, Kind::Changed, &completed("zed"));
        lawful(&assigned, Kind::Changed, Kind::Changed, &completed("amp"));
        unlawful(&assigned, Kind::Changed, Kind::Changed, &completed("jan"), "without force");
        unlawful(&assigned, Kind::Changed, Kind::Changed, &claimed(&assigned, "amp"), "without force");
    }
}
