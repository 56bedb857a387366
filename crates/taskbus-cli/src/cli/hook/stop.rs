//! An agent that wants to stop is told of messages that it has not seen: how many, and where; not what they say. It
//! looks without a trace, as often as it likes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskbus::engine::Error;
use taskbus_core::bus::message::Message;
use taskbus_core::bus::peek::PeekAsk;
use taskbus_core::refusal::Refusal;

use super::input::Input;
use super::who::{self, Named};
use crate::config;
use crate::options::Globals;
use crate::term::failure::Failure;

/// Channels that are named before the rest is only counted.
const CHANNELS_MAX: usize = 8;

/// What keeps the agent going, if anything.
pub(super) fn stop(globals: &Globals, input: &Input) -> Result<Option<Value>, Failure> {
    if input.goes_on_already() {
        return Ok(None);
    }
    let Some(engine) = who::engine(globals)? else { return Ok(None) };
    let Some(named) = who::named(&engine)? else { return Ok(None) };
    let unseen = match engine.peek(&named.name, &PeekAsk::default()) {
        // Who follows nothing has missed nothing.
        Err(Error::Refused(Refusal::NotFound(_))) => return Ok(None),
        unseen => unseen?,
    };
    let full = unseen.len() >= config::here(globals.config.as_deref())?.limits().receive_max_count;
    Ok((!unseen.is_empty()).then(|| json!({"decision": "block", "reason": reason(&named, &unseen, full, input)})))
}

fn reason(named: &Named, unseen: &[Message], full: bool, input: &Input) -> String {
    let name = &named.name;
    let first = if named.is_here { String::new() } else { format!("register as {name}, then ") };
    let more = if full { "+" } else { "" };
    let again = if input.has_background() {
        " If you keep taskbus wait in the background, start it again before you stop."
    } else {
        ""
    };
    format!(
        "taskbus: {}{more} unread for {name}, in {}. Before you stop, {first}call receive {{\"as\": \"{name}\"}}, do what \
         concerns you, and confirm what you have read with ack.{again}",
        messages(unseen.len()),
        channels(unseen)
    )
}

fn messages(count: usize) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{count} messages") }
}

/// Where they are, the fullest first.
fn channels(unseen: &[Message]) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for message in unseen {
        *counts.entry(message.channel.as_str()).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let left = counts.len().saturating_sub(CHANNELS_MAX);
    let named = counts.iter().take(CHANNELS_MAX).map(|(channel, count)| format!("{channel} ({count})"));
    let rest = (left > 0).then(|| format!("{left} more channels"));
    named.chain(rest).collect::<Vec<_>>().join(", ")
}
