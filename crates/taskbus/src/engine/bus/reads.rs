//! When memories were last read. A memory expires after months, so one that was noted a few minutes ago need not be
//! noted again: reading stays reading, and nobody who waits for a change is woken by it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use taskbus_core::time::Timestamp;

use super::bus_mut;
use crate::engine::Error;
use crate::store::{Store, write_with};

/// A read this soon after the last one that was noted is not noted, in milliseconds.
const SOON_MS: i64 = 600_000;
/// What is kept in mind, at most, beside what one call reads.
const NOTED_MAX: usize = 4096;

/// What this process noted lately.
#[derive(Default)]
pub(in crate::engine) struct Reads {
    noted: Mutex<HashMap<u64, Timestamp>>,
}

impl Reads {
    /// Notes that these memories were read now.
    pub(super) fn note(&self, store: &dyn Store, ids: &[u64], now: Timestamp) -> Result<(), Error> {
        let due = self.due(ids, now);
        if due.is_empty() {
            return Ok(());
        }
        write_with(store, None, |tx| Ok(bus_mut(tx)?.touch_memories(&due, Some(now))?))?;
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() + due.len() > NOTED_MAX {
            noted.retain(|_, at| is_soon(*at, now));
        }
        if noted.len() + due.len() > NOTED_MAX {
            noted.clear();
        }
        noted.extend(due.into_iter().map(|id| (id, now)));
        Ok(())
    }

    fn due(&self, ids: &[u64], now: Timestamp) -> Vec<u64> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter().copied().filter(|id| !noted.get(id).is_some_and(|at| is_soon(*at, now))).collect()
    }
}

fn is_soon(noted: Timestamp, now: Timestamp) -> bool {
    now < noted.plus_millis(SOON_MS)
}
