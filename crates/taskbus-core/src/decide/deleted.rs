//! Changing a deleted task, on a list that keeps those as rows (docs/rules.md 8, Kin): a status brings it back, other
//! fields change in place. Everywhere else a deleted task is no task.

use super::update::{self, NO_CHANGE, check_size, set_links, stamped, with_fields};
use super::{Effect, Facts, Stop, World, delete, guard, restore};
use crate::change::{Change, Kind};
use crate::command::Patch;
use crate::id::TaskId;
use crate::refusal::Missing;
use crate::task::Task;

pub(super) fn update(id: &TaskId, patch: &Patch, world: &mut dyn World, facts: &Facts) -> Result<Effect, Stop> {
    let keeps = world.rules()?.policy.keeps_deleted();
    let Some(before) = world.tombstone(id)?.filter(|_| keeps) else {
        return Err(Missing::Task { id: id.clone() }.into());
    };
    guard::check_preconditions(&before, patch)?;
    delete::check_alone(patch)?;
    if patch.delete {
        return Ok(unchanged(before));
    }
    if patch.status.is_some() { revive(id, patch, world, facts) } else { edit(before, patch, world, facts) }
}

fn unchanged(task: Task) -> Effect {
    Effect { deleted: true, warnings: vec![NO_CHANGE.to_owned()], ..Effect::of(task, false) }
}

/// Brings the task back, then changes it as asked.
fn revive(id: &TaskId, patch: &Patch, world: &mut dyn World, facts: &Facts) -> Result<Effect, Stop> {
    restore::restore(id, world, facts)?;
    let patch = Patch { fence: None, if_revision: None, ..patch.clone() };
    let mut effect = update::update(id, &patch, world, facts)?;
    effect.written = true;
    effect.warnings.retain(|warning| warning != NO_CHANGE);
    Ok(effect)
}

/// Changes the row and leaves it deleted.
fn edit(before: Task, patch: &Patch, world: &mut dyn World, facts: &Facts) -> Result<Effect, Stop> {
    let mut after = with_fields(before.clone(), patch, world)?;
    set_links(&mut after, &before, patch, world, facts)?;
    if after == before && patch.note.is_none() {
        return Ok(unchanged(before));
    }
    check_size(&after)?;
    let after = stamped(after, facts);
    world.apply(Change { kind: Kind::Deleted, task: after.clone(), note: patch.note.clone() })?;
    Ok(Effect { deleted: true, ..Effect::of(after, true) })
}
