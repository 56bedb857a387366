//! Tasks as they are answered: with what is derived from their neighbours, and in words where words help.

use std::collections::BTreeSet;

use taskbus_core::decide::{Facts, Outlook, is_kept_apart, outlook};
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::limits::IDS_SHOWN_MAX;
use taskbus_core::name::ListName;
use taskbus_core::neighbourhood::{Look, Neighbourhood};
use taskbus_core::task::{State, Task};
use taskbus_core::time::Timestamp;

use crate::answer::{Advice, Holder, Idle, ListView, SessionView, Summary, TaskView};
use crate::store::{ListRow, Row, SessionRow};

/// Most holders named when nothing is ready.
const HOLDERS_SHOWN_MAX: usize = 16;

/// A task whole.
pub(super) fn task(list: &ListName, mut task: Task, around: &dyn Neighbourhood) -> Look<TaskView> {
    let open_blockers = around.open_of(&task.blocked_by)?;
    task.blocked_by = those_there(task.blocked_by, &open_blockers, around)?;
    let blocks = around.dependents(&task.id)?.into_iter().map(|dependent| dependent.id).take(IDS_SHOWN_MAX).collect();
    Ok(TaskView::new(list.clone(), task, open_blockers, blocks))
}

/// The blockers that are still there. A dead one stays in the document until the next write, but is nothing to show,
/// unless the list shows its deleted tasks too.
fn those_there(ids: Vec<TaskId>, open: &[TaskId], around: &dyn Neighbourhood) -> Look<Vec<TaskId>> {
    if ids.len() == open.len() || around.rules()?.policy.keeps_deleted() {
        return Ok(ids);
    }
    around.live_of(&ids)
}

/// Why a task is not ready, one sentence part for each reason; none when it is.
pub(super) fn not_ready(task: &Task, around: &dyn Neighbourhood, now: Timestamp) -> Look<Vec<String>> {
    match &task.state {
        State::Completed { by, .. } => Ok(vec![format!("completed{}", by_whom(by.as_ref()))]),
        State::InProgress { owner, lease } => {
            let until = lease.map_or_else(String::new, |at| format!(" until {at}"));
            Ok(vec![format!("in progress{}{until}", by_whom(owner.as_ref()))])
        }
        State::Pending { .. } => not_ready_yet(task, around, now),
    }
}

fn not_ready_yet(task: &Task, around: &dyn Neighbourhood, now: Timestamp) -> Look<Vec<String>> {
    let mut reasons = Vec::new();
    let blockers = around.open_of(&task.blocked_by)?;
    if !blockers.is_empty() {
        reasons.push(format!("blocked by {}", joined(&blockers)));
    }
    if let Some(at) = task.not_before.filter(|at| *at > now) {
        reasons.push(format!("deferred until {at}"));
    }
    if task.parked {
        reasons.push(format!("parked after {} reclaims; change it to make it ready", task.reclaims));
    }
    let touching = touching(&task.paths, around)?;
    if !touching.is_empty() {
        reasons.push(format!("its paths are in use by task {}", joined(&touching)));
    }
    Ok(reasons)
}

fn by_whom(who: Option<&taskbus_core::name::Identity>) -> String {
    who.map_or_else(String::new, |who| format!(" by {who}"))
}

fn joined(ids: &[TaskId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The in-progress tasks that touch these paths.
fn touching(paths: &BTreeSet<PathGlob>, around: &dyn Neighbourhood) -> Look<Vec<TaskId>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let in_use = around.paths_in_use()?.into_iter();
    Ok(in_use.filter(|used| is_kept_apart(paths, std::slice::from_ref(used))).map(|(id, _)| id).collect())
}

/// Why nothing is ready, and what to do about it.
pub(super) fn idle(around: &dyn Neighbourhood, facts: &Facts) -> Look<Idle> {
    let tally = around.tally(facts.now)?;
    let holders: Vec<Holder> = around.held(HOLDERS_SHOWN_MAX)?.into_iter().map(holder).collect();
    let own = holders.iter().filter(|holder| holder.owner == facts.caller).count() as u64;
    let advice = match outlook(&tally, tally.in_progress > own) {
        Outlook::Wait => Advice::Wait,
        Outlook::Done => Advice::Done,
        Outlook::Stuck => Advice::Stuck,
    };
    Ok(Idle {
        advice,
        ready_for_others: tally.ready,
        blocked: tally.blocked,
        in_progress: tally.in_progress,
        holders,
        deferred: tally.deferred,
        parked: tally.parked,
        done: tally.completed,
    })
}

fn holder(task: Task) -> Holder {
    Holder { owner: task.owner().cloned(), leased_until: task.leased_until(), id: task.id }
}

/// A row of a page.
pub(super) fn summary(row: Row) -> Summary {
    Summary {
        id: row.id,
        subject: row.subject,
        status: row.status,
        owner: row.owner,
        parent: row.parent,
        depth: row.depth,
        open_blockers: row.open_blockers,
        leased_until: row.leased_until,
        not_before: row.not_before,
        parked: row.parked,
        labels: row.labels,
        has_details: row.has_details,
    }
}

/// A list in short.
pub(super) fn list(row: ListRow) -> ListView {
    ListView { name: row.name, tasks: row.live, latest_seq: row.latest_seq }
}

/// A session in short.
pub(super) fn session(row: SessionRow) -> SessionView {
    SessionView { name: row.name, context: row.context, client: row.client, registered_at: row.registered_at }
}
