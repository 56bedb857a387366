//! What was said in a channel, whoever read it.

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::json_bytes;
use taskbus_core::bus::message::Message;
use taskbus_core::bus::receive::count;
use taskbus_core::bus::rules::check_read;
use taskbus_core::bus::tag::TagPattern;
use taskbus_core::limits::{PENDING_COUNTED_MAX, RESULT_BYTES_MAX};
use taskbus_core::name::Identity;

use super::bus;
use crate::answer::bus::HistoryView;
use crate::engine::{Engine, Error};
use crate::store::bus::{BusSnapshot, MessageQuery};
use crate::store::{StoreError, read_with};

/// Which part of a channel to show.
#[derive(Clone, Debug)]
pub struct HistoryAsk {
    /// The channel.
    pub channel: ChannelName,
    /// Only messages before this number.
    pub before: Option<u64>,
    /// Only messages behind this number; with it the oldest are shown first, without it the newest.
    pub after: Option<u64>,
    /// Messages, at most; none, or no positive number: as the configuration says.
    pub count: Option<i64>,
    /// Only messages with a tag that one of these matches; empty: all.
    pub tags: Vec<TagPattern>,
}

impl HistoryAsk {
    /// The newest messages of a channel.
    #[must_use]
    pub fn of(channel: ChannelName) -> Self {
        Self { channel, before: None, after: None, count: None, tags: Vec::new() }
    }
}

impl Engine {
    /// Messages of a channel, in order: the newest ones, or with `after` the first ones behind it. A channel that is
    /// not there has none.
    ///
    /// # Errors
    /// [`Error`]: `not_found` for an inbox of somebody else.
    pub fn history(&self, caller: &Identity, ask: &HistoryAsk) -> Result<HistoryView, Error> {
        self.authorize(caller)?;
        check_read(&ask.channel, caller)?;
        let limit = count(ask.count, self.limits.receive_default_count, self.limits.receive_max_count);
        let bytes = self.limits.result_default_kib.saturating_mul(1024).min(RESULT_BYTES_MAX);
        Ok(read_with(self.store(), None, |snapshot| shown(bus(snapshot)?, ask, limit, bytes))?)
    }
}

fn shown(bus: &dyn BusSnapshot, ask: &HistoryAsk, limit: usize, bytes: usize) -> Result<HistoryView, StoreError> {
    let newest_first = ask.after.is_none();
    let query = MessageQuery {
        before: ask.before,
        any_tags: &ask.tags,
        newest_first,
        ..MessageQuery::of(&ask.channel, ask.after.unwrap_or(0), limit + 1)
    };
    let mut messages = bus.messages(&query)?;
    let found = messages.len();
    messages.truncate(limit);
    fit(&mut messages, bytes);
    let truncated = messages.len() < found;
    let next = messages.last().map(|message| message.seq).filter(|_| truncated);
    let counted = if truncated { bus.count(&MessageQuery { limit: PENDING_COUNTED_MAX, ..query })? } else { found };
    if newest_first {
        messages.reverse();
    }
    Ok(HistoryView { messages, total: Some(counted).filter(|total| *total < PENDING_COUNTED_MAX), truncated, next })
}

/// Keeps as many from the front as fit into so many bytes, the first one whatever its size.
fn fit(messages: &mut Vec<Message>, bytes: usize) {
    // What is beside the messages, at its longest.
    let beside = HistoryView { total: Some(usize::MAX), truncated: true, next: Some(u64::MAX), messages: Vec::new() };
    let mut left = bytes.saturating_sub(json_bytes(&beside));
    let fits = messages.iter().enumerate().take_while(|(at, message)| {
        let size = json_bytes(message) + usize::from(*at > 0);
        let fits = *at == 0 || size <= left;
        left = left.saturating_sub(size);
        fits
    });
    let kept = fits.count();
    messages.truncate(kept);
}
