//! Does one task wait for another? A stored topological order mostly tells without a look at the graph.
//!
//! Every live task has an `ord` larger than that of each of its live blockers. So a way along "is blocked by" only ever
//! goes down in it: from the lower to the higher there is none, and a search need not leave the range between them. A
//! task comes with an `ord` that grows with its id; a new edge that does not fit shifts the blocker and what it
//! waits for down, or the task and what waits for it up, whichever is less work. The search that came before has mostly
//! seen one of the two, and is not made again.
//!
//! Nothing recurses; memory grows with what was seen.

use std::collections::{BinaryHeap, HashMap};

use rusqlite::CachedStatement;
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

/// A neighbour of a task, and its place in the order; none if it is gone.
type Step = (i64, Option<i64>);
/// The steps from each task that was looked at.
type Steps = HashMap<i64, Vec<Step>>;

/// One end of the search.
struct End<'c> {
    /// Finds the next steps.
    next: CachedStatement<'c>,
    /// What it found.
    steps: Steps,
    /// Each task seen, and the one nearer to this end.
    came_from: HashMap<i64, i64>,
    /// Those whose next steps were not looked at.
    front: Vec<i64>,
}

impl<'c> End<'c> {
    fn at(start: i64, next: CachedStatement<'c>) -> Self {
        Self { next, steps: Steps::new(), came_from: HashMap::from([(start, start)]), front: vec![start] }
    }

    /// From `at` to where this end began.
    fn back(&self, at: i64) -> Vec<i64> {
        let up = |at: &i64| self.came_from.get(at).copied().filter(|next| next != at);
        std::iter::successors(Some(at), up).collect()
    }
}

/// A search that found no way from a blocker to a task. Making the order fit an edge between them takes the same steps.
pub(super) struct Walked {
    blocker: i64,
    task: i64,
    /// The newest seq then.
    seq: u64,
    /// Whether the steps lead down from the blocker; else up from the task.
    down: bool,
    steps: Steps,
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
        let (mut down, mut up) = (End::at(from, self.steps(BLOCKERS)?), End::at(to, self.steps(WAITING)?));
        let Some(middle) = meet(&mut down, &mut up, (low, high))? else {
            self.keep_walked(from, to, down, up);
            return Ok(None);
        };
        let mut way = down.back(middle);
        way.reverse();
        way.extend(up.back(middle).into_iter().skip(1));
        task_ids(&way).map(Some)
    }

    fn ord(&self, id: i64) -> Answer<Option<i64>> {
        self.one(ORD, (id, self.list()?), |row| row.get(0))
    }

    fn steps(&self, sql: &'static str) -> Answer<CachedStatement<'_>> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// Keeps what was seen from the end that has nothing left to look at.
    fn keep_walked(&self, blocker: i64, task: i64, down: End<'_>, up: End<'_>) {
        if self.pending.is_some() {
            let (is_down, seq) = (down.front.is_empty(), self.seq.get());
            let steps = if is_down { down.steps } else { up.steps };
            self.walked.replace(Some(Walked { blocker, task, seq, down: is_down, steps }));
        }
    }

    /// Makes the order fit the edges from a task to its blockers, directly after it was written.
    pub(super) fn fit_blockers(&self, task: i64, ord: i64) -> Answer<()> {
        // Since that search nothing was written but the task, which is on neither side's way.
        let mut walked = self.walked.take().filter(|walked| walked.task == task && walked.seq + 1 == self.seq.get());
        for (blocker, blockers_ord) in next_to(&mut self.steps(BLOCKERS)?, task)? {
            if blockers_ord.is_some_and(|blockers_ord| blockers_ord >= ord) {
                let known = walked.take().filter(|walked| walked.blocker == blocker);
                self.fit_edge(blocker, task, known)?;
            }
        }
        Ok(())
    }

    /// Makes the order fit the edges from those that named a task before it was there.
    pub(super) fn fit_waiting(&self, task: i64, waiting: &[i64]) -> Answer<()> {
        waiting.iter().try_for_each(|waiting| self.fit_edge(task, *waiting, None))
    }

    /// The tasks that name this one as a blocker.
    pub(super) fn waiting_for(&self, blocker: i64) -> Answer<Vec<i64>> {
        Ok(next_to(&mut self.steps(WAITING)?, blocker)?.into_iter().map(|(task, _)| task).collect())
    }

    fn fit_edge(&self, blocker: i64, task: i64, walked: Option<Walked>) -> Answer<()> {
        let (Some(low), Some(high)) = (self.ord(blocker)?, self.ord(task)?) else { return Ok(()) };
        if low < high {
            return Ok(());
        }
        let mut down = Shift::of(self.steps(BLOCKERS)?, -1, (blocker, low, high - 1));
        let mut up = Shift::of(self.steps(WAITING)?, 1, (task, high, low + 1));
        if let Some(walked) = walked {
            let known = if walked.down { &mut down } else { &mut up };
            known.advance_along(walked.steps);
        }
        while down.advance()? && up.advance()? {}
        let (done, other) = if down.heap.is_empty() { (down, task) } else { (up, blocker) };
        // Only in damaged data do dependencies run in a circle, and no order fits them.
        if done.bounds.contains_key(&other) {
            return Ok(());
        }
        let mut set = self.connection.prepare_cached(SET_ORD)?;
        for (id, old, new) in done.moved {
            self.count_ord(id, Some(old), Some(new));
            set.execute((id, new))?;
        }
        Ok(())
    }
}

/// Steps from the smaller front until one end meets what the other has seen.
fn meet(down: &mut End<'_>, up: &mut End<'_>, range: (i64, i64)) -> Answer<Option<i64>> {
    while !down.front.is_empty() && !up.front.is_empty() {
        let met = if down.front.len() <= up.front.len() { step(down, up, range) } else { step(up, down, range) };
        if let Some(middle) = met? {
            return Ok(Some(middle));
        }
    }
    Ok(None)
}

fn step(near: &mut End<'_>, far: &End<'_>, (low, high): (i64, i64)) -> Answer<Option<i64>> {
    for at in std::mem::take(&mut near.front) {
        let steps = next_to(&mut near.next, at)?;
        for &(next, ord) in &steps {
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
        near.steps.insert(at, steps);
    }
    Ok(None)
}

fn next_to(next: &mut CachedStatement<'_>, at: i64) -> Answer<Vec<Step>> {
    let steps = next.query_map([at], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(steps.collect::<rusqlite::Result<_>>()?)
}

/// Tasks to be moved in one direction, the nearest first: when one is taken, everything that bounds it is known.
struct Shift<'c> {
    /// Finds the next steps.
    next: CachedStatement<'c>,
    /// 1 for up, -1 for down.
    sign: i64,
    /// Where a task may stand at most (going down), or at least (going up).
    bounds: HashMap<i64, i64>,
    heap: BinaryHeap<(i64, i64)>,
    /// Each with its old place and its new one.
    moved: Vec<(i64, i64, i64)>,
}

impl<'c> Shift<'c> {
    /// Begins with a task, its place, and where it may stand.
    fn of(next: CachedStatement<'c>, sign: i64, (id, ord, bound): (i64, i64, i64)) -> Self {
        let mut shift = Self { next, sign, bounds: HashMap::new(), heap: BinaryHeap::new(), moved: Vec::new() };
        shift.push(id, Some(ord), bound);
        shift
    }

    /// Moves one more task out of the way; false when none is left.
    fn advance(&mut self) -> Answer<bool> {
        let Some(&(_, id)) = self.heap.peek() else { return Ok(false) };
        let steps = next_to(&mut self.next, id)?;
        self.take(&steps);
        Ok(!self.heap.is_empty())
    }

    /// Moves tasks out of the way for as long as the steps from them are known.
    fn advance_along(&mut self, mut known: Steps) {
        while let Some(steps) = self.heap.peek().and_then(|(_, id)| known.remove(id)) {
            self.take(&steps);
        }
    }

    /// Moves the nearest task; the next ones are in its way.
    fn take(&mut self, steps: &[Step]) {
        let Some((signed, id)) = self.heap.pop() else { return };
        let bound = self.bounds[&id];
        self.moved.push((id, -self.sign * signed, bound));
        for &(next, ord) in steps {
            self.push(next, ord, bound + self.sign);
        }
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
