//! Calls that wait for a change of the store. They wait in the store itself if it can be nudged; else in the
//! [`hall`](super::hall) of their engine. A call that is cancelled is woken by a [`Waker`]; nobody looks at a fixed rate
//! faster than once a second, which makes up for a notice that got lost.

use std::sync::Arc;
use std::time::Duration;

use super::hall::Hall;
use super::{Engine, Error};
use crate::store::Store;

/// The waiting calls of one engine.
#[derive(Default)]
pub(super) struct Waiters(Arc<Hall>);

/// Wakes the waiting calls of an engine, from wherever their cancellation is heard of.
#[derive(Clone)]
pub struct Waker(Arc<Hall>, Arc<dyn Store>);

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
        Ok(self.waiters.0.pause(&self.store, seen, time, cancelled)?)
    }
}

impl Waker {
    /// Wakes every waiting call, so that each asks at once whether it is cancelled. Call it after that has become true;
    /// without it, a wait hears of its cancellation within a second.
    pub fn wake(&self) {
        self.0.wake();
        self.1.nudge();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Instant;

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
        while engine.waiters.0.census().0 < count {
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
        while engine.waiters.0.census().1 {
            assert!(Instant::now() < until, "somebody listens for nobody");
            thread::yield_now();
        }
        assert_eq!(engine.waiters.0.census().0, 0);
    }
}
