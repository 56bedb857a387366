//! Messages in order. An index says which numbers come next, the row whether it is wanted: what an index does not hold
//! is looked up one by one, and only as far as the limit asks.

use rusqlite::Row as SqlRow;
use rusqlite::types::Value;
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{MemoryRef, Message};
use taskbus_core::bus::tag::TagPattern;
use taskbus_core::name::{Identity, Label, ListName};
use taskbus_core::time::Timestamp;

use super::super::error::Answer;
use super::super::scope::{Scope, text_or_none, valid};
use super::super::snapshot::kind_from;
use super::super::sum::{self, Rest};
use super::super::tree::as_limit;
use super::posts::{Standing, sender_from, tags_from};
use crate::store::bus::{Found, MessageQuery};
use crate::store::look::Facts;
use crate::store::revision::Revision;

const CHANNEL_UP: &str = "
    SELECT seq FROM posts INDEXED BY posts_by_channel
    WHERE channel = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq LIMIT ?4";
const CHANNEL_DOWN: &str = "
    SELECT seq FROM posts INDEXED BY posts_by_channel
    WHERE channel = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4";
const LIST_UP: &str = "
    SELECT seq FROM messages INDEXED BY messages_by_list
    WHERE list = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq LIMIT ?4";
const LIST_DOWN: &str = "
    SELECT seq FROM messages INDEXED BY messages_by_list
    WHERE list = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4";
const TAG_UP: &str = "
    SELECT seq FROM message_tags WHERE tag = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq LIMIT ?4";
const TAG_DOWN: &str = "
    SELECT seq FROM message_tags WHERE tag = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4";
const ALL_UP: &str = "
    SELECT seq FROM posts WHERE ?1 IS NULL AND seq > ?2 AND seq < ?3 ORDER BY seq LIMIT ?4";
const ALL_DOWN: &str = "
    SELECT seq FROM posts WHERE ?1 IS NULL AND seq > ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4";
const TAGS_FROM: &str = "SELECT min(tag) FROM message_tags WHERE tag >= ?1 AND tag <= ?2";
const TAGS_BEHIND: &str = "SELECT min(tag) FROM message_tags WHERE tag > ?1 AND tag <= ?2";
const LIST_ID: &str = "SELECT id FROM lists WHERE name = ?1";
const POST_FACTS: &str = "
    SELECT p.standing, p.memory_id, c.open, c.name, p.sender, p.created_at, p.reply_to, p.tags
    FROM posts p JOIN channels c ON c.id = p.channel WHERE p.seq = ?1";
const REVISION_FACTS: &str = "
    SELECT l.name, m.sender, m.created_at, m.memory_id
    FROM messages m JOIN lists l ON l.id = m.list WHERE m.seq = ?1";
const REVISION: &str = "
    SELECT l.name, m.memory_id, m.revision, m.type, m.previous, m.sender, m.context, m.created_at, m.content, m.sum,
           m.note, m.client
    FROM messages m JOIN lists l ON l.id = m.list WHERE m.seq = ?1";

/// Numbers looked at in one go, at least.
const STRIDE: usize = 16;
/// And at most.
const STRIDE_MAX: usize = 1024;

/// One index, read upwards and downwards.
#[derive(Clone)]
struct Stream {
    up: &'static str,
    down: &'static str,
    key: Value,
}

/// The numbers between two, both excluded.
#[derive(Clone, Copy)]
struct Bounds {
    after: i64,
    before: i64,
}

/// What filters look at, read from a row.
pub(super) struct Looked {
    pub(super) found: Found,
    pub(super) standing: Standing,
    /// Whether who follows tags hears of its channel.
    open: bool,
    channel: ChannelName,
    sender: Option<Identity>,
    at: Timestamp,
    reply_to: Option<u64>,
    tags: Vec<Label>,
}

impl Looked {
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            seq: self.found.seq,
            channel: &self.channel,
            sender: self.sender.as_ref(),
            at: self.at,
            reply_to: self.reply_to,
            tags: &self.tags,
        }
    }
}

/// Whether a number can be that of anything here; a caller may name any.
pub(super) fn can_be(number: u64) -> bool {
    i64::try_from(number).is_ok()
}

impl Scope<'_> {
    pub(super) fn messages_for(&self, query: &MessageQuery<'_>) -> Answer<Vec<Message>> {
        let seqs = self.passing(query)?.into_iter();
        seqs.filter_map(|seq| self.delivered(seq).transpose()).collect()
    }

    pub(super) fn count_for(&self, query: &MessageQuery<'_>) -> Answer<usize> {
        Ok(self.passing(query)?.len())
    }

    /// A message that is delivered, or a revision.
    pub(super) fn delivered(&self, seq: u64) -> Answer<Option<Message>> {
        if !can_be(seq) {
            return Ok(None);
        }
        match self.stands(seq)? {
            Some(stands) if stands.standing == Standing::Buried => Ok(None),
            Some(_) => self.post(seq),
            None => self.revision_message(seq),
        }
    }

    /// A revision of a task as a message of its list.
    pub(super) fn revision_message(&self, seq: u64) -> Answer<Option<Message>> {
        let mut statement = self.connection.prepare_cached(REVISION)?;
        let mut rows = statement.query([seq])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        check_revision(seq, row)?;
        let list = valid(ListName::new(row.get::<_, String>(0)?), "list")?;
        let revision = Revision {
            list: &list,
            seq,
            place: MemoryRef { id: row.get(1)?, revision: row.get(2)? },
            kind: kind_from(&row.get::<_, String>(3)?, row.get(4)?)?,
            sender: sender_from(row.get(5)?)?,
            context: row.get(6)?,
            at: Timestamp::from_millis(row.get(7)?),
            document: row.get(8)?,
        };
        Ok(Some(revision.into_message()))
    }

    /// The numbers of the messages that match, in the order asked for, as many as asked for.
    fn passing(&self, query: &MessageQuery<'_>) -> Answer<Vec<u64>> {
        let mut passing = Vec::new();
        let Some(streams) = self.streams(query)? else { return Ok(passing) };
        let stride = query.limit.clamp(STRIDE, STRIDE_MAX);
        let before = query.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        let mut bounds = Bounds { after: i64::try_from(query.after).unwrap_or(i64::MAX), before };
        loop {
            let seqs = self.next_seqs(&streams, bounds, query.newest_first, stride)?;
            for &seq in &seqs {
                if passing.len() == query.limit {
                    return Ok(passing);
                }
                if self.passes(seq, query)? {
                    passing.push(seq.cast_unsigned());
                }
            }
            match seqs.last() {
                Some(&last) if seqs.len() == stride && query.newest_first => bounds.before = last,
                Some(&last) if seqs.len() == stride => bounds.after = last,
                _ => return Ok(passing),
            }
        }
    }

    fn passes(&self, seq: i64, query: &MessageQuery<'_>) -> Answer<bool> {
        let Some(looked) = self.looked(seq)? else { return Ok(false) };
        let here = query.channel.map_or(looked.open, |channel| looked.channel == *channel);
        Ok(here && looked.standing != Standing::Buried && looked.facts().pass(query))
    }

    /// What filters look at in a message or in a revision.
    fn looked(&self, seq: i64) -> Answer<Option<Looked>> {
        let post = self.looked_at_post(seq)?;
        if post.is_some() {
            return Ok(post);
        }
        self.looked_at_revision(seq)
    }

    pub(super) fn looked_at_post(&self, seq: i64) -> Answer<Option<Looked>> {
        let mut statement = self.connection.prepare_cached(POST_FACTS)?;
        let mut rows = statement.query([seq])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (seq, id) = (seq.cast_unsigned(), row.get::<_, Option<u64>>(1)?);
        Ok(Some(Looked {
            found: Found { seq, id: id.unwrap_or(seq) },
            standing: Standing::from_number(row.get(0)?)?,
            open: row.get(2)?,
            channel: valid(ChannelName::new(row.get::<_, String>(3)?), "channel")?,
            sender: sender_from(row.get(4)?)?,
            at: Timestamp::from_millis(row.get(5)?),
            reply_to: row.get(6)?,
            tags: tags_from(row.get_ref(7)?.as_str().map_err(rusqlite::Error::from)?)?,
        }))
    }

    pub(super) fn looked_at_revision(&self, seq: i64) -> Answer<Option<Looked>> {
        let mut statement = self.connection.prepare_cached(REVISION_FACTS)?;
        let mut rows = statement.query([seq])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(Looked {
            found: Found { seq: seq.cast_unsigned(), id: row.get(3)? },
            standing: Standing::Live,
            open: false,
            channel: valid(ChannelName::new(row.get::<_, String>(0)?), "channel")?,
            sender: sender_from(row.get(1)?)?,
            at: Timestamp::from_millis(row.get(2)?),
            reply_to: None,
            tags: Vec::new(),
        }))
    }

    /// The streams that hold every message that matches; none if nothing can match.
    fn streams(&self, query: &MessageQuery<'_>) -> Answer<Option<Vec<Stream>>> {
        let exact = |pattern: &&TagPattern| !pattern.as_str().ends_with('*');
        // All of them must match, so one will do; a whole tag is mostly rarer than a beginning.
        if let Some(pattern) = query.all_tags.iter().find(exact).or(query.all_tags.first()) {
            return self.tag_streams(std::slice::from_ref(pattern)).map(Some);
        }
        if !query.any_tags.is_empty() {
            return self.tag_streams(query.any_tags).map(Some);
        }
        let Some(channel) = query.channel else {
            return Ok(Some(vec![Stream { up: ALL_UP, down: ALL_DOWN, key: Value::Null }]));
        };
        let is_list = channel.list().is_some();
        let (up, down) = if is_list { (LIST_UP, LIST_DOWN) } else { (CHANNEL_UP, CHANNEL_DOWN) };
        let id =
            if is_list { self.one(LIST_ID, [channel.as_str()], |row| row.get(0))? } else { self.channel_id(channel)? };
        Ok(id.map(|id| vec![Stream { up, down, key: Value::Integer(id) }]))
    }

    /// A stream for each tag that one of the patterns matches.
    fn tag_streams(&self, patterns: &[TagPattern]) -> Answer<Vec<Stream>> {
        let mut tags = std::collections::BTreeSet::new();
        for (low, high) in patterns.iter().map(TagPattern::range) {
            let mut next: Option<String> = self.first_tag(TAGS_FROM, &low, &high)?;
            while let Some(tag) = next {
                next = self.first_tag(TAGS_BEHIND, &tag, &high)?;
                tags.insert(tag);
            }
        }
        Ok(tags.into_iter().map(|tag| Stream { up: TAG_UP, down: TAG_DOWN, key: Value::Text(tag) }).collect())
    }

    fn first_tag(&self, sql: &str, from: &str, to: &str) -> Answer<Option<String>> {
        Ok(self.one(sql, (from, to), |row| row.get::<_, Option<String>>(0))?.flatten())
    }

    /// The next numbers of all streams together, each once, at most `count`.
    fn next_seqs(&self, streams: &[Stream], bounds: Bounds, down: bool, count: usize) -> Answer<Vec<i64>> {
        let mut seqs: Vec<i64> = Vec::new();
        for stream in streams {
            let sql = if down { stream.down } else { stream.up };
            let values = (&stream.key, bounds.after, bounds.before, as_limit(count));
            seqs.extend(self.all(sql, values, |row| row.get::<_, i64>(0))?);
        }
        if streams.len() > 1 {
            seqs.sort_unstable();
            seqs.dedup();
            if down {
                seqs.reverse();
            }
        }
        seqs.truncate(count);
        Ok(seqs)
    }
}

/// Refuses a revision, in the columns of `REVISION`, that does not fit its sums.
fn check_revision(seq: u64, row: &SqlRow<'_>) -> Answer<()> {
    let text = |at| row.get_ref(at)?.as_str().map_err(rusqlite::Error::from);
    let (document, rest) = sum::halves(row.get(9)?);
    let (kind, note, context, client) = (text(3)?, text_or_none(row, 10)?, text(6)?, text(11)?);
    let said = Rest { seq, kind, note, context, client, previous: row.get(4)? };
    let sum = sum::of_document(row.get(1)?, row.get(2)?, row.get(7)?, text_or_none(row, 5)?, text(8)?);
    sum::check(document, sum, || format!("revision {seq}"))?;
    sum::check(rest, said.sum(), || format!("revision {seq}"))
}
