//! The bus of a memory store: plain maps, read from one end to the other. It counts where the other stores keep count,
//! and so is what they are compared with.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::message::{MemoryRef, Message};
use taskbus_core::document;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::text::Note;
use taskbus_core::time::Timestamp;

use super::desk::Desk;
use super::{List, State};
use crate::store::bus::{
    BusSnapshot, ChannelRow, EmbeddingCounts, Found, Hit, MessageFilter, MessageQuery, NoticeKind, Source,
    SubscriptionRow, TagSetRow, Term,
};
use crate::store::look::Facts;
use crate::store::revision::{Revision, Searched};
use crate::store::{RevisionRow, StoreError};

/// What one message takes beside its text, roughly.
const BYTES_A_MESSAGE: u64 = 256;

/// Channels, messages, and what belongs to them.
#[derive(Default)]
pub(super) struct Bus {
    pub(super) channels: BTreeMap<ChannelName, Channel>,
    pub(super) messages: BTreeMap<u64, Kept>,
    pub(super) subscriptions: BTreeMap<(Identity, Source), SubscriptionRow>,
    pub(super) tag_sets: BTreeMap<(Identity, String), TagSetRow>,
    /// When each memory was last read.
    pub(super) reads: BTreeMap<u64, Timestamp>,
    /// The model, and the vector.
    pub(super) vectors: BTreeMap<u64, (String, Vec<f32>)>,
    /// The model, and why there is no vector.
    pub(super) failures: BTreeMap<u64, (String, String)>,
    pub(super) notices: BTreeMap<NoticeKind, String>,
    pub(super) maintainer: BTreeMap<(), (String, Timestamp)>,
}

/// A channel that is no task list.
#[derive(Clone)]
pub(super) struct Channel {
    pub(super) kind: ChannelKind,
    pub(super) created_at: Timestamp,
    pub(super) latest_seq: u64,
    pub(super) last_activity: Option<Timestamp>,
    pub(super) evicted_before: u64,
}

/// A message of no task.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) message: Message,
    pub(super) standing: Standing,
}

/// What has become of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is what it was.
    Live,
    /// It only says that a memory was deleted: delivered, and never more than that.
    Note,
    /// Superseded or deleted at this time.
    Buried(Timestamp),
}

impl Kept {
    fn is_delivered(&self) -> bool {
        matches!(self.standing, Standing::Live | Standing::Note)
    }

    pub(super) fn is_live(&self) -> bool {
        self.standing == Standing::Live
    }

    pub(super) fn is_live_memory(&self) -> bool {
        self.is_live() && self.message.memory.is_some()
    }

    fn buried_at(&self) -> Option<Timestamp> {
        match self.standing {
            Standing::Live | Standing::Note => None,
            Standing::Buried(at) => Some(at),
        }
    }

    /// Whether it may be evicted.
    fn ages(&self) -> bool {
        self.message.memory.is_none() || self.standing == Standing::Note
    }
}

impl Bus {
    fn row(&self, name: &ChannelName, channel: &Channel) -> ChannelRow {
        let own = || self.messages.values().filter(|kept| kept.message.channel == *name);
        ChannelRow {
            name: name.clone(),
            kind: channel.kind,
            created_at: channel.created_at,
            live: own().filter(|kept| kept.is_live()).count() as u64,
            empty: own().next().is_none(),
            latest_seq: channel.latest_seq,
            last_activity: channel.last_activity,
            evicted_before: channel.evicted_before,
        }
    }

    /// The live revision of a memory, the newest if there were several.
    pub(super) fn live_memory(&self, id: u64) -> Option<&Message> {
        let mut live = self.messages.values().rev().filter(|kept| kept.is_live_memory()).map(|kept| &kept.message);
        live.find(|message| message.memory.is_some_and(|memory| memory.id == id))
    }

    /// Whether a message of this channel is told to who follows tags.
    fn is_ordinary(&self, name: &ChannelName) -> bool {
        name.owner().is_none() && self.channels.get(name).is_some_and(|channel| channel.kind == ChannelKind::Ordinary)
    }
}

impl State {
    fn list_row(&self, name: &ListName, list: &List) -> ChannelRow {
        ChannelRow {
            name: ChannelName::from(name),
            kind: ChannelKind::Memory,
            created_at: list.created_at,
            live: list.live,
            empty: list.revisions.is_empty(),
            latest_seq: list.latest_seq,
            last_activity: self.log.get(&list.latest_seq).map(|(_, row)| row.task.updated.at),
            evicted_before: 0,
        }
    }

    /// Every message that is delivered, and every revision, in order, behind a number.
    fn delivered(&self, list: Option<&ListName>, after: u64) -> Box<dyn DoubleEndedIterator<Item = Message> + '_> {
        let behind = (Excluded(after), Unbounded);
        let Some(list) = list.cloned() else {
            let kept = self.bus.messages.range(behind).map(|(_, kept)| kept);
            return Box::new(kept.filter(|kept| kept.is_delivered()).map(|kept| kept.message.clone()));
        };
        let own = self.log.range(behind).map(|(_, entry)| entry).filter(move |(home, _)| *home == list);
        Box::new(own.map(|(home, row)| message_of(home, row)))
    }

    /// The messages that match, without a limit.
    fn matching(&self, query: &MessageQuery<'_>) -> Vec<Message> {
        let list = query.channel.and_then(ChannelName::list);
        let fits = |message: &Message| {
            let here = match query.channel {
                Some(channel) => message.channel == *channel,
                None => self.bus.is_ordinary(&message.channel),
            };
            here && query.before.is_none_or(|before| message.seq < before) && Facts::from(message).pass(query)
        };
        let mut found: Vec<Message> = self.delivered(list.as_ref(), query.after).filter(fits).collect();
        if query.newest_first {
            found.reverse();
        }
        found
    }

    /// The live revision of a task, as a message.
    fn live_task(&self, id: u64) -> Option<Message> {
        let id = TaskId::number(id).ok()?;
        let list = self.lists.get(self.homes.get(&id)?)?;
        list.board.get(&id)?;
        let (home, row) = self.log.get(list.revisions.get(&id)?.last()?)?;
        Some(message_of(home, row))
    }

    /// Every text that a search may find: messages and memories that are live, and the live revisions of live tasks;
    /// each with what is looked at in it.
    pub(super) fn searchable(&self) -> Vec<(Message, String, String)> {
        let live = self.bus.messages.values().filter(|kept| kept.is_live()).map(|kept| {
            let subject = kept.message.subject.as_ref().map_or("", |subject| subject.as_str());
            (kept.message.clone(), subject.to_owned(), kept.message.content.clone())
        });
        let tasks = self.lists.values().flat_map(|list| list.board.tasks().map(move |task| (list, task)));
        let tasks = tasks.filter_map(|(list, task)| {
            let mut revisions = list.revisions.get(&task.id)?.iter().filter_map(|seq| self.log.get(seq));
            let notes = revisions.clone().filter_map(|(_, row)| row.note.as_ref().map(Note::as_str));
            let searched = Searched::from(task);
            let text = searched.rest(notes);
            let (home, row) = revisions.next_back()?;
            Some((message_of(home, row), searched.subject, text))
        });
        live.chain(tasks).collect()
    }
}

fn message_of(list: &ListName, row: &RevisionRow) -> Message {
    let id = row.task.id.as_number().unwrap_or(0);
    Revision {
        list,
        seq: row.seq,
        place: MemoryRef { id, revision: row.task.revision },
        kind: row.kind,
        sender: row.task.updated.by.clone(),
        context: row.context.clone(),
        at: row.task.updated.at,
        document: document::encode(&row.task),
    }
    .into_message()
}

/// A message as it is named by what finds it.
pub(super) fn found(message: &Message) -> Found {
    Found { seq: message.seq, id: message.memory.map_or(message.seq, |memory| memory.id) }
}

impl BusSnapshot for Desk<'_, '_> {
    fn channels(&self) -> Result<Vec<ChannelRow>, StoreError> {
        let state = self.state();
        let lists = state.lists.iter().map(|(name, list)| state.list_row(name, list));
        let others = state.bus.channels.iter().map(|(name, channel)| state.bus.row(name, channel));
        let mut rows: Vec<ChannelRow> = lists.chain(others).collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(rows)
    }

    fn channel(&self, name: &ChannelName) -> Result<Option<ChannelRow>, StoreError> {
        let state = self.state();
        if let Some(name) = name.list() {
            return Ok(state.lists.get(&name).map(|list| state.list_row(&name, list)));
        }
        Ok(state.bus.channels.get(name).map(|channel| state.bus.row(name, channel)))
    }

    fn subscriptions(&self, who: &Identity) -> Result<Vec<SubscriptionRow>, StoreError> {
        Ok(self.state().bus.subscriptions.values().filter(|row| row.who == *who).cloned().collect())
    }

    fn subscribers(&self, channel: &ChannelName) -> Result<Vec<Identity>, StoreError> {
        let rows = self.state().bus.subscriptions.values();
        let own = rows.filter(|row| matches!(&row.source, Source::Channel(name) if name == channel));
        Ok(own.map(|row| row.who.clone()).collect())
    }

    fn tag_sets(&self, who: &Identity) -> Result<Vec<TagSetRow>, StoreError> {
        let sets = self.state().bus.tag_sets.iter();
        Ok(sets.filter(|((owner, _), _)| owner == who).map(|(_, row)| row.clone()).collect())
    }

    fn latest_seq(&self) -> Result<u64, StoreError> {
        Ok(self.state().seq)
    }

    fn message(&self, seq: u64) -> Result<Option<Message>, StoreError> {
        let state = self.state();
        let kept = state.bus.messages.get(&seq).filter(|kept| kept.is_delivered());
        let revision = || state.log.get(&seq).map(|(list, row)| message_of(list, row));
        Ok(kept.map(|kept| kept.message.clone()).or_else(revision))
    }

    fn messages(&self, query: &MessageQuery<'_>) -> Result<Vec<Message>, StoreError> {
        let mut found = self.state().matching(query);
        found.truncate(query.limit);
        Ok(found)
    }

    fn count(&self, query: &MessageQuery<'_>) -> Result<usize, StoreError> {
        Ok(self.state().matching(query).len().min(query.limit))
    }

    fn memory(&self, id: u64) -> Result<Option<Message>, StoreError> {
        Ok(self.state().bus.live_memory(id).cloned().or_else(|| self.state().live_task(id)))
    }

    fn revisions(&self, id: u64, limit: usize) -> Result<Vec<Message>, StoreError> {
        let state = self.state();
        let is_one =
            |kept: &&Kept| kept.standing != Standing::Note && kept.message.memory.is_some_and(|memory| memory.id == id);
        let of_memory = state.bus.messages.values().filter(is_one).map(|kept| kept.message.clone());
        let of_task = state.log.values().filter(|(_, row)| row.task.id.as_number() == Some(id));
        let mut found: Vec<Message> = of_memory.chain(of_task.map(|(list, row)| message_of(list, row))).collect();
        found.reverse();
        found.truncate(limit);
        Ok(found)
    }

    fn search(&self, terms: &[Term], filter: &MessageFilter<'_>, limit: usize) -> Result<Vec<Hit>, StoreError> {
        Ok(super::search::search(&self.state().searchable(), terms, filter, limit))
    }

    fn vectors(
        &self,
        model: &str,
        filter: &MessageFilter<'_>,
        each: &mut dyn FnMut(Found, &[f32]),
    ) -> Result<(), StoreError> {
        let bus = &self.state().bus;
        for (seq, (_, vector)) in bus.vectors.iter().filter(|(_, (of, _))| of == model) {
            if let Some(kept) = bus.messages.get(seq).filter(|kept| Facts::from(&kept.message).are_looked_at(filter)) {
                each(found(&kept.message), vector);
            }
        }
        Ok(())
    }

    fn unembedded(&self, model: &str, limit: usize) -> Result<Vec<Message>, StoreError> {
        let bus = &self.state().bus;
        let done = |seq: &u64| {
            bus.vectors.get(seq).is_some_and(|(of, _)| of == model)
                || bus.failures.get(seq).is_some_and(|(of, _)| of == model)
        };
        let missing = bus.messages.iter().filter(|(seq, kept)| kept.is_live_memory() && !done(seq));
        Ok(missing.take(limit).map(|(_, kept)| kept.message.clone()).collect())
    }

    fn has_other_models(&self, model: &str) -> Result<bool, StoreError> {
        let bus = &self.state().bus;
        Ok(bus.vectors.values().any(|(of, _)| of != model) || bus.failures.values().any(|(of, _)| of != model))
    }

    fn embedding_counts(&self, model: &str) -> Result<EmbeddingCounts, StoreError> {
        let bus = &self.state().bus;
        let mut counts = EmbeddingCounts::default();
        for (seq, _) in bus.messages.iter().filter(|(_, kept)| kept.is_live_memory()) {
            if bus.vectors.get(seq).is_some_and(|(of, _)| of == model) {
                counts.embedded += 1;
            } else if bus.failures.get(seq).is_some_and(|(of, _)| of == model) {
                counts.rejected += 1;
            } else {
                counts.backlog += 1;
            }
        }
        Ok(counts)
    }

    fn evictable(&self, before: Option<Timestamp>, limit: usize) -> Result<Vec<(u64, ChannelName)>, StoreError> {
        let ages = self.state().bus.messages.values().filter(|kept| kept.ages()).map(|kept| &kept.message);
        let old = |message: &&Message| before.is_none_or(|before| message.created_at < before);
        let mut found: Vec<&Message> = ages.filter(old).collect();
        found.sort_by_key(|message| (message.created_at, message.seq));
        Ok(found.into_iter().take(limit).map(|message| (message.seq, message.channel.clone())).collect())
    }

    fn buried(&self, before: Timestamp, limit: usize) -> Result<Vec<u64>, StoreError> {
        let buried = self.state().bus.messages.iter().filter_map(|(seq, kept)| Some((kept.buried_at()?, *seq)));
        Ok(oldest(buried, before, limit))
    }

    fn unread_memories(&self, before: Timestamp, limit: usize) -> Result<Vec<u64>, StoreError> {
        let bus = &self.state().bus;
        let live = bus.reads.iter().filter(|(id, _)| bus.live_memory(**id).is_some());
        Ok(oldest(live.map(|(id, at)| (*at, *id)), before, limit))
    }

    fn notice(&self, kind: NoticeKind) -> Result<Option<String>, StoreError> {
        Ok(self.state().bus.notices.get(&kind).cloned())
    }

    fn maintainer(&self) -> Result<Option<(String, Timestamp)>, StoreError> {
        Ok(self.state().bus.maintainer.get(&()).cloned())
    }

    /// A guess.
    fn used_bytes(&self) -> Result<u64, StoreError> {
        let state = self.state();
        let text: usize = state.bus.messages.values().map(|kept| kept.message.content.len()).sum();
        let vectors: usize = state.bus.vectors.values().map(|(_, vector)| size_of_val(vector.as_slice())).sum();
        let messages = (state.bus.messages.len() + state.log.len()) as u64;
        Ok((text + vectors) as u64 + BYTES_A_MESSAGE * messages)
    }

    fn free_bytes(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn has_ended_sessions(&self, ended_before: Timestamp) -> Result<bool, StoreError> {
        Ok(self.state().sessions.values().any(|row| row.alive_until < ended_before))
    }
}

/// The numbers whose time is before another, the longest ago first.
fn oldest(all: impl Iterator<Item = (Timestamp, u64)>, before: Timestamp, limit: usize) -> Vec<u64> {
    let mut found: Vec<(Timestamp, u64)> = all.filter(|(at, _)| *at < before).collect();
    found.sort_unstable();
    found.into_iter().take(limit).map(|(_, number)| number).collect()
}
