//! Making one task.
use super::{Facts, Stop, World};
use crate::command::Draft;
use crate::task::Task;
pub(super) fn create(draft: &Draft, world: &mut dyn World, facts: &Facts) -> Result<Task, Stop> {
    todo!("{draft:?} {facts:?} {}", world.rules().is_ok())
}
