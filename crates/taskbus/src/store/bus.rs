//! The second part of the seam: channels, subscriptions, messages, memories, and what keeps them small. Only stores
//! that say so by [`Store::has_bus`](super::Store::has_bus) have it; it is reached through
//! [`Snapshot::bus`](super::Snapshot::bus) and [`Tx::bus_mut`](super::Tx::bus_mut), inside the same transaction.
//!
//! # Contract
//! - A store answers and writes rows. What is delivered, what is evicted and what a caller may read is decided by the
//!   core; nothing here knows of it.
//! - A message of a task list is a revision of a task: [`BusSnapshot::messages`] answers it from what
//!   [`Tx::append`](super::Tx::append) wrote, every revision of it, with the task as JSON for its content; a deletion
//!   is of type `deleted` and has no content.
//! - On every other channel a message is live until it is [buried](BusTx::bury); only live ones are answered, unless
//!   the question says otherwise.
//! - One order for everything: the numbers of messages and of task revisions are one sequence, and it never runs back,
//!   whatever is removed.

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
pub use taskbus_core::bus::fusion::{Found, Hit};
use taskbus_core::bus::message::{Headline, MemoryRef, Message, Metadata, Sort};
pub use taskbus_core::bus::query::Term;
pub use taskbus_core::bus::subscription::{
    FollowedTags as TagSetRow, Pending, Source, Subscription as SubscriptionRow,
};
use taskbus_core::bus::tag::{TagPattern, TagSet};
use taskbus_core::name::{Identity, Label};
use taskbus_core::time::Timestamp;

use super::{Author, StoreError};

/// The questions.
pub trait BusSnapshot {
    /// Every channel, inboxes and task lists among them, by name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot answer; so for every method here.
    fn channels(&self) -> Result<Vec<ChannelRow>, StoreError>;

    /// One channel.
    ///
    /// # Errors
    /// [`StoreError`].
    fn channel(&self, name: &ChannelName) -> Result<Option<ChannelRow>, StoreError>;

    /// What an identity is subscribed to, by name; the row of its tags first. Channels may be gone.
    ///
    /// # Errors
    /// [`StoreError`].
    fn subscriptions(&self, who: &Identity) -> Result<Vec<SubscriptionRow>, StoreError>;

    /// Who is subscribed to a channel, by name.
    ///
    /// # Errors
    /// [`StoreError`].
    fn subscribers(&self, channel: &ChannelName) -> Result<Vec<Identity>, StoreError>;

    /// Which sets of tags an identity follows, by their keys.
    ///
    /// # Errors
    /// [`StoreError`].
    fn tag_sets(&self, who: &Identity) -> Result<Vec<TagSetRow>, StoreError>;

    /// The number of the newest message or revision; 0 for none.
    ///
    /// # Errors
    /// [`StoreError`].
    fn latest_seq(&self) -> Result<u64, StoreError>;

    /// One live message; of a task list too.
    ///
    /// # Errors
    /// [`StoreError`].
    fn message(&self, seq: u64) -> Result<Option<Message>, StoreError>;

    /// Messages that match, in the order asked for.
    ///
    /// # Errors
    /// [`StoreError`].
    fn messages(&self, query: &MessageQuery<'_>) -> Result<Vec<Message>, StoreError>;

    /// How many messages match, at most `query.limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn count(&self, query: &MessageQuery<'_>) -> Result<usize, StoreError>;

    /// The live revision of a memory, or of a task.
    ///
    /// # Errors
    /// [`StoreError`].
    fn memory(&self, id: u64) -> Result<Option<Message>, StoreError>;

    /// The revisions of a memory that are still kept, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn revisions(&self, id: u64, limit: usize) -> Result<Vec<Message>, StoreError>;

    /// Live messages that have every term, the best first, with their scores (higher is better, ties by number), as
    /// far as they are [indexed](super::Store::index_texts). Of a task only its live revision is found; the note of a deletion never is.
    ///
    /// # Errors
    /// [`StoreError`].
    fn search(&self, terms: &[Term], filter: &MessageFilter<'_>, limit: usize) -> Result<Vec<Hit>, StoreError>;

    /// Hands the vector of every live memory that matches to `each`, as it was kept.
    ///
    /// # Errors
    /// [`StoreError`].
    fn vectors(
        &self,
        model: &str,
        filter: &MessageFilter<'_>,
        each: &mut dyn FnMut(Found, &[f32]),
    ) -> Result<(), StoreError>;

    /// Live memories (not tasks) that have neither a vector nor a failure of this model, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn unembedded(&self, model: &str, limit: usize) -> Result<Vec<Message>, StoreError>;

    /// Whether there is a vector or a failure of any other model, so that [`BusTx::keep_model`] has something to do.
    ///
    /// # Errors
    /// [`StoreError`].
    fn has_other_models(&self, model: &str) -> Result<bool, StoreError>;

    /// What is known of embeddings.
    ///
    /// # Errors
    /// [`StoreError`].
    fn embedding_counts(&self, model: &str) -> Result<EmbeddingCounts, StoreError>;

    /// Messages of no memory and no task, and the notes that a memory was deleted, oldest first; with a time, only
    /// those sent before it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn evictable(&self, before: Option<Timestamp>, limit: usize) -> Result<Vec<(u64, ChannelName)>, StoreError>;

    /// Messages buried before a time, the longest buried first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn buried(&self, before: Timestamp, limit: usize) -> Result<Vec<u64>, StoreError>;

    /// Live memories (not tasks) that were last read before a time, the longest unread first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn unread_memories(&self, before: Timestamp, limit: usize) -> Result<Vec<u64>, StoreError>;

    /// What the maintenance has to say of this kind to everybody.
    ///
    /// # Errors
    /// [`StoreError`].
    fn notice(&self, kind: NoticeKind) -> Result<Option<String>, StoreError>;

    /// Who does the maintenance, and until when.
    ///
    /// # Errors
    /// [`StoreError`].
    fn maintainer(&self) -> Result<Option<(String, Timestamp)>, StoreError>;

    /// How much the store holds, in bytes, without what is free inside it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn used_bytes(&self) -> Result<u64, StoreError>;

    /// How much space inside the store is free, in bytes: what [`BusTx::shrink`] can give back.
    ///
    /// # Errors
    /// [`StoreError`].
    fn free_bytes(&self) -> Result<u64, StoreError>;

    /// Whether any session ended before a time, so that [`BusTx::drop_sessions`] has something to do.
    ///
    /// # Errors
    /// [`StoreError`].
    fn has_ended_sessions(&self, ended_before: Timestamp) -> Result<bool, StoreError>;
}

/// The verbs.
pub trait BusTx: BusSnapshot {
    /// Makes a channel that is no task list.
    ///
    /// # Errors
    /// [`StoreError`]; so for every method here.
    fn create_channel(&mut self, name: &ChannelName, kind: ChannelKind, now: Timestamp) -> Result<(), StoreError>;

    /// Removes a channel with all its messages and subscriptions; a task list with its tasks, their history and what
    /// they depend on.
    ///
    /// # Errors
    /// [`StoreError`].
    fn delete_channel(&mut self, name: &ChannelName) -> Result<(), StoreError>;

    /// Remembers that nothing of a channel before this number may survive.
    ///
    /// # Errors
    /// [`StoreError`].
    fn set_evicted_before(&mut self, name: &ChannelName, seq: u64) -> Result<(), StoreError>;

    /// Writes a subscription, replacing the one to the same source.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_subscription(&mut self, row: &SubscriptionRow) -> Result<(), StoreError>;

    /// Ends a subscription; one that is not there is fine.
    ///
    /// # Errors
    /// [`StoreError`].
    fn end_subscription(&mut self, who: &Identity, source: &Source) -> Result<(), StoreError>;

    /// Follows a set of tags; the same set again replaces it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_tag_set(&mut self, who: &Identity, row: &TagSetRow) -> Result<(), StoreError>;

    /// Follows a set no longer; one that is not followed is fine.
    ///
    /// # Errors
    /// [`StoreError`].
    fn end_tag_set(&mut self, who: &Identity, set: &TagSet) -> Result<(), StoreError>;

    /// Writes a message and gives its number, which is larger than every one before.
    ///
    /// # Errors
    /// [`StoreError`].
    fn post(&mut self, message: &NewMessage<'_>) -> Result<u64, StoreError>;

    /// A message is live no longer: superseded, or deleted. Its vector goes with it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn bury(&mut self, seq: u64, now: Timestamp) -> Result<(), StoreError>;

    /// Removes messages (of no task) from the store.
    ///
    /// # Errors
    /// [`StoreError`].
    fn remove(&mut self, seqs: &[u64]) -> Result<(), StoreError>;

    /// Memories were read at this time, as far as they are live (not tasks); none: they are no longer watched. One that
    /// was never touched is not watched.
    ///
    /// # Errors
    /// [`StoreError`].
    fn touch_memories(&mut self, ids: &[u64], at: Option<Timestamp>) -> Result<(), StoreError>;

    /// Keeps the vector of a memory's revision, if it is still live; a failure of it is forgotten.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_vector(&mut self, seq: u64, model: &str, vector: &[f32]) -> Result<(), StoreError>;

    /// Keeps why a memory's revision has no vector of this model, if it is still live; a vector of it is forgotten.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_embedding_failure(&mut self, seq: u64, model: &str, error: &str, at: Timestamp) -> Result<(), StoreError>;

    /// Forgets vectors and failures of every other model; says how many.
    ///
    /// # Errors
    /// [`StoreError`].
    fn keep_model(&mut self, model: &str) -> Result<usize, StoreError>;

    /// Sets or clears a notice.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_notice(&mut self, kind: NoticeKind, text: Option<&str>, at: Timestamp) -> Result<(), StoreError>;

    /// Says who does the maintenance, and until when.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_maintainer(&mut self, who: &str, until: Timestamp) -> Result<(), StoreError>;

    /// Drops sessions that ended before a time, at most `limit`; says how many. Names stay known.
    ///
    /// # Errors
    /// [`StoreError`].
    fn drop_sessions(&mut self, ended_before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Gives free space back to the file system, a bounded amount of it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn shrink(&mut self) -> Result<(), StoreError>;

    /// Removes everything but the counters that numbers come from.
    ///
    /// # Errors
    /// [`StoreError`].
    fn reset(&mut self) -> Result<(), StoreError>;
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelRow {
    /// Its name.
    pub name: ChannelName,
    /// What it keeps.
    pub kind: ChannelKind,
    /// When it was made.
    pub created_at: Timestamp,
    /// How many live messages (tasks, memories) it has; kept, not counted.
    pub live: u64,
    /// Whether it has no message at all, not even a buried one.
    pub empty: bool,
    /// The number of the newest message it ever had, live or not; 0 for none. It never falls.
    pub latest_seq: u64,
    /// When a message of it was last written or buried, if that ever happened.
    pub last_activity: Option<Timestamp>,
    /// Nothing before this number may survive; 0 when nothing was evicted yet.
    pub evicted_before: u64,
}

/// Which messages, and in which order. Empty filters let everything pass.
#[derive(Clone, Copy, Debug)]
pub struct MessageQuery<'a> {
    /// Of this channel; none: of every ordinary channel that is no inbox.
    pub channel: Option<&'a ChannelName>,
    /// Not of these channels.
    pub except: &'a [ChannelName],
    /// Only numbers above this.
    pub after: u64,
    /// Only numbers below this.
    pub before: Option<u64>,
    /// Not sent by this identity.
    pub not_from: Option<&'a Identity>,
    /// Every one of these patterns matches a tag.
    pub all_tags: &'a [TagPattern],
    /// At least one of these patterns matches a tag.
    pub any_tags: &'a [TagPattern],
    /// Highest numbers first.
    pub newest_first: bool,
    /// At most so many.
    pub limit: usize,
}

impl<'a> MessageQuery<'a> {
    /// The messages of a channel behind a number.
    #[must_use]
    pub fn of(channel: &'a ChannelName, after: u64, limit: usize) -> Self {
        Self { channel: Some(channel), ..Self::anywhere(after, limit) }
    }

    /// The messages of every ordinary channel that is no inbox, behind a number.
    #[must_use]
    pub fn anywhere(after: u64, limit: usize) -> Self {
        Self {
            channel: None,
            except: &[],
            after,
            before: None,
            not_from: None,
            all_tags: &[],
            any_tags: &[],
            newest_first: false,
            limit,
        }
    }
}

/// Which messages a search looks at. Empty filters let everything pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageFilter<'a> {
    /// Of this channel only.
    pub channel: Option<&'a ChannelName>,
    /// Without a channel: only what this identity may see, by [`is_visible`](taskbus_core::bus::rules::is_visible).
    pub visible_to: Option<&'a Identity>,
    /// From this identity only.
    pub sender: Option<&'a Identity>,
    /// Sent at this time or later.
    pub since: Option<Timestamp>,
    /// Sent at this time or earlier.
    pub until: Option<Timestamp>,
    /// This message and its direct answers only.
    pub thread: Option<u64>,
    /// At least one of these patterns matches a tag.
    pub any_tags: &'a [TagPattern],
}

/// A message to write.
#[derive(Clone, Debug)]
pub struct NewMessage<'a> {
    /// Where.
    pub channel: &'a ChannelName,
    /// From whom; none for the maintenance tick.
    pub sender: Option<&'a Identity>,
    /// The sender's context and client.
    pub author: &'a Author,
    /// When.
    pub at: Timestamp,
    /// What it is about.
    pub sort: &'a Sort,
    /// Its summary.
    pub subject: Option<&'a Headline>,
    /// Its text.
    pub content: &'a str,
    /// The message it answers.
    pub reply_to: Option<u64>,
    /// Free data.
    pub metadata: Option<&'a Metadata>,
    /// Its tags.
    pub tags: &'a [Label],
    /// What it is of.
    pub place: Place,
}

/// What a new message is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing: an ordinary message.
    Ordinary,
    /// A new memory, whose id is the number of this message.
    NewMemory,
    /// The next revision of a memory.
    Revision(MemoryRef),
    /// The note that a memory was deleted: it is delivered like a message, and is no revision that is ever live for
    /// [`BusSnapshot::memory`], found or embedded.
    Deletion(MemoryRef),
}

impl Place {
    /// The memory that a message at this place belongs to, once the message has its number.
    #[must_use]
    pub fn memory(self, seq: u64) -> Option<MemoryRef> {
        match self {
            Place::Ordinary => None,
            Place::NewMemory => Some(MemoryRef { id: seq, revision: 1 }),
            Place::Revision(memory) | Place::Deletion(memory) => Some(memory),
        }
    }
}

/// What is known of embeddings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingCounts {
    /// Live memories with a vector.
    pub embedded: u64,
    /// Live memories without one, and without a failure.
    pub backlog: u64,
    /// Live memories that the model refused.
    pub rejected: u64,
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoticeKind {
    /// Messages were evicted because the store was full.
    Capacity,
    /// The last try to embed memories failed.
    Embedding,
}

impl NoticeKind {
    /// The word it is kept under.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NoticeKind::Capacity => "capacity",
            NoticeKind::Embedding => "embedding",
        }
    }
}
