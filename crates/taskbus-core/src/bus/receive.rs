//! What one call of `receive` delivers (reference E.1; docs/rules.md 11). Pure: it asks and changes a
//! [`Mailbox`], and the caller drops the transaction when that fails.
//!
//! ```text
//! rows of the caller ── expired? ── ack ── channel gone? ── gap? ──┬─ gaps left over: nothing more
//!                                                                  ├─ a batch is pending: the same again
//!                                                                  └─ else what is new, as a new batch
//! ```
//!
//! A batch stays pending until it is acknowledged by its token, and while it does, nothing else is delivered. How far
//! a row is read moves only by an acknowledgement or over a gap that was told.

use serde::{Deserialize, Serialize};

use self::shelf::Shelf;
use super::json_bytes;
use super::select::Found;
use crate::bus::channel::ChannelName;
use crate::bus::mailbox::Mailbox;
use crate::bus::message::Message;
use crate::limits;
use crate::name::Identity;
use crate::neighbourhood::Look;
use crate::time::Timestamp;

mod shelf;

/// What a caller asks for.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The token of the batch that was worked through.
    pub ack: Option<String>,
    /// Only from these channels; empty: from all. A pending batch comes whole all the same.
    pub channels: Vec<ChannelName>,
    /// What the caller sent itself, too.
    pub include_own: bool,
}

/// What the rules need to know besides the rows.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The time of the call.
    pub now: Timestamp,
    /// Who asks.
    pub caller: Identity,
    /// A random text that no batch had before.
    pub token: String,
    /// Messages of a new batch, at most.
    pub count: usize,
    /// Messages of a batch that is delivered again, at most: what a new one can have.
    pub count_max: usize,
    /// How large a result with a new batch is, in bytes, unless its first message alone is larger.
    pub result_bytes: usize,
    /// A subscription that was not read for longer than this has ended, in milliseconds.
    pub idle_ms: i64,
}

/// What is delivered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The token to acknowledge them by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Whether they were delivered before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redelivered: bool,
    /// Whether `ack` named no pending batch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ack_ignored: bool,
    /// What was evicted before it was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Subscriptions that ended because they were not read for too long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expired: Vec<String>,
    /// What the maintenance says to everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

/// Messages of a channel that are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The channel.
    pub channel: ChannelName,
    /// The first number that may be missing.
    pub from: u64,
    /// The last one.
    pub to: u64,
}

impl Received {
    /// Whether there is anything that a waiting caller wants to hear of at once.
    #[must_use]
    pub fn is_news(&self) -> bool {
        self.batch.is_some() || !self.gaps.is_empty() || !self.expired.is_empty()
    }
}

/// How many messages one call may have: what it asks for, within the limits; the default when it asks for none.
#[must_use]
pub fn count(asked: Option<i64>, default: usize, max: usize) -> usize {
    let wanted = asked.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
    wanted.unwrap_or(default).min(max)
}

/// Delivers.
///
/// # Errors
/// [`LookupError`](crate::neighbourhood::LookupError) when the store fails; then the caller must drop whatever was
/// changed.
pub fn receive(ask: &Ask, mailbox: &mut dyn Mailbox, facts: &Facts) -> Look<Received> {
    let mut shelf = Shelf::load(&ask.channels, mailbox, facts)?;
    let expired = shelf.expire(mailbox, facts)?;
    shelf.renew(facts.now);
    let ack = ask.ack.as_deref().filter(|token| !token.is_empty());
    let ack_ignored = ack.is_some_and(|token| !shelf.acknowledge(token));
    shelf.drop_gone(mailbox)?;
    let (gaps, more_gaps) = shelf.skip_evicted();
    let told = Received { ack_ignored, gaps, expired, notice: mailbox.notice()?, ..Received::default() };
    let received = if more_gaps {
        Received { instruction: Some(GAPS_LEFT.to_owned()), ..told }
    } else if let Some(token) = shelf.pending_token() {
        redeliver(&token, &mut shelf, mailbox, facts, told)?
    } else {
        deliver(ask, &mut shelf, mailbox, facts, told)?
    };
    shelf.keep(mailbox)?;
    Ok(received)
}

/// Takes back a batch that nobody saw: its messages are new again.
///
/// # Errors
/// As [`receive`].
pub fn take_back(token: &str, mailbox: &mut dyn Mailbox) -> Look<()> {
    for mut row in mailbox.subscriptions()? {
        if row.pending.as_ref().is_some_and(|pending| pending.token == token) {
            row.pending = None;
            mailbox.put(&row)?;
        }
    }
    Ok(())
}

const GAPS_LEFT: &str = "more gaps are to be told before messages come: call receive again";

fn deliver(ask: &Ask, shelf: &mut Shelf, mailbox: &dyn Mailbox, facts: &Facts, told: Received) -> Look<Received> {
    let token = format!("{}:o{}", facts.token, u8::from(ask.include_own));
    let found = shelf.new_messages(mailbox, ask.include_own, facts.count)?;
    let instruction = format!("work through these, then call receive with ack {token:?}; until then they come again");
    let framed = Received { batch: Some(token.clone()), instruction: Some(instruction), ..told.clone() };
    let shown = fit(found, &framed, facts.result_bytes.min(limits::RESULT_BYTES_MAX));
    if shown.is_empty() {
        return Ok(told);
    }
    shelf.hand_out(&token, &shown);
    Ok(Received { messages: messages(shown), ..framed })
}

fn redeliver(token: &str, shelf: &mut Shelf, mailbox: &dyn Mailbox, facts: &Facts, told: Received) -> Look<Received> {
    let found = shelf.pending_messages(mailbox, token, facts.count_max)?;
    let instruction = format!(
        "these were delivered before and not acknowledged; nothing else comes until receive is called with ack {token:?}"
    );
    let framed = Received { batch: Some(token.to_owned()), redelivered: true, instruction: Some(instruction), ..told };
    let shown = fit(found, &framed, limits::RESULT_BYTES_MAX);
    shelf.hand_out_again(token, &shown);
    Ok(Received { messages: messages(shown), ..framed })
}

/// As many from the front as fit into a result of so many bytes beside everything else in it. The first one is kept
/// whatever its size, unless everything else alone is too large already.
fn fit(mut found: Vec<Found>, beside: &Received, bytes: usize) -> Vec<Found> {
    let Some(mut left) = bytes.checked_sub(json_bytes(beside)) else { return Vec::new() };
    let mut kept = 0;
    for Found { message, .. } in &found {
        let comma = usize::from(kept > 0);
        let size = json_bytes(message) + comma;
        if size > left && kept > 0 {
            break;
        }
        left = left.saturating_sub(size);
        kept += 1;
    }
    found.truncate(kept);
    found
}

fn messages(found: Vec<Found>) -> Vec<Message> {
    found.into_iter().map(|found| found.message).collect()
}
