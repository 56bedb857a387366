//! Following a channel or a set of tags, and following it no longer.

use serde::{Deserialize, Serialize};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::rules::{Start, check_follow, no_channel};
use taskbus_core::bus::tag::TagSet;
use taskbus_core::name::Identity;
use taskbus_core::time::Timestamp;

use super::post::end;
use super::{bus_mut, channel};
use crate::answer::bus::{Subscribed, Unsubscribed};
use crate::engine::{Engine, Error};
use crate::store::bus::{BusTx, Source, SubscriptionRow, TagSetRow};
use crate::store::{Abort, StoreError, Tx, write_with};

/// What to follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follow {
    /// A channel.
    Channel(ChannelName),
    /// Every ordinary message with these tags, wherever it is sent.
    Tags(TagSet),
}

impl Engine {
    /// Follows a channel or a set of tags. What is followed already goes on where it was; tags are followed from now
    /// on, whatever `start` says.
    ///
    /// # Errors
    /// [`Error`]: `validation` for an inbox, `not_found` for a channel that is not there.
    pub fn subscribe(&self, caller: &Identity, follow: &Follow, start: Start) -> Result<Subscribed, Error> {
        self.authorize(caller)?;
        if let Follow::Channel(name) = follow {
            check_follow(name, "subscribed to")?;
        }
        write_with(self.store(), None, |tx| {
            let now = self.store.now()?;
            self.enter(tx, caller, now)?;
            match follow {
                Follow::Channel(name) => self.follow_channel(tx, caller, name, start, now),
                Follow::Tags(set) => Ok(follow_tags(bus_mut(tx)?, caller, set, now)?),
            }
        })?;
        Ok(match follow.clone() {
            Follow::Channel(name) => Subscribed { subscribed: Some(name), ..Subscribed::default() },
            Follow::Tags(set) => Subscribed { subscribed_tags: Some(set), ..Subscribed::default() },
        })
    }

    /// Follows it no longer; how far it was read is forgotten. What was not followed is fine.
    ///
    /// # Errors
    /// [`Error`]: `validation` for an inbox.
    pub fn unsubscribe(&self, caller: &Identity, follow: &Follow) -> Result<Unsubscribed, Error> {
        self.authorize(caller)?;
        if let Follow::Channel(name) = follow {
            check_follow(name, "unsubscribed from")?;
        }
        write_with(self.store(), None, |tx| {
            let now = self.store.now()?;
            self.enter(tx, caller, now)?;
            let bus = bus_mut(tx)?;
            match follow {
                Follow::Channel(name) => bus.end_subscription(caller, &Source::Channel(name.clone()))?,
                Follow::Tags(set) => unfollow_tags(bus, caller, set)?,
            }
            Ok(())
        })?;
        Ok(match follow.clone() {
            Follow::Channel(name) => Unsubscribed { unsubscribed: Some(name), ..Unsubscribed::default() },
            Follow::Tags(set) => Unsubscribed { unsubscribed_tags: Some(set), ..Unsubscribed::default() },
        })
    }

    fn follow_channel(
        &self,
        tx: &mut dyn Tx,
        who: &Identity,
        name: &ChannelName,
        start: Start,
        now: Timestamp,
    ) -> Result<(), Abort> {
        let row = channel(tx, name)?.ok_or_else(|| no_channel(name))?;
        let bus = bus_mut(tx)?;
        let cursor = start.cursor(bus.latest_seq()?, row.evicted_before);
        Ok(put(bus, who, Source::Channel(name.clone()), cursor, now)?)
    }
}

/// Reads a source from this number on, or from where it was read before; either way it is read now.
pub(super) fn put(
    bus: &mut dyn BusTx,
    who: &Identity,
    source: Source,
    cursor: u64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let old = bus.subscriptions(who)?.into_iter().find(|row| row.source == source);
    let new = SubscriptionRow { who: who.clone(), source, cursor, last_activity: now, pending: None };
    let row = match &old {
        Some(old) => SubscriptionRow { last_activity: now, ..old.clone() },
        None => new,
    };
    if old.as_ref() != Some(&row) {
        bus.put_subscription(&row)?;
    }
    Ok(())
}

/// Follows a set of tags from now on; one that is followed already goes on.
pub(super) fn follow_tags(bus: &mut dyn BusTx, who: &Identity, set: &TagSet, now: Timestamp) -> Result<(), StoreError> {
    let since_seq = bus.latest_seq()?;
    put(bus, who, Source::Tags, since_seq, now)?;
    if !bus.tag_sets(who)?.iter().any(|row| row.set == *set) {
        bus.put_tag_set(who, &TagSetRow { set: set.clone(), since_seq })?;
    }
    Ok(())
}

fn unfollow_tags(bus: &mut dyn BusTx, who: &Identity, set: &TagSet) -> Result<(), Abort> {
    bus.end_tag_set(who, set)?;
    if bus.tag_sets(who)?.is_empty() {
        end(bus, who, &Source::Tags)?;
    }
    Ok(())
}
