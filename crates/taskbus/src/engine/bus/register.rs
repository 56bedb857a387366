//! What registering does on the bus: the inbox, what is left of earlier subscriptions, and what the repository wishes.

use std::collections::BTreeMap;

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::tag::TagSet;
use taskbus_core::bus::wishes::{Plan, Wish, wish};
use taskbus_core::limits::{IDS_SHOWN_MAX, PENDING_COUNTED_MAX};
use taskbus_core::name::{Identity, Label};
use taskbus_core::time::Timestamp;

use super::post::end;
use super::subscribe::{follow_tags, put};
use super::{bus_mut, channel, make};
use crate::answer::bus::PendingView;
use crate::engine::{Engine, Registration};
use crate::store::bus::{BusSnapshot, BusTx, MessageQuery, Source, SubscriptionRow};
use crate::store::{Abort, Snapshot, StoreError, Tx};

/// What came of it.
#[derive(Default)]
pub(in crate::engine) struct Joined {
    /// Whether the identity was subscribed to anything before.
    pub(in crate::engine) resumed: bool,
    pub(in crate::engine) subscribed: Vec<ChannelName>,
    pub(in crate::engine) memory_channels: Vec<ChannelName>,
    pub(in crate::engine) ignored_channels: Vec<String>,
    pub(in crate::engine) subscribe_failed: BTreeMap<String, String>,
    pub(in crate::engine) tag_subscriptions: Vec<TagSet>,
    pub(in crate::engine) repo_tags: Vec<Label>,
    pub(in crate::engine) ignored_tags: Vec<String>,
}

impl Engine {
    /// Joins the bus under a name, if the store has one.
    pub(in crate::engine) fn join(
        &self,
        tx: &mut dyn Tx,
        who: &Identity,
        registration: &Registration,
        now: Timestamp,
    ) -> Result<Joined, Abort> {
        let Some(bus) = tx.bus_mut() else { return Ok(Joined::default()) };
        let old = bus.subscriptions(who)?;
        let resumed = !old.is_empty();
        let idle_ms = self.idle_ms();
        let ended = |row: &&SubscriptionRow| !registration.resume || row.is_expired(now, idle_ms);
        for row in old.iter().filter(ended) {
            end(bus, who, &row.source)?;
        }
        open_inbox(bus, who, registration.resume, now)?;
        drop_stray_tags(bus, who)?;
        let plan = registration.repo.as_ref().map(taskbus_core::bus::wishes::RepoWishes::plan);
        let joined = plan.map(|plan| self.fulfil(tx, who, plan, now)).transpose()?;
        Ok(Joined { resumed, ..joined.unwrap_or_default() })
    }

    /// Does what the repository wishes.
    fn fulfil(&self, tx: &mut dyn Tx, who: &Identity, plan: Plan, now: Timestamp) -> Result<Joined, Abort> {
        let mut joined = Joined {
            ignored_channels: plan.ignored_channels,
            subscribe_failed: plan.failed,
            repo_tags: plan.tags,
            ignored_tags: plan.ignored_tags,
            ..Joined::default()
        };
        for name in plan.channels {
            let there = channel(tx, &name)?.map(|row| row.kind);
            self.fulfil_channel(tx, who, name, there, now, &mut joined)?;
        }
        let bus = bus_mut(tx)?;
        for set in plan.tag_sets {
            follow_tags(bus, who, &set, now)?;
            joined.tag_subscriptions.push(set);
        }
        Ok(joined)
    }

    fn fulfil_channel(
        &self,
        tx: &mut dyn Tx,
        who: &Identity,
        name: ChannelName,
        there: Option<ChannelKind>,
        now: Timestamp,
        joined: &mut Joined,
    ) -> Result<(), Abort> {
        let bus = bus_mut(tx)?;
        match wish(&name, there) {
            Wish::Follow(kind) => {
                make(bus, &name, kind, now)?;
                let latest = bus.latest_seq()?;
                put(bus, who, Source::Channel(name.clone()), latest, now)?;
                joined.subscribed.push(name);
            }
            Wish::Search(kind) => {
                make(bus, &name, kind, now)?;
                bus.end_subscription(who, &Source::Channel(name.clone()))?;
                joined.memory_channels.push(name);
            }
            Wish::Missing => {
                let reason = "there is no such channel; make it with create_channel".to_owned();
                joined.subscribe_failed.insert(name.into(), reason);
            }
        }
        Ok(())
    }
}

/// The inbox, and the subscription to it: to everything in it, or to nothing that is there already.
fn open_inbox(bus: &mut dyn BusTx, who: &Identity, with_backlog: bool, now: Timestamp) -> Result<(), StoreError> {
    let inbox = ChannelName::inbox(who);
    make(bus, &inbox, ChannelKind::Ordinary, now)?;
    let source = Source::Channel(inbox);
    if bus.subscriptions(who)?.iter().any(|row| row.source == source) {
        return Ok(());
    }
    let cursor = if with_backlog { 0 } else { bus.latest_seq()? };
    put(bus, who, source, cursor, now)
}

/// Sets of tags without the subscription that reads them are followed by nobody.
fn drop_stray_tags(bus: &mut dyn BusTx, who: &Identity) -> Result<(), Abort> {
    if !bus.subscriptions(who)?.iter().any(|row| row.source == Source::Tags) && !bus.tag_sets(who)?.is_empty() {
        end(bus, who, &Source::Tags)?;
    }
    Ok(())
}

/// How much of each subscription is unread.
pub(in crate::engine) fn pending(snapshot: &dyn Snapshot, who: &Identity) -> Result<Vec<PendingView>, StoreError> {
    let Some(bus) = snapshot.bus() else { return Ok(Vec::new()) };
    let rows = bus.subscriptions(who)?.into_iter().filter(|row| row.source.is_readable_by(who));
    let channels = rows.filter_map(|row| row.source.channel().map(|name| (name.clone(), row.cursor)));
    channels.take(IDS_SHOWN_MAX).map(|(channel, cursor)| unread(bus, who, channel, cursor)).collect()
}

fn unread(bus: &dyn BusSnapshot, who: &Identity, channel: ChannelName, cursor: u64) -> Result<PendingView, StoreError> {
    let query = MessageQuery { not_from: Some(who), ..MessageQuery::of(&channel, cursor, PENDING_COUNTED_MAX) };
    let pending = bus.count(&query)?;
    Ok(PendingView { channel, pending })
}
