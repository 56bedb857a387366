//! Room: when the store is larger than it may be, the oldest messages go, in every channel alike; memories and tasks
//! stay. The tick does it, and a write that finds the store full does it first.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::retain::{Budget, borders, mib};
use taskbus_core::refusal::Refusal;

use super::{bus, bus_mut};
use crate::engine::{Engine, Error};
use crate::store::bus::{BusTx, NoticeKind};
use crate::store::{Snapshot, StoreError, read_with, write_with};

/// Messages that one transaction removes.
pub(super) const CHUNK: usize = 1000;
/// How long a write waits for room.
const ROOM: Duration = Duration::from_secs(2);

/// How long it is good to know that there is much room.
const KNOWN: Duration = Duration::from_secs(1);

/// When this process last saw that there is much room. Asking at every write would cost as much as the write's own look.
#[derive(Default)]
pub(in crate::engine) struct Room(Mutex<Option<Duration>>);

impl Engine {
    /// Whether the store is larger than it may be.
    pub(in crate::engine) fn is_full(&self, snapshot: &dyn Snapshot) -> Result<bool, StoreError> {
        let Some(bus) = snapshot.bus() else { return Ok(false) };
        let now = (self.seams.uptime)();
        let mut seen = self.room.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_some_and(|at| now < at + KNOWN) {
            return Ok(false);
        }
        let used = bus.used_bytes()?;
        *seen = self.budget().has_headroom(used).then_some(now);
        Ok(self.budget().is_over(used))
    }

    /// Whether it is known that there is room.
    pub(in crate::engine) fn has_room(&self) -> bool {
        let seen = *self.room.0.lock().unwrap_or_else(PoisonError::into_inner);
        !self.store.has_bus() || seen.is_some_and(|at| (self.seams.uptime)() < at + KNOWN)
    }

    /// Refuses a write when the store is full and nothing more can be evicted.
    pub(in crate::engine) fn make_room(&self) -> Result<(), Error> {
        let used = self.evict_down((self.seams.uptime)() + ROOM, &mut 0)?;
        if self.budget().is_over(used) {
            return Err(
                Refusal::CapacityExhausted { used_mib: mib(used), budget_mib: self.limits.sqlite_budget_mib }.into()
            );
        }
        Ok(())
    }

    /// How large the store may be.
    pub(in crate::engine) fn budget(&self) -> Budget {
        Budget { mib: self.limits.sqlite_budget_mib, free_percent: self.limits.cleanup_free_percent }
    }

    /// Evicts until a store that is too large is well below its budget, nothing is left to evict, or the time is over.
    /// Says how much is in use then, in bytes, and tells everybody.
    pub(super) fn evict_down(&self, deadline: Duration, evicted: &mut usize) -> Result<u64, Error> {
        let budget = self.budget();
        let used = || read_with(self.store(), None, |snapshot| bus(snapshot)?.used_bytes());
        let mut now_used = used()?;
        if !budget.is_over(now_used) {
            self.tell_capacity(None)?;
            return Ok(now_used);
        }
        while !budget.is_met(now_used) && (self.seams.uptime)() < deadline {
            let count = self.evict_chunk()?;
            *evicted += count;
            now_used = used()?;
            if count == 0 {
                break;
            }
        }
        let full = if budget.is_over(now_used) { ", and nothing more may be dropped: sends are refused" } else { "" };
        let budget_mib = budget.mib;
        self.tell_capacity(Some(&format!(
            "the store was full, so its {evicted} oldest messages were dropped; it holds {} of {budget_mib} MiB \
             (sqlite_budget_mib){full}",
            mib(now_used)
        )))?;
        Ok(now_used)
    }

    fn evict_chunk(&self) -> Result<usize, Error> {
        Ok(write_with(self.store(), None, |tx| {
            let bus = bus_mut(tx)?;
            let oldest = bus.evictable(None, CHUNK)?;
            evict(bus, &oldest)?;
            bus.shrink()?;
            Ok(oldest.len())
        })?)
    }

    /// Sets the notice that everybody who receives gets, or clears it; writes only what is new.
    fn tell_capacity(&self, text: Option<&str>) -> Result<(), Error> {
        let told = read_with(self.store(), None, |snapshot| bus(snapshot)?.notice(NoticeKind::Capacity))?;
        if told.as_deref() != text {
            write_with(self.store(), None, |tx| {
                let now = self.store.now()?;
                Ok(bus_mut(tx)?.put_notice(NoticeKind::Capacity, text, now)?)
            })?;
        }
        Ok(())
    }
}

/// Removes messages, and remembers of each channel how far that went.
pub(super) fn evict(bus: &mut dyn BusTx, messages: &[(u64, ChannelName)]) -> Result<(), StoreError> {
    for (channel, border) in borders(messages) {
        let old = bus.channel(channel)?.map_or(0, |row| row.evicted_before);
        if border > old {
            bus.set_evicted_before(channel, border)?;
        }
    }
    let seqs: Vec<u64> = messages.iter().map(|(seq, _)| *seq).collect();
    bus.remove(&seqs)
}
