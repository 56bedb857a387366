//! Does one task wait for another? A stored topological order mostly tells without a look at the graph.
//!
//! Every live task has an `ord` larger than that of each of its live blockers. So a way along "is blocked by" only ever
//! goes down in it: from the lower to the higher there is none, and a search need not leave the range between them. A
//! task comes with an `ord` that grows with its id; a new edge that does not fit shifts the blocker and what it
//! waits for down, or the task and what waits for it up, whichever is less work.
//!
//! Nothing recurses; memory grows with what was seen.

use std::collections::{BinaryHeap, HashMap};

use taskbus_core::id::TaskId;

use super::error::Answer;
use super::scope::{Scope, as_row_id, task_ids};

const ORD: &str = "SELECT ord FROM tasks WHERE id = ?1 AND list = ?2";
const SET_ORD: &str = "UPDATE tasks SET ord = ?2 WHERE id = ?1";
const BLOCKERS: &str = "
    SELECT e.blocker, t.ord FROM edges e INDEXED BY edges_by_task LEFT JOIN tasks t ON t.id = e.blocker
    WHERE e.task = ?1";
const WAITING: &str = "
    SELECT e.task, t.ord FROM edges e LEFT JOIN tasks t ON t.id = e.task WHERE e.blocker = ?1 ORDER BY e.task";

/// One end of the search.
struct End {
    /// The query for the next steps.
    next: &'static str,
    /// Each task seen, and the one nearer to this end.
    came_from: HashMap<i64, i64>,
    /// Those whose next steps were not looked at.
    front: Vec<i64>,
}

impl End {
    fn at(start: i64, next: &'static str) -> Self {
        Self { next, came_from: HashMap::from([(start, start)]), front: vec![start] }
    }

    /// From `at` to where this end began.
    fn back(&self, at: i64) -> Vec<i64> {
        let up = |at: &i64| self.came_from.get(at).copied().filter(|next| next != at);
        std::iter::successors(Some(at), up).collect()
    }
}

impl Scope<'_> {
    pub(super) fn way_between(&self, from: &TaskId, to: &TaskId) -> Answer<Option<Vec<TaskId>>> {
        if from == to {
            return Ok(Some(vec![from.clone()]));
        }
        let (Some(from), Some(to)) = (as_row_id(from), as_row_id(to)) else { return Ok(None) };
        let Some(high) = self.ord(from)? else { return Ok(None) };
        // What is gone has no place in the order.
        let low = self.ord(to)?.unwrap_or(i64::MIN);
        if high <= low {
            return Ok(None);
        }
        let (mut down, mut up) = (End::at(from, BLOCKERS), End::at(to, WAITING));
        let Some(middle) = self.meet(&mut down, &mut up, (low, high))? else { return Ok(None) };
        let mut way = down.back(middle);
        way.reverse();
        way.extend(up.back(middle).into_iter().skip(1));
        task_ids(&way).map(Some)
    }

    fn ord(&self, id: i64) -> Answer<Option<i64>> {
        self.one(ORD, (id, self.list()?), |row| row.get(0))
    }

    /// Steps from the smaller front until one end meets what the other has seen.
    fn meet(&self, down: &mut End, up: &mut End, range: (i64, i64)) -> Answer<Option<i64>> {
        while !down.front.is_empty() && !up.front.is_empty() {
            let (near, far) = if down.front.len() <= up.front.len() { (&mut *down, &*up) } else { (&mut *up, &*down) };
            if let Some(middle) = self.step(near, far, range)? {
                return Ok(Some(middle));
            }
        }
        Ok(None)
    }

    fn step(&self, near: &mut End, far: &End, (low, high): (i64, i64)) -> Answer<Option<i64>> {
        for at in std::mem::take(&mut near.front) {
            for (next, ord) in self.next_to(near.next, at)? {
                if near.came_from.contains_key(&next) {
                    continue;
                }
                near.came_from.insert(next, at);
                if far.came_from.contains_key(&next) {
                    return Ok(Some(next));
                }
                if ord.is_some_and(|ord| low < ord && ord < high) {
                    near.front.push(next);
                }
            }
        }
        Ok(None)
    }

    fn next_to(&self, sql: &'static str, at: i64) -> Answer<Vec<(i64, Option<i64>)>> {
        self.all(sql, [at], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// Makes the order fit the edges from a task to its blockers.
    pub(super) fn fit_blockers(&self, task: i64, ord: i64) -> Answer<()> {
        for (blocker, blockers_ord) in self.next_to(BLOCKERS, task)? {
            if blockers_ord.is_some_and(|blockers_ord| blockers_ord >= ord) {
                self.fit_edge(blocker, task)?;
            }
        }
        Ok(())
    }

    /// Makes the order fit the edges from those that named a task before it was there.
    pub(super) fn fit_waiting(&self, task: i64, waiting: &[i64]) -> Answer<()> {
        waiting.iter().try_for_each(|waiting| self.fit_edge(task, *waiting))
    }

    /// The tasks that name this one as a blocker.
    pub(super) fn waiting_for(&self, blocker: i64) -> Answer<Vec<i64>> {
        Ok(self.next_to(WAITING, blocker)?.into_iter().map(|(task, _)| task).collect())
    }

    fn fit_edge(&self, blocker: i64, task: i64) -> Answer<()> {
        let (Some(low), Some(high)) = (self.ord(blocker)?, self.ord(task)?) else { return Ok(()) };
        if low < high {
            return Ok(());
        }
        let mut down = Shift::of(blocker, low, high - 1, -1, BLOCKERS);
        let mut up = Shift::of(task, high, low + 1, 1, WAITING);
        while self.advance(&mut down)? && self.advance(&mut up)? {}
        let (done, other) = if down.heap.is_empty() { (down, task) } else { (up, blocker) };
        // Only in damaged data do dependencies run in a circle, and no order fits them.
        if done.bounds.contains_key(&other) {
            return Ok(());
        }
        done.moved.iter().try_for_each(|&(id, old, new)| {
            self.count_ord(id, Some(old), Some(new));
            self.run(SET_ORD, (id, new)).map(drop)
        })
    }

    /// Moves one more task out of the way; false when none is left.
    fn advance(&self, shift: &mut Shift) -> Answer<bool> {
        let Some((signed, id)) = shift.heap.pop() else { return Ok(false) };
        let bound = shift.bounds[&id];
        shift.moved.push((id, -shift.sign * signed, bound));
        for (next, ord) in self.next_to(shift.next, id)? {
            shift.push(next, ord, bound + shift.sign);
        }
        Ok(!shift.heap.is_empty())
    }
}

/// Tasks to be moved in one direction, the nearest first: when one is taken, everything that bounds it is known.
struct Shift {
    next: &'static str,
    /// 1 for up, -1 for down.
    sign: i64,
    /// Where a task may stand at most (going down), or at least (going up).
    bounds: HashMap<i64, i64>,
    heap: BinaryHeap<(i64, i64)>,
    /// Each with its old place and its new one.
    moved: Vec<(i64, i64, i64)>,
}

impl Shift {
    fn of(id: i64, ord: i64, bound: i64, sign: i64, next: &'static str) -> Self {
        let mut shift = Self { next, sign, bounds: HashMap::new(), heap: BinaryHeap::new(), moved: Vec::new() };
        shift.push(id, Some(ord), bound);
        shift
    }

    /// A task that stands in the way of `bound` has to move; one that is gone does not.
    fn push(&mut self, id: i64, ord: Option<i64>, bound: i64) {
        let Some(ord) = ord.filter(|ord| (bound - ord) * self.sign > 0) else { return };
        match self.bounds.get_mut(&id) {
            Some(known) if (bound - *known) * self.sign > 0 => *known = bound,
            Some(_) => {}
            None => {
                self.bounds.insert(id, bound);
                self.heap.push((-self.sign * ord, id));
            }
        }
    }
}
