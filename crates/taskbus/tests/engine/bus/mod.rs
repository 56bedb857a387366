//! Channels, messages and subscriptions, as the engine answers them. What is delivered is tested in the core; here is
//! who may ask, what is kept, and the waiting.

use std::time::Duration;

use taskbus::answer::bus::Sent;
use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::bus::message::{Content, Draft, Sort};
use taskbus::core::bus::receive::Received;
use taskbus::core::bus::rules::Start;
use taskbus::core::bus::tag::{self, TagSet};
use taskbus::core::name::Key;
use taskbus::core::neighbourhood::ListRules;
use taskbus::engine::{Error, Follow, ReceiveAsk};
use taskbus::store::bus::{self, NewMessage};
use taskbus::store::{Author, Store, write_with};

use crate::support::{Person, Place};

mod channels;
mod inboxes;
mod joining;
mod looking;
mod receiving;
mod sending;
mod tags;
mod waiting;

fn name(text: &str) -> ChannelName {
    ChannelName::new(text).unwrap()
}

fn letter(content: &str) -> Draft {
    Draft {
        content: Content::new(content).unwrap(),
        sort: Sort::default(),
        subject: None,
        reply_to: None,
        metadata: None,
        tags: Vec::new(),
    }
}

fn tagged(content: &str, tags: &[&str]) -> Draft {
    Draft { tags: tag::normalize(tags).unwrap(), ..letter(content) }
}

impl Person {
    fn post(&self, channel: &str, draft: &Draft, key: Option<&str>) -> Result<Sent, Error> {
        let key = key.map(|key| Key::new(key).unwrap());
        self.engine.send(&self.name, &name(channel), draft, key.as_ref())
    }

    fn say(&self, channel: &str, content: &str) -> u64 {
        self.post(channel, &letter(content), None).unwrap().seq
    }

    fn make(&self, channel: &str) {
        let kind = name(channel).implied_kind().or(Some(ChannelKind::Ordinary));
        self.engine.create_channel(&self.name, &name(channel), kind, ListRules::default()).unwrap();
    }

    fn follow(&self, channel: &str, start: Start) -> Result<(), Error> {
        self.engine.subscribe(&self.name, &Follow::Channel(name(channel)), start).map(drop)
    }

    fn unfollow(&self, channel: &str) -> Result<(), Error> {
        self.engine.unsubscribe(&self.name, &Follow::Channel(name(channel))).map(drop)
    }

    fn follow_tags(&self, patterns: &[&str]) {
        let set = TagSet::new(patterns).unwrap();
        self.engine.subscribe(&self.name, &Follow::Tags(set), Start::Now).unwrap();
    }

    fn unfollow_tags(&self, patterns: &[&str]) {
        let set = TagSet::new(patterns).unwrap();
        self.engine.unsubscribe(&self.name, &Follow::Tags(set)).unwrap();
    }

    fn receive(&self, ask: &ReceiveAsk) -> Result<Received, Error> {
        self.engine.receive(&self.name, ask, &|| false)
    }

    fn all(&self) -> Received {
        self.receive(&ReceiveAsk::default()).unwrap()
    }

    fn ack(&self, batch: &Received) -> Received {
        self.receive(&ReceiveAsk { ack: batch.batch.clone(), ..ReceiveAsk::default() }).unwrap()
    }
}

/// Removes a channel straight from the store.
fn drop_channel(store: &dyn Store, channel: &str) {
    write_with(store, None, |tx| Ok(tx.bus_mut().unwrap().delete_channel(&name(channel))?)).unwrap();
}

impl Place {
    /// Many short messages in one transaction, straight into the store.
    fn flood(&self, from: &Person, channel: &str, count: usize) {
        let (channel, at) = (name(channel), self.now());
        let put = write_with(&*self.store, None, |tx| {
            let bus = tx.bus_mut().unwrap();
            if bus.channel(&channel)?.is_none() {
                bus.create_channel(&channel, ChannelKind::Ordinary, at)?;
            }
            for _ in 0..count {
                bus.post(&NewMessage {
                    channel: &channel,
                    sender: Some(&from.name),
                    author: &Author::default(),
                    at,
                    sort: &Sort::default(),
                    subject: None,
                    content: "x",
                    reply_to: None,
                    metadata: None,
                    tags: &[],
                    place: bus::Place::Ordinary,
                })?;
            }
            Ok(())
        });
        put.unwrap();
    }
}

fn waiting(wait: Duration) -> ReceiveAsk {
    ReceiveAsk { wait, ..ReceiveAsk::default() }
}

fn contents(received: &Received) -> Vec<&str> {
    received.messages.iter().map(|message| message.content.as_str()).collect()
}

fn seqs(received: &Received) -> Vec<u64> {
    received.messages.iter().map(|message| message.seq).collect()
}
