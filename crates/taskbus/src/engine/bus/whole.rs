//! The store as a whole: how it is, emptying it, and removing one channel. For people, at a command line.

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::retain::mib;
use taskbus_core::bus::rules;
use taskbus_core::name::Identity;

use super::channels::{all, shown};
use super::maintain::listeners;
use super::{bus, bus_mut};
use crate::answer::status::{BusStatus, ChannelGone, EmbeddingStatus, Emptied};
use crate::engine::{Engine, Error, view};
use crate::store::bus::{BusSnapshot, NoticeKind};
use crate::store::{StoreError, read_with, write_with};

impl Engine {
    /// How the store is: what it holds, who is there, and what is wrong.
    ///
    /// # Errors
    /// [`Error`].
    pub fn bus_status(&self) -> Result<BusStatus, Error> {
        let now = self.store.now()?;
        Ok(read_with(self.store(), None, |snapshot| {
            let bus = bus(snapshot)?;
            Ok(BusStatus {
                used_mib: mib(bus.used_bytes()?),
                budget_mib: self.limits.sqlite_budget_mib,
                notice: bus.notice(NoticeKind::Capacity)?,
                embedding: self.embedding_status(bus)?,
                sessions: snapshot.sessions(now)?.into_iter().map(view::session).collect(),
                channels: all(bus)?.into_iter().map(shown).collect(),
            })
        })?)
    }

    fn embedding_status(&self, bus: &dyn BusSnapshot) -> Result<Option<EmbeddingStatus>, StoreError> {
        let Some(embedder) = &self.embedder else { return Ok(None) };
        let counts = bus.embedding_counts(embedder.model())?;
        Ok(Some(EmbeddingStatus {
            model: embedder.model().to_owned(),
            embedded: counts.embedded,
            backlog: counts.backlog,
            rejected: counts.rejected,
            last_error: bus.notice(NoticeKind::Embedding)?,
        }))
    }

    /// Removes a channel with everything in it, if nobody else who is there listens to it.
    ///
    /// # Errors
    /// [`Error`]: `validation` for an inbox and for a channel that every store has, `not_found`, `conflict` naming who
    /// listens.
    pub fn delete_channel(&self, caller: &Identity, name: &ChannelName) -> Result<ChannelGone, Error> {
        Ok(write_with(self.store(), None, |tx| {
            let now = self.store.now()?;
            self.enter(tx, caller, now)?;
            let row = bus(tx)?.channel(name)?;
            rules::check_delete(name, row.is_some(), listeners(tx, name, Some(caller), now)?)?;
            bus_mut(tx)?.delete_channel(name)?;
            Ok(ChannelGone { deleted: name.clone(), messages: row.map_or(0, |row| row.live) })
        })?)
    }

    /// Empties the store: channels, messages, memories, task lists, sessions, all. Numbers go on from where they were.
    ///
    /// # Errors
    /// [`Error`].
    pub fn reset(&self) -> Result<Emptied, Error> {
        Ok(write_with(self.store(), None, |tx| {
            let now = self.store.now()?;
            let sessions = tx.sessions(now)?.into_iter().map(view::session).collect();
            let bus = bus_mut(tx)?;
            let channels = bus.channels()?;
            bus.reset()?;
            let messages = channels.iter().map(|row| row.live).sum();
            Ok(Emptied { sessions, channels: channels.len(), messages })
        })?)
    }
}
