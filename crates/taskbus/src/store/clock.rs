//! The clocks of a machine as a seam: that on the wall, and that since boot, by which a store measures leases and sessions.
//! A test sets both.
//!
//! Not for measuring how long something took: that is [`std::time::Instant`].

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use taskbus_core::clock::{Reading, SinceBoot};
use taskbus_core::time::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time on the wall now, in UTC.
    fn now(&self) -> Timestamp;

    /// The time since boot; none where it is not known, or not known which boot that was.
    fn since_boot(&self) -> Option<SinceBoot> {
        None
    }

    /// Both.
    fn reading(&self) -> Reading {
        Reading { wall: self.now(), since_boot: self.since_boot() }
    }
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn since_boot(&self) -> Option<SinceBoot> {
        static IS_THE_MACHINES: OnceLock<bool> = OnceLock::new();
        let boot = boot();
        if boot == 0 || !*IS_THE_MACHINES.get_or_init(is_the_machines) {
            return None;
        }
        let since = clock_gettime(ClockId::Boottime);
        Some(SinceBoot { boot, millis: since.tv_sec.saturating_mul(1000).saturating_add(since.tv_nsec / 1_000_000) })
    }
}

/// Which boot of this machine it is; 0 when it does not say.
pub(super) fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let said = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        if said.is_empty() {
            return 0;
        }
        u64::from_le_bytes(*blake3::hash(&said).as_bytes().first_chunk().expect("BUG: a hash has 32 bytes"))
    })
}

/// In a time namespace of its own a process has another clock since boot than the others of the same boot.
fn is_the_machines() -> bool {
    std::fs::read_to_string("/proc/self/timens_offsets").is_ok_and(|said| has_no_offset(&said))
        || !std::fs::exists("/proc/self/ns/time").unwrap_or(true)
}

fn has_no_offset(said: &str) -> bool {
    let mut lines = said.lines().filter_map(|line| line.strip_prefix("boottime"));
    lines.next().is_some_and(|rest| rest.split_whitespace().all(|number| number == "0"))
}

/// Clocks that move only when told to, for tests.
#[derive(Debug)]
pub struct ManualClock {
    wall: AtomicI64,
    /// 0 for none.
    boot: AtomicU64,
    since_boot: AtomicI64,
}

impl ManualClock {
    /// A wall clock that shows this time, and none since boot.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self::booted(time, 0)
    }

    /// A wall clock that shows this time, on a machine that was started just now for the time of this number.
    #[must_use]
    pub fn booted(time: Timestamp, boot: u64) -> Self {
        Self { wall: AtomicI64::new(time.as_millis()), boot: AtomicU64::new(boot), since_boot: AtomicI64::default() }
    }

    /// Lets time pass, or go back with a negative number.
    pub fn advance(&self, millis: i64) {
        self.set_by(millis);
        self.since_boot.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the wall clock by so much, without any time passing.
    pub fn set_by(&self, millis: i64) {
        self.wall.fetch_add(millis, Ordering::SeqCst);
    }

    /// Starts the machine again, without any time passing.
    pub fn restart(&self, boot: u64) {
        self.boot.store(boot, Ordering::SeqCst);
        self.since_boot.store(0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.wall.load(Ordering::SeqCst))
    }

    fn since_boot(&self) -> Option<SinceBoot> {
        let boot = self.boot.load(Ordering::SeqCst);
        (boot != 0).then(|| SinceBoot { boot, millis: self.since_boot.load(Ordering::SeqCst) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_namespace_of_ones_own_is_told() {
        assert!(has_no_offset("monotonic           0         0\nboottime            0         0\n"));
        assert!(has_no_offset("monotonic           5         0\nboottime            0         0\n"));
        assert!(!has_no_offset("monotonic           0         0\nboottime       864000         0\n"));
        assert!(!has_no_offset("monotonic           0         0\nboottime           -1 500000000\n"));
        assert!(!has_no_offset(""));
    }

    #[test]
    fn the_clock_since_boot_counts_on() {
        let [first, second] = [(); 2].map(|()| SystemClock.since_boot());
        if let Some((first, second)) = first.zip(second) {
            assert!(first.boot == second.boot && first.millis <= second.millis && first.millis > 0);
        }
        assert_eq!(first.is_some(), boot() != 0 && is_the_machines());
    }
}
