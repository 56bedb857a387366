//! Taking the next ready task.
use std::collections::BTreeSet;

use super::{Facts, Outcome, Stop, World};
use crate::command::Next;
use crate::glob::PathGlob;
use crate::id::TaskId;
use crate::name::{Identity, Label};
use crate::task::Task;
/// What a worker wants.
#[derive(Clone, Debug)]
pub struct Wants {
    /// Who.
    pub caller: Identity,
    /// Its labels.
    pub labels: BTreeSet<Label>,
}
/// Whether a task must wait because an in-progress one touches the same files.
#[must_use]
pub fn is_kept_apart(paths: &BTreeSet<PathGlob>, in_use: &[(TaskId, Vec<PathGlob>)]) -> bool {
    in_use.iter().flat_map(|(_, used)| used).any(|used| paths.iter().any(|path| path.overlaps(used)))
}
pub(super) fn next(next: &Next, world: &mut dyn World, facts: &Facts) -> Result<Outcome, Stop> {
    let _: Option<Task> = None;
    todo!("{next:?} {facts:?} {}", world.rules().is_ok())
}
