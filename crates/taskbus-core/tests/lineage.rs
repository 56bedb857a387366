//! Which fields each kind of revision may change, one by one: what a replay accepts and what it tells.
#![allow(clippy::unwrap_used)]

use serde_json::json;
use taskbus_core::change::Kind;
use taskbus_core::document;
use taskbus_core::id::TaskId;
use taskbus_core::lineage::{Unlawful, follows};
use taskbus_core::name::Identity;
use taskbus_core::policy::Policy;
use taskbus_core::task::{Stamp, State, Task};
use taskbus_core::time::Timestamp;

fn who(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn read(text: &serde_json::Value) -> Task {
    let stamp = Stamp { at: at(5), by: Some(who("zed")) };
    document::decode(TaskId::Number(7), 3, stamp, &text.to_string()).unwrap()
}

/// A pending task that has something in each field.
fn full() -> Task {
    read(&json!({"subject": "a", "description": "b", "active_form": "c", "status": "pending", "rank": "V", "parent": 1,
        "blocked_by": [2, 3], "not_before": 4, "labels": ["d"], "paths": ["e"], "metadata": {"f": 1}, "result": "g",
        "created_at": 1, "created_by": "jan", "fence": 4, "reclaims": 2, "extra": "h"}))
}

/// Another one, so that each field has another value to take.
fn other() -> Task {
    read(&json!({"subject": "b", "description": "c", "active_form": "d", "status": "completed", "completed_at": 6,
        "rank": "W", "parent": 9, "blocked_by": [2], "not_before": 5, "labels": ["e"], "paths": ["f"],
        "metadata": {"f": 2}, "result": "h", "created_at": 2, "created_by": "amp", "fence": 9, "reclaims": 1,
        "parked": true, "extra": "i"}))
}

type Field = (&'static str, fn(&mut Task, Task));

const FIELDS: [Field; 16] = [
    ("subject", |task, other| task.subject = other.subject),
    ("description", |task, other| task.description = other.description),
    ("active form", |task, other| task.active_form = other.active_form),
    ("status", |task, other| task.state = other.state),
    ("parent", |task, other| task.parent = other.parent),
    ("rank", |task, other| task.rank = other.rank),
    ("blockers", |task, other| task.blocked_by = other.blocked_by),
    ("time before which it is not ready", |task, other| task.not_before = other.not_before),
    ("labels", |task, other| task.labels = other.labels),
    ("paths", |task, other| task.paths = other.paths),
    ("metadata", |task, other| task.metadata = other.metadata),
    ("result", |task, other| task.result = other.result),
    ("creation", |task, other| task.created = other.created),
    ("reclaims", |task, other| task.reclaims = other.reclaims),
    ("parking", |task, other| task.parked = other.parked),
    ("unknown fields", |task, other| task.extra = other.extra),
];

/// The revision behind `before`, made by `by` a moment later.
fn then(before: &Task, by: &str, f: impl FnOnce(&mut Task)) -> Task {
    let mut task = before.clone();
    task.revision += 1;
    task.updated = Stamp { at: at(6), by: Some(who(by)) };
    f(&mut task);
    task
}

fn held(by: &str) -> Task {
    let mut task = full();
    task.state = State::InProgress { owner: Some(who(by)), lease: Some(at(99)) };
    task
}

/// Takes `after` as it is, and with each field changed tells that one, but for those that may change.
#[track_caller]
fn only(before: &Task, last: Kind, kind: Kind, after: &Task, may: &[&str]) {
    let judged = |after: &Task| follows(Some((before, last)), kind, after, Policy::Strict);
    assert_eq!(judged(after), Ok(()));
    for (field, change) in FIELDS {
        let mut changed = after.clone();
        change(&mut changed, other());
        let expected = if may.contains(&field) { Ok(()) } else { Err(Unlawful::Field { field, kind }) };
        assert_eq!(judged(&changed), expected, "{kind:?}, {field}");
    }
    for (field, wrong) in
        [("revision", Task { revision: 9, ..after.clone() }), ("fence", Task { fence: 9, ..after.clone() })]
    {
        let told = judged(&wrong).unwrap_err().to_string();
        assert!(told.starts_with(&format!("the {field} is 9, not ")), "{told}");
    }
    let another = Task { id: TaskId::Number(8), ..after.clone() };
    assert!(matches!(judged(&another), Err(Unlawful::Order { .. })));
}

#[test]
fn a_new_rank_changes_nothing_else() {
    let before = full();
    only(&before, Kind::Changed, Kind::Reranked, &then(&before, "amp", |_| {}), &["rank"]);
}

#[test]
fn a_deletion_changes_nothing() {
    let before = full();
    only(&before, Kind::Changed, Kind::Deleted, &then(&before, "amp", |_| {}), &[]);
}

#[test]
fn a_reclaim_frees_the_task_and_counts_itself() {
    let before = held("zed");
    let after = then(&before, "amp", |task| {
        task.state = State::Pending { assignee: None };
        (task.fence, task.reclaims) = (5, 3);
    });
    only(&before, Kind::Changed, Kind::Reclaimed, &after, &["parking"]);
}

#[test]
fn a_restored_task_comes_back_free_and_without_blockers_that_are_gone() {
    let before = held("zed");
    let after = then(&before, "amp", |task| {
        task.state = State::Pending { assignee: None };
        task.fence = 5;
    });
    only(&before, Kind::Deleted, Kind::Restored, &after, &["blockers"]);
    let pending = full();
    only(&pending, Kind::Deleted, Kind::Restored, &then(&pending, "amp", |_| {}), &["blockers"]);
    let more = then(&pending, "amp", |task| task.blocked_by.push(TaskId::Number(9)));
    let told = follows(Some((&pending, Kind::Deleted)), Kind::Restored, &more, Policy::Strict);
    assert_eq!(told, Err(Unlawful::Field { field: "blockers", kind: Kind::Restored }));
}

#[test]
fn a_change_leaves_what_counts_up_and_where_the_task_is_from() {
    let before = full();
    let may: Vec<&str> = FIELDS.map(|(field, _)| field)[..12].to_vec();
    // Completing starts the count of reclaims anew.
    let may: Vec<&str> = may.into_iter().filter(|field| *field != "status").collect();
    let after = then(&before, "amp", |_| {});
    let judged = |after: &Task| follows(Some((&before, Kind::Changed)), Kind::Changed, after, Policy::Strict);
    for (field, change) in FIELDS.into_iter().filter(|(field, _)| *field != "status") {
        let mut changed = after.clone();
        change(&mut changed, other());
        let expected = if may.contains(&field) { Ok(()) } else { Err(Unlawful::Field { field, kind: Kind::Changed }) };
        assert_eq!(judged(&changed), expected, "{field}");
    }
    let done = State::Completed { by: Some(who("amp")), at: at(6) };
    assert!(judged(&then(&before, "amp", |task| task.state = done.clone())).is_err(), "the reclaims stay");
    assert_eq!(judged(&then(&before, "amp", |task| (task.state, task.reclaims) = (done, 0))), Ok(()));
    let parked = Task { parked: true, ..full() };
    let freed = then(&parked, "amp", |task| (task.parked, task.reclaims) = (false, 0));
    assert_eq!(follows(Some((&parked, Kind::Changed)), Kind::Changed, &freed, Policy::Strict), Ok(()));
    let kept = then(&parked, "amp", |task| task.parked = false);
    assert!(follows(Some((&parked, Kind::Changed)), Kind::Changed, &kept, Policy::Strict).is_err());
}

#[test]
fn force_raises_the_fence_and_so_does_each_new_holder() {
    let before = held("zed");
    let judged = |kind, after: &Task| follows(Some((&before, Kind::Changed)), kind, after, Policy::Strict);
    let handed = |fence| {
        then(&before, "zed", move |task| {
            task.state = State::InProgress { owner: Some(who("amp")), lease: None };
            task.fence = fence;
        })
    };
    assert_eq!(judged(Kind::Changed, &handed(5)), Ok(()));
    assert!(judged(Kind::Changed, &handed(4)).is_err());
    let forced = |fence| then(&before, "roo", move |task| task.fence = fence);
    assert_eq!((judged(Kind::Forced, &forced(5)), judged(Kind::Forced, &forced(4)).is_err()), (Ok(()), true));
    assert_eq!(judged(Kind::Changed, &forced(4)), Err(Unlawful::Owner));
}

#[test]
fn times_are_those_of_the_change() {
    let before = held("zed");
    let judged = |after: &Task| follows(Some((&before, Kind::Changed)), Kind::Changed, after, Policy::Strict);
    let lease = |end| {
        then(&before, "zed", move |task| {
            task.state = State::InProgress { owner: Some(who("zed")), lease: Some(at(end)) };
        })
    };
    assert_eq!((judged(&lease(7)), judged(&lease(99))), (Ok(()), Ok(())));
    let ended = Err(Unlawful::Field { field: "end of the lease", kind: Kind::Changed });
    assert_eq!((judged(&lease(6)), judged(&lease(5))), (ended.clone(), ended));
    let done = |millis| {
        then(&before, "zed", move |task| {
            (task.state, task.reclaims) = (State::Completed { by: Some(who("zed")), at: at(millis) }, 0);
        })
    };
    let late = Err(Unlawful::Field { field: "time of completion", kind: Kind::Changed });
    assert_eq!((judged(&done(6)), judged(&done(7))), (Ok(()), late.clone()));
    let completed = Task { revision: 3, ..done(6) };
    let again = then(&completed, "zed", |task| task.state = State::Completed { by: Some(who("zed")), at: at(7) });
    assert_eq!(follows(Some((&completed, Kind::Changed)), Kind::Changed, &again, Policy::Strict), late);
}

#[test]
fn a_history_begins_with_a_creation_and_nothing_else() {
    let fresh = read(&json!({"subject": "a", "status": "pending", "rank": "V", "created_at": 5, "created_by": "zed"}));
    let fresh = Task { revision: 1, ..fresh };
    let begins = |kind, task: &Task| follows(None, kind, task, Policy::Strict);
    assert_eq!(begins(Kind::Created, &fresh), Ok(()));
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Created) {
        assert_eq!(begins(kind, &fresh), Err(Unlawful::Order { before: None, kind }));
    }
    assert!(begins(Kind::Created, &Task { revision: 2, ..fresh.clone() }).is_err());
    assert!(begins(Kind::Created, &Task { fence: 1, ..fresh.clone() }).is_err());
    let assigned = State::Pending { assignee: Some(who("zed")) };
    assert!(begins(Kind::Created, &Task { state: assigned, ..fresh.clone() }).is_err());
    assert!(begins(Kind::Created, &Task { created: Stamp { at: at(4), by: Some(who("zed")) }, ..fresh }).is_err());
}

/// Which kinds may follow a live and a deleted task; only some lists go on changing what is deleted.
#[test]
fn the_dead_only_come_back() {
    let before = full();
    let order = |last, kind, policy| {
        let judged = follows(Some((&before, last)), kind, &then(&before, "zed", |_| {}), policy);
        !matches!(judged, Err(Unlawful::Order { .. }))
    };
    let fits = |last, policy| Kind::ALL.into_iter().filter(|kind| order(last, *kind, policy)).collect::<Vec<_>>();
    let live = [Kind::Changed, Kind::Forced, Kind::Reranked, Kind::Deleted];
    for kind in Kind::ALL {
        assert_eq!(order(Kind::Changed, kind, Policy::Strict), live.contains(&kind), "{kind:?}");
    }
    assert_eq!(fits(Kind::Deleted, Policy::Strict), [Kind::Restored]);
    assert!(fits(Kind::Deleted, Policy::Kin).contains(&Kind::Deleted));
    let renamed = then(&before, "zed", |task| task.subject = other().subject);
    assert_eq!(follows(Some((&before, Kind::Deleted)), Kind::Deleted, &renamed, Policy::Kin), Ok(()));
    let done = then(&before, "zed", |task| task.state = other().state);
    assert!(follows(Some((&before, Kind::Deleted)), Kind::Deleted, &done, Policy::Kin).is_err());
}

/// A list in the manner of Claude Code guards nobody's tasks.
#[test]
fn only_some_lists_guard_owners() {
    let before = held("zed");
    let taken = then(&before, "amp", |task| {
        (task.state, task.fence) = (State::InProgress { owner: Some(who("amp")), lease: None }, 5);
    });
    let judged = |after: &Task, policy| follows(Some((&before, Kind::Changed)), Kind::Changed, after, policy);
    assert_eq!((judged(&taken, Policy::Claude), judged(&taken, Policy::Strict)), (Ok(()), Err(Unlawful::Owner)));
    let nobodys = then(&before, "zed", |task| {
        (task.state, task.fence) = (State::InProgress { owner: None, lease: None }, 5);
    });
    let told = Err(Unlawful::Field { field: "status", kind: Kind::Changed });
    assert_eq!((judged(&nobodys, Policy::Claude), judged(&nobodys, Policy::Strict)), (Ok(()), told));
}
