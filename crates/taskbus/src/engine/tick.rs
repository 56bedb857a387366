//! Returning abandoned tasks to their queues: the maintenance tick, and the same for a reader that met one.
//! Each looks first and takes the write lock only when there is something to mend.

use taskbus_core::decide::{Facts, reclaim_all, reclaim_one};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::Look;

use super::world::{Ledger, Peek};
use super::{Engine, Error, Ticked};
use crate::store::{Abort, Author, Snapshot, Tx, read_with, write_with};

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

impl Engine {
    /// Returns abandoned tasks of every list to their queues and drops what has expired. Correctness never
    /// depends on it.
    ///
    /// # Errors
    /// [`Error`].
    pub fn tick(&self) -> Result<Ticked, Error> {
        let mut ticked = Ticked::default();
        for list in self.lists()? {
            ticked.reclaimed += self.tick_list(&list.name)?;
        }
        ticked.receipts = self.drop_receipts()?;
        Ok(ticked)
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

    fn tick_list(&self, list: &ListName) -> Result<usize, Error> {
        let facts = Facts { now: self.store.now()?, caller: None };
        let abandoned = read_with(self.store(), Some(list), |snapshot| Ok(has_abandoned(snapshot, &facts)?))?;
        if abandoned { self.fix_up(list, None, Which::All) } else { Ok(0) }
    }

    fn drop_receipts(&self) -> Result<usize, Error> {
        let now = self.store.now()?;
        let mut all = 0;
        while all < RECEIPTS && read_with(self.store(), None, |snapshot| snapshot.has_expired_receipts(now))? {
            all += write_with(self.store(), None, |tx| Ok(tx.drop_receipts(now, BATCH)?))?;
        }
        Ok(all)
    }
}
