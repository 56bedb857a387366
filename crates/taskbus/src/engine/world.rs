//! How the rules see a store: a transaction they may change, and a snapshot they may only want to change.

use taskbus_core::change::{Change, Kind};
use taskbus_core::decide::{Stop, World};
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::{Dependent, ListRules, Look, LookupError, Neighbourhood, ReadyScan, Sibling, Tally};
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;

use crate::store::{Appended, Author, Snapshot, Tx};

/// A transaction as a world, with a ledger of what was written.
pub(super) struct Ledger<'a> {
    tx: &'a mut dyn Tx,
    author: Author,
    entries: Vec<Entry>,
}

/// One revision that was written.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Why.
    pub(super) kind: Kind,
    /// What the store said.
    pub(super) appended: Appended,
    /// The task afterwards.
    pub(super) task: Task,
    /// How large it is as stored, in bytes.
    pub(super) bytes: usize,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(tx: &'a mut dyn Tx, author: Author) -> Self {
        Self { tx, author, entries: Vec::new() }
    }

    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}

impl World for Ledger<'_> {
    fn mint(&mut self, count: usize) -> Look<Vec<TaskId>> {
        Ok(self.tx.mint(count)?)
    }

    fn apply(&mut self, change: Change) -> Look<()> {
        let appended = self.tx.append(&change, &self.author)?;
        let note = change.note.as_ref().map_or(0, |note| note.as_str().len());
        let bytes = appended.bytes + note;
        self.entries.push(Entry { kind: change.kind, appended, task: change.task, bytes });
        Ok(())
    }
}

/// A snapshot as a world that nothing can be written to: it tells whether something would be.
pub(super) struct Peek<'a> {
    snapshot: &'a dyn Snapshot,
    wanted: bool,
}

impl<'a> Peek<'a> {
    /// Whether `f` is worth a transaction: it would write, or be refused. It is stopped at its first write.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn is_worth(
        snapshot: &'a dyn Snapshot,
        f: impl FnOnce(&mut dyn World) -> Result<(), Stop>,
    ) -> Look<bool> {
        let mut peek = Peek { snapshot, wanted: false };
        match f(&mut peek) {
            _ if peek.wanted => Ok(true),
            Ok(()) => Ok(false),
            Err(Stop::Refused(_)) => Ok(true),
            Err(Stop::Lookup(error)) => Err(error),
        }
    }

    fn stop(&mut self) -> LookupError {
        self.wanted = true;
        LookupError(Box::new(OnlyLooking))
    }
}

impl World for Peek<'_> {
    fn mint(&mut self, _: usize) -> Look<Vec<TaskId>> {
        Err(self.stop())
    }

    fn apply(&mut self, _: Change) -> Look<()> {
        Err(self.stop())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("this view of the store is for looking only")]
pub(super) struct OnlyLooking;

/// Passes every question on to the store.
macro_rules! ask {
    ($world:ident.$store:ident: $($question:ident($($name:ident: $kind:ty),*) -> $answer:ty;)*) => {
        impl Neighbourhood for $world<'_> {
            $(fn $question(&self, $($name: $kind),*) -> Look<$answer> {
                self.$store.$question($($name),*)
            })*
        }
    };
    ($world:ident.$store:ident) => {
        ask! { $world.$store:
            rules() -> ListRules;
            task(id: &TaskId) -> Option<Task>;
            tombstone(id: &TaskId) -> Option<Task>;
            is_known(who: &Identity) -> bool;
            is_alive(who: &Identity, now: Timestamp) -> bool;
            live_of(ids: &[TaskId]) -> Vec<TaskId>;
            open_of(ids: &[TaskId]) -> Vec<TaskId>;
            children(parent: &TaskId, open_only: bool, limit: usize) -> Vec<TaskId>;
            last_sibling(parent: Option<&TaskId>) -> Option<Sibling>;
            sibling_before(parent: Option<&TaskId>, place: &Sibling) -> Option<Sibling>;
            sibling_after(parent: Option<&TaskId>, place: &Sibling) -> Option<Sibling>;
            siblings(parent: Option<&TaskId>) -> Vec<Sibling>;
            depth(id: &TaskId) -> usize;
            height(id: &TaskId) -> usize;
            way(from: &TaskId, to: &TaskId) -> Option<Vec<TaskId>>;
            dependents(blocker: &TaskId) -> Vec<Dependent>;
            suspects(now: Timestamp, limit: usize) -> Vec<TaskId>;
            paths_in_use() -> Vec<(TaskId, Vec<PathGlob>)>;
            ready(scan: &ReadyScan) -> Vec<Task>;
            held(limit: usize) -> Vec<Task>;
            tally(now: Timestamp) -> Tally;
        }
    };
}

ask!(Ledger.tx);
ask!(Peek.snapshot);
