//! What the rules of delivery ask of a store, and the two verbs they use. All questions are about one identity.

use crate::bus::channel::ChannelName;
use crate::bus::message::Message;
use crate::bus::subscription::{FollowedTags, Source, Subscription};
use crate::bus::tag::TagSet;
use crate::name::Identity;
use crate::neighbourhood::Look;

/// The questions.
pub trait Reader {
    /// What the identity is subscribed to. Channels may be gone.
    ///
    /// # Errors
    /// [`LookupError`](crate::neighbourhood::LookupError) when the store cannot answer; so for every method here.
    fn subscriptions(&self) -> Look<Vec<Subscription>>;

    /// Which sets of tags it follows.
    ///
    /// # Errors
    /// [`LookupError`](crate::neighbourhood::LookupError).
    fn followed_tags(&self) -> Look<Vec<FollowedTags>>;

    /// The first number of a channel that may have survived, 0 when nothing was evicted; none when there is no such
    /// channel.
    ///
    /// # Errors
    /// [`LookupError`](crate::neighbourhood::LookupError).
    fn evicted_before(&self, channel: &ChannelName) -> Look<Option<u64>>;

    /// Live messages, in order.
    ///
    /// # Errors
    /// [`LookupError`](crate::neighbourhood::LookupError).
    fn scan(&self, scan: &Scan<'_>) -> Look<Vec<Message>>;

    /// What everybody is told with every delivery, if there is something.
    ///
    /// # Errors
    /// [`LookupError`](crate::neighbourhood::LookupError).
    fn notice(&self) -> Look<Option<String>>;
}

/// The verbs.
pub trait Mailbox: Reader {
    /// Writes a subscription, replacing the one to the same source.
    ///
    /// # Errors
    /// [`LookupError`](crate::neighbourhood::LookupError); so for every method here.
    fn put(&mut self, row: &Subscription) -> Look<()>;

    /// Ends a subscription; with that of the tags, every set of tags is followed no longer.
    ///
    /// # Errors
    /// [`LookupError`](crate::neighbourhood::LookupError).
    fn end(&mut self, source: &Source) -> Look<()>;
}

/// Which messages to look through.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// Where.
    pub place: ScanPlace<'a>,
    /// Only numbers above this.
    pub after: u64,
    /// Only numbers up to this.
    pub until: u64,
    /// Not sent by this identity. What nobody sent, such as a reclaim by the maintenance tick, is never left out.
    pub not_from: Option<&'a Identity>,
    /// At most so many, the lowest numbers.
    pub limit: usize,
}

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub enum ScanPlace<'a> {
    /// In one channel.
    Channel(&'a ChannelName),
    /// In every ordinary channel that is no inbox.
    Tags {
        /// For messages that this set matches.
        set: &'a TagSet,
        /// But not in these channels.
        except: &'a [ChannelName],
    },
}
