//! Making a whole graph.
use super::{Facts, Stop, World};
use crate::command::Planned;
use crate::id::TaskId;
pub(super) fn plan(
    tasks: &[Planned],
    world: &mut dyn World,
    facts: &Facts,
) -> Result<Vec<(Option<String>, TaskId)>, Stop> {
    todo!("{tasks:?} {facts:?} {}", world.rules().is_ok())
}
