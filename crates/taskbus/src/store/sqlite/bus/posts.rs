//! One message of no task: how it is written, read, buried and removed, with its tags and all that is counted of it.

use rusqlite::{Row as SqlRow, params};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Headline, MemoryRef, Message, Sort};
use taskbus_core::name::{Identity, Label};
use taskbus_core::time::Timestamp;

use super::super::error::{Answer, Fault};
use super::super::scope::{Scope, text_or_none, valid};
use super::super::sum::{self, Sum};
use crate::store::bus::{NewMessage, Place};

const WRITE: &str = "
    INSERT INTO posts (seq, channel, standing, ages, memory_id, revision, reply_to, created_at, sender, type, tags,
                       subject, context, client, metadata, content, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
/// All that a message says, of those that are meant.
macro_rules! posts {
    ($which:literal) => {
        concat!(
            "SELECT p.seq, c.name, p.sender, p.context, p.created_at, p.type, p.subject, p.content, p.reply_to, p.metadata,
                    p.memory_id, p.revision, p.tags, p.client, p.sum
             FROM posts p JOIN channels c ON c.id = p.channel ",
            $which
        )
    };
}
const POST: &str = posts!("WHERE p.seq = ?1");
/// Each message that is in a channel.
pub(super) const POSTS: &str = posts!("ORDER BY p.seq");
const STANDING: &str = "SELECT channel, standing, tags FROM posts WHERE seq = ?1";
const BURY: &str = "UPDATE posts SET standing = 2, buried_at = ?2, embedded = 0 WHERE seq = ?1";
const REMOVE: &str = "DELETE FROM posts WHERE seq = ?1";
const ADD_TAG: &str = "INSERT INTO message_tags (tag, seq) VALUES (?1, ?2)";
const DROP_TAG: &str = "DELETE FROM message_tags WHERE tag = ?1 AND seq = ?2";
const DROP_EMBEDDING: &str = "DELETE FROM embeddings WHERE seq = ?1";

/// What has become of a message, as a number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Live = 0,
    /// It only says that a memory was deleted.
    Note = 1,
    Buried = 2,
}

impl Standing {
    pub(super) fn from_number(number: i64) -> Answer<Self> {
        let known = [Standing::Live, Standing::Note, Standing::Buried];
        let found = known.into_iter().find(|standing| *standing as i64 == number);
        found.ok_or_else(|| Fault::Damaged(format!("a message has the unknown standing {number}")))
    }
}

/// Where a message is.
pub(super) struct Stands {
    pub(super) channel: i64,
    pub(super) standing: Standing,
    tags: String,
}

impl Scope<'_> {
    pub(super) fn write_post(&self, new: &NewMessage<'_>) -> Answer<u64> {
        let channel = self.channel_id(new.channel)?;
        let channel = channel
            .ok_or_else(|| Fault::Misuse(format!("BUG: wrote to the channel {}, which is not there", new.channel)))?;
        let seq = self.seq.get() + 1;
        let standing = if matches!(new.place, Place::Deletion(_)) { Standing::Note } else { Standing::Live };
        let memory = new.place.memory(seq);
        let ages = memory.is_none() || standing == Standing::Note;
        let (id, revision) = memory.map(|memory| (memory.id, memory.revision)).unzip();
        let metadata = new.metadata.map(serde_json::to_string).transpose();
        let metadata = metadata.map_err(|error| Fault::Misuse(format!("BUG: metadata is no JSON: {error}")))?;
        let sender = new.sender.map(Identity::as_str);
        let subject = new.subject.map(Headline::as_str);
        let (at, tags, said) = (new.at.as_millis(), joined(new.tags), new.content);
        let sum = Said {
            seq,
            at,
            sender,
            sort: new.sort.as_str(),
            subject,
            content: said,
            reply_to: new.reply_to,
            metadata: metadata.as_deref(),
            memory: memory.map(|memory| (memory.id, memory.revision)),
            tags: &tags,
            context: &new.author.context,
            client: &new.author.client,
        }
        .sum()
        .end();
        self.run(
            WRITE,
            params![
                seq,
                channel,
                standing as i64,
                ages,
                id,
                revision,
                new.reply_to,
                at,
                sender,
                new.sort.as_str(),
                tags,
                subject,
                new.author.context,
                new.author.client,
                metadata,
                said,
                sum
            ],
        )?;
        for tag in new.tags {
            self.run(ADD_TAG, (tag.as_str(), seq))?;
        }
        self.seq.set(seq);
        self.note_posted();
        self.count_posted(channel, standing == Standing::Live, seq, new.at)?;
        Ok(seq)
    }

    /// A message, whatever has become of it.
    pub(super) fn post(&self, seq: u64) -> Answer<Option<Message>> {
        let mut statement = self.connection.prepare_cached(POST)?;
        let mut rows = statement.query([seq])?;
        rows.next()?.map(message_from).transpose()
    }

    /// Where a message is; none if it is not there.
    pub(super) fn stands(&self, seq: u64) -> Answer<Option<Stands>> {
        let found = self
            .one(STANDING, [seq], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?)))?;
        let Some((channel, number, tags)) = found else { return Ok(None) };
        Ok(Some(Stands { channel, standing: Standing::from_number(number)?, tags }))
    }

    pub(super) fn bury_post(&self, seq: u64, now: Timestamp) -> Answer<()> {
        let Some(stands) = self.stands(seq)?.filter(|stands| stands.standing == Standing::Live) else { return Ok(()) };
        self.run(BURY, (seq, now.as_millis()))?;
        self.forget_beside(seq, &stands)?;
        self.count_buried(stands.channel, now)
    }

    pub(super) fn remove_posts(&self, seqs: &[u64]) -> Answer<()> {
        for &seq in seqs {
            let Some(stands) = self.stands(seq)? else { continue };
            self.run(REMOVE, [seq])?;
            self.forget_beside(seq, &stands)?;
            self.count_removed(stands.channel, stands.standing == Standing::Live)?;
        }
        Ok(())
    }

    /// Drops what is kept of a message that is delivered, beside its row.
    fn forget_beside(&self, seq: u64, stands: &Stands) -> Answer<()> {
        if stands.standing == Standing::Buried {
            return Ok(());
        }
        for tag in stands.tags.split_whitespace() {
            self.run(DROP_TAG, (tag, seq))?;
        }
        if stands.standing == Standing::Live {
            self.run(DROP_EMBEDDING, [seq])?;
            self.unindex(seq)?;
        }
        Ok(())
    }
}

fn joined(tags: &[Label]) -> String {
    tags.iter().map(Label::as_str).collect::<Vec<_>>().join(" ")
}

/// The tags in a text column.
pub(super) fn tags_from(text: &str) -> Answer<Vec<Label>> {
    text.split_whitespace().map(|tag| valid(Label::new(tag), "tag")).collect()
}

/// Who a text column names.
pub(super) fn sender_from(name: Option<String>) -> Answer<Option<Identity>> {
    name.map(|name| valid(Identity::new(name), "sender")).transpose()
}

/// What a message says, as its columns hold it.
struct Said<'a> {
    seq: u64,
    at: i64,
    sender: Option<&'a str>,
    sort: &'a str,
    subject: Option<&'a str>,
    content: &'a str,
    reply_to: Option<u64>,
    metadata: Option<&'a str>,
    memory: Option<(u64, u64)>,
    tags: &'a str,
    context: &'a str,
    client: &'a str,
}

impl<'a> Said<'a> {
    /// From the columns of `POST`.
    fn from_sql(row: &'a SqlRow<'_>) -> Answer<Self> {
        let text = |at| row.get_ref(at)?.as_str().map_err(rusqlite::Error::from);
        let (id, revision): (Option<u64>, Option<u64>) = (row.get(10)?, row.get(11)?);
        Ok(Self {
            seq: row.get(0)?,
            at: row.get(4)?,
            sender: text_or_none(row, 2)?,
            sort: text(5)?,
            subject: text_or_none(row, 6)?,
            content: text(7)?,
            reply_to: row.get(8)?,
            metadata: text_or_none(row, 9)?,
            memory: id.zip(revision),
            tags: text(12)?,
            context: text(3)?,
            client: text(13)?,
        })
    }

    fn sum(&self) -> Sum {
        let signed = u64::cast_signed;
        let (id, revision) = self.memory.map(|(id, revision)| (signed(id), signed(revision))).unzip();
        let sum = Sum::new().number(signed(self.seq)).number(self.at).optional_text(self.sender).text(self.sort);
        let sum = sum.optional_text(self.subject).text(self.content).optional_number(self.reply_to.map(signed));
        let sum = sum.optional_text(self.metadata).optional_number(id).optional_number(revision);
        sum.text(self.tags).text(self.context).text(self.client)
    }
}

/// Reads a message from the columns of `POST`.
pub(super) fn message_from(row: &SqlRow<'_>) -> Answer<Message> {
    let said = Said::from_sql(row)?;
    sum::check(row.get(14)?, said.sum(), || format!("message {}", said.seq))?;
    Ok(Message {
        seq: said.seq,
        channel: valid(ChannelName::new(row.get::<_, String>(1)?), "channel")?,
        sender: sender_from(said.sender.map(str::to_owned))?,
        context: said.context.to_owned(),
        created_at: Timestamp::from_millis(said.at),
        sort: valid(Sort::new(said.sort.to_owned()), "type")?,
        subject: said.subject.map(|subject| valid(Headline::new(subject), "subject")).transpose()?.flatten(),
        content: said.content.to_owned(),
        reply_to: said.reply_to,
        metadata: said.metadata.map(|text| valid(serde_json::from_str(text), "metadata")).transpose()?,
        memory: said.memory.map(|(id, revision)| MemoryRef { id, revision }),
        tags: tags_from(said.tags)?,
        matched_tags: Vec::new(),
    })
}
