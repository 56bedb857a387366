//! The messages: each that was sent is there once, each came to whoever it was for until that was acknowledged, in
//! order, and none came again after it.

use std::collections::{BTreeMap, BTreeSet};

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::Message;
use taskbus_core::name::Identity;

use super::{Act, Findings, History, Kind};
use crate::torture::deed::Deed;
use crate::torture::told::Told;

/// Checks all mail.
pub(super) fn check(history: &History, findings: &mut Findings) {
    check_sent(history, findings);
    let mut boxes: BTreeMap<&Identity, Inbox> = BTreeMap::new();
    for act in history.acts.iter().filter(|act| matches!(act.begin.deed, Deed::Receive { .. })) {
        boxes.entry(&act.begin.caller).or_default().receive(act, findings);
    }
    for (who, unread) in &history.unread {
        let seen = boxes.remove(who).unwrap_or_default();
        check_delivered(who, &seen, unread, history, findings);
    }
}

/// What was acknowledged as sent is there under its number, and nothing is there that nobody sent, or twice.
fn check_sent(history: &History, findings: &mut Findings) {
    let letter = |act: &Act| match &act.begin.deed {
        Deed::Send { channel } => Some((act.begin.number.mark(), channel.clone())),
        _ => None,
    };
    let sends: BTreeMap<String, (&Act, String)> =
        history.acts.iter().filter_map(|act| letter(act).map(|(mark, channel)| (mark, (act, channel)))).collect();
    let mut there: BTreeMap<&str, u64> = BTreeMap::new();
    for message in &history.messages {
        findings.count("messages");
        match sends.get(&message.content) {
            Some((act, channel)) if fits(message, act, channel) => {}
            _ => findings.wrong(Kind::Mail, format!("message {} is there, which nobody sent so", message.seq)),
        }
        if let Some(first) = there.insert(&message.content, message.seq) {
            findings.wrong(Kind::Twice, format!("{} was sent as {first} and as {}", message.content, message.seq));
        }
    }
    for (mark, (act, _)) in &sends {
        if let Some(Told::Sent(seq)) = act.told() {
            findings.count("sent");
            if there.get(mark.as_str()) != Some(seq) {
                findings.wrong(Kind::Lost, format!("{mark} was sent as message {seq}, which is not there"));
            }
        }
    }
}

fn fits(message: &Message, act: &Act, channel: &str) -> bool {
    message.sender.as_ref() == Some(&act.begin.caller) && message.channel.as_str() == channel
}

/// What one name received.
#[derive(Default)]
struct Inbox {
    /// The batches it got and did not acknowledge as far as is known.
    open: BTreeMap<String, Vec<u64>>,
    /// What it acknowledged.
    done: BTreeSet<u64>,
    /// Everything that came.
    seen: BTreeSet<u64>,
}

impl Inbox {
    fn receive(&mut self, act: &Act, findings: &mut Findings) {
        let Some((_, Told::Received { seqs, batch, again, ack_ignored })) = act.answers.first() else { return };
        let mark = act.begin.number.mark();
        if let (Deed::Receive { ack: Some(ack) }, false) = (&act.begin.deed, ack_ignored) {
            self.done.extend(self.open.remove(ack).unwrap_or_default());
        }
        if let Some(seq) = seqs.iter().find(|seq| self.done.contains(seq)) {
            findings.wrong(Kind::Mail, format!("{mark}: message {seq} came again after it was acknowledged"));
        }
        if !seqs.is_sorted() {
            findings.wrong(Kind::Mail, format!("{mark}: messages came as {seqs:?}"));
        }
        findings.add("delivered", seqs.len() as u64);
        findings.add("delivered again", if *again { seqs.len() as u64 } else { 0 });
        self.seen.extend(seqs);
        if let Some(batch) = batch {
            self.open.insert(batch.clone(), seqs.clone());
        }
    }
}

/// Each message for somebody came, or is still unread.
fn check_delivered(who: &Identity, inbox: &Inbox, unread: &[u64], history: &History, findings: &mut Findings) {
    let own = ChannelName::inbox(who);
    let general = ChannelName::general();
    let is_for = |message: &&Message| {
        let addressed = message.channel == own || message.channel == general;
        addressed && message.sender.as_ref() != Some(who)
    };
    if let Some(seq) = unread.iter().find(|seq| inbox.done.contains(seq)) {
        findings.wrong(Kind::Mail, format!("{who} gets message {seq} again after it was acknowledged"));
    }
    for message in history.messages.iter().filter(is_for) {
        if !inbox.seen.contains(&message.seq) && !unread.contains(&message.seq) {
            findings.wrong(Kind::Mail, format!("message {} for {who} never came and is not unread", message.seq));
        }
    }
}
