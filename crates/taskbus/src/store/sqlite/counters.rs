//! How many tasks are in which condition, kept as counters so that no total ever counts rows.
//!
//! A writing transaction collects what changes and writes it once, before it commits or when it is asked.

use rusqlite::params;
use taskbus_core::neighbourhood::Tally;
use taskbus_core::time::Timestamp;

use super::chained::{MARKS, mark};
use super::error::Answer;
use super::row::Condition;
use super::scope::Scope;
use crate::store::chain::Link;

/// Deferred tasks promoted by one transaction, at most; the rest is merged in when asked for.
const PROMOTED_MAX: i64 = 1000;

const READ: &str = "
    SELECT ready, blocked, parked, deferred, in_progress, completed FROM counters WHERE id = ?1";
const ADD_TO_LIST: &str = "
    UPDATE counters SET seq = max(seq, ?2), ready = ready + ?3, blocked = blocked + ?4, parked = parked + ?5,
        deferred = deferred + ?6, in_progress = in_progress + ?7, completed = completed + ?8,
        ords = (ords + ?9) & 4611686018427387903
    WHERE id = ?1";
const ADD_TO_ALL: &str = "
    UPDATE counters SET seq = ?1, head = ?2, ready = ready + ?3, blocked = blocked + ?4, parked = parked + ?5,
        deferred = deferred + ?6, in_progress = in_progress + ?7, completed = completed + ?8,
        ords = (ords + ?9) & 4611686018427387903, seal = ?10
    WHERE id = 0";
const DUE: &str = "
    SELECT count(*) FROM tasks INDEXED BY tasks_timed WHERE list = ?1 AND condition = 4 AND not_before <= ?2";
/// Asked for each condition: for both at once SQLite would make a table of the two.
const EARLY: &str = "
    SELECT count(*) FROM tasks INDEXED BY tasks_timed WHERE list = ?1 AND condition = ?3 AND not_before > ?2";
const PROMOTE: &str = "
    UPDATE tasks SET condition = (owner <> 0) WHERE id IN (
        SELECT id FROM tasks INDEXED BY tasks_timed
        WHERE list = ?1 AND condition = 4 AND not_before <= ?2 LIMIT ?3)";

const ADD_SEQ: &str = "UPDATE counters SET seq = ?1, seal = ?2 WHERE id = 0";

/// What a writing transaction has not written to the counters yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The list, once something was appended to it and until it is written here.
    list: Option<i64>,
    /// Something was appended.
    written: bool,
    /// The seq of what was appended last; 0 for nothing.
    latest: u64,
    /// A message was written whose number is not noted yet.
    posted: bool,
    /// One number for each condition.
    counts: [i64; Condition::ALL.len()],
    /// Marks that came, less those that went.
    ords: i64,
    /// Deferred tasks that this transaction has added, whether written already or not.
    deferred: i64,
    /// Every deferred task due by then is promoted.
    promoted_until: Option<Timestamp>,
}

impl Scope<'_> {
    /// Notes that a task went from one condition to another; none is "not live".
    pub(super) fn count(&self, list: i64, before: Option<Condition>, after: Option<Condition>) {
        let Some(pending) = &self.pending else { return };
        let mut pending = pending.borrow_mut();
        (pending.list, pending.written, pending.latest) = (Some(list), true, self.seq.get());
        for (condition, by) in [(before, -1), (after, 1)] {
            if let Some(condition) = condition {
                pending.counts[condition as usize] += by;
                pending.deferred += if condition == Condition::Deferred { by } else { 0 };
            }
        }
    }

    /// Notes that a task came to a place in the order of dependencies, or left one.
    pub(super) fn count_ord(&self, id: i64, before: Option<i64>, after: Option<i64>) {
        let Some(pending) = &self.pending else { return };
        let marked = |ord: Option<i64>| ord.map_or(0, |ord| mark(id, ord));
        let ords = &mut pending.borrow_mut().ords;
        *ords = (*ords + marked(after) - marked(before)) & MARKS;
    }

    /// Notes that a message was written, which has taken a number.
    pub(super) fn note_posted(&self) {
        if let Some(pending) = &self.pending {
            pending.borrow_mut().posted = true;
        }
    }

    /// The list in scope is gone: nothing is known of it, and nothing is pending.
    pub(super) fn forget_pending(&self) {
        if let Some(pending) = &self.pending {
            pending.replace(Pending { written: true, ..Pending::default() });
        }
    }

    /// The time by which a pending task counts as due: the clock's, or a later one that was asked for.
    pub(super) fn due_by(&self) -> Timestamp {
        let promoted = self.pending.as_ref().and_then(|pending| pending.borrow().promoted_until);
        promoted.map_or(self.now, |until| until.max(self.now))
    }

    /// Whether this transaction has appended anything.
    pub(super) fn has_written(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.borrow().written)
    }

    /// Writes what is pending.
    pub(super) fn flush(&self) -> Answer<()> {
        let Some(pending) = &self.pending else { return Ok(()) };
        let (list, c, latest, posted, ords) = {
            let mut pending = pending.borrow_mut();
            let (posted, ords) = (std::mem::take(&mut pending.posted), std::mem::take(&mut pending.ords));
            (pending.list.take(), std::mem::take(&mut pending.counts), pending.latest, posted, ords)
        };
        let Some(list) = list else {
            if posted {
                self.run(ADD_SEQ, params![self.seq.get(), self.seal()?.as_bytes()])?;
            }
            return Ok(());
        };
        let of = |condition: Condition| c[condition as usize];
        let ready = of(Condition::Ready) + of(Condition::Assigned);
        let (blocked, parked, deferred) = (of(Condition::Blocked), of(Condition::Parked), of(Condition::Deferred));
        let (active, done) = (of(Condition::InProgress), of(Condition::Completed));
        self.run(ADD_TO_LIST, params![list, latest, ready, blocked, parked, deferred, active, done, ords])?;
        let (seq, head, seal) = (self.seq.get(), self.head.get(), self.seal()?);
        let (head, seal) = (head.as_ref().map(Link::as_bytes), seal.as_bytes());
        self.run(ADD_TO_ALL, params![seq, head, ready, blocked, parked, deferred, active, done, ords, seal])?;
        Ok(())
    }

    /// How many tasks are in which condition at `now`.
    pub(super) fn tally_at(&self, now: Timestamp) -> Answer<Tally> {
        self.flush()?;
        let list = self.list()?;
        let stored = self.one(READ, [list], |row| {
            Ok(Tally {
                ready: row.get(0)?,
                blocked: row.get(1)?,
                parked: row.get(2)?,
                deferred: row.get(3)?,
                in_progress: row.get(4)?,
                completed: row.get(5)?,
            })
        })?;
        let Some(mut tally) = stored else { return Ok(Tally::default()) };
        let now = now.as_millis();
        let due = self.one(DUE, (list, now), |row| row.get::<_, u64>(0))?.unwrap_or(0);
        let mut early = 0;
        for condition in [Condition::Ready, Condition::Assigned] {
            early += self.one(EARLY, (list, now, condition.number()), |row| row.get::<_, u64>(0))?.unwrap_or(0);
        }
        tally.ready = (tally.ready + due).saturating_sub(early);
        tally.deferred = (tally.deferred + early).saturating_sub(due);
        Ok(tally)
    }

    /// Moves deferred tasks whose time has come to where the ready ones are. Says whether none is left behind, so that
    /// nobody needs to look there. Only a writing transaction moves them.
    pub(super) fn promote(&self, now: Timestamp) -> Answer<bool> {
        let Some(pending) = &self.pending else { return Ok(self.deferred == 0) };
        let deferred = self.deferred + pending.borrow().deferred;
        if deferred == 0 || pending.borrow().promoted_until.is_some_and(|until| until >= now) {
            return Ok(true);
        }
        let list = self.list()?;
        let moved = i64::try_from(self.run(PROMOTE, (list, now.as_millis(), PROMOTED_MAX))?).unwrap_or(i64::MAX);
        let mut pending = pending.borrow_mut();
        if moved > 0 {
            pending.list = Some(list);
            pending.counts[Condition::Deferred as usize] -= moved;
            pending.deferred -= moved;
            pending.counts[Condition::Ready as usize] += moved;
        }
        let complete = moved < PROMOTED_MAX;
        if complete {
            pending.promoted_until = Some(now);
        }
        Ok(complete)
    }
}
