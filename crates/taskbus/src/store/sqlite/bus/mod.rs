//! The bus of a SQLite store: the questions and verbs of the seam, each answered in the file of its subject.
//!
//! ```text
//!  channels   their rows and their counts        following  who is subscribed to what
//!  posts      one message: written, read, buried streams    many of them, in order
//!  memories   revisions, reads, embeddings       texts      the full-text index and its search
//!  upkeep     what the maintenance asks for      removal    channels, lists, everything
//!  check      the doctor's look
//! ```

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::message::Message;
use taskbus_core::bus::tag::TagSet;
use taskbus_core::name::Identity;
use taskbus_core::time::Timestamp;

use super::scope::Scope;
use crate::store::StoreError;
use crate::store::bus::{
    BusSnapshot, BusTx, ChannelRow, EmbeddingCounts, Found, Hit, MessageFilter, MessageQuery, NewMessage, NoticeKind,
    Source, SubscriptionRow, TagSetRow, Term,
};

pub(super) mod channels;
mod check;
pub(super) mod following;
pub(super) mod memories;
pub(super) mod posts;
pub(super) mod removal;
pub(super) mod streams;
pub(super) mod texts;
pub(super) mod upkeep;

/// Passes questions and verbs on to the functions that answer them, with their faults told.
macro_rules! answers {
    ($($question:ident($($name:ident: $kind:ty),*) -> $answer:ty = $inner:ident;)*) => {
        $(fn $question(&self, $($name: $kind),*) -> Result<$answer, StoreError> {
            self.told(self.$inner($($name),*))
        })*
    };
}

macro_rules! verbs {
    ($($verb:ident($($name:ident: $kind:ty),*) -> $answer:ty = $inner:ident;)*) => {
        $(fn $verb(&mut self, $($name: $kind),*) -> Result<$answer, StoreError> {
            self.told(self.$inner($($name),*))
        })*
    };
}

impl BusSnapshot for Scope<'_> {
    answers! {
        channels() -> Vec<ChannelRow> = channel_rows;
        channel(name: &ChannelName) -> Option<ChannelRow> = channel_row;
        subscriptions(who: &Identity) -> Vec<SubscriptionRow> = subscriptions_of;
        subscribers(channel: &ChannelName) -> Vec<Identity> = subscribers_of;
        tag_sets(who: &Identity) -> Vec<TagSetRow> = tag_sets_of;
        message(seq: u64) -> Option<Message> = delivered;
        messages(query: &MessageQuery<'_>) -> Vec<Message> = messages_for;
        count(query: &MessageQuery<'_>) -> usize = count_for;
        memory(id: u64) -> Option<Message> = live_memory;
        revisions(id: u64, limit: usize) -> Vec<Message> = kept_revisions;
        search(terms: &[Term], filter: &MessageFilter<'_>, limit: usize) -> Vec<Hit> = search_texts;
        vectors(model: &str, filter: &MessageFilter<'_>, each: &mut dyn FnMut(Found, &[f32])) -> () = each_vector;
        unembedded(model: &str, limit: usize) -> Vec<Message> = without_vector;
        has_other_models(model: &str) -> bool = any_other_model;
        embedding_counts(model: &str) -> EmbeddingCounts = count_embeddings;
        evictable(before: Option<Timestamp>, limit: usize) -> Vec<(u64, ChannelName)> = oldest_posts;
        buried(before: Timestamp, limit: usize) -> Vec<u64> = longest_buried;
        unread_memories(before: Timestamp, limit: usize) -> Vec<u64> = longest_unread;
        notice(kind: NoticeKind) -> Option<String> = notice_of;
        maintainer() -> Option<(String, Timestamp)> = maintained_by;
        used_bytes() -> u64 = bytes_in_use;
        free_bytes() -> u64 = bytes_to_give_back;
        has_ended_sessions(ended_before: Timestamp) -> bool = any_ended_session;
    }

    fn latest_seq(&self) -> Result<u64, StoreError> {
        Ok(self.seq.get())
    }
}

impl BusTx for Scope<'_> {
    verbs! {
        create_channel(name: &ChannelName, kind: ChannelKind, now: Timestamp) -> () = make_channel;
        delete_channel(name: &ChannelName) -> () = remove_channel;
        set_evicted_before(name: &ChannelName, seq: u64) -> () = note_eviction;
        put_subscription(row: &SubscriptionRow) -> () = keep_subscription;
        end_subscription(who: &Identity, source: &Source) -> () = drop_subscription;
        put_tag_set(who: &Identity, row: &TagSetRow) -> () = keep_tag_set;
        end_tag_set(who: &Identity, set: &TagSet) -> () = drop_tag_set;
        post(message: &NewMessage<'_>) -> u64 = write_post;
        bury(seq: u64, now: Timestamp) -> () = bury_post;
        remove(seqs: &[u64]) -> () = remove_posts;
        touch_memories(ids: &[u64], at: Option<Timestamp>) -> () = note_reads;
        put_vector(seq: u64, model: &str, vector: &[f32]) -> () = keep_vector;
        put_embedding_failure(seq: u64, model: &str, error: &str, at: Timestamp) -> () = keep_failure;
        keep_model(model: &str) -> usize = drop_other_models;
        put_notice(kind: NoticeKind, text: Option<&str>, at: Timestamp) -> () = keep_notice;
        put_maintainer(who: &str, until: Timestamp) -> () = keep_maintainer;
        drop_sessions(ended_before: Timestamp, limit: usize) -> usize = drop_ended;
        shrink() -> () = give_back;
        reset() -> () = remove_everything;
    }
}
