//! Flushes that the callers of one process share: who comes while one is under way waits for the next, which whoever comes
//! first begins for all of them. A flush that had begun before a commit says nothing of it. Nothing here but locks, as in
//! the hall of an engine, and for the same reason.

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The flushes of one log.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    state: Mutex<State>,
    ended: Condvar,
}

/// Flushes are numbered by when they begin; one is under way if more have begun than ended.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    begun: u64,
    ended: u64,
    /// The number of the error.
    failed: Option<i32>,
}

impl Flushes {
    /// Returns when a flush that began after this call has ended; does it by `sync`, unless somebody else does.
    ///
    /// # Errors
    /// The number of the error, from the first failure on and for ever.
    pub(super) fn share(&self, sync: &dyn Fn() -> Result<(), i32>) -> Result<(), i32> {
        let mut state = self.lock();
        let wanted = state.begun + 1;
        while state.ended < wanted {
            if let Some(number) = state.failed {
                return Err(number);
            }
            if state.begun == state.ended {
                state.begun += 1;
                drop(state);
                state = self.run(sync);
            } else {
                state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Ok(())
    }

    /// The flush that has begun. One that fails never ends, so that no other begins.
    fn run(&self, sync: &dyn Fn() -> Result<(), i32>) -> MutexGuard<'_, State> {
        let result = sync();
        let mut state = self.lock();
        match result {
            Ok(()) => state.ended = state.begun,
            Err(number) => state.failed = Some(number),
        }
        self.ended.notify_all();
        state
    }

    /// How many have begun.
    #[cfg(test)]
    pub(super) fn begun(&self) -> u64 {
        self.lock().begun
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
