//! Changing one task. The order of the checks is the order of `docs/rules.md` section 2.

use super::create::{check_entry, check_items, check_not_before};
use super::{Effect, Facts, Stop, World, delete, deleted, guard, links, place, reclaim, status};
use crate::change::{Change, Kind};
use crate::command::Patch;
use crate::document;
use crate::id::TaskId;
use crate::limits;
use crate::neighbourhood::{ListRules, Neighbourhood, Sibling};
use crate::refusal::Invalid;
use crate::task::{Stamp, State, Status, Task};

pub(super) fn update(id: &TaskId, patch: &Patch, world: &mut dyn World, facts: &Facts) -> Result<Effect, Stop> {
    let Some((before, _)) = reclaim::fixed_up(id, world, facts)? else {
        return deleted::update(id, patch, world, facts);
    };
    let rules = world.rules()?;
    guard::check_preconditions(&before, patch)?;
    delete::check_alone(patch)?;
    let forced = guard::check_owner(&before, patch, rules.policy, facts)?;
    if patch.delete {
        return delete::delete(before, patch, forced, world, facts);
    }
    let mut after = with_fields(before.clone(), patch, world)?;
    status::check_owner_known(patch, world, facts)?;
    let warning = set_state(&mut after, patch, rules, world, facts)?;
    set_links(&mut after, &before, patch, world, facts)?;
    if before == after && patch.note.is_none() {
        return Ok(Effect { warnings: vec![NO_CHANGE.to_owned()], ..Effect::of(before, false) });
    }
    unpark(&mut after);
    raise_fence(&mut after, &before, forced);
    check_size(&after)?;
    let kind = if forced { Kind::Forced } else { Kind::Changed };
    write(&before, after, kind, patch, warning, world, facts)
}

pub(super) const NO_CHANGE: &str = "no change: the task already is as asked";

impl Effect {
    pub(super) fn of(task: Task, written: bool) -> Self {
        Self {
            task,
            written,
            deleted: false,
            unblocked: Vec::new(),
            open_children: Vec::new(),
            parent_complete: false,
            warnings: Vec::new(),
        }
    }
}

/// Scalars, metadata and blockers as the patch asks; dead blockers are pruned on the way.
pub(super) fn with_fields(mut task: Task, patch: &Patch, list: &dyn Neighbourhood) -> Result<Task, Stop> {
    set(&mut task.subject, patch.subject.as_ref());
    set(&mut task.description, patch.description.as_ref());
    set(&mut task.active_form, patch.active_form.as_ref());
    set(&mut task.not_before, patch.not_before.as_ref());
    check_not_before(task.not_before.map(crate::time::Timestamp::as_millis))?;
    set(&mut task.labels, patch.labels.as_ref());
    check_items("labels", task.labels.len(), limits::LABELS_MAX)?;
    set(&mut task.paths, patch.paths.as_ref());
    check_items("paths", task.paths.len(), limits::PATHS_MAX)?;
    task.result = patch.result.clone().or(task.result);
    merge_metadata(&mut task, patch)?;
    set_blockers(&mut task, patch, list)?;
    Ok(task)
}

fn set<T: Clone>(field: &mut T, wanted: Option<&T>) {
    if let Some(wanted) = wanted {
        field.clone_from(wanted);
    }
}

fn merge_metadata(task: &mut Task, patch: &Patch) -> Result<(), Stop> {
    for (key, value) in &patch.metadata {
        match value {
            Some(value) => {
                check_entry(key, value)?;
                task.metadata.insert(key.clone(), value.clone());
            }
            None => {
                task.metadata.shift_remove(key);
            }
        }
    }
    Ok(())
}

fn set_blockers(task: &mut Task, patch: &Patch, list: &dyn Neighbourhood) -> Result<(), Stop> {
    if task.blocked_by.is_empty() && patch.add_blocked_by.is_empty() {
        return Ok(());
    }
    let kept: Vec<TaskId> =
        task.blocked_by.iter().filter(|id| !patch.remove_blocked_by.contains(id)).cloned().collect();
    let kept = links::kept_blockers(&kept, list)?;
    task.blocked_by = links::deduplicated(kept.into_iter().chain(patch.add_blocked_by.iter().cloned()));
    links::check_count("add_blocked_by", &task.blocked_by)
}

/// Status, owner and lease; returns a warning where the policy lets something pass.
fn set_state(
    task: &mut Task,
    patch: &Patch,
    rules: ListRules,
    list: &dyn Neighbourhood,
    facts: &Facts,
) -> Result<Option<String>, Stop> {
    let was = task.status();
    let state = status::next_state(task, patch, rules.policy, facts)?;
    let starts = was != Status::InProgress && matches!(state, State::InProgress { .. });
    let warning = if starts { status::check_start(task, rules.policy, list, facts)? } else { None };
    task.state = status::with_lease(state, status::lease_end(patch.lease, facts)?);
    if was != Status::Completed && task.status() == Status::Completed {
        task.reclaims = 0;
    }
    Ok(warning)
}

/// Parent, blockers and rank.
pub(super) fn set_links(
    task: &mut Task,
    before: &Task,
    patch: &Patch,
    world: &mut dyn World,
    facts: &Facts,
) -> Result<(), Stop> {
    let moved = patch.parent.as_ref().filter(|parent| **parent != before.parent);
    if let Some(parent) = moved {
        if let Some(parent) = parent {
            links::check_new_parent(&task.id, parent, world)?;
        }
        task.parent.clone_from(parent);
    }
    let new: Vec<TaskId> = task.blocked_by.iter().filter(|id| !before.blocked_by.contains(id)).cloned().collect();
    links::check_new_blockers(&task.id, "add_blocked_by", &new, world)?;
    if moved.is_none() && patch.place.is_none() {
        return Ok(());
    }
    let parent = place::effective(task.parent.as_ref(), world)?;
    let place = Sibling { rank: task.rank.clone(), id: task.id.clone() };
    task.rank = place::rank_at(Some(&place), patch.place.as_ref(), parent.as_ref(), world, facts)?;
    Ok(())
}

/// Somebody has looked at it: it may be handed out again.
fn unpark(task: &mut Task) {
    if task.parked {
        task.parked = false;
        task.reclaims = 0;
    }
}

/// The fence rises when the task gets a holder, changes hands, or the guard was bypassed.
fn raise_fence(after: &mut Task, before: &Task, forced: bool) {
    let held = after.status() == Status::InProgress;
    let claimed = held && (before.status() != Status::InProgress || before.owner() != after.owner());
    if claimed || forced {
        after.fence += 1;
    }
}

fn write(
    before: &Task,
    after: Task,
    kind: Kind,
    patch: &Patch,
    warning: Option<String>,
    world: &mut dyn World,
    facts: &Facts,
) -> Result<Effect, Stop> {
    let after = stamped(after, facts);
    world.apply(Change { kind, task: after.clone(), note: patch.note.clone() })?;
    let mut effect = Effect { warnings: warning.into_iter().collect(), ..Effect::of(after, true) };
    if before.is_open() && !effect.task.is_open() {
        effect.unblocked = unblocked(&effect.task.id, world, facts)?;
        effect.open_children = world.children(&effect.task.id, true, limits::IDS_SHOWN_MAX)?;
        effect.parent_complete = is_last_child(&effect.task, world)?;
    }
    Ok(effect)
}

/// The next revision of a task, signed by the caller.
pub(super) fn stamped(mut task: Task, facts: &Facts) -> Task {
    task.revision += 1;
    task.updated = Stamp { at: facts.now, by: facts.caller.clone() };
    task
}

/// Who waited for this task alone and can start now that it no longer blocks.
pub(super) fn unblocked(id: &TaskId, list: &dyn Neighbourhood, facts: &Facts) -> Result<Vec<TaskId>, Stop> {
    let free = list.dependents(id)?.into_iter().filter(|waiting| {
        let due = waiting.not_before.is_none_or(|at| at <= facts.now);
        waiting.status == Status::Pending && waiting.open_blockers == 0 && due && !waiting.parked
    });
    Ok(free.map(|waiting| waiting.id).collect())
}

/// Whether an open parent has no open child left.
fn is_last_child(task: &Task, list: &dyn Neighbourhood) -> Result<bool, Stop> {
    let Some(parent) = &task.parent else { return Ok(false) };
    let open = !list.open_of(std::slice::from_ref(parent))?.is_empty();
    Ok(open && list.children(parent, true, 1)?.is_empty())
}

/// The stored document has a limit (docs/rules.md 1).
pub(super) fn check_size(task: &Task) -> Result<(), Stop> {
    let max = limits::MESSAGE_KIB_MAX * 1024;
    match document::size_over(task, max) {
        Some(actual) => Err(Invalid::TooLarge { what: "task", actual, max }.into()),
        None => Ok(()),
    }
}
