//! How messages look to people.

use taskbus_core::bus::message::Message;
use taskbus_core::time::Timestamp;

use crate::cli::show::when;
use crate::term::safe::{display_safe, display_safe_lines};

/// Messages one after another: a line about each, and its text below, indented.
pub(super) fn messages<'a>(messages: impl IntoIterator<Item = &'a Message>, now: Timestamp) -> String {
    messages.into_iter().map(|message| format!("{}{}", head(message, now), body(message))).collect()
}

/// `#7 general  zed  2026-… (3m ago)  [report]  What it is about`, safe.
pub(super) fn head(message: &Message, now: Timestamp) -> String {
    let sender = message.sender.as_ref().map_or("taskbus", |sender| sender.as_str());
    let mut words = format!("#{} {}  {sender}  {}", message.seq, message.channel, when(message.created_at, now));
    if !message.sort.is_empty() {
        words.push_str(&format!("  [{}]", message.sort.as_str()));
    }
    if let Some(memory) = message.memory {
        words.push_str(&format!("  memory {} r{}", memory.id, memory.revision));
    }
    if let Some(answered) = message.reply_to {
        words.push_str(&format!("  re #{answered}"));
    }
    if let Some(subject) = &message.subject {
        words.push_str(&format!("  {}", subject.as_str()));
    }
    words.extend(message.tags.iter().map(|tag| format!("  @{tag}")));
    format!("{}\n", display_safe(&words))
}

fn body(message: &Message) -> String {
    let safe = display_safe_lines(&message.content);
    safe.lines().map(|line| format!("    {line}\n")).collect()
}
