//! Returning abandoned tasks to the queue.
use super::{Facts, Stop, World};
use crate::id::TaskId;
use crate::neighbourhood::{Look, Neighbourhood};
use crate::task::Task;
/// Whether a task is abandoned.
///
/// # Errors
/// When the store fails.
pub fn is_abandoned(task: &Task, list: &dyn Neighbourhood, facts: &Facts) -> Look<bool> {
    todo!("{task:?} {facts:?} {}", list.rules().is_ok())
}
/// Fixes up one task; says whether there was something to fix.
///
/// # Errors
/// When the store fails.
pub fn reclaim_one(id: &TaskId, world: &mut dyn World, facts: &Facts) -> Result<bool, Stop> {
    todo!("{id:?} {facts:?} {}", world.rules().is_ok())
}
/// Fixes up every abandoned task of the list, at most `limit`; says how many.
///
/// # Errors
/// When the store fails.
pub fn reclaim_all(world: &mut dyn World, facts: &Facts, limit: usize) -> Result<usize, Stop> {
    todo!("{limit} {facts:?} {}", world.rules().is_ok())
}
