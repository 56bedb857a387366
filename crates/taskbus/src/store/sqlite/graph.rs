//! Does one task wait for another? A search from both ends at once over the edges, always from the end that has seen
//! less, so that a task that nobody waits for, or that waits for nobody, answers at once.
//!
//! Nothing recurses; memory grows with what was seen.

use std::collections::HashMap;

use taskbus_core::id::TaskId;

use super::error::Answer;
use super::scope::{Scope, as_row_id, task_ids};

const BLOCKERS: &str = "SELECT blocker FROM edges INDEXED BY edges_by_task WHERE task = ?1";
const WAITING: &str = "SELECT task FROM edges WHERE blocker = ?1";

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
        if self.spot(from)?.is_none() {
            return Ok(None);
        }
        let (mut down, mut up) = (End::at(from, BLOCKERS), End::at(to, WAITING));
        let Some(middle) = self.meet(&mut down, &mut up)? else { return Ok(None) };
        let mut way = down.back(middle);
        way.reverse();
        way.extend(up.back(middle).into_iter().skip(1));
        task_ids(&way).map(Some)
    }

    /// Steps from the smaller front until one end meets what the other has seen.
    fn meet(&self, down: &mut End, up: &mut End) -> Answer<Option<i64>> {
        while !down.front.is_empty() && !up.front.is_empty() {
            let (near, far) = if down.front.len() <= up.front.len() { (&mut *down, &*up) } else { (&mut *up, &*down) };
            if let Some(middle) = self.step(near, far)? {
                return Ok(Some(middle));
            }
        }
        Ok(None)
    }

    fn step(&self, near: &mut End, far: &End) -> Answer<Option<i64>> {
        let mut statement = self.connection.prepare_cached(near.next)?;
        for at in std::mem::take(&mut near.front) {
            let mut rows = statement.query([at])?;
            while let Some(row) = rows.next()? {
                let next: i64 = row.get(0)?;
                if near.came_from.contains_key(&next) {
                    continue;
                }
                near.came_from.insert(next, at);
                if far.came_from.contains_key(&next) {
                    return Ok(Some(next));
                }
                near.front.push(next);
            }
        }
        Ok(None)
    }
}
