//! A whole list in memory: the reference model of the property tests, and the working form of small stores.
//!
//! It answers every question of [`Neighbourhood`] and applies every change; it keeps no history and judges nothing.
//! Sibling groups and reverse links are indexed, everything else is read off the tasks.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::change::{Change, Kind};
use crate::decide::World;
use crate::glob::PathGlob;
use crate::id::TaskId;
use crate::name::Identity;
use crate::neighbourhood::{Dependent, ListRules, Look, Neighbourhood, ReadyScan, Sibling, Tally};
use crate::task::{State, Status, Task};
use crate::time::Timestamp;
use crate::tree::TreePath;

/// A list in memory.
#[derive(Clone, Debug, Default)]
pub struct Board {
    rules: ListRules,
    live: BTreeMap<TaskId, Task>,
    tombstones: BTreeMap<TaskId, Task>,
    /// Sibling groups by effective parent.
    groups: BTreeMap<Option<TaskId>, BTreeSet<Sibling>>,
    /// Live tasks by the parent they name, whether that is live or not.
    named_parent: BTreeMap<TaskId, BTreeSet<TaskId>>,
    /// Live tasks by the blocker they name, whether that is live or not.
    named_blocker: BTreeMap<TaskId, BTreeSet<TaskId>>,
    in_progress: BTreeSet<TaskId>,
    people: BTreeMap<Identity, Timestamp>,
    /// Tasks that are there but cannot be read.
    unreadable: BTreeSet<TaskId>,
    minted: u64,
}

impl Board {
    /// An empty list with these settings.
    #[must_use]
    pub fn new(rules: ListRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Says until when an identity has a live session; also makes it known.
    pub fn set_alive(&mut self, who: Identity, until: Timestamp) {
        self.people.insert(who, until);
    }

    /// Says which tasks are there but cannot be read: no tasks of the board, yet each counts as live where others
    /// name it, and as open.
    pub fn set_unreadable(&mut self, ids: impl IntoIterator<Item = TaskId>) {
        self.unreadable = ids.into_iter().collect();
    }

    /// Whether a task is there but cannot be read.
    #[must_use]
    pub fn is_unreadable(&self, id: &TaskId) -> bool {
        self.unreadable.contains(id)
    }

    /// Every live task with its depth, in depth-first order.
    #[must_use]
    pub fn in_order(&self) -> Vec<(&Task, usize)> {
        self.below(None, 0)
    }

    /// Every live task below `parent` with its depth, in depth-first order.
    #[must_use]
    pub fn below(&self, parent: Option<&TaskId>, depth: usize) -> Vec<(&Task, usize)> {
        let mut todo: Vec<(&TaskId, usize)> = self.group(parent).rev().map(|s| (&s.id, depth)).collect();
        let mut order = Vec::new();
        while let Some((id, depth)) = todo.pop() {
            order.push((&self.live[id], depth));
            todo.extend(self.group(Some(id)).rev().map(|s| (&s.id, depth + 1)));
        }
        order
    }

    /// The place of a live task, as a cursor.
    #[must_use]
    pub fn path(&self, id: &TaskId) -> Option<TreePath> {
        let mut chain = vec![self.live.get(id)?];
        while let Some(parent) = self.effective_parent(chain[chain.len() - 1]) {
            chain.push(&self.live[parent]);
        }
        Some(chain.iter().rev().fold(TreePath::root(), |path, task| path.child(&task.rank, &task.id)))
    }

    /// The live task with this id.
    #[must_use]
    pub fn get(&self, id: &TaskId) -> Option<&Task> {
        self.live.get(id)
    }

    /// The deleted task with this id, as it was.
    #[must_use]
    pub fn get_tombstone(&self, id: &TaskId) -> Option<&Task> {
        self.tombstones.get(id)
    }

    /// Every deleted task as it was, by id.
    #[must_use]
    pub fn tombstones(&self) -> impl DoubleEndedIterator<Item = &Task> + Clone {
        self.tombstones.values()
    }

    /// Every live task, by id.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.live.values()
    }

    /// Which of a task's blockers are open.
    #[must_use]
    pub fn open_blockers(&self, task: &Task) -> Vec<TaskId> {
        task.blocked_by.iter().filter(|id| self.is_open(id)).cloned().collect()
    }

    /// Applies one change. Total: any change fits any board.
    pub fn put(&mut self, change: &Change) {
        let id = &change.task.id;
        self.unlink(id);
        match change.kind {
            Kind::Deleted => {
                self.live.remove(id);
                self.tombstones.insert(id.clone(), change.task.clone());
            }
            Kind::Created | Kind::Changed | Kind::Reclaimed | Kind::Forced | Kind::Restored | Kind::Reranked => {
                self.tombstones.remove(id);
                self.live.insert(id.clone(), change.task.clone());
                self.link(id);
            }
        }
        self.regroup_children(id);
        self.minted = self.minted.max(id.as_number().unwrap_or(0));
    }

    /// Takes a task out as if it had never been: for a store that takes its creation back.
    pub fn forget(&mut self, id: &TaskId) {
        self.unlink(id);
        self.live.remove(id);
        self.tombstones.remove(id);
        self.regroup_children(id);
    }

    fn link(&mut self, id: &TaskId) {
        let task = &self.live[id];
        let parent = self.effective_parent(task).cloned();
        let sibling = Sibling { rank: task.rank.clone(), id: id.clone() };
        if let Some(named) = &task.parent {
            self.named_parent.entry(named.clone()).or_default().insert(id.clone());
        }
        for blocker in &task.blocked_by {
            self.named_blocker.entry(blocker.clone()).or_default().insert(id.clone());
        }
        if task.status() == Status::InProgress {
            self.in_progress.insert(id.clone());
        }
        self.groups.entry(parent).or_default().insert(sibling);
    }

    fn unlink(&mut self, id: &TaskId) {
        let Some(task) = self.live.get(id) else { return };
        let parent = self.effective_parent(task).cloned();
        let sibling = Sibling { rank: task.rank.clone(), id: id.clone() };
        if let Some(group) = self.groups.get_mut(&parent) {
            group.remove(&sibling);
        }
        if let Some(named) = task.parent.as_ref().and_then(|named| self.named_parent.get_mut(named)) {
            named.remove(id);
        }
        for blocker in &task.blocked_by {
            if let Some(named) = self.named_blocker.get_mut(blocker) {
                named.remove(id);
            }
        }
        self.in_progress.remove(id);
    }

    /// Moves those who name `id` as their parent to where they belong, now that it has come or gone.
    fn regroup_children(&mut self, id: &TaskId) {
        let (from, to) = if self.live.contains_key(id) { (None, Some(id)) } else { (Some(id), None) };
        for child in self.named_parent.get(id).cloned().unwrap_or_default() {
            let sibling = Sibling { rank: self.live[&child].rank.clone(), id: child };
            let moved = self.groups.get_mut(&from.cloned()).is_some_and(|group| group.remove(&sibling));
            if moved {
                self.groups.entry(to.cloned()).or_default().insert(sibling);
            }
        }
    }

    /// A task that links lead through: a live one, and on a list that keeps them a deleted one.
    fn row(&self, id: &TaskId) -> Option<&Task> {
        let deleted = || self.tombstones.get(id).filter(|_| self.rules.policy.keeps_deleted());
        self.live.get(id).or_else(deleted)
    }

    fn effective_parent<'a>(&'a self, task: &'a Task) -> Option<&'a TaskId> {
        task.parent.as_ref().filter(|parent| self.live.contains_key(parent))
    }

    fn group(&self, parent: Option<&TaskId>) -> impl DoubleEndedIterator<Item = &Sibling> {
        self.groups.get(&parent.cloned()).into_iter().flatten()
    }

    fn is_open(&self, id: &TaskId) -> bool {
        self.live.get(id).map_or_else(|| self.unreadable.contains(id), Task::is_open)
    }

    fn is_ready(&self, task: &Task, now: Timestamp) -> bool {
        task.status() == Status::Pending && self.condition(task, now) == Condition::Ready
    }

    fn condition(&self, task: &Task, now: Timestamp) -> Condition {
        if task.blocked_by.iter().any(|id| self.is_open(id)) {
            Condition::Blocked
        } else if task.parked {
            Condition::Parked
        } else if task.not_before.is_some_and(|at| at > now) {
            Condition::Deferred
        } else {
            Condition::Ready
        }
    }
}

/// What keeps a pending task, in the order in which it is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Blocked,
    Parked,
    Deferred,
    Ready,
}

impl Neighbourhood for Board {
    fn rules(&self) -> Look<ListRules> {
        Ok(self.rules)
    }

    fn task(&self, id: &TaskId) -> Look<Option<Task>> {
        Ok(self.live.get(id).cloned())
    }

    fn tombstone(&self, id: &TaskId) -> Look<Option<Task>> {
        Ok(self.tombstones.get(id).cloned())
    }

    fn is_known(&self, who: &Identity) -> Look<bool> {
        Ok(self.people.contains_key(who))
    }

    fn is_alive(&self, who: &Identity, now: Timestamp) -> Look<bool> {
        Ok(self.people.get(who).is_some_and(|until| *until > now))
    }

    fn live_of(&self, ids: &[TaskId]) -> Look<Vec<TaskId>> {
        let is_there = |id: &&TaskId| self.live.contains_key(id) || self.unreadable.contains(id);
        Ok(ids.iter().filter(is_there).cloned().collect())
    }

    fn open_of(&self, ids: &[TaskId]) -> Look<Vec<TaskId>> {
        Ok(ids.iter().filter(|id| self.is_open(id)).cloned().collect())
    }

    fn children(&self, parent: &TaskId, open_only: bool, limit: usize) -> Look<Vec<TaskId>> {
        let children = self.group(Some(parent)).filter(|s| !open_only || self.is_open(&s.id));
        Ok(children.take(limit).map(|s| s.id.clone()).collect())
    }

    fn last_sibling(&self, parent: Option<&TaskId>) -> Look<Option<Sibling>> {
        Ok(self.group(parent).next_back().cloned())
    }

    fn sibling_before(&self, parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>> {
        Ok(self.groups.get(&parent.cloned()).and_then(|group| group.range(..place).next_back().cloned()))
    }

    fn sibling_after(&self, parent: Option<&TaskId>, place: &Sibling) -> Look<Option<Sibling>> {
        let behind = (std::ops::Bound::Excluded(place), std::ops::Bound::Unbounded);
        Ok(self.groups.get(&parent.cloned()).and_then(|group| group.range(behind).next().cloned()))
    }

    fn siblings(&self, parent: Option<&TaskId>) -> Look<Vec<Sibling>> {
        Ok(self.group(parent).cloned().collect())
    }

    fn depth(&self, id: &TaskId) -> Look<usize> {
        let parent = |task: &&Task| self.effective_parent(task).map(|id| &self.live[id]);
        let chain = std::iter::successors(self.live.get(id), |task| parent(task));
        Ok(chain.count().saturating_sub(1))
    }

    fn height(&self, id: &TaskId) -> Look<usize> {
        Ok(self.below(Some(id), 1).into_iter().map(|(_, depth)| depth).max().unwrap_or(0))
    }

    fn way(&self, from: &TaskId, to: &TaskId) -> Look<Option<Vec<TaskId>>> {
        let mut came_from: BTreeMap<&TaskId, &TaskId> = BTreeMap::new();
        let mut seen = HashSet::from([from]);
        let mut todo = vec![from];
        while let Some(at) = todo.pop() {
            if at == to {
                let steps = std::iter::successors(Some(at), |at| came_from.get(at).copied());
                let mut way: Vec<TaskId> = steps.cloned().collect();
                way.reverse();
                return Ok(Some(way));
            }
            for blocker in self.row(at).into_iter().flat_map(|task| &task.blocked_by) {
                if (blocker == to || self.row(blocker).is_some()) && seen.insert(blocker) {
                    came_from.insert(blocker, at);
                    todo.push(blocker);
                }
            }
        }
        Ok(None)
    }

    fn dependents(&self, blocker: &TaskId) -> Look<Vec<Dependent>> {
        let waiting = self.named_blocker.get(blocker).into_iter().flatten().map(|id| &self.live[id]);
        let dependent = |task: &Task| Dependent {
            id: task.id.clone(),
            status: task.status(),
            open_blockers: self.open_blockers(task).len(),
            not_before: task.not_before,
            parked: task.parked,
        };
        Ok(waiting.map(dependent).collect())
    }

    fn suspects(&self, now: Timestamp, limit: usize) -> Look<Vec<TaskId>> {
        let ended = |task: &Task| task.leased_until().is_some_and(|at| at <= now);
        let dead =
            |task: &Task| task.owner().is_none_or(|owner| self.people.get(owner).is_none_or(|until| *until <= now));
        let suspects = self.in_progress.iter().filter(|id| ended(&self.live[id]) || dead(&self.live[id]));
        Ok(suspects.take(limit).cloned().collect())
    }

    fn paths_in_use(&self) -> Look<Vec<(TaskId, Vec<PathGlob>)>> {
        let tasks = self.in_progress.iter().map(|id| &self.live[id]).filter(|task| !task.paths.is_empty());
        Ok(tasks.map(|task| (task.id.clone(), task.paths.iter().cloned().collect())).collect())
    }

    fn ready(&self, scan: &ReadyScan) -> Look<Vec<Task>> {
        let fits = |task: &Task| {
            matches!(&task.state, State::Pending { assignee } if *assignee == scan.assigned_to)
                && self.is_ready(task, scan.now)
        };
        let behind = scan.behind.as_ref().and_then(|id| self.path(id));
        let order = self.below(scan.below.as_ref(), 0).into_iter().map(|(task, _)| task);
        let rest = order.filter(|task| behind.as_ref().is_none_or(|b| self.path(&task.id).as_ref() > Some(b)));
        Ok(rest.filter(|task| fits(task)).take(scan.limit).cloned().collect())
    }

    fn held(&self, limit: usize) -> Look<Vec<Task>> {
        let mut held: Vec<&Task> = self.in_progress.iter().map(|id| &self.live[id]).collect();
        held.sort_by_key(|task| (task.leased_until().is_none(), task.leased_until()));
        Ok(held.into_iter().take(limit).cloned().collect())
    }

    fn tally(&self, now: Timestamp) -> Look<Tally> {
        let mut tally = Tally::default();
        for task in self.live.values() {
            let count = match (task.status(), self.condition(task, now)) {
                (Status::Completed, _) => &mut tally.completed,
                (Status::InProgress, _) => &mut tally.in_progress,
                (Status::Pending, Condition::Blocked) => &mut tally.blocked,
                (Status::Pending, Condition::Parked) => &mut tally.parked,
                (Status::Pending, Condition::Deferred) => &mut tally.deferred,
                (Status::Pending, Condition::Ready) => &mut tally.ready,
            };
            *count += 1;
        }
        Ok(tally)
    }
}

impl World for Board {
    fn mint(&mut self, count: usize) -> Look<Vec<TaskId>> {
        Ok((0..count as u64).map(|offset| TaskId::Number(self.minted + 1 + offset)).collect())
    }

    fn apply(&mut self, change: Change) -> Look<()> {
        self.put(&change);
        Ok(())
    }
}
