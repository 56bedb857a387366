//! The clock of a store in memory: what a write does first when the wall clock was set.

use std::convert::Infallible;

use taskbus_core::clock::{self, Sessions};

use super::State;
use super::desk::Desk;
use crate::store::steady::Steady;

impl Desk<'_, '_> {
    /// Takes a new anchor if it is time to. That is not undone with the write: the clocks stay as they are.
    pub(super) fn settle(&mut self, steady: &Steady) {
        let reading = steady.reading();
        let Ok(settled) = clock::settle::<Infallible>(steady.anchor(), reading, || Ok(self.state().has_leases()));
        let Some(settled) = settled else { return };
        steady.take(Some(settled.anchor));
        let now = clock::time(Some(settled.anchor), reading);
        for row in self.work.state.sessions.values_mut() {
            match settled.sessions {
                Sessions::End => row.alive_until = row.alive_until.min(now),
                Sessions::Move(millis) => row.alive_until = row.alive_until.plus_millis(millis),
            }
        }
    }
}

impl State {
    fn has_leases(&self) -> bool {
        self.lists.values().any(|list| list.board.tasks().any(|task| task.leased_until().is_some()))
    }
}
