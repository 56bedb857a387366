//! The verbs of the bus of a memory store. Every one of them changes entries of maps by [`Work::keep`], which notes how
//! to take the change back.

use std::collections::BTreeMap;

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::message::{MemoryRef, Message};
use taskbus_core::bus::tag::TagSet;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::time::Timestamp;

use super::State;
use super::bus::{Bus, Channel, Kept, Standing};
use super::desk::{Desk, Undo, Work};
use crate::store::StoreError;
use crate::store::bus::{BusTx, NewMessage, NoticeKind, Place, Source, SubscriptionRow, TagSetRow};

/// One of the maps of the bus.
type Table<K, V> = fn(&mut Bus) -> &mut BTreeMap<K, V>;

impl Work<'_> {
    /// Puts an entry into a map, or takes it out.
    fn keep<K: Ord + Clone + 'static, V: 'static>(&mut self, table: Table<K, V>, key: K, value: Option<V>) {
        let put = |map: &mut BTreeMap<K, V>, key: K, value: Option<V>| match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
        let comes = value.is_some();
        let old = put(table(&mut self.state.bus), key.clone(), value);
        if comes || old.is_some() {
            self.undo.push(Undo::Bus(Box::new(move |bus| drop(put(table(bus), key, old)))));
        }
    }

    /// Changes a channel that is no task list; nothing happens if it is not there.
    fn change_channel(&mut self, name: &ChannelName, change: impl FnOnce(&mut Channel)) {
        if let Some(mut channel) = self.state.bus.channels.get(name).cloned() {
            change(&mut channel);
            self.keep(|bus| &mut bus.channels, name.clone(), Some(channel));
        }
    }

    /// Whatever is known of a message beside itself.
    fn forget_vector(&mut self, seq: u64) {
        self.keep(|bus| &mut bus.vectors, seq, None);
        self.keep(|bus| &mut bus.failures, seq, None);
    }

    fn remove_message(&mut self, seq: u64) {
        self.forget_vector(seq);
        self.keep(|bus| &mut bus.messages, seq, None);
    }

    fn remove_channel(&mut self, name: &ChannelName) {
        let own = self.state.bus.messages.values().map(|kept| &kept.message);
        let own: Vec<(u64, Option<MemoryRef>)> =
            own.filter(|message| message.channel == *name).map(|message| (message.seq, message.memory)).collect();
        for (seq, memory) in own {
            self.remove_message(seq);
            if let Some(memory) = memory {
                self.keep(|bus| &mut bus.reads, memory.id, None);
            }
        }
        self.keep(|bus| &mut bus.channels, name.clone(), None);
    }

    fn remove_list(&mut self, name: &ListName) {
        let state = &mut *self.state;
        let Some(list) = state.lists.remove(name) else { return };
        let seqs = list.revisions.values().flatten();
        let log = seqs.filter_map(|seq| state.log.remove(seq)).map(|(_, row)| row).collect();
        for id in list.revisions.keys() {
            state.homes.remove(id);
        }
        self.undo.push(Undo::ListGone(name.clone(), Box::new(list), log));
    }

    fn is_live(&self, seq: u64) -> bool {
        self.state.bus.messages.get(&seq).is_some_and(Kept::is_live)
    }

    fn is_live_memory(&self, seq: u64) -> bool {
        self.state.bus.messages.get(&seq).is_some_and(Kept::is_live_memory)
    }
}

/// The message, once its number is known.
fn message_of(new: &NewMessage<'_>, seq: u64) -> Message {
    Message {
        seq,
        channel: new.channel.clone(),
        sender: new.sender.cloned(),
        context: new.author.context.clone(),
        created_at: new.at,
        sort: new.sort.clone(),
        subject: new.subject.cloned(),
        content: new.content.to_owned(),
        reply_to: new.reply_to,
        metadata: new.metadata.cloned(),
        memory: new.place.memory(seq),
        tags: new.tags.to_vec(),
        matched_tags: Vec::new(),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("BUG: wrote to the channel {0}, which is not there or is a task list")]
struct NoChannel(ChannelName);

fn no_channel(name: &ChannelName) -> StoreError {
    StoreError::Failed { store: "memory".to_owned(), source: Box::new(NoChannel(name.clone())) }
}

impl BusTx for Desk<'_, '_> {
    fn create_channel(&mut self, name: &ChannelName, kind: ChannelKind, now: Timestamp) -> Result<(), StoreError> {
        if name.list().is_some() {
            return Err(no_channel(name));
        }
        if !self.state().bus.channels.contains_key(name) {
            let channel = Channel { kind, created_at: now, latest_seq: 0, last_activity: None, evicted_before: 0 };
            self.work.keep(|bus| &mut bus.channels, name.clone(), Some(channel));
        }
        Ok(())
    }

    fn delete_channel(&mut self, name: &ChannelName) -> Result<(), StoreError> {
        match name.list() {
            Some(list) => self.work.remove_list(&list),
            None => self.work.remove_channel(name),
        }
        let source = Source::Channel(name.clone());
        let keys = self.state().bus.subscriptions.keys().filter(|(_, of)| *of == source);
        let keys: Vec<(Identity, Source)> = keys.cloned().collect();
        for key in keys {
            self.work.keep(|bus| &mut bus.subscriptions, key, None);
        }
        Ok(())
    }

    fn set_evicted_before(&mut self, name: &ChannelName, seq: u64) -> Result<(), StoreError> {
        self.work.change_channel(name, |channel| channel.evicted_before = seq);
        Ok(())
    }

    fn put_subscription(&mut self, row: &SubscriptionRow) -> Result<(), StoreError> {
        let key = (row.who.clone(), row.source.clone());
        self.work.keep(|bus| &mut bus.subscriptions, key, Some(row.clone()));
        Ok(())
    }

    fn end_subscription(&mut self, who: &Identity, source: &Source) -> Result<(), StoreError> {
        self.work.keep(|bus| &mut bus.subscriptions, (who.clone(), source.clone()), None);
        Ok(())
    }

    fn put_tag_set(&mut self, who: &Identity, row: &TagSetRow) -> Result<(), StoreError> {
        self.work.keep(|bus| &mut bus.tag_sets, (who.clone(), row.set.key()), Some(row.clone()));
        Ok(())
    }

    fn end_tag_set(&mut self, who: &Identity, set: &TagSet) -> Result<(), StoreError> {
        self.work.keep(|bus| &mut bus.tag_sets, (who.clone(), set.key()), None);
        Ok(())
    }

    fn post(&mut self, message: &NewMessage<'_>) -> Result<u64, StoreError> {
        if !self.state().bus.channels.contains_key(message.channel) {
            return Err(no_channel(message.channel));
        }
        let seq = self.work.next_seq();
        let standing = if matches!(message.place, Place::Deletion(_)) { Standing::Note } else { Standing::Live };
        let kept = Kept { message: message_of(message, seq), standing };
        self.work.keep(|bus| &mut bus.messages, seq, Some(kept));
        self.work.change_channel(message.channel, |channel| {
            (channel.latest_seq, channel.last_activity) = (seq, Some(message.at));
        });
        Ok(seq)
    }

    fn bury(&mut self, seq: u64, now: Timestamp) -> Result<(), StoreError> {
        if !self.work.is_live(seq) {
            return Ok(());
        }
        self.work.forget_vector(seq);
        if let Some(kept) = self.state().bus.messages.get(&seq).cloned() {
            let name = kept.message.channel.clone();
            let kept = Kept { standing: Standing::Buried(now), ..kept };
            self.work.keep(|bus| &mut bus.messages, seq, Some(kept));
            self.work.change_channel(&name, |channel| channel.last_activity = Some(now));
        }
        Ok(())
    }

    fn remove(&mut self, seqs: &[u64]) -> Result<(), StoreError> {
        seqs.iter().for_each(|seq| self.work.remove_message(*seq));
        Ok(())
    }

    fn touch_memories(&mut self, ids: &[u64], at: Option<Timestamp>) -> Result<(), StoreError> {
        for id in ids {
            if at.is_none() || self.state().bus.live_memory(*id).is_some() {
                self.work.keep(|bus| &mut bus.reads, *id, at);
            }
        }
        Ok(())
    }

    fn put_vector(&mut self, seq: u64, model: &str, vector: &[f32]) -> Result<(), StoreError> {
        if self.work.is_live_memory(seq) {
            self.work.forget_vector(seq);
            self.work.keep(|bus| &mut bus.vectors, seq, Some((model.to_owned(), vector.to_vec())));
        }
        Ok(())
    }

    fn put_embedding_failure(&mut self, seq: u64, model: &str, error: &str, _: Timestamp) -> Result<(), StoreError> {
        if self.work.is_live_memory(seq) {
            self.work.forget_vector(seq);
            self.work.keep(|bus| &mut bus.failures, seq, Some((model.to_owned(), error.to_owned())));
        }
        Ok(())
    }

    fn keep_model(&mut self, model: &str) -> Result<usize, StoreError> {
        let bus = &self.state().bus;
        let vectors = bus.vectors.iter().filter(|(_, (of, _))| of != model).map(|(seq, _)| *seq);
        let failures = bus.failures.iter().filter(|(_, (of, _))| of != model).map(|(seq, _)| *seq);
        let others: Vec<u64> = vectors.chain(failures).collect();
        others.iter().for_each(|seq| self.work.forget_vector(*seq));
        Ok(others.len())
    }

    fn put_notice(&mut self, kind: NoticeKind, text: Option<&str>, _: Timestamp) -> Result<(), StoreError> {
        self.work.keep(|bus| &mut bus.notices, kind, text.map(str::to_owned));
        Ok(())
    }

    fn put_maintainer(&mut self, who: &str, until: Timestamp) -> Result<(), StoreError> {
        self.work.keep(|bus| &mut bus.maintainer, (), Some((who.to_owned(), until)));
        Ok(())
    }

    fn drop_sessions(&mut self, ended_before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let ended = self.state().sessions.values().filter(|row| row.alive_until < ended_before);
        let mut ended: Vec<_> = ended.map(|row| (row.alive_until, row.name.clone())).collect();
        ended.sort();
        ended.truncate(limit);
        for (_, name) in &ended {
            let old = self.work.state.sessions.remove(name);
            self.work.undo.push(Undo::Session(name.clone(), old));
        }
        Ok(ended.len())
    }

    fn shrink(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn reset(&mut self) -> Result<(), StoreError> {
        let state = &mut *self.work.state;
        let empty = State { seq: state.seq, version: state.version, ..State::default() };
        self.work.undo.push(Undo::All(Box::new(std::mem::replace(state, empty))));
        Ok(())
    }
}
