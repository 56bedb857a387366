//! Subscriptions: how far an identity has read which source, and what was handed out to it. What is
//! delivered next is decided in [`receive`](super::receive).

use std::fmt;

use crate::bus::channel::ChannelName;
use crate::bus::tag::TagSet;
use crate::name::Identity;
use crate::time::Timestamp;

/// What one subscription reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Every message with the tags that the identity follows, of whatever ordinary channel.
    Tags,
    /// A channel.
    Channel(ChannelName),
}

/// A subscription: how far an identity has read a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Who.
    pub who: Identity,
    /// What.
    pub source: Source,
    /// Everything up to this number is read.
    pub cursor: u64,
    /// When it was last read.
    pub last_activity: Timestamp,
    /// What was handed out and is not acknowledged yet.
    pub pending: Option<Pending>,
}

/// A batch that was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its token.
    pub token: String,
    /// The number of the last message in it from this source.
    pub end: u64,
}

/// A set of tags that an identity follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedTags {
    /// Which.
    pub set: TagSet,
    /// Only messages behind this number count.
    pub since_seq: u64,
}

impl Source {
    /// The channel it is, if it is one.
    #[must_use]
    pub fn channel(&self) -> Option<&ChannelName> {
        match self {
            Source::Tags => None,
            Source::Channel(name) => Some(name),
        }
    }

    /// Whether an identity may read it: an inbox is its owner's alone.
    #[must_use]
    pub fn is_readable_by(&self, who: &Identity) -> bool {
        self.channel().is_none_or(|channel| channel.is_readable_by(who))
    }
}

impl Subscription {
    /// Whether it has ended because nobody read it for longer than `idle_ms`. An inbox never ends.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp, idle_ms: i64) -> bool {
        let is_inbox = self.source.channel().is_some_and(|channel| channel.owner().is_some());
        !is_inbox && self.last_activity.plus_millis(idle_ms) < now
    }

    /// Everything up to this number was handed out, read or not.
    #[must_use]
    pub fn handed_out(&self) -> u64 {
        self.pending.as_ref().map_or(self.cursor, |pending| pending.end.max(self.cursor))
    }
}

/// As it is named to a caller; the name of the tags is one that no channel can have.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Tags => f.write_str("tags/"),
            Source::Channel(name) => f.write_str(name.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_channel_can_be_named_like_the_tags() {
        assert!(ChannelName::new(Source::Tags.to_string()).is_err());
        let general = Source::Channel(ChannelName::general());
        assert_eq!((general.to_string().as_str(), general.channel()), ("general", Some(&ChannelName::general())));
    }
}
