//! Pages of a list in memory, read off the whole board.

use taskbus_core::board::Board;
use taskbus_core::task::{Status, Task};
use taskbus_core::time::Timestamp;
use taskbus_core::tree::TreePath;

use crate::store::{Page, PageQuery, Row, View};

/// Pending, no open blocker, due, not parked.
pub(super) fn is_ready(board: &Board, task: &Task, now: Timestamp) -> bool {
    task.status() == Status::Pending
        && !task.parked
        && task.not_before.is_none_or(|at| at <= now)
        && board.open_blockers(task).is_empty()
}

pub(super) fn page(board: &Board, query: &PageQuery) -> Page {
    let mut rows = Vec::new();
    let (mut total, mut more) = (0, false);
    for (task, depth, path) in placed(board, query) {
        if !is_selected(board, task, query) {
            continue;
        }
        total += 1;
        if query.after.as_ref().is_some_and(|after| path <= *after) {
            continue;
        }
        if rows.len() == query.limit {
            more = true;
        } else {
            rows.push(row(board, task, depth, path));
        }
    }
    Page { rows, total, more }
}

/// The tasks that the query is about with their places, in tree order.
fn placed<'a>(board: &'a Board, query: &PageQuery) -> impl Iterator<Item = (&'a Task, usize, TreePath)> {
    let top = query.below.as_ref().and_then(|id| board.path(id));
    let base = query.below.as_ref().map_or(0, |id| depth(board, id) + 1);
    let tasks =
        if query.below.is_some() && top.is_none() { Vec::new() } else { board.below(query.below.as_ref(), base) };
    let mut above = vec![top.unwrap_or_default()];
    tasks.into_iter().map(move |(task, depth)| {
        above.truncate(depth - base + 1);
        let path = above[depth - base].child(&task.rank, &task.id);
        above.push(path.clone());
        (task, depth, path)
    })
}

fn depth(board: &Board, id: &taskbus_core::id::TaskId) -> usize {
    let live_parent = |task: &&Task| task.parent.as_ref().and_then(|parent| board.get(parent));
    std::iter::successors(board.get(id), |task| live_parent(task)).count().saturating_sub(1)
}

fn is_selected(board: &Board, task: &Task, query: &PageQuery) -> bool {
    let seen = match query.view {
        View::Tree => true,
        View::Ready => is_ready(board, task, query.now),
        View::Blocked => task.status() == Status::Pending && !board.open_blockers(task).is_empty(),
    };
    seen && query.status.is_none_or(|status| task.status() == status)
        && query.owner.as_ref().is_none_or(|owner| task.owner() == Some(owner))
        && query.label.as_ref().is_none_or(|label| task.labels.contains(label))
}

fn row(board: &Board, task: &Task, depth: usize, path: TreePath) -> Row {
    Row {
        id: task.id.clone(),
        subject: task.subject.clone(),
        status: task.status(),
        owner: task.owner().cloned(),
        parent: task.parent.clone(),
        depth,
        open_blockers: board.open_blockers(task),
        leased_until: task.leased_until(),
        not_before: task.not_before,
        parked: task.parked,
        labels: task.labels.iter().cloned().collect(),
        has_details: task.has_details(),
        path,
    }
}
