//! Calls that wait in the hall of an engine: a change wakes all of them, a cancelled one ends, and nobody is forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use taskbus::core::id::TaskId;
use taskbus::core::name::ListName;
use taskbus::core::time::Timestamp;
use taskbus::store::{Abilities, Abort, ReadBody, Store, StoreError, WriteBody};

use crate::hall::{Hall, Place};
use crate::sync::{Body, Condvar, Mutex};
use crate::{all_end_well, one_ends_badly};

/// Longer than any run takes.
const LONG: Duration = Duration::from_secs(600);

/// A store that is nothing but a version.
#[derive(Default)]
struct Paper {
    version: Mutex<u64>,
    changed: Condvar,
}

impl Paper {
    fn change(&self) {
        *self.version.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

impl Store for Paper {
    fn abilities(&self) -> Abilities {
        Abilities { durable: false, shared_across_processes: false, liveness: false }
    }

    fn describe(&self) -> String {
        "paper".to_owned()
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_millis(0))
    }

    fn locate(&self, _: &TaskId) -> Result<Option<ListName>, StoreError> {
        Ok(None)
    }

    fn read(&self, _: Option<&ListName>, _: &mut ReadBody<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn write(&self, _: Option<&ListName>, _: &mut WriteBody<'_>) -> Result<(), Abort> {
        Ok(())
    }

    fn version(&self) -> Result<u64, StoreError> {
        Ok(*self.version.lock().unwrap())
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        let version = self.version.lock().unwrap();
        drop(self.changed.wait_timeout_while(version, timeout, |version| *version == seen).unwrap());
        Ok(())
    }
}

/// What all of a run share: the hall, the store, how many have left, and whether they are cancelled.
#[derive(Default)]
struct Office {
    hall: Arc<Hall>,
    paper: Arc<Paper>,
    left: Mutex<usize>,
    leaves: Condvar,
    cancelled: AtomicBool,
}

impl Office {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.paper) as Arc<dyn Store>
    }

    fn leave(&self) {
        *self.left.lock().unwrap() += 1;
        self.leaves.notify_all();
    }

    /// When all have left, one more change sends the listener home.
    fn close(&self, waiters: usize) {
        let left = self.left.lock().unwrap();
        drop(self.leaves.wait_timeout_while(left, LONG, |left| *left < waiters).unwrap());
        self.paper.change();
    }

    fn waits(&self) {
        let cancelled = || self.cancelled.load(Ordering::SeqCst);
        self.hall.pause(&self.store(), 0, LONG, &cancelled).unwrap();
        assert!(cancelled() || *self.paper.version.lock().unwrap() > 0, "woken for nothing");
        self.leave();
    }

    /// For one change, and then for the next: the listener may be about to go home in between.
    fn waits_twice(&self) {
        for seen in 0..2 {
            self.hall.pause(&self.store(), seen, LONG, &|| false).unwrap();
            assert!(*self.paper.version.lock().unwrap() > seen, "woken for nothing");
        }
        self.leave();
    }

    /// Looks first, and says that it waits when it is too late.
    fn waits_carelessly(&self) {
        while self.store().version().unwrap() == 0 {
            let place = Place::take(&self.hall);
            let rings = place.attend(&self.store(), 0);
            self.hall.sleep(rings, LONG, &|| false);
        }
        self.leave();
    }
}

const WAITERS: usize = 3;

fn bodies(waits: fn(&Office), ends: fn(&Office)) -> Vec<Body> {
    let office = Arc::new(Office::default());
    let body = |f: Box<dyn Fn(&Office) + Send>| {
        let office = Arc::clone(&office);
        Box::new(move || f(&office)) as Body
    };
    let mut bodies: Vec<Body> = (0..WAITERS).map(|_| body(Box::new(waits))).collect();
    bodies.push(body(Box::new(move |office| {
        ends(office);
        office.close(WAITERS);
    })));
    bodies
}

#[test]
fn a_change_wakes_whoever_waits() {
    all_end_well(|| bodies(Office::waits, |office| office.paper.change()));
}

#[test]
fn who_waits_again_is_heard_again() {
    all_end_well(|| {
        bodies(Office::waits_twice, |office| {
            office.paper.change();
            office.paper.change();
        })
    });
}

#[test]
fn a_cancelled_wait_ends() {
    all_end_well(|| {
        bodies(Office::waits, |office| {
            office.cancelled.store(true, Ordering::SeqCst);
            office.hall.wake();
        })
    });
}

#[test]
fn who_looks_before_it_listens_is_found_out() {
    let found = one_ends_badly(|| bodies(Office::waits_carelessly, |office| office.paper.change()));
    assert!(found.contains("everybody waits"), "{found}");
}
