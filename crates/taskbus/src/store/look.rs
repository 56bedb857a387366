//! What the filters of the seam let pass, said once for every store that does not ask its index.

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::Message;
use taskbus_core::bus::rules::is_visible;
use taskbus_core::bus::tag::TagPattern;
use taskbus_core::name::{Identity, Label};
use taskbus_core::time::Timestamp;

use super::bus::{MessageFilter, MessageQuery};

/// What filters look at in a message.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) seq: u64,
    pub(super) channel: &'a ChannelName,
    pub(super) sender: Option<&'a Identity>,
    pub(super) at: Timestamp,
    pub(super) reply_to: Option<u64>,
    pub(super) tags: &'a [Label],
}

impl<'a> From<&'a Message> for Facts<'a> {
    fn from(message: &'a Message) -> Self {
        Self {
            seq: message.seq,
            channel: &message.channel,
            sender: message.sender.as_ref(),
            at: message.created_at,
            reply_to: message.reply_to,
            tags: &message.tags,
        }
    }
}

impl Facts<'_> {
    fn has_tag(&self, pattern: &TagPattern) -> bool {
        self.tags.iter().any(|tag| pattern.matches(tag))
    }

    fn has_any(&self, patterns: &[TagPattern]) -> bool {
        patterns.is_empty() || patterns.iter().any(|pattern| self.has_tag(pattern))
    }

    /// Whether the query wants this message, which is in a channel and within the numbers that it asks for.
    pub(super) fn pass(&self, query: &MessageQuery<'_>) -> bool {
        !query.except.contains(self.channel)
            && query.not_from.is_none_or(|who| self.sender != Some(who))
            && query.all_tags.iter().all(|pattern| self.has_tag(pattern))
            && self.has_any(query.any_tags)
    }

    /// Whether a search looks at this message.
    pub(super) fn are_looked_at(&self, filter: &MessageFilter<'_>) -> bool {
        let here = match filter.channel {
            Some(channel) => self.channel == channel,
            None => filter.visible_to.is_none_or(|who| is_visible(self.channel, self.sender, who)),
        };
        here && filter.sender.is_none_or(|who| self.sender == Some(who))
            && filter.since.is_none_or(|since| self.at >= since)
            && filter.until.is_none_or(|until| self.at <= until)
            && filter.thread.is_none_or(|seq| self.seq == seq || self.reply_to == Some(seq))
            && self.has_any(filter.any_tags)
    }
}
