//! Calls that wait for a change of the store. They wait in the store itself if it can be nudged; else one thread listens for
//! all of them, and sleeps until the store says that something changed. A call that is cancelled is woken by a [`Waker`];
//! nobody looks at a fixed rate faster than once a second, which makes up for a notice that got lost.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Engine, Error};
use crate::store::{Store, StoreError};

/// The longest sleep without a look.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The waiting calls of one engine.
#[derive(Default)]
pub(super) struct Waiters(Arc<Hall>);

#[derive(Default)]
struct Hall {
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

/// Wakes the waiting calls of an engine, from wherever their cancellation is heard of.
#[derive(Clone)]
pub struct Waker(Arc<Hall>, Arc<dyn Store>);

/// A call that waits; it counts until it is dropped.
struct Place<'a>(&'a Arc<Hall>);

impl Engine {
    /// What wakes the waiting calls of this engine.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.waiters.0), Arc::clone(&self.store))
    }

    /// Waits until the store has changed since `seen`, the time is over, or `cancelled` says so.
    pub(super) fn pause(&self, seen: u64, time: Duration, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
        if cancelled() {
            return Ok(());
        }
        if let Some(waited) = self.store.wait_unless(seen, time, cancelled) {
            return Ok(waited?);
        }
        let end = Instant::now() + time;
        let hall = &self.waiters.0;
        let place = Place::take(hall);
        loop {
            // Whatever comes after this is heard: the listener rings for it, and its ring is one that was not counted.
            let rings = place.attend(&self.store, seen);
            if cancelled() || self.store.version()? != seen {
                return Ok(());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            hall.sleep(rings, left.min(LOOK_AGAIN), cancelled);
        }
    }
}

impl Waker {
    /// Wakes every waiting call, so that each asks at once whether it is cancelled. Call it after that has become true;
    /// without it, a wait hears of its cancellation within a second.
    pub fn wake(&self) {
        let state = self.0.lock();
        self.0.bell.notify_all();
        drop(state);
        self.1.nudge();
    }
}

impl<'a> Place<'a> {
    fn take(hall: &'a Arc<Hall>) -> Self {
        hall.lock().waiting += 1;
        Self(hall)
    }

    /// Sees to it that somebody listens; says how often there was something to hear so far.
    fn attend(&self, store: &Arc<dyn Store>, seen: u64) -> u64 {
        let mut state = self.0.lock();
        if !state.attended {
            let (hall, store) = (Arc::clone(self.0), Arc::clone(store));
            let listener = std::thread::Builder::new().name("taskbus-listen".to_owned());
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
    /// Sleeps until there is something new to hear, the time is over, or `cancelled` says so.
    fn sleep(&self, rings: u64, time: Duration, cancelled: &dyn Fn() -> bool) {
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_version(store: &dyn Store, seen: u64) -> Result<u64, StoreError> {
    store.wait(seen, LOOK_AGAIN)?;
    store.version()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use taskbus_core::name::ListName;
    use taskbus_core::neighbourhood::ListRules;
    use taskbus_core::time::Timestamp;

    use super::*;
    use crate::engine::Limits;
    use crate::store::memory::MemoryStore;
    use crate::store::sqlite::{SqliteOptions, SqliteStore};
    use crate::store::write_with;

    /// With looks once a second alone, so many rounds last longer than this.
    const ROUNDS: usize = 20;
    const IN_ALL: Duration = Duration::from_secs(5);
    const LONG: Duration = Duration::from_secs(30);

    fn engine() -> Engine {
        Engine::new(Arc::new(MemoryStore::new()), Limits::default())
    }

    fn commit(engine: &Engine, round: usize) {
        let name = ListName::new(format!("tasks/{round}")).unwrap();
        let now = Timestamp::from_millis(0);
        write_with(engine.store(), None, |tx| Ok(tx.create_list(&name, ListRules::default(), now)?)).unwrap();
    }

    /// Returns when so many calls wait.
    fn until_waiting(engine: &Engine, count: usize) {
        let until = Instant::now() + LONG;
        while engine.waiters.0.lock().waiting < count {
            assert!(Instant::now() < until, "nobody waits");
            thread::yield_now();
        }
    }

    #[test]
    fn a_cancelled_wait_ends_when_it_is_woken() {
        let (engine, begin) = (engine(), Instant::now());
        for _ in 0..ROUNDS {
            let over = AtomicBool::new(false);
            let seen = engine.store().version().unwrap();
            thread::scope(|scope| {
                let wait = scope.spawn(|| engine.pause(seen, LONG, &|| over.load(Ordering::SeqCst)));
                until_waiting(&engine, 1);
                over.store(true, Ordering::SeqCst);
                engine.waker().wake();
                wait.join().unwrap().unwrap();
            });
        }
        assert!(begin.elapsed() < IN_ALL, "{:?}", begin.elapsed());
    }

    #[test]
    fn cancelled_waits_in_a_file_end_when_they_are_woken() {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(home.path().join("taskbus.db"), SqliteOptions::default()).unwrap();
        let (engine, begin) = (Engine::new(Arc::new(store), Limits::default()), Instant::now());
        commit(&engine, 0);
        for _ in 0..ROUNDS {
            let (over, seen) = (AtomicBool::new(false), engine.store().version().unwrap());
            thread::scope(|scope| {
                let wait = || engine.pause(seen, LONG, &|| over.load(Ordering::SeqCst));
                let waits = [(); 3].map(|()| scope.spawn(wait));
                over.store(true, Ordering::SeqCst);
                engine.waker().wake();
                waits.into_iter().for_each(|wait| wait.join().unwrap().unwrap());
            });
        }
        assert!(begin.elapsed() < IN_ALL, "{:?}", begin.elapsed());
    }

    #[test]
    fn one_commit_wakes_every_wait_and_one_thread_listens_for_all() {
        let (engine, begin) = (engine(), Instant::now());
        for round in 0..ROUNDS {
            let seen = engine.store().version().unwrap();
            thread::scope(|scope| {
                let waits: Vec<_> = (0..8).map(|_| scope.spawn(|| engine.pause(seen, LONG, &|| false))).collect();
                until_waiting(&engine, waits.len());
                // The engine, and the listener of this round or of one before.
                assert!(Arc::strong_count(&engine.waiters.0) <= 2);
                commit(&engine, round);
                waits.into_iter().for_each(|wait| wait.join().unwrap().unwrap());
            });
        }
        assert!(begin.elapsed() < IN_ALL, "{:?}", begin.elapsed());
    }

    #[test]
    fn nobody_listens_when_nobody_waits() {
        let engine = engine();
        engine.pause(engine.store().version().unwrap(), Duration::from_millis(1), &|| false).unwrap();
        let until = Instant::now() + LONG;
        while engine.waiters.0.lock().attended {
            assert!(Instant::now() < until, "somebody listens for nobody");
            thread::yield_now();
        }
        assert_eq!(engine.waiters.0.lock().waiting, 0);
    }
}
