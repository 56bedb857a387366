//! Where calls of one engine wait for a change of the store: one thread listens for all of them, and sleeps until the
//! store says that something changed. Nothing here but locks, so that the tests can run it under schedules that a seed
//! decides; it takes them from [`crate::sync`] for that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::store::{Store, StoreError};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, thread};

/// The longest sleep without a look.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The waiting calls of one engine.
#[derive(Default)]
pub(super) struct Hall {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    /// How many calls wait.
    waiting: usize,
    /// Whether a thread listens for them.
    attended: bool,
    /// Counts what it heard.
    rings: u64,
}

/// A call that waits; it counts until it is dropped.
pub(super) struct Place<'a>(&'a Arc<Hall>);

impl<'a> Place<'a> {
    pub(super) fn take(hall: &'a Arc<Hall>) -> Self {
        hall.lock().waiting += 1;
        Self(hall)
    }

    /// Sees to it that somebody listens; says how often there was something to hear so far.
    pub(super) fn attend(&self, store: &Arc<dyn Store>, seen: u64) -> u64 {
        let mut state = self.0.lock();
        if !state.attended {
            let (hall, store) = (Arc::clone(self.0), Arc::clone(store));
            let listener = thread::Builder::new().name("taskbus-listen".to_owned());
            state.attended = listener.spawn(move || hall.listen(&*store, seen)).is_ok();
        }
        state.rings
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

impl Hall {
    /// Waits until the store has changed since `seen`, the time is over, or `cancelled` says so.
    pub(super) fn pause(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        seen: u64,
        time: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), StoreError> {
        let end = Instant::now() + time;
        let place = Place::take(self);
        loop {
            // Whatever comes after this is heard: the listener rings for it, and its ring is one that was not counted.
            let rings = place.attend(store, seen);
            if cancelled() || store.version()? != seen {
                return Ok(());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.sleep(rings, left.min(LOOK_AGAIN), cancelled);
        }
    }

    /// Has every waiting call ask at once whether it is cancelled.
    pub(super) fn wake(&self) {
        let state = self.lock();
        self.bell.notify_all();
        drop(state);
    }

    /// Sleeps until there is something new to hear, the time is over, or `cancelled` says so.
    pub(super) fn sleep(&self, rings: u64, time: Duration, cancelled: &dyn Fn() -> bool) {
        let state = self.lock();
        let idle = |state: &mut State| state.rings == rings && !cancelled();
        drop(self.bell.wait_timeout_while(state, time, idle).unwrap_or_else(PoisonError::into_inner));
    }

    /// Listens as long as somebody waits. A failure is heard too: who waits meets it at the next look.
    fn listen(&self, store: &dyn Store, mut seen: u64) {
        loop {
            let version = next_version(store, seen);
            let mut state = self.lock();
            if version.as_ref().ok() != Some(&seen) {
                state.rings += 1;
                self.bell.notify_all();
            }
            match version {
                Ok(version) if state.waiting > 0 => seen = version,
                Ok(_) | Err(_) => {
                    state.attended = false;
                    return;
                }
            }
        }
    }

    /// How many calls wait, and whether somebody listens for them.
    #[cfg(test)]
    pub(super) fn census(&self) -> (usize, bool) {
        let state = self.lock();
        (state.waiting, state.attended)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_version(store: &dyn Store, seen: u64) -> Result<u64, StoreError> {
    store.wait(seen, LOOK_AGAIN)?;
    store.version()
}
