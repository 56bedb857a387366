//! How the rules of delivery see a store: to change it, to look whether they would, or only to look.

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::mailbox::{Mailbox, Reader, Scan, ScanPlace};
use taskbus_core::bus::message::Message;
use taskbus_core::bus::receive::{self, Ask, Facts, Received};
use taskbus_core::bus::subscription::{FollowedTags, Source, Subscription};
use taskbus_core::bus::tag::TagPattern;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::{Look, LookupError};

use super::super::world::OnlyLooking;
use crate::store::bus::{BusSnapshot, BusTx, MessageQuery, NoticeKind};

/// The subscriptions of one identity, to read.
#[derive(Clone, Copy)]
pub(super) struct Window<'a> {
    pub(super) bus: &'a dyn BusSnapshot,
    pub(super) who: &'a Identity,
}

/// The same, to change.
pub(super) struct Post<'a> {
    pub(super) bus: &'a mut dyn BusTx,
    pub(super) who: &'a Identity,
}

impl Reader for Window<'_> {
    fn subscriptions(&self) -> Look<Vec<Subscription>> {
        Ok(self.bus.subscriptions(self.who)?)
    }

    fn followed_tags(&self) -> Look<Vec<FollowedTags>> {
        Ok(self.bus.tag_sets(self.who)?)
    }

    fn evicted_before(&self, channel: &ChannelName) -> Look<Option<u64>> {
        let row = self.bus.channel(channel)?;
        // What is there without a row has lost nothing.
        let without_row = channel.is_default() || channel.owner().is_some();
        Ok(row.map(|row| row.evicted_before).or(without_row.then_some(0)))
    }

    fn scan(&self, scan: &Scan<'_>) -> Look<Vec<Message>> {
        let before = scan.until.checked_add(1);
        let of = |query| MessageQuery { before, not_from: scan.not_from, ..query };
        Ok(match scan.place {
            ScanPlace::Channel(name) => self.bus.messages(&of(MessageQuery::of(name, scan.after, scan.limit)))?,
            ScanPlace::Tags { set, except } => {
                let all_tags: Vec<TagPattern> = set.patterns().cloned().collect();
                let anywhere = MessageQuery::anywhere(scan.after, scan.limit);
                self.bus.messages(&of(MessageQuery { all_tags: &all_tags, except, ..anywhere }))?
            }
        })
    }

    fn notice(&self) -> Look<Option<String>> {
        Ok(self.bus.notice(NoticeKind::Capacity)?)
    }
}

/// Passes every question on to a window.
macro_rules! through_a_window {
    ($post:ident) => {
        impl Reader for $post<'_> {
            fn subscriptions(&self) -> Look<Vec<Subscription>> {
                self.window().subscriptions()
            }

            fn followed_tags(&self) -> Look<Vec<FollowedTags>> {
                self.window().followed_tags()
            }

            fn evicted_before(&self, channel: &ChannelName) -> Look<Option<u64>> {
                self.window().evicted_before(channel)
            }

            fn scan(&self, scan: &Scan<'_>) -> Look<Vec<Message>> {
                self.window().scan(scan)
            }

            fn notice(&self) -> Look<Option<String>> {
                self.window().notice()
            }
        }
    };
}

impl Post<'_> {
    fn window(&self) -> Window<'_> {
        Window { bus: &*self.bus, who: self.who }
    }
}

through_a_window!(Post);

impl Mailbox for Post<'_> {
    fn put(&mut self, row: &Subscription) -> Look<()> {
        Ok(self.bus.put_subscription(row)?)
    }

    fn end(&mut self, source: &Source) -> Look<()> {
        end(self.bus, self.who, source)
    }
}

/// Ends a subscription; with that of the tags, nothing is followed any more.
pub(super) fn end(bus: &mut dyn BusTx, who: &Identity, source: &Source) -> Look<()> {
    bus.end_subscription(who, source)?;
    if *source == Source::Tags {
        for row in bus.tag_sets(who)? {
            bus.end_tag_set(who, &row.set)?;
        }
    }
    Ok(())
}

/// A window whose verbs only tell that there would be something to change.
pub(super) struct Glance<'a> {
    window: Window<'a>,
    wanted: bool,
}

impl<'a> Glance<'a> {
    /// What a delivery comes to when it changes nothing; none when it would.
    pub(super) fn receive(window: Window<'a>, ask: &Ask, facts: &Facts) -> Look<Option<Received>> {
        let mut glance = Glance { window, wanted: false };
        match receive::receive(ask, &mut glance, facts) {
            _ if glance.wanted => Ok(None),
            received => received.map(Some),
        }
    }

    fn window(&self) -> Window<'a> {
        self.window
    }

    fn stop(&mut self) -> LookupError {
        self.wanted = true;
        LookupError(Box::new(OnlyLooking))
    }
}

through_a_window!(Glance);

impl Mailbox for Glance<'_> {
    fn put(&mut self, _: &Subscription) -> Look<()> {
        Err(self.stop())
    }

    fn end(&mut self, _: &Source) -> Look<()> {
        Err(self.stop())
    }
}
