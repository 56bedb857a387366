//! Parents and blockers: what they may be, and that neither graph closes on itself (docs/rules.md 5).

use std::collections::BTreeSet;

use super::Stop;
use crate::id::TaskId;
use crate::limits;
use crate::neighbourhood::{Look, Neighbourhood};
use crate::refusal::Invalid;

/// Blockers without duplicates, in the order given.
pub(super) fn deduplicated(ids: impl IntoIterator<Item = TaskId>) -> Vec<TaskId> {
    let mut seen = BTreeSet::new();
    ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

/// At most 64 blockers.
pub(super) fn check_count(field: &'static str, ids: &[TaskId]) -> Result<(), Stop> {
    if ids.len() > limits::BLOCKERS_MAX {
        return Err(Invalid::TooMany { field, max: limits::BLOCKERS_MAX, actual: ids.len() }.into());
    }
    Ok(())
}

/// Each must be a live task of the list.
pub(super) fn check_live(field: &'static str, ids: &[TaskId], list: &dyn Neighbourhood) -> Result<(), Stop> {
    let live = list.live_of(ids)?;
    match ids.iter().find(|id| !live.contains(id)) {
        Some(id) => Err(Invalid::NotLive { field, id: id.clone() }.into()),
        None => Ok(()),
    }
}

/// Of the blockers that a task has, those that it keeps, in order: dead ones go at the next write, unless the list
/// keeps its deleted tasks.
pub(super) fn kept_blockers(ids: &[TaskId], list: &dyn Neighbourhood) -> Look<Vec<TaskId>> {
    let mut kept = list.live_of(ids)?;
    if kept.len() < ids.len() && list.rules()?.policy.keeps_deleted() {
        for id in ids {
            if !kept.contains(id) && list.tombstone(id)?.is_some() {
                kept.push(id.clone());
            }
        }
        kept.sort_by_key(|id| ids.iter().position(|given| given == id));
    }
    Ok(kept)
}

/// Each must be a task that can be a blocker here: live, or deleted where the list keeps those.
pub(super) fn check_blockers(field: &'static str, ids: &[TaskId], list: &dyn Neighbourhood) -> Result<(), Stop> {
    let kept = kept_blockers(ids, list)?;
    match ids.iter().find(|id| !kept.contains(id)) {
        Some(id) => Err(Invalid::NotLive { field, id: id.clone() }.into()),
        None => Ok(()),
    }
}

/// New blockers of a task that exists: live, not itself, and no way back from any of them.
pub(super) fn check_new_blockers(
    id: &TaskId,
    field: &'static str,
    blockers: &[TaskId],
    list: &dyn Neighbourhood,
) -> Result<(), Stop> {
    if blockers.contains(id) {
        return Err(Invalid::Itself { field, id: id.clone() }.into());
    }
    check_blockers(field, blockers, list)?;
    for blocker in blockers {
        if let Some(way) = list.way(blocker, id)? {
            let path = std::iter::once(id.clone()).chain(way).collect();
            return Err(Invalid::Cycle { field, path }.into());
        }
    }
    Ok(())
}

/// A new parent of a task that exists: live, not itself, not below it, not too deep.
pub(super) fn check_new_parent(id: &TaskId, parent: &TaskId, list: &dyn Neighbourhood) -> Result<(), Stop> {
    if parent == id {
        return Err(Invalid::Itself { field: "parent", id: id.clone() }.into());
    }
    check_live("parent", std::slice::from_ref(parent), list)?;
    let height = list.height(id)?;
    if height > 0 {
        check_not_below(id, parent, list)?;
    }
    check_depth(parent, height, list)
}

/// Walks up from the new parent; meeting the task itself closes a loop.
fn check_not_below(id: &TaskId, parent: &TaskId, list: &dyn Neighbourhood) -> Result<(), Stop> {
    let mut path = vec![id.clone(), parent.clone()];
    while path.len() <= limits::TREE_DEPTH_MAX + 1 {
        let Some(next) = list.task(&path[path.len() - 1])?.and_then(|task| task.parent) else { return Ok(()) };
        path.push(next.clone());
        if next == *id {
            return Err(Invalid::Cycle { field: "parent", path }.into());
        }
    }
    Ok(())
}

/// `height` levels come below the new child of `parent`.
pub(super) fn check_depth(parent: &TaskId, height: usize, list: &dyn Neighbourhood) -> Result<(), Stop> {
    let levels = list.depth(parent)? + 2 + height;
    if levels > limits::TREE_DEPTH_MAX {
        let parent = parent.clone();
        return Err(Invalid::TooDeep { parent, depth: levels, max: limits::TREE_DEPTH_MAX }.into());
    }
    Ok(())
}
