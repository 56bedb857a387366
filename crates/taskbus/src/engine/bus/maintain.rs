//! The steps of the maintenance that are about the bus. Each looks first, in a read, and takes the write lock only when
//! there is something to do, a short transaction at a time; what is looked at is looked at again inside.

use std::time::Instant;

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::memory::Stamp;
use taskbus_core::bus::retain::{ENDED_SESSION_HOURS, SHRINK_BYTES_MIN, Seen, due_before};
use taskbus_core::limits::TOMBSTONE_MIN_HOURS;
use taskbus_core::name::Identity;
use taskbus_core::time::Timestamp;

use super::capacity::{CHUNK, evict};
use super::memory::bury_memory;
use super::{bus, bus_mut};
use crate::engine::tick::Shift;
use crate::engine::{Engine, Error};
use crate::store::bus::{BusSnapshot, ChannelRow, NoticeKind};
use crate::store::{Abort, Author, Snapshot, StoreError, Tx, read_with};

/// Why a channel is dropped.
#[derive(Clone, Copy)]
pub(in crate::engine) enum Useless {
    /// It is empty, and nobody who is there listens.
    Empty,
    /// It is a task list in which nothing happened for too long.
    Idle,
}

impl Engine {
    /// Forgets sessions that ended long ago.
    pub(in crate::engine) fn drop_sessions(&self, shift: &Shift<'_>) -> Result<usize, Error> {
        let Some(before) = due_before(self.store.now()?, ENDED_SESSION_HOURS) else { return Ok(0) };
        self.in_chunks(
            shift,
            |bus| bus.has_ended_sessions(before),
            |tx, _| Ok(bus_mut(tx)?.drop_sessions(before, CHUNK)?),
        )
    }

    /// Drops messages that are too old.
    pub(in crate::engine) fn drop_old(&self, shift: &Shift<'_>) -> Result<usize, Error> {
        let Some(before) = due_before(self.store.now()?, self.limits.message_retention_hours) else { return Ok(0) };
        self.in_chunks(
            shift,
            |bus| Ok(!bus.evictable(Some(before), 1)?.is_empty()),
            |tx, _| {
                let bus = bus_mut(tx)?;
                let old = bus.evictable(Some(before), CHUNK)?;
                evict(bus, &old)?;
                Ok(old.len())
            },
        )
    }

    /// Removes what was buried long enough ago.
    pub(in crate::engine) fn purge_buried(&self, shift: &Shift<'_>) -> Result<usize, Error> {
        let hours = self.limits.tombstone_min_hours.max(TOMBSTONE_MIN_HOURS);
        let Some(before) = due_before(self.store.now()?, hours) else { return Ok(0) };
        self.in_chunks(
            shift,
            |bus| Ok(!bus.buried(before, 1)?.is_empty()),
            |tx, _| {
                let bus = bus_mut(tx)?;
                let buried = bus.buried(before, CHUNK)?;
                bus.remove(&buried)?;
                Ok(buried.len())
            },
        )
    }

    /// Drops channels that are of no use to anybody, one by one.
    pub(in crate::engine) fn drop_channels(&self, shift: &Shift<'_>, why: Useless) -> Result<usize, Error> {
        let channels = read_with(self.store(), None, |snapshot| {
            let now = self.store.now()?;
            let mut useless = Vec::new();
            for row in bus(snapshot)?.channels()? {
                if self.is_useless(snapshot, &row, why, now)? {
                    useless.push(row.name);
                }
            }
            Ok(useless)
        })?;
        let mut dropped = 0;
        for name in channels {
            if shift.is_over() {
                break;
            }
            let gone = self.mend(shift, None, |tx, now| self.drop_if_useless(tx, &name, why, now))?;
            dropped += usize::from(gone.unwrap_or(false));
        }
        Ok(dropped)
    }

    fn drop_if_useless(
        &self,
        tx: &mut dyn Tx,
        name: &ChannelName,
        why: Useless,
        now: Timestamp,
    ) -> Result<bool, Abort> {
        let Some(row) = bus(tx)?.channel(name)? else { return Ok(false) };
        let useless = self.is_useless(tx, &row, why, now)?;
        if useless {
            bus_mut(tx)?.delete_channel(name)?;
        }
        Ok(useless)
    }

    fn is_useless(
        &self,
        snapshot: &dyn Snapshot,
        row: &ChannelRow,
        why: Useless,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let ChannelRow { name, created_at, empty, last_activity, .. } = row;
        let seen = Seen { name, created_at: *created_at, is_empty: *empty, last_activity: *last_activity };
        match why {
            Useless::Empty => Ok(seen.is_of_no_use(now) && listeners(snapshot, name, None, now)?.is_empty()),
            Useless::Idle => {
                Ok(due_before(now, self.limits.task_expiry_hours).is_some_and(|before| seen.is_idle_list(before)))
            }
        }
    }

    /// Deletes memories that nobody reads.
    pub(in crate::engine) fn expire_memories(&self, shift: &Shift<'_>) -> Result<usize, Error> {
        let Some(before) = due_before(self.store.now()?, self.limits.memory_expiry_hours) else { return Ok(0) };
        self.in_chunks(
            shift,
            |bus| Ok(!bus.unread_memories(before, 1)?.is_empty()),
            |tx, now| {
                let bus = bus_mut(tx)?;
                let unread = bus.unread_memories(before, CHUNK)?;
                for id in &unread {
                    let live = bus.memory(*id)?;
                    match live.as_ref().and_then(|message| Some((message, message.memory?))) {
                        Some((message, of)) => {
                            let stamp = Stamp { sender: None, context: "", at: now };
                            bury_memory(bus, message, of, stamp, &Author::default())?;
                        }
                        None => bus.touch_memories(&[*id], None)?,
                    }
                }
                Ok(unread.len())
            },
        )
    }

    /// Evicts when the store is too large.
    pub(in crate::engine) fn evict_over_budget(&self, shift: &Shift<'_>) -> Result<usize, Error> {
        let mut evicted = 0;
        if self.take_lease(shift, |bus| {
            let over = self.budget().is_over(bus.used_bytes()?);
            Ok(over || bus.notice(NoticeKind::Capacity)?.is_some())
        })? {
            self.evict_down(shift.deadline, &mut evicted)?;
        }
        Ok(evicted)
    }

    /// Gives space back when there is much of it.
    pub(in crate::engine) fn give_back_space(&self, shift: &Shift<'_>) -> Result<(), Error> {
        let much = read_with(self.store(), None, |snapshot| Ok(bus(snapshot)?.free_bytes()? >= SHRINK_BYTES_MIN))?;
        if much {
            self.mend(shift, None, |tx, _| Ok(bus_mut(tx)?.shrink()?))?;
        }
        Ok(())
    }

    /// Embeds what has no vector yet.
    pub(in crate::engine) fn embed_missing(&self, shift: &Shift<'_>) -> Result<usize, Error> {
        let Some(embedder) = &self.embedder else { return Ok(0) };
        let model = embedder.model();
        let wanted = |bus: &dyn BusSnapshot| {
            let told = bus.notice(NoticeKind::Embedding)?.is_some();
            Ok(told || bus.has_other_models(model)? || !bus.unembedded(model, 1)?.is_empty())
        };
        if !self.take_lease(shift, wanted)? {
            return Ok(0);
        }
        Ok(embedder.pass(Some(Instant::now() + shift.left()))?.embedded)
    }

    /// Does a part of the work at a time until none is left or the time is over; says how much was done.
    fn in_chunks(
        &self,
        shift: &Shift<'_>,
        is_due: impl Fn(&dyn BusSnapshot) -> Result<bool, StoreError>,
        mut chunk: impl FnMut(&mut dyn Tx, Timestamp) -> Result<usize, Abort>,
    ) -> Result<usize, Error> {
        let mut done = 0;
        while !shift.is_over() && read_with(self.store(), None, |snapshot| is_due(bus(snapshot)?))? {
            match self.mend(shift, None, &mut chunk)? {
                Some(count) if count > 0 => done += count,
                Some(_) | None => break,
            }
        }
        Ok(done)
    }
}

/// Who listens to a channel and is there, but for one.
pub(super) fn listeners(
    snapshot: &dyn Snapshot,
    channel: &ChannelName,
    but: Option<&Identity>,
    now: Timestamp,
) -> Result<Vec<Identity>, StoreError> {
    let mut there = Vec::new();
    for who in bus(snapshot)?.subscribers(channel)? {
        if but != Some(&who) && snapshot.is_alive(&who, now)? {
            there.push(who);
        }
    }
    Ok(there)
}
