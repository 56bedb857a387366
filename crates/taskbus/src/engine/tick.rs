//! The maintenance tick: one step after the other, in the order of the core, by one process at a time. And returning
//! abandoned tasks to their queues, for it and for a reader that met one. Each looks first and takes the write lock only
//! when there is something to mend.

use std::time::Duration;

use taskbus_core::bus::retain::{Step, Turn, turn};
use taskbus_core::decide::{Facts, reclaim_all, reclaim_one};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::Look;
use taskbus_core::time::Timestamp;

use super::bus::maintain::Useless;
use super::world::{Ledger, Peek};
use super::{Engine, Error, Ticked};
use crate::store::bus::BusSnapshot;
use crate::store::{Abort, Author, Snapshot, StoreError, Tx, read_with, write_with};

/// Most tasks mended, and most receipts dropped, in one transaction.
const BATCH: usize = 256;
/// Receipts after which a tick leaves the rest to the next one.
const RECEIPTS: usize = 16 * BATCH;

/// What to mend.
#[derive(Clone, Copy)]
pub(super) enum Which<'a> {
    /// One task, if it is abandoned.
    One(&'a TaskId),
    /// Every abandoned task of the list.
    All,
}

/// Whether a list has an abandoned task.
pub(super) fn has_abandoned(snapshot: &dyn Snapshot, facts: &Facts) -> Look<bool> {
    Peek::is_worth(snapshot, |world| reclaim_all(world, facts, 1).map(|_| ()))
}

/// One tick of one process.
pub(super) struct Shift<'a> {
    /// Who.
    pub(super) token: &'a str,
    /// When it must be over, by the uptime of its engine; the rest is left to the next.
    pub(super) deadline: Duration,
    uptime: &'a dyn Fn() -> Duration,
    interval_ms: i64,
}

impl Shift<'_> {
    /// Whether the time is over.
    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// How much of it is left.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_sub((self.uptime)())
    }

    fn turn(&self, bus: &dyn BusSnapshot, now: Timestamp) -> Result<Turn, StoreError> {
        let held = bus.maintainer()?;
        Ok(turn(held.as_ref().map(|(who, until)| (who.as_str(), *until)), self.token, now, self.interval_ms))
    }
}

impl Engine {
    /// Does the maintenance, unless another process does: returns abandoned tasks to their queues, drops what has
    /// expired, is too old or too much, and embeds memories. Correctness never depends on it. A step that fails does
    /// not keep the others from their work.
    ///
    /// # Errors
    /// [`Error`]: that of the first step that failed.
    pub fn tick(&self) -> Result<Ticked, Error> {
        let interval = self.tick_interval();
        let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX / 4);
        let uptime = &*self.seams.uptime;
        let shift = Shift { token: &self.seams.token, deadline: uptime() + interval / 2, uptime, interval_ms };
        let (mut ticked, mut first) = (Ticked::default(), None);
        if self.is_anothers(&shift)? {
            return Ok(ticked);
        }
        for step in Step::ORDER.into_iter().filter(|step| self.store.has_bus() || step.is_of_lists()) {
            if shift.is_over() {
                tracing::warn!(step = step.as_str(), "the rest of the maintenance is left to the next tick");
                break;
            }
            if let Err(error) = self.step(step, &shift, &mut ticked) {
                tracing::warn!(%error, step = step.as_str(), "a step of the maintenance failed");
                first.get_or_insert(error);
            }
        }
        first.map_or(Ok(ticked), Err)
    }

    /// The time between two ticks of a process.
    #[must_use]
    pub fn tick_interval(&self) -> Duration {
        Duration::from_secs(self.limits.cleanup_interval_seconds)
    }

    fn step(&self, step: Step, shift: &Shift<'_>, ticked: &mut Ticked) -> Result<(), Error> {
        match step {
            Step::Sessions => ticked.sessions = self.drop_sessions(shift)?,
            Step::Abandoned => self.reclaim_everywhere(shift, &mut ticked.reclaimed)?,
            Step::Receipts => ticked.receipts = self.drop_receipts(shift)?,
            Step::Age => ticked.aged = self.drop_old(shift)?,
            Step::Tombstones => ticked.purged = self.purge_buried(shift)?,
            Step::Channels => ticked.channels = self.drop_channels(shift, Useless::Empty)?,
            Step::TaskLists => ticked.lists = self.drop_channels(shift, Useless::Idle)?,
            Step::Memories => ticked.memories = self.expire_memories(shift)?,
            Step::Capacity => ticked.evicted = self.evict_over_budget(shift)?,
            Step::Shrink => self.give_back_space(shift)?,
            Step::Texts => self.store.index_texts()?,
            Step::Embeddings => ticked.embedded = self.embed_missing(shift)?,
        }
        Ok(())
    }

    /// Runs a transaction of the maintenance; not when another process has taken it over.
    pub(super) fn mend<T>(
        &self,
        shift: &Shift<'_>,
        list: Option<&ListName>,
        mut f: impl FnMut(&mut dyn Tx, Timestamp) -> Result<T, Abort>,
    ) -> Result<Option<T>, Error> {
        Ok(write_with(self.store(), list, |tx| {
            let now = self.store.now()?;
            if let Some(bus) = tx.bus_mut() {
                match shift.turn(&*bus, now)? {
                    Turn::Anothers => return Ok(None),
                    Turn::Ours => {}
                    Turn::Take { until } => bus.put_maintainer(shift.token, until)?,
                }
            }
            f(tx, now).map(Some)
        })?)
    }

    /// Takes the maintenance over for work that is no single transaction, if there is any.
    pub(super) fn take_lease(
        &self,
        shift: &Shift<'_>,
        is_wanted: impl Fn(&dyn BusSnapshot) -> Result<bool, StoreError>,
    ) -> Result<bool, Error> {
        let turn = read_with(self.store(), None, |snapshot| {
            let Some(bus) = snapshot.bus() else { return Ok(None) };
            if is_wanted(bus)? { shift.turn(bus, self.store.now()?).map(Some) } else { Ok(None) }
        })?;
        match turn {
            None | Some(Turn::Anothers) => Ok(false),
            Some(Turn::Ours) => Ok(true),
            Some(Turn::Take { .. }) => Ok(self.mend(shift, None, |_, _| Ok(()))?.is_some()),
        }
    }

    fn is_anothers(&self, shift: &Shift<'_>) -> Result<bool, Error> {
        Ok(read_with(self.store(), None, |snapshot| {
            let Some(bus) = snapshot.bus() else { return Ok(false) };
            Ok(shift.turn(bus, self.store.now()?)? == Turn::Anothers)
        })?)
    }

    /// Mends what is abandoned, in the name of the caller; says how many tasks.
    pub(super) fn fix_up(&self, list: &ListName, caller: Option<&Identity>, which: Which<'_>) -> Result<usize, Error> {
        let mut all = 0;
        loop {
            let count = write_with(self.store(), Some(list), |tx| self.fix_some(tx, caller, which))?;
            all += count;
            if count < BATCH {
                return Ok(all);
            }
        }
    }

    fn fix_some(&self, tx: &mut dyn Tx, caller: Option<&Identity>, which: Which<'_>) -> Result<usize, Abort> {
        let facts = Facts { now: self.store.now()?, caller: caller.cloned() };
        let author = match caller {
            Some(caller) => {
                let session = self.enter(tx, caller, facts.now)?;
                Author { context: session.context, client: session.client }
            }
            None => Author::default(),
        };
        let mut ledger = Ledger::new(tx, author);
        Ok(match which {
            Which::One(id) => usize::from(reclaim_one(id, &mut ledger, &facts)?),
            Which::All => reclaim_all(&mut ledger, &facts, BATCH)?,
        })
    }

    fn reclaim_everywhere(&self, shift: &Shift<'_>, reclaimed: &mut usize) -> Result<(), Error> {
        for list in self.lists()? {
            let facts = Facts { now: self.store.now()?, caller: None };
            let look = |snapshot: &dyn Snapshot| Ok(has_abandoned(snapshot, &facts)?);
            while !shift.is_over() && read_with(self.store(), Some(&list.name), look)? {
                let some = self.mend(shift, Some(&list.name), |tx, _| self.fix_some(tx, None, Which::All))?;
                *reclaimed += some.unwrap_or(0);
                if some.is_none_or(|some| some < BATCH) {
                    break;
                }
            }
        }
        Ok(())
    }

    fn drop_receipts(&self, shift: &Shift<'_>) -> Result<usize, Error> {
        let now = self.store.now()?;
        let mut all = 0;
        while all < RECEIPTS && read_with(self.store(), None, |snapshot| snapshot.has_expired_receipts(now))? {
            match self.mend(shift, None, |tx, _| Ok(tx.drop_receipts(now, BATCH)?))? {
                Some(some) => all += some,
                None => break,
            }
        }
        Ok(all)
    }
}
