//! The revisions by themselves: whether each can follow the one before it, by the promises and not by the rules.

use std::collections::{BTreeMap, BTreeSet};

use taskbus::store::RevisionRow;
use taskbus_core::change::Kind as Why;
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::task::{State, Status, Task};
use taskbus_core::time::Timestamp;

use super::{Findings, History, Kind};

/// Checks the numbers of all, the steps of each task, and that nothing waits in a circle at the end.
pub(super) fn check(history: &History, findings: &mut Findings) {
    check_numbers(history, findings);
    let mut tasks: BTreeMap<&TaskId, &RevisionRow> = BTreeMap::new();
    for row in &history.revisions {
        findings.count("revisions");
        match tasks.insert(&row.task.id, row) {
            Some(before) => check_step(before, row, findings),
            None => check_first(row, findings),
        }
    }
    let live = tasks.values().filter(|row| row.kind != Why::Deleted).map(|row| &row.task);
    check_no_circle(&live.collect::<Vec<_>>(), findings);
}

/// No number is missing and none is there twice; a revision and a message have theirs from the same row.
fn check_numbers(history: &History, findings: &mut Findings) {
    let all = history.revisions.iter().map(|row| row.seq).chain(history.messages.iter().map(|message| message.seq));
    let mut seqs: Vec<u64> = all.collect();
    seqs.sort_unstable();
    for (at, seq) in seqs.iter().enumerate() {
        if *seq != at as u64 + 1 {
            return findings.wrong(Kind::Order, format!("number {seq} stands where {} should", at + 1));
        }
    }
}

fn check_first(row: &RevisionRow, findings: &mut Findings) {
    let id = &row.task.id;
    if row.kind != Why::Created || row.task.revision != 1 {
        findings.wrong(Kind::Order, format!("task {id} begins with revision {}, {:?}", row.task.revision, row.kind));
    }
    if id.as_number().is_some_and(|number| number != row.seq) {
        findings.wrong(Kind::Order, format!("task {id} was made as number {}: an id that was not new", row.seq));
    }
}

fn check_step(before: &RevisionRow, row: &RevisionRow, findings: &mut Findings) {
    let (old, new, seq) = (&before.task, &row.task, row.seq);
    let id = &new.id;
    if row.kind == Why::Created {
        findings.wrong(Kind::Twice, format!("task {id} was made a second time, at {seq}"));
    }
    if new.revision != old.revision + 1 {
        findings.wrong(Kind::Order, format!("task {id}: revision {} at {seq} follows {}", new.revision, old.revision));
    }
    if new.fence < old.fence || (is_taken(old, new) && new.fence <= old.fence) {
        findings.wrong(Kind::Order, format!("task {id}: fence {} at {seq} after {}", new.fence, old.fence));
    }
    if let Some(words) = wrong_owner(old, row) {
        findings.wrong(Kind::Owner, format!("task {id} at {seq}: {words}"));
    }
}

fn is_taken(old: &Task, new: &Task) -> bool {
    let holder = |task: &Task| matches!(task.state, State::InProgress { .. }).then(|| task.owner().cloned());
    holder(new).is_some_and(|now| holder(old) != Some(now))
}

/// What no revision may do to the owner that was there.
fn wrong_owner(old: &Task, row: &RevisionRow) -> Option<String> {
    let (by, at) = (row.task.updated.by.as_ref(), row.task.updated.at);
    match (&old.state, row.kind) {
        (State::InProgress { .. }, Why::Forced | Why::Reranked) => None,
        (State::InProgress { owner, lease }, Why::Reclaimed) => early(owner.as_ref(), *lease, at),
        (_, Why::Reclaimed) => Some(format!("it was given back while {}", old.status().as_str())),
        (State::InProgress { owner, lease }, _) if owner.as_ref() != by => Some(stranger(owner.as_ref(), *lease, by)),
        _ => None,
    }
}

/// A lease that has not ended keeps its task.
fn early(owner: Option<&Identity>, lease: Option<Timestamp>, at: Timestamp) -> Option<String> {
    let left_ms = lease?.as_millis() - at.as_millis();
    (left_ms > 0).then(|| format!("it was taken from {owner:?} {left_ms} ms before its lease ended"))
}

fn stranger(owner: Option<&Identity>, lease: Option<Timestamp>, by: Option<&Identity>) -> String {
    format!("{by:?} changed it while {owner:?} held it until {lease:?}")
}

/// Takes away what waits for nothing that is left, until nothing more goes.
fn check_no_circle(live: &[&Task], findings: &mut Findings) {
    let mut left: BTreeSet<&TaskId> = live.iter().map(|task| &task.id).collect();
    loop {
        let free =
            |task: &&&Task| left.contains(&task.id) && !task.blocked_by.iter().any(|blocker| left.contains(blocker));
        let gone: Vec<&TaskId> = live.iter().filter(free).map(|task| &task.id).collect();
        if gone.is_empty() {
            break;
        }
        gone.into_iter().for_each(|id| {
            left.remove(id);
        });
    }
    if !left.is_empty() {
        findings.wrong(
            Kind::Unruly,
            format!("these tasks wait for each other in a circle, or for one that does: {left:?}"),
        );
    }
    findings.add("tasks left", live.len() as u64);
    findings.add("tasks completed", live.iter().filter(|task| task.status() == Status::Completed).count() as u64);
}
