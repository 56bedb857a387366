//! What would wake somebody: unread messages that were not handed out yet, looked at without any trace (reference
//! E.3). What was handed out and not acknowledged wakes nobody; only `receive` delivers it again.

use std::collections::BTreeMap;

use super::select::{Part, Wanted, select};
use crate::bus::channel::ChannelName;
use crate::bus::mailbox::Reader;
use crate::bus::message::Message;
use crate::bus::subscription::{Source, Subscription};
use crate::name::Identity;
use crate::neighbourhood::Look;

/// What to look for.
#[derive(Clone, Debug, Default)]
pub struct PeekAsk {
    /// Only in these channels; empty: everywhere.
    pub channels: Vec<ChannelName>,
    /// What the identity sent itself, too.
    pub include_own: bool,
}

/// How far one look has looked through each source, whatever was read: messages that did not match are not looked at
/// again.
#[derive(Clone, Debug, Default)]
pub struct Floors(BTreeMap<Source, u64>);

/// A message, and because of which subscription it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The message.
    pub message: Message,
    /// The subscription.
    pub source: Source,
}

impl Floors {
    /// This message is not looked at again.
    pub fn pass(&mut self, seen: &Seen) {
        let floor = self.0.entry(seen.source.clone()).or_default();
        *floor = seen.message.seq.max(*floor);
    }
}

/// The first unread messages behind the floors, in order; none when no subscription fits.
///
/// # Errors
/// [`LookupError`](crate::neighbourhood::LookupError) when the store fails.
pub fn peek(
    who: &Identity,
    ask: &PeekAsk,
    floors: &Floors,
    limit: usize,
    reader: &dyn Reader,
) -> Look<Option<Vec<Seen>>> {
    let all = reader.subscriptions()?;
    let direct: Vec<ChannelName> = all.iter().filter_map(|row| row.source.channel().cloned()).collect();
    let rows: Vec<&Subscription> = all.iter().filter(|row| fits(row, who, ask)).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let sets = reader.followed_tags()?;
    let parts = rows.iter().map(|row| {
        let floor = floors.0.get(&row.source).copied().unwrap_or(0);
        Part { source: &row.source, after: row.handed_out().max(floor), until: u64::MAX }
    });
    let not_from = (!ask.include_own).then_some(who);
    let wanted = Wanted { parts: parts.collect(), direct: &direct, sets: &sets, not_from, limit };
    let found = select(&wanted, reader)?.into_iter();
    Ok(Some(found.map(|it| Seen { message: it.message, source: rows[it.part].source.clone() }).collect()))
}

/// Whether a message wakes whatever filter it is looked at through: what was sent to this identity alone, and what has
/// tags that it follows.
#[must_use]
pub fn always_wakes(message: &Message, who: &Identity) -> bool {
    message.channel.owner().as_ref() == Some(who) || !message.matched_tags.is_empty()
}

/// Whether only the sender and the receiver may see what a message says: whoever else reads the output of a wait is told
/// that it came, and from whom.
#[must_use]
pub fn is_confidential(message: &Message) -> bool {
    message.channel.owner().is_some()
}

fn fits(row: &Subscription, who: &Identity, ask: &PeekAsk) -> bool {
    let asked = ask.channels.is_empty() || row.source.channel().is_some_and(|name| ask.channels.contains(name));
    asked && row.source.is_readable_by(who)
}
