//! The bus of a store that lies.

use taskbus::store::StoreError;
use taskbus::store::bus::{
    BusSnapshot, BusTx, ChannelRow, EmbeddingCounts, Found, Hit, MessageFilter, MessageQuery, NewMessage, NoticeKind,
    Source, SubscriptionRow, TagSetRow, Term,
};
use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::message::Message;
use taskbus_core::bus::tag::TagSet;
use taskbus_core::name::Identity;
use taskbus_core::time::Timestamp;

use crate::broken_store::{Liar, Lie};

/// Answers that are passed on, unless this lie is told: then the answer is another.
macro_rules! answers {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty $(, $lie:ident => $other:expr)?;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> Result<$out, StoreError> {
            $(if self.is(Lie::$lie) { return Ok($other); })?
            self.asked().$name($($arg),*)
        })*
    };
}

/// Verbs that are passed on, unless this lie is told: then nothing happens.
macro_rules! verbs {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty $(, $lie:ident)?;)*) => {
        $(fn $name(&mut self, $($arg: $type),*) -> Result<$out, StoreError> {
            $(if self.is(Lie::$lie) { return Ok(Default::default()); })?
            self.tell().bus_mut().unwrap().$name($($arg),*)
        })*
    };
}

impl Liar<'_> {
    fn asked(&self) -> &dyn BusSnapshot {
        self.ask().bus().unwrap()
    }
}

impl BusSnapshot for Liar<'_> {
    fn channels(&self) -> Result<Vec<ChannelRow>, StoreError> {
        let mut rows = self.asked().channels()?;
        rows.iter_mut().for_each(|row| row.empty &= !self.is(Lie::ChannelsAreNeverEmpty));
        Ok(rows)
    }

    fn channel(&self, name: &ChannelName) -> Result<Option<ChannelRow>, StoreError> {
        let mut row = self.asked().channel(name)?;
        row.iter_mut().for_each(|row| row.empty &= !self.is(Lie::ChannelsAreNeverEmpty));
        Ok(row)
    }

    fn messages(&self, query: &MessageQuery<'_>) -> Result<Vec<Message>, StoreError> {
        self.asked().messages(&self.bent(query))
    }

    fn count(&self, query: &MessageQuery<'_>) -> Result<usize, StoreError> {
        self.asked().count(&self.bent(query))
    }

    fn search(&self, terms: &[Term], filter: &MessageFilter<'_>, limit: usize) -> Result<Vec<Hit>, StoreError> {
        let limit = if self.is(Lie::FindsOneOnly) { 1 } else { limit };
        let everywhere = MessageFilter::default();
        self.asked().search(terms, if self.is(Lie::SearchesEverywhere) { &everywhere } else { filter }, limit)
    }

    fn vectors(
        &self,
        model: &str,
        filter: &MessageFilter<'_>,
        each: &mut dyn FnMut(Found, &[f32]),
    ) -> Result<(), StoreError> {
        let models = if self.is(Lie::VectorsOfEveryModel) { vec!["m", "other"] } else { vec![model] };
        models.into_iter().try_for_each(|model| self.asked().vectors(model, filter, each))
    }

    fn evictable(&self, before: Option<Timestamp>, limit: usize) -> Result<Vec<(u64, ChannelName)>, StoreError> {
        let mut oldest = self.asked().evictable(before, usize::MAX)?;
        if self.is(Lie::EvictsTheNewest) {
            oldest.reverse();
        }
        oldest.truncate(limit);
        Ok(oldest)
    }

    answers! {
        subscriptions(who: &Identity) -> Vec<SubscriptionRow>;
        subscribers(channel: &ChannelName) -> Vec<Identity>, NobodyIsSubscribed => Vec::new();
        tag_sets(who: &Identity) -> Vec<TagSetRow>;
        latest_seq() -> u64;
        message(seq: u64) -> Option<Message>;
        memory(id: u64) -> Option<Message>;
        revisions(id: u64, limit: usize) -> Vec<Message>;
        unembedded(model: &str, limit: usize) -> Vec<Message>;
        has_other_models(model: &str) -> bool;
        embedding_counts(model: &str) -> EmbeddingCounts;
        buried(before: Timestamp, limit: usize) -> Vec<u64>;
        unread_memories(before: Timestamp, limit: usize) -> Vec<u64>;
        notice(kind: NoticeKind) -> Option<String>;
        maintainer() -> Option<(String, Timestamp)>, ForgetsTheLease => None;
        used_bytes() -> u64;
        free_bytes() -> u64;
        has_ended_sessions(ended_before: Timestamp) -> bool;
    }
}

impl Liar<'_> {
    /// The query as the liar understands it.
    fn bent<'q>(&self, query: &MessageQuery<'q>) -> MessageQuery<'q> {
        let mut bent = *query;
        if self.is(Lie::MessagesOfEverybody) {
            bent.not_from = None;
        }
        if self.is(Lie::OnlyTheNewestMessages) && !bent.newest_first {
            bent.limit = bent.limit.min(3);
        }
        bent
    }
}

impl BusTx for Liar<'_> {
    verbs! {
        create_channel(name: &ChannelName, kind: ChannelKind, now: Timestamp) -> ();
        delete_channel(name: &ChannelName) -> ();
        set_evicted_before(name: &ChannelName, seq: u64) -> ();
        put_subscription(row: &SubscriptionRow) -> ();
        end_subscription(who: &Identity, source: &Source) -> ();
        put_tag_set(who: &Identity, row: &TagSetRow) -> ();
        end_tag_set(who: &Identity, set: &TagSet) -> ();
        post(message: &NewMessage<'_>) -> u64;
        bury(seq: u64, now: Timestamp) -> ();
        remove(seqs: &[u64]) -> ();
        touch_memories(ids: &[u64], at: Option<Timestamp>) -> (), MemoriesLiveForEver;
        put_vector(seq: u64, model: &str, vector: &[f32]) -> ();
        put_embedding_failure(seq: u64, model: &str, error: &str, at: Timestamp) -> ();
        keep_model(model: &str) -> usize;
        put_notice(kind: NoticeKind, text: Option<&str>, at: Timestamp) -> ();
        put_maintainer(who: &str, until: Timestamp) -> ();
        drop_sessions(ended_before: Timestamp, limit: usize) -> usize;
        shrink() -> ();
        reset() -> ();
    }
}
