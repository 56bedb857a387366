//! What must hold, read from the store itself after each step: every revision that is new is looked at, beside the one
//! before it and the sessions as they were before the step.

use std::collections::BTreeMap;
use std::sync::Arc;

use taskbus::core::change::Kind;
use taskbus::core::id::TaskId;
use taskbus::core::name::Identity;
use taskbus::core::task::{State, Status, Task};
use taskbus::core::time::Timestamp;
use taskbus::store::{PageQuery, RevisionRow, Snapshot, Store, StoreError, read_with};

use crate::agent::Hand;
use crate::world::list;

/// The list as it was seen last.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    seqs: BTreeMap<TaskId, u64>,
    last_seq: u64,
    /// Until when each owner counted as alive, before the step.
    alive: BTreeMap<Identity, Timestamp>,
    pub(crate) reclaimed: u64,
    pub(crate) claimed: u64,
    pub(crate) completed: u64,
}

impl Watch {
    /// Remembers who is alive, before a step.
    pub(crate) fn before(&mut self, store: &Arc<dyn Store>) {
        let owners: Vec<Identity> = self.tasks.values().filter_map(|task| task.owner().cloned()).collect();
        self.alive = read_with(&**store, None, |snapshot| {
            let until = |owner: &Identity| Ok((owner.clone(), snapshot.session(owner)?.map(|row| row.alive_until)));
            let rows = owners.iter().map(until).collect::<Result<Vec<_>, StoreError>>()?;
            Ok(rows.into_iter().filter_map(|(owner, until)| Some((owner, until?))).collect())
        })
        .unwrap();
    }

    /// Whether a claim is good at this time: whoever acts under it is alive by that.
    pub(crate) fn holds(&self, who: &Identity, hand: &Hand, now: Timestamp) -> bool {
        self.tasks.get(&hand.id).is_some_and(|task| {
            let runs = task.leased_until().is_none_or(|until| until > now);
            task.status() == Status::InProgress && task.owner() == Some(who) && task.fence == hand.fence && runs
        })
    }

    /// Looks at what a step wrote; says how many revisions.
    pub(crate) fn after(&mut self, store: &Arc<dyn Store>, now: Timestamp) -> usize {
        let rows = read_with(&**store, Some(&list()), |snapshot| self.news(snapshot, now)).unwrap();
        for row in &rows {
            self.check(row, now);
            self.last_seq = row.seq;
            self.seqs.insert(row.task.id.clone(), row.seq);
            self.tasks.insert(row.task.id.clone(), row.task.clone());
        }
        rows.len()
    }

    /// Every revision that was not there before, in order. The rows and the revisions tell the same.
    fn news(&self, snapshot: &dyn Snapshot, now: Timestamp) -> Result<Vec<RevisionRow>, StoreError> {
        let page = snapshot.page(&PageQuery::all(1_000, now))?;
        assert!(page.rows.len() >= self.tasks.len(), "a task is gone");
        let mut news = Vec::new();
        for row in &page.rows {
            let known = self.seqs.get(&row.id).copied().unwrap_or(0);
            if snapshot.seq(&row.id)? == Some(known) {
                continue;
            }
            let history = snapshot.history(&row.id, None, 100)?;
            assert_eq!(
                snapshot.task(&row.id)?.as_ref(),
                history.first().map(|row| &row.task),
                "the row is the last revision"
            );
            news.extend(history.into_iter().filter(|row| row.seq > known));
        }
        news.sort_by_key(|row| row.seq);
        Ok(news)
    }

    fn check(&mut self, row: &RevisionRow, now: Timestamp) {
        let task = &row.task;
        assert!(row.seq > self.last_seq, "numbers rise: {} behind {}", row.seq, self.last_seq);
        let old = self.tasks.get(&task.id);
        assert_eq!(task.revision, old.map_or(1, |old| old.revision + 1), "one revision for each change: {task:?}");
        let Some(old) = old else { return };
        assert!(task.fence >= old.fence, "a fence fell: {old:?} {task:?}");
        assert!(old.status() != Status::Completed, "done once, done for good: {old:?} {task:?}");
        let starts = old.status() != Status::InProgress && task.status() == Status::InProgress;
        if starts {
            assert!(task.fence > old.fence, "a claim raises the fence: {old:?} {task:?}");
            assert!(task.owner().is_some() && self.is_free(task), "what waits for others is not started: {task:?}");
            self.claimed += 1;
        }
        if let State::InProgress { owner: Some(owner), lease } = &old.state {
            // A hold is over when its lease is, or when its owner has no live session (docs/rules.md 4).
            let is_over = lease.is_some_and(|until| until <= now) || !self.is_alive(owner, now);
            if row.kind == Kind::Reclaimed {
                assert!(is_over, "a hold that runs is not taken back: {old:?} at {now:?}");
                assert!(task.fence > old.fence, "what was taken back has another fence: {old:?} {task:?}");
                self.reclaimed += 1;
            } else {
                assert_eq!(task.updated.by.as_ref(), Some(owner), "nobody else changes what somebody holds");
            }
        }
        self.completed += u64::from(task.status() == Status::Completed);
    }

    fn is_alive(&self, owner: &Identity, now: Timestamp) -> bool {
        self.alive.get(owner).is_some_and(|until| *until > now)
    }

    fn is_free(&self, task: &Task) -> bool {
        task.blocked_by.iter().all(|id| self.tasks[id].status() == Status::Completed)
    }

    /// The tasks with this subject.
    pub(crate) fn named(&self, subject: &str) -> usize {
        self.tasks.values().filter(|task| task.subject.as_str() == subject).count()
    }
}
