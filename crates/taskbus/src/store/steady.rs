//! The clock of one store: the machine's, and the anchor that the store keeps, as far as this process has seen it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taskbus_core::clock::{self, Anchor, Reading};
use taskbus_core::time::Timestamp;

use super::Clock;

/// The clock of a store.
pub(super) struct Steady {
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy)]
enum Seen {
    /// The store was not looked at yet.
    Nothing,
    /// It keeps this.
    Kept(Option<Anchor>),
}

impl Steady {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, seen: Mutex::new(Seen::Nothing) }
    }

    /// What the machine's clocks say.
    pub(super) fn reading(&self) -> Reading {
        self.clock.reading()
    }

    /// The store's time, by what was seen of it.
    pub(super) fn now(&self) -> Timestamp {
        self.time_of(self.anchor())
    }

    /// Whether the store was looked at.
    pub(super) fn is_known(&self) -> bool {
        !matches!(*self.seen(), Seen::Nothing)
    }

    /// Whether the store was last written during another boot.
    pub(super) fn is_of_another_boot(&self) -> bool {
        clock::is_of_another_boot(self.anchor(), self.reading())
    }

    /// The anchor that was seen last.
    pub(super) fn anchor(&self) -> Option<Anchor> {
        match *self.seen() {
            Seen::Nothing => None,
            Seen::Kept(anchor) => anchor,
        }
    }

    /// The store's time by this.
    pub(super) fn time_of(&self, anchor: Option<Anchor>) -> Timestamp {
        clock::time(anchor, self.reading())
    }

    /// A transaction that reads has seen this, and goes by it. What a newer one has seen stays.
    pub(super) fn read(&self, anchor: Option<Anchor>) -> Timestamp {
        let turn = |anchor: Option<Anchor>| anchor.map_or(0, |anchor| anchor.turn);
        let mut seen = self.seen();
        match *seen {
            Seen::Kept(known) if turn(known) > turn(anchor) => {}
            Seen::Kept(_) | Seen::Nothing => *seen = Seen::Kept(anchor),
        }
        drop(seen);
        self.time_of(anchor)
    }

    /// A transaction that writes goes by this.
    pub(super) fn take(&self, anchor: Option<Anchor>) {
        *self.seen() = Seen::Kept(anchor);
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
