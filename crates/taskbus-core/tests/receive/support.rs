//! A bus in memory, seen by one reader, Zed.

use std::collections::{BTreeMap, BTreeSet};

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::mailbox::{Mailbox, Reader, Scan, ScanPlace};
use taskbus_core::bus::message::{Message, Sort};
use taskbus_core::bus::peek::{Floors, PeekAsk, peek};
use taskbus_core::bus::receive::{Ask, Facts, Received, receive};
use taskbus_core::bus::subscription::{FollowedTags, Pending, Source, Subscription};
use taskbus_core::bus::tag::{self, TagSet};
use taskbus_core::limits;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::Look;
use taskbus_core::time::Timestamp;

/// 72 hours, in milliseconds.
pub(crate) const IDLE_MS: i64 = 72 * 3_600_000;

#[derive(Clone)]
pub(crate) struct Bus {
    pub(crate) now: Timestamp,
    pub(crate) messages: Vec<Message>,
    pub(crate) buried: BTreeSet<u64>,
    pub(crate) channels: BTreeMap<ChannelName, u64>,
    pub(crate) rows: BTreeMap<Source, Subscription>,
    pub(crate) sets: Vec<FollowedTags>,
    pub(crate) notice: Option<String>,
    /// How often a verb was used.
    pub(crate) writes: usize,
    pub(crate) result_bytes: usize,
    /// The newest number, of whatever is left.
    pub(crate) latest: u64,
    pub(crate) batches: u64,
}

impl Bus {
    pub(crate) fn new(channels: &[&str]) -> Self {
        Self {
            now: Timestamp::from_millis(1_796_000_000_000),
            messages: Vec::new(),
            buried: BTreeSet::new(),
            channels: channels.iter().map(|text| (name(text), 0)).collect(),
            rows: BTreeMap::new(),
            sets: Vec::new(),
            notice: None,
            writes: 0,
            result_bytes: 64 * 1024,
            latest: 0,
            batches: 0,
        }
    }

    /// A bus with these channels, all of them subscribed to from their beginning.
    pub(crate) fn read(channels: &[&str]) -> Self {
        let mut bus = Self::new(channels);
        channels.iter().for_each(|channel| bus.subscribe(channel, 0));
        bus
    }

    pub(crate) fn subscribe(&mut self, channel: &str, cursor: u64) {
        self.follow(Source::Channel(name(channel)), cursor);
    }

    pub(crate) fn follow(&mut self, source: Source, cursor: u64) {
        let row = Subscription { who: zed(), source: source.clone(), cursor, last_activity: self.now, pending: None };
        self.rows.insert(source, row);
    }

    pub(crate) fn follow_tags(&mut self, patterns: &[&str]) {
        let since_seq = self.latest;
        if !self.rows.contains_key(&Source::Tags) {
            self.follow(Source::Tags, since_seq);
        }
        self.sets.push(FollowedTags { set: TagSet::new(patterns).unwrap(), since_seq });
    }

    pub(crate) fn send(&mut self, channel: &str, sender: &str) -> u64 {
        self.send_with(channel, sender, "text", &[])
    }

    pub(crate) fn send_with(&mut self, channel: &str, sender: &str, content: &str, tags: &[&str]) -> u64 {
        self.latest += 1;
        let seq = self.latest;
        self.messages.push(Message {
            seq,
            channel: name(channel),
            sender: Identity::new(sender).ok(),
            context: String::new(),
            created_at: self.now,
            sort: Sort::default(),
            subject: None,
            content: content.to_owned(),
            reply_to: None,
            metadata: None,
            memory: None,
            tags: tag::normalize(tags).unwrap(),
            matched_tags: Vec::new(),
        });
        seq
    }

    /// Nothing of the channel before this number survives.
    pub(crate) fn evict(&mut self, channel: &str, before: u64) {
        let channel = name(channel);
        self.messages.retain(|message| message.channel != channel || message.seq >= before);
        self.channels.insert(channel, before);
    }

    pub(crate) fn row(&self, channel: &str) -> &Subscription {
        &self.rows[&Source::Channel(name(channel))]
    }

    pub(crate) fn pending(&self, channel: &str) -> Option<(&str, u64)> {
        self.row(channel).pending.as_ref().map(|Pending { token, end }| (token.as_str(), *end))
    }

    pub(crate) fn receive(&mut self, call: Call<'_>) -> Received {
        self.batches += 1;
        let facts = Facts {
            now: self.now,
            caller: zed(),
            token: format!("batch{}", self.batches),
            count: call.count.unwrap_or(limits::RECEIVE_COUNT_DEFAULT),
            count_max: limits::RECEIVE_COUNT_MAX,
            result_bytes: self.result_bytes,
            idle_ms: IDLE_MS,
        };
        let channels = call.channels.iter().map(|text| name(text)).collect();
        let ask = Ask { ack: call.ack.map(str::to_owned), channels, include_own: call.include_own };
        receive(&ask, self, &facts).unwrap()
    }

    /// Receives without any wish.
    pub(crate) fn all(&mut self) -> Received {
        self.receive(Call::default())
    }

    pub(crate) fn ack(&mut self, batch: &Received) -> Received {
        let token = batch.batch.clone().unwrap();
        self.receive(Call { ack: Some(&token), ..Call::default() })
    }

    pub(crate) fn peek(&self, ask: &PeekAsk, floors: &Floors) -> Option<Vec<u64>> {
        let seen = peek(&zed(), ask, floors, limits::RECEIVE_COUNT_MAX, self).unwrap()?;
        Some(seen.into_iter().map(|seen| seen.message.seq).collect())
    }
}

/// A call of `receive`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call<'a> {
    pub(crate) ack: Option<&'a str>,
    pub(crate) count: Option<usize>,
    pub(crate) channels: &'a [&'a str],
    pub(crate) include_own: bool,
}

impl Reader for Bus {
    fn subscriptions(&self) -> Look<Vec<Subscription>> {
        Ok(self.rows.values().cloned().collect())
    }

    fn followed_tags(&self) -> Look<Vec<FollowedTags>> {
        Ok(self.sets.clone())
    }

    fn evicted_before(&self, channel: &ChannelName) -> Look<Option<u64>> {
        Ok(self.channels.get(channel).copied())
    }

    fn scan(&self, scan: &Scan<'_>) -> Look<Vec<Message>> {
        let in_place = |message: &&Message| match scan.place {
            ScanPlace::Channel(name) => message.channel == *name,
            ScanPlace::Tags { set, except } => {
                let plain = message.channel.implied_kind() == Some(ChannelKind::Ordinary);
                plain
                    && message.channel.owner().is_none()
                    && !except.contains(&message.channel)
                    && set.matches(&message.tags)
            }
        };
        let live = self.messages.iter().filter(|message| !self.buried.contains(&message.seq));
        let span = live.filter(|message| message.seq > scan.after && message.seq <= scan.until);
        let others = span.filter(|message| scan.not_from.is_none() || message.sender.as_ref() != scan.not_from);
        Ok(others.filter(in_place).take(scan.limit).cloned().collect())
    }

    fn notice(&self) -> Look<Option<String>> {
        Ok(self.notice.clone())
    }
}

impl Mailbox for Bus {
    fn put(&mut self, row: &Subscription) -> Look<()> {
        self.writes += 1;
        self.rows.insert(row.source.clone(), row.clone());
        Ok(())
    }

    fn end(&mut self, source: &Source) -> Look<()> {
        self.writes += 1;
        self.rows.remove(source);
        if *source == Source::Tags {
            self.sets.clear();
        }
        Ok(())
    }
}

pub(crate) fn zed() -> Identity {
    Identity::new("Zed").unwrap()
}

pub(crate) fn name(text: &str) -> ChannelName {
    ChannelName::new(text).unwrap()
}

/// The numbers of the messages in a result.
pub(crate) fn seqs(received: &Received) -> Vec<u64> {
    received.messages.iter().map(|message| message.seq).collect()
}
