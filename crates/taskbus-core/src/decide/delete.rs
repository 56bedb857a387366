//! Making a task a tombstone (docs/rules.md 7).

use super::update::{stamped, unblocked};
use super::{Effect, Facts, Stop, World};
use crate::change::{Change, Kind};
use crate::command::Patch;
use crate::limits;
use crate::refusal::{Conflict, Invalid};
use crate::task::Task;

/// A delete comes with no other change.
pub(super) fn check_alone(patch: &Patch) -> Result<(), Stop> {
    let fields = patch.other_than_delete();
    if patch.delete && !fields.is_empty() {
        return Err(Invalid::DeleteCombined { fields }.into());
    }
    Ok(())
}

/// A task with live children stays, `force` or not.
pub(super) fn check_no_children(task: &Task, world: &dyn World) -> Result<(), Stop> {
    let children = world.children(&task.id, false, limits::IDS_SHOWN_MAX + 1)?;
    if children.is_empty() {
        return Ok(());
    }
    Err(Conflict::Children { id: task.id.clone(), children }.into())
}

/// Writes the tombstone; a delete that bypassed the owner guard leaves a `forced` revision before it.
pub(super) fn delete(
    task: Task,
    patch: &Patch,
    forced: bool,
    world: &mut dyn World,
    facts: &Facts,
) -> Result<Effect, Stop> {
    check_no_children(&task, world)?;
    let mut gone = task.clone();
    if forced {
        gone.fence += 1;
        gone = stamped(gone, facts);
        world.apply(Change { kind: Kind::Forced, task: gone.clone(), note: None })?;
    }
    world.apply(Change { kind: Kind::Deleted, task: stamped(gone, facts), note: patch.note.clone() })?;
    let unblocked = if task.is_open() { unblocked(&task.id, world, facts)? } else { Vec::new() };
    Ok(Effect { deleted: true, unblocked, ..Effect::of(task, true) })
}
