//! `send` and `recv`.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use taskbus::answer::bus::Sent;
use taskbus::engine::ReceiveAsk;
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Content, Draft, Headline, Metadata, Sort};
use taskbus_core::bus::receive::Received;
use taskbus_core::bus::tag;
use taskbus_core::limits;
use taskbus_core::time::Timestamp;

use super::args::{Recv, Said, Send};
use super::show;
use crate::cli::desk::Desk;
use crate::cli::input::{self, Input};
use crate::term::failure::{DONE, Failure, LATE};
use crate::term::report::Report;
use crate::term::safe::display_safe;
use crate::wire;

/// A channel by its name.
pub(super) fn channel(name: &str) -> Result<ChannelName, Failure> {
    ChannelName::new(name).map_err(|error| Failure::text("channel", error))
}

/// Several of them.
pub(super) fn channels(names: &[String]) -> Result<Vec<ChannelName>, Failure> {
    names.iter().map(|name| channel(name)).collect()
}

/// What was said, as a message of no channel yet.
pub(super) fn draft(said: &Said, subject: Option<&str>, tags: &[String], input: &Input) -> Result<Draft, Failure> {
    let headline = |text: &str| Headline::new(text).map_err(|error| Failure::text("subject", error));
    Ok(Draft {
        content: content(said, input)?,
        sort: sort(said)?,
        subject: subject.map_or(Ok(None), headline)?,
        reply_to: None,
        metadata: metadata(said),
        tags: tag::normalize(tags)?,
    })
}

/// The text.
pub(super) fn content(said: &Said, input: &Input) -> Result<Content, Failure> {
    let text = match (&said.content, &said.file) {
        (Some(text), _) => input.text(text)?,
        (None, Some(path)) => input.file(path)?,
        (None, None) => return Err(Failure::usage("what to say? name a text, - or --file")),
    };
    Content::new(text).map_err(|error| Failure::text("content", error))
}

/// What it is about.
pub(super) fn sort(said: &Said) -> Result<Sort, Failure> {
    let sort = Sort::new(said.sort.clone().unwrap_or_default());
    sort.map_err(|error| Failure::text("type", error))
}

/// Free data, if there is any.
pub(super) fn metadata(said: &Said) -> Option<Metadata> {
    let pairs = said.metadata.iter().map(|pair| (pair.key.clone(), pair.value.clone()));
    Some(pairs.collect::<Metadata>()).filter(|pairs| !pairs.is_empty())
}

/// Sends a message.
pub(crate) fn send(desk: &Desk, send: &Send) -> Result<Box<dyn Report>, Failure> {
    let to = channel(&send.channel)?;
    let mut draft = draft(&send.said, send.subject.as_deref(), &send.tags, &desk.input)?;
    draft.reply_to = send.reply_to;
    let sent = desk.engine.send(desk.caller()?, &to, &draft, input::key(&send.key)?.as_ref())?;
    Ok(Box::new(Posted { to, sent }))
}

/// What was sent.
pub(super) struct Posted {
    /// Where.
    pub(super) to: ChannelName,
    /// As what.
    pub(super) sent: Sent,
}

impl Report for Posted {
    fn json(&self) -> Map<String, Value> {
        wire::object(&self.sent)
    }

    fn words(&self, _: Option<usize>) -> String {
        let to = display_safe(self.to.as_str());
        match self.sent.memory_id {
            Some(id) => format!("kept as memory {id} in {to}\n"),
            None => format!("sent to {to} as #{}\n", self.sent.seq),
        }
    }
}

/// Receives what is new.
pub(crate) fn recv(desk: &Desk, recv: &Recv) -> Result<Box<dyn Report>, Failure> {
    let mut ask = ReceiveAsk {
        ack: recv.ack.clone(),
        count: recv.count,
        wait: Duration::ZERO,
        channels: channels(&recv.channels)?,
        include_own: recv.include_own,
        exempt_from_polling: true,
    };
    let deadline = Instant::now() + Duration::from_secs(recv.wait.unwrap_or(0));
    let caller = desk.caller()?;
    let mut ack_ignored = false;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        ask.wait = left.min(Duration::from_secs(limits::WAIT_SECONDS_MAX));
        let mut received = desk.engine.receive(caller, &ask, &|| false)?;
        ack_ignored |= received.ack_ignored;
        if received.is_news() || Instant::now() >= deadline {
            received.ack_ignored = ack_ignored;
            let now = desk.engine.now()?;
            return Ok(Box::new(Mail { received, waited: recv.wait.is_some(), now }));
        }
        // What was acknowledged is, and an empty call has no batch.
        ask.ack = None;
    }
}

/// What was received.
struct Mail {
    received: Received,
    waited: bool,
    now: Timestamp,
}

impl Report for Mail {
    fn json(&self) -> Map<String, Value> {
        wire::object(&self.received)
    }

    fn words(&self, _: Option<usize>) -> String {
        let received = &self.received;
        let mut words = show::messages(&received.messages, self.now);
        let gaps = received.gaps.iter();
        words.extend(gaps.map(|gap| {
            let channel = display_safe(gap.channel.as_str()).into_owned();
            format!("{channel}: #{} to #{} are gone, they were too old\n", gap.from, gap.to)
        }));
        let expired = received.expired.iter();
        words.extend(expired.map(|name| format!("{}: not read for too long, subscribe again\n", display_safe(name))));
        words.extend(received.notice.iter().map(|notice| format!("{}\n", display_safe(notice))));
        if received.ack_ignored {
            words.push_str("there was no such batch to acknowledge\n");
        }
        match &received.batch {
            Some(batch) => words.push_str(&format!("read them? taskbus recv --ack {}\n", display_safe(batch))),
            None if received.is_news() => {}
            None => words.push_str("nothing new\n"),
        }
        words
    }

    fn exit(&self) -> u8 {
        if self.waited && !self.received.is_news() { LATE } else { DONE }
    }
}
