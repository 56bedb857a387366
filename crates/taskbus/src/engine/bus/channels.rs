//! Channels: made and listed; and who is there.

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::rules::{check_kind, kind_to_make};
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::refusal::{Invalid, Refusal};

use super::{bus, bus_mut, channel, empty, make};
use crate::answer::SessionView;
use crate::answer::bus::ChannelView;
use crate::engine::{Engine, Error};
use crate::store::bus::{BusSnapshot, ChannelRow};
use crate::store::{Abort, StoreError, Tx, read_with, write_with};

impl Engine {
    /// Makes a channel, or a task list with these rules; the same call again is fine.
    ///
    /// # Errors
    /// [`Error`]: `validation` for an inbox and for a kind that the name does not have, `conflict` when it exists with
    /// another kind or other rules.
    pub fn create_channel(
        &self,
        caller: &Identity,
        name: &ChannelName,
        kind: Option<ChannelKind>,
        rules: ListRules,
    ) -> Result<ChannelView, Error> {
        self.authorize(caller)?;
        let kind = kind_to_make(name, kind)?;
        if let Some(list) = name.list() {
            let made = self.create_list(caller, &list, rules)?;
            let row = ChannelRow { live: made.tasks, latest_seq: made.latest_seq, ..empty(name) };
            return Ok(shown(row));
        }
        let row = write_with(self.store(), None, |tx| self.make_plain(tx, caller, name, kind))?;
        Ok(shown(row))
    }

    /// Every channel but the inboxes, by name.
    ///
    /// # Errors
    /// [`Error`].
    pub fn channels(&self, caller: &Identity) -> Result<Vec<ChannelView>, Error> {
        self.authorize(caller)?;
        let mut all = self.channels_all()?;
        all.retain(|channel| channel.name.owner().is_none());
        Ok(all)
    }

    /// Every channel, inboxes too, by name: for those who look after a store.
    ///
    /// # Errors
    /// [`Error`].
    pub fn channels_all(&self) -> Result<Vec<ChannelView>, Error> {
        let rows = read_with(self.store(), None, |snapshot| all(bus(snapshot)?))?;
        Ok(rows.into_iter().map(shown).collect())
    }

    /// Who is there.
    ///
    /// # Errors
    /// [`Error`]: `validation` when the configuration switches it off.
    pub fn discover(&self, caller: &Identity) -> Result<Vec<SessionView>, Error> {
        self.authorize(caller)?;
        if !self.limits.discovery_enabled {
            let (what, key) = ("discover", "discovery_enabled");
            return Err(Refusal::from(Invalid::SwitchedOff { what, key }).into());
        }
        self.sessions()
    }

    /// Whether this process holds the identity.
    pub(in crate::engine) fn authorize(&self, who: &Identity) -> Result<(), Error> {
        read_with(self.store(), None, |snapshot| self.session(snapshot, who))??;
        Ok(())
    }

    fn make_plain(
        &self,
        tx: &mut dyn Tx,
        caller: &Identity,
        name: &ChannelName,
        kind: ChannelKind,
    ) -> Result<ChannelRow, Abort> {
        let now = self.store.now()?;
        self.enter(tx, caller, now)?;
        if let Some(row) = channel(tx, name)? {
            check_kind(name, row.kind, kind)?;
        }
        make(bus_mut(tx)?, name, kind, now)?;
        Ok(channel(tx, name)?.expect("BUG: a channel that was made is there"))
    }
}

/// Every channel with a row, and those that every store has.
pub(super) fn all(bus: &dyn BusSnapshot) -> Result<Vec<ChannelRow>, StoreError> {
    let mut rows = bus.channels()?;
    for (name, _) in ChannelName::defaults() {
        if let Err(place) = rows.binary_search_by(|row| row.name.cmp(&name)) {
            rows.insert(place, empty(&name));
        }
    }
    Ok(rows)
}

pub(super) fn shown(row: ChannelRow) -> ChannelView {
    ChannelView {
        last_activity: row.last_activity.filter(|_| row.name.list().is_some()),
        name: row.name,
        kind: row.kind,
        messages: row.live,
        latest_seq: row.latest_seq,
    }
}
