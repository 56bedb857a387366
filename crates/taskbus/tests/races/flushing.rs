//! Flushes that callers share: what was written before a call is on disk when it returns, and a failure is for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::flushes::Flushes;
use crate::sync::{Body, Condvar, Mutex, PoisonError};
use crate::{all_end_well, one_ends_badly};

/// A disk: how much was written, how much of it is safe, and how often it was flushed.
#[derive(Default)]
struct Disk {
    written: Mutex<u64>,
    safe: Mutex<u64>,
    flushed: AtomicU64,
    /// The flush that fails; 0 for none.
    fails_at: u64,
}

impl Disk {
    fn write(&self) -> u64 {
        let mut written = self.written.lock().unwrap();
        *written += 1;
        *written
    }

    /// What was written when it began is safe when it ends.
    fn sync(&self) -> Result<(), i32> {
        let number = self.flushed.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(self.fails_at == 0 || number <= self.fails_at, "a flush after one that failed");
        let written = *self.written.lock().unwrap();
        let mut safe = self.safe.lock().unwrap();
        if number == self.fails_at {
            return Err(5);
        }
        *safe = (*safe).max(written);
        Ok(())
    }

    /// Writes twice, and looks whether it is safe whenever it was told so.
    fn use_by(&self, share: impl Fn(&dyn Fn() -> Result<(), i32>) -> Result<(), i32>) {
        for _ in 0..2 {
            let mine = self.write();
            match share(&|| self.sync()) {
                Ok(()) => assert!(*self.safe.lock().unwrap() >= mine, "told that {mine} is safe, and it is not"),
                Err(number) => assert!((number, self.fails_at > 0) == (5, true)),
            }
        }
    }
}

fn callers(fails_at: u64) -> Vec<Body> {
    let both = Arc::new((Flushes::default(), Disk { fails_at, ..Disk::default() }));
    (0..3)
        .map(|_| {
            let both = Arc::clone(&both);
            Box::new(move || both.1.use_by(|sync| both.0.share(sync))) as Body
        })
        .collect()
}

#[test]
fn what_was_written_before_a_flush_is_safe_behind_it() {
    all_end_well(|| callers(0));
}

#[test]
fn no_flush_begins_behind_one_that_failed() {
    all_end_well(|| callers(2));
}

/// The same, but whoever comes while a flush is under way takes that for its own.
#[derive(Default)]
struct Hasty {
    under_way: Mutex<bool>,
    ended: Condvar,
}

impl Hasty {
    fn share(&self, sync: &dyn Fn() -> Result<(), i32>) -> Result<(), i32> {
        let mut under_way = self.under_way.lock().unwrap();
        if *under_way {
            while *under_way {
                under_way = self.ended.wait(under_way).unwrap_or_else(PoisonError::into_inner);
            }
            return Ok(());
        }
        *under_way = true;
        drop(under_way);
        sync()?;
        *self.under_way.lock().unwrap() = false;
        self.ended.notify_all();
        Ok(())
    }
}

#[test]
fn a_flush_that_was_under_way_already_is_found_out() {
    let found = one_ends_badly(|| {
        let both = Arc::new((Hasty::default(), Disk::default()));
        let caller = |both: Arc<(Hasty, Disk)>| Box::new(move || both.1.use_by(|sync| both.0.share(sync))) as Body;
        vec![caller(Arc::clone(&both)), caller(both)]
    });
    assert!(found.contains("it is not"), "{found}");
}
