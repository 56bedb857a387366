//! Changing one task.
use super::{Effect, Facts, Stop, World};
use crate::command::Patch;
use crate::id::TaskId;
pub(super) fn update(id: &TaskId, patch: &Patch, world: &mut dyn World, facts: &Facts) -> Result<Effect, Stop> {
    todo!("{id:?} {patch:?} {facts:?} {}", world.rules().is_ok())
}
