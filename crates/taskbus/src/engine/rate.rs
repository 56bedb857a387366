//! How fast one identity may write: two token buckets, one of calls and one of bytes.
//!
//! A bucket may go into debt, so that one large write passes when the bucket is full and is paid for by
//! waiting. Only what was written is charged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use taskbus_core::name::Identity;

/// Full buckets are forgotten when there are more than this.
const BUCKETS_MAX: usize = 1024;

/// What a write costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Calls: 1, or 0 for what is free.
    pub(super) ops: u32,
    /// Bytes as stored.
    pub(super) bytes: usize,
}

/// The buckets of every identity.
pub(super) struct Rate {
    ops: Speed,
    bytes: Speed,
    buckets: Mutex<HashMap<Identity, Bucket>>,
}

/// Levels are in thousandths of what is counted, so that a millisecond fills in whole numbers.
#[derive(Clone, Copy)]
struct Speed {
    per_ms: i64,
    cap: i64,
}

#[derive(Clone, Copy)]
struct Bucket {
    ops: i64,
    bytes: i64,
    at_ms: i64,
}

impl Rate {
    pub(super) fn new(writes_per_second: u32, write_kib_per_second: u32, message_kib_max: usize) -> Self {
        let (writes, bytes) = (i64::from(writes_per_second), i64::from(write_kib_per_second) * 1024);
        let largest = i64::try_from(message_kib_max).unwrap_or(i64::MAX / 1024 / 1024).saturating_mul(1024);
        Self {
            ops: Speed { per_ms: writes, cap: writes.max(1) * 1000 },
            bytes: Speed { per_ms: bytes, cap: bytes.max(largest) * 1000 },
            buckets: Mutex::new(HashMap::new()),
        }
    }

    /// Takes a cost out of the identity's bucket, or says how many milliseconds to wait. `at` is the time since
    /// any fixed point, and never runs back.
    pub(super) fn charge(&self, who: &Identity, cost: Cost, at: Duration) -> Result<(), u64> {
        if cost.ops == 0 {
            return Ok(());
        }
        let at_ms = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
        let (ops, bytes) = cost.thousandths();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bucket = self.filled(buckets.get(who).copied(), at_ms);
        let wait_ms = self.ops.ms_until(bucket.ops, ops).max(self.bytes.ms_until(bucket.bytes, bytes));
        if wait_ms > 0 {
            return Err(wait_ms.unsigned_abs());
        }
        bucket.ops -= ops;
        bucket.bytes -= bytes;
        if buckets.len() >= BUCKETS_MAX {
            buckets.retain(|_, old| !self.is_full(self.filled(Some(*old), at_ms)));
        }
        buckets.insert(who.clone(), bucket);
        Ok(())
    }

    /// Puts a cost back: what it was taken for was not written after all.
    pub(super) fn refund(&self, who: &Identity, cost: Cost) {
        let (ops, bytes) = cost.thousandths();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(who) {
            bucket.ops += ops;
            bucket.bytes += bytes;
        }
    }

    fn filled(&self, bucket: Option<Bucket>, at_ms: i64) -> Bucket {
        let Some(bucket) = bucket else {
            return Bucket { ops: self.ops.cap, bytes: self.bytes.cap, at_ms };
        };
        let ms = (at_ms - bucket.at_ms).max(0);
        Bucket { ops: self.ops.after(bucket.ops, ms), bytes: self.bytes.after(bucket.bytes, ms), at_ms }
    }

    fn is_full(&self, bucket: Bucket) -> bool {
        bucket.ops >= self.ops.cap && bucket.bytes >= self.bytes.cap
    }
}

impl Cost {
    fn thousandths(self) -> (i64, i64) {
        (i64::from(self.ops) * 1000, i64::try_from(self.bytes).unwrap_or(i64::MAX).saturating_mul(1000))
    }
}

impl Speed {
    fn after(self, level: i64, ms: i64) -> i64 {
        level.saturating_add(ms.saturating_mul(self.per_ms)).min(self.cap)
    }

    /// How long until a cost passes; a speed of zero never lets a second write pass.
    fn ms_until(self, level: i64, cost: i64) -> i64 {
        let missing = (cost.min(self.cap) - level).max(0);
        (missing + self.per_ms.max(1) - 1) / self.per_ms.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(name: &str) -> Identity {
        Identity::new(name).unwrap()
    }

    fn cost(ops: u32, bytes: usize) -> Cost {
        Cost { ops, bytes }
    }

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_full_bucket_empties_and_fills_again() {
        let rate = Rate::new(2, 1024, 64);
        for _ in 0..2 {
            assert_eq!(rate.charge(&who("a"), cost(1, 10), at(0)), Ok(()));
        }
        assert_eq!(rate.charge(&who("a"), cost(1, 10), at(0)), Err(500));
        assert_eq!(rate.charge(&who("b"), cost(1, 10), at(0)), Ok(()));
        assert_eq!(rate.charge(&who("a"), cost(1, 10), at(499)), Err(1));
        assert_eq!(rate.charge(&who("a"), cost(1, 10), at(500)), Ok(()));
    }

    #[test]
    fn a_write_larger_than_the_bucket_passes_once_and_is_paid_for() {
        let rate = Rate::new(100, 64, 64);
        assert_eq!(rate.charge(&who("a"), cost(1, 128 * 1024), at(0)), Ok(()));
        assert_eq!(rate.charge(&who("a"), cost(1, 1024), at(0)), Err(1016));
        assert_eq!(rate.charge(&who("a"), cost(1, 1024), at(1016)), Ok(()));
    }

    #[test]
    fn what_is_free_passes_an_empty_bucket_and_a_refund_refills_it() {
        let rate = Rate::new(1, 1, 64);
        assert_eq!(rate.charge(&who("a"), cost(1, 0), at(0)), Ok(()));
        assert_eq!(rate.charge(&who("a"), cost(0, 0), at(0)), Ok(()));
        assert!(rate.charge(&who("a"), cost(1, 0), at(0)).is_err());
        rate.refund(&who("a"), cost(1, 0));
        assert_eq!(rate.charge(&who("a"), cost(1, 0), at(0)), Ok(()));
    }

    #[test]
    fn idle_buckets_are_forgotten() {
        let rate = Rate::new(1, 1, 64);
        for n in 0..BUCKETS_MAX {
            rate.charge(&who(&format!("w{n}")), cost(1, 0), at(0)).unwrap();
        }
        rate.charge(&who("late"), cost(1, 0), at(60_000)).unwrap();
        assert_eq!(rate.buckets.lock().unwrap().len(), 1);
    }
}
