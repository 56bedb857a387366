//! What the checks of the bus share: a store that has one, two channels in it, and messages to write.

use std::sync::Arc;

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::message::{Headline, MemoryRef, Message, Sort};
use taskbus_core::bus::query::Query;
use taskbus_core::bus::tag::{self, TagPattern};
use taskbus_core::name::{Identity, Label};
use taskbus_core::time::Timestamp;

use super::super::place::StorePlace;
use super::super::suite::Verdict;
use crate::store::bus::{BusSnapshot, BusTx, Found, MessageFilter, MessageQuery, NewMessage, Place};
use crate::store::{Author, Store, StoreError, read_with, write_with};

/// The store has no channels and messages.
pub(super) const NO_BUS: Verdict =
    Verdict::NotApplicable("a bus: channels, messages and memories beside its lists (Store::has_bus)");

/// A bus, written to through one handle and read through another, as by two processes.
pub(super) struct Bus {
    pub(super) store: Arc<dyn Store>,
    pub(super) other: Arc<dyn Store>,
}

/// A message to be written.
#[derive(Clone)]
pub(super) struct Letter {
    pub(super) channel: ChannelName,
    pub(super) sender: Option<Identity>,
    pub(super) at: Timestamp,
    pub(super) subject: Option<Headline>,
    pub(super) content: String,
    pub(super) reply_to: Option<u64>,
    pub(super) tags: Vec<Label>,
    pub(super) place: Place,
}

impl Letter {
    /// From nobody, at the time 1.
    pub(super) fn to(channel: &ChannelName, content: &str) -> Self {
        let kind = channel.implied_kind();
        Self {
            channel: channel.clone(),
            sender: None,
            at: at(1),
            subject: None,
            content: content.to_owned(),
            reply_to: None,
            tags: Vec::new(),
            place: if kind == Some(ChannelKind::Memory) { Place::NewMemory } else { Place::Ordinary },
        }
    }

    pub(super) fn tagged(self, tags: &[&str]) -> Self {
        Self { tags: tag::normalize(tags).expect("tags of the suite are valid"), ..self }
    }

    pub(super) fn from(self, sender: &Identity) -> Self {
        Self { sender: Some(sender.clone()), ..self }
    }

    pub(super) fn sent_at(self, millis: i64) -> Self {
        Self { at: at(millis), ..self }
    }

    pub(super) fn send(&self, bus: &mut dyn BusTx) -> Result<u64, StoreError> {
        bus.post(&NewMessage {
            channel: &self.channel,
            sender: self.sender.as_ref(),
            author: &Author::default(),
            at: self.at,
            sort: &Sort::default(),
            subject: self.subject.as_ref(),
            content: &self.content,
            reply_to: self.reply_to,
            metadata: None,
            tags: &self.tags,
            place: self.place,
        })
    }
}

impl Bus {
    /// The bus of a place, if its store has one.
    pub(super) fn at(place: &dyn StorePlace) -> Option<Self> {
        let bus = Self { store: place.open(), other: place.open() };
        if !bus.store.has_bus() {
            return None;
        }
        bus.write(|tx| {
            for (name, kind) in ChannelName::defaults() {
                tx.create_channel(&name, kind, at(1))?;
            }
            Ok(())
        });
        Some(bus)
    }

    #[track_caller]
    pub(super) fn read<T>(&self, mut f: impl FnMut(&dyn BusSnapshot) -> Result<T, StoreError>) -> T {
        let read =
            read_with(&*self.other, None, |snapshot| f(snapshot.bus().expect("a store with a bus hands it out")));
        read.expect("the bus can be read")
    }

    #[track_caller]
    pub(super) fn write<T>(&self, mut f: impl FnMut(&mut dyn BusTx) -> Result<T, StoreError>) -> T {
        let write = write_with(&*self.store, None, |tx| Ok(f(tx.bus_mut().expect("a store with a bus hands it out"))?));
        write.expect("the bus can be written to")
    }

    #[track_caller]
    pub(super) fn post(&self, letter: &Letter) -> u64 {
        self.write(|tx| letter.send(tx))
    }

    /// Replaces the live revision of a memory.
    #[track_caller]
    pub(super) fn revise(&self, old: u64, memory: MemoryRef, content: &str) -> u64 {
        let place = Place::Revision(memory);
        self.write(|tx| {
            tx.bury(old, at(2))?;
            Letter { place, ..Letter::to(&ChannelName::memory(), content) }.send(tx)
        })
    }

    #[track_caller]
    pub(super) fn messages(&self, query: &MessageQuery<'_>) -> Vec<Message> {
        let found = self.read(|bus| bus.messages(query));
        let count = self.read(|bus| bus.count(query));
        assert_eq!(count, found.len(), "as many are counted as are there");
        found
    }

    #[track_caller]
    pub(super) fn seqs(&self, query: &MessageQuery<'_>) -> Vec<u64> {
        self.messages(query).into_iter().map(|message| message.seq).collect()
    }

    /// What a search finds, the best first.
    #[track_caller]
    pub(super) fn search(&self, text: &str, filter: &MessageFilter<'_>) -> Vec<Found> {
        self.store.index_texts().expect("texts can be indexed");
        let query = Query::parse(text).expect("a query of the suite is valid");
        self.read(|bus| bus.search(&query.terms, filter, 100)).into_iter().map(|hit| hit.found).collect()
    }
}

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(super) fn channel(name: &str) -> ChannelName {
    ChannelName::new(name).expect("a channel of the suite is valid")
}

pub(super) fn who(name: &str) -> Identity {
    Identity::new(name).expect("a name of the suite is valid")
}

pub(super) fn patterns(texts: &[&str]) -> Vec<TagPattern> {
    tag::normalize_patterns(texts).expect("patterns of the suite are valid")
}
