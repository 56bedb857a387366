//! Where among its siblings a task goes: a rank key between two neighbours, or, where there is none, new keys for
//! the whole group (docs/rules.md 6).

use super::{Facts, Stop, World};
use crate::change::{Change, Kind};
use crate::command::Place;
use crate::id::TaskId;
use crate::neighbourhood::{Neighbourhood, Sibling};
use crate::rank::Rank;
use crate::refusal::Invalid;
use crate::task::Stamp;

/// The task that is placed: its id and key if it exists.
pub(super) type Placed<'a> = Option<&'a Sibling>;

/// The key for a place under an effective parent. Applies re-ranking changes to the siblings if it must.
pub(super) fn rank_at(
    task: Placed<'_>,
    place: Option<&Place>,
    parent: Option<&TaskId>,
    world: &mut dyn World,
    facts: &Facts,
) -> Result<Rank, Stop> {
    let (left, right) = neighbours(task, place, parent, world)?;
    if let Some(task) = task
        && (left.as_ref() == Some(task) || right.as_ref() == Some(task))
    {
        return Ok(task.rank.clone());
    }
    let ranks = (left.as_ref().map(|s| &s.rank), right.as_ref().map(|s| &s.rank));
    match Rank::between(ranks.0, ranks.1) {
        Ok(rank) => Ok(rank),
        Err(_) => rerank(task, left.as_ref(), parent, world, facts),
    }
}

/// The siblings that the task goes between. One of them is the task itself when it is there already.
fn neighbours(
    task: Placed<'_>,
    place: Option<&Place>,
    parent: Option<&TaskId>,
    list: &dyn Neighbourhood,
) -> Result<(Option<Sibling>, Option<Sibling>), Stop> {
    match place {
        None => Ok((list.last_sibling(parent)?, None)),
        Some(Place::Before(id)) => {
            let right = anchor("before", id, task, parent, list)?;
            Ok((list.sibling_before(parent, &right)?, Some(right)))
        }
        Some(Place::After(id)) => {
            let left = anchor("after", id, task, parent, list)?;
            let right = list.sibling_after(parent, &left)?;
            Ok((Some(left), right))
        }
    }
}

/// The sibling that names the place.
fn anchor(
    field: &'static str,
    id: &TaskId,
    task: Placed<'_>,
    parent: Option<&TaskId>,
    list: &dyn Neighbourhood,
) -> Result<Sibling, Stop> {
    if task.is_some_and(|task| task.id == *id) {
        return Err(Invalid::Itself { field, id: id.clone() }.into());
    }
    let Some(found) = list.task(id)? else {
        return Err(Invalid::NotLive { field, id: id.clone() }.into());
    };
    if effective(found.parent.as_ref(), list)?.as_ref() != parent {
        return Err(Invalid::NotASibling { field, id: id.clone() }.into());
    }
    Ok(Sibling { rank: found.rank, id: found.id })
}

/// The parent, if it is live.
pub(super) fn effective(parent: Option<&TaskId>, list: &dyn Neighbourhood) -> Result<Option<TaskId>, Stop> {
    let Some(parent) = parent else { return Ok(None) };
    Ok(list.live_of(std::slice::from_ref(parent))?.pop())
}

/// Gives every sibling a new key, in the order they have, with room for one behind `left`; returns that one. It is
/// never the key that the task has: a task that moves gets a revision that says so.
fn rerank(
    task: Placed<'_>,
    left: Option<&Sibling>,
    parent: Option<&TaskId>,
    world: &mut dyn World,
    facts: &Facts,
) -> Result<Rank, Stop> {
    let others: Vec<Sibling> =
        world.siblings(parent)?.into_iter().filter(|s| task.is_none_or(|task| s.id != task.id)).collect();
    let at = left.map_or(0, |left| others.partition_point(|s| s <= left));
    let mut keys = Rank::evenly(others.len() + 1);
    let even = keys.remove(at);
    let is_old = task.is_some_and(|task| task.rank == even);
    let nearer = || Rank::between(at.checked_sub(1).map(|before| &keys[before]), Some(&even)).ok();
    let free = is_old.then(nearer).flatten().unwrap_or(even);
    for (sibling, rank) in others.into_iter().zip(keys) {
        if sibling.rank != rank {
            move_to(&sibling.id, rank, world, facts)?;
        }
    }
    Ok(free)
}

fn move_to(id: &TaskId, rank: Rank, world: &mut dyn World, facts: &Facts) -> Result<(), Stop> {
    let Some(mut task) = world.task(id)? else { return Ok(()) };
    task.rank = rank;
    task.revision += 1;
    task.updated = Stamp { at: facts.now, by: facts.caller.clone() };
    world.apply(Change { kind: Kind::Reranked, task, note: None })?;
    Ok(())
}

/// Makes sure that tasks can be appended under `parent` without re-ranking in between.
pub(super) fn make_room(parent: Option<&TaskId>, world: &mut dyn World, facts: &Facts) -> Result<(), Stop> {
    rank_at(None, None, parent, world, facts).map(drop)
}
