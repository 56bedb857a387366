//! Bringing a deleted task back. A task that was in progress comes back pending: its holder is long gone.

use super::update::stamped;
use super::{Facts, Stop, World, links, place};
use crate::change::{Change, Kind};
use crate::id::TaskId;
use crate::limits;
use crate::neighbourhood::Neighbourhood;
use crate::refusal::{Conflict, Missing};
use crate::task::{State, Status, Task};

pub(super) fn restore(id: &TaskId, world: &mut dyn World, facts: &Facts) -> Result<Task, Stop> {
    if let Some(task) = world.task(id)? {
        return Ok(task);
    }
    let Some(mut task) = world.tombstone(id)? else { return Err(Missing::Tombstone { id: id.clone() }.into()) };
    task.blocked_by = links::kept_blockers(&task.blocked_by, world)?;
    check_blockers(&task, world)?;
    if let Some(parent) = place::effective(task.parent.as_ref(), world)? {
        check_parent(id, &parent, world)?;
    }
    if task.status() == Status::InProgress {
        task.state = State::Pending { assignee: None };
        task.fence += 1;
    }
    let task = stamped(task, facts);
    world.apply(Change { kind: Kind::Restored, task: task.clone(), note: None })?;
    Ok(task)
}

/// While it was gone, its blockers may have come to wait for those that still name it.
fn check_blockers(task: &Task, list: &dyn Neighbourhood) -> Result<(), Stop> {
    for blocker in &task.blocked_by {
        if let Some(way) = list.way(blocker, &task.id)? {
            return Err(Conflict::RestoreCycle { path: closed(&task.id, way) }.into());
        }
    }
    Ok(())
}

/// While it was gone, its parent may have moved below those that still name it as their parent.
fn check_parent(id: &TaskId, parent: &TaskId, list: &dyn Neighbourhood) -> Result<(), Stop> {
    let mut way = vec![parent.clone()];
    while way.len() <= limits::TREE_DEPTH_MAX {
        let Some(next) = list.task(&way[way.len() - 1])?.and_then(|task| task.parent) else { break };
        way.push(next.clone());
        if next == *id {
            return Err(Conflict::RestoreCycle { path: closed(id, way) }.into());
        }
    }
    links::check_depth(parent, 0, list)
}

fn closed(id: &TaskId, way: Vec<TaskId>) -> Vec<TaskId> {
    std::iter::once(id.clone()).chain(way).collect()
}
