//! One thread of this process at a time; the others wait their turn, under a deadline.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::lock::Patience;
use crate::store::StoreError;

#[derive(Debug, Default)]
pub(super) struct Gate {
    taken: Mutex<bool>,
    free: Condvar,
}

/// The turn of one thread.
pub(super) struct Turn<'a>(&'a Gate);

impl Gate {
    /// Waits for the turn.
    pub(super) fn enter(&self, patience: Patience<'_>) -> Result<Turn<'_>, StoreError> {
        let left = patience.limit.saturating_sub(patience.since.elapsed());
        let wait = self.free.wait_timeout_while(self.taken(), left, |taken| *taken);
        let (mut taken, late) = wait.unwrap_or_else(PoisonError::into_inner);
        if late.timed_out() && *taken {
            return Err(patience.busy());
        }
        *taken = true;
        Ok(Turn(self))
    }

    fn taken(&self) -> MutexGuard<'_, bool> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken() = false;
        self.0.free.notify_one();
    }
}
