//! Memories: their revisions, when they were last read, and their vectors. Vectors are read row by row and never kept.

use std::collections::HashSet;

use rusqlite::params;
use taskbus_core::bus::message::Message;
use taskbus_core::name::Identity;
use taskbus_core::time::Timestamp;

use super::super::error::{Answer, Fault};
use super::super::scope::Scope;
use super::super::tree::as_limit;
use super::streams::can_be;
use crate::store::bus::{EmbeddingCounts, Found, MessageFilter};

const LIVE: &str = "
    SELECT seq FROM posts INDEXED BY posts_by_memory
    WHERE memory_id = ?1 AND memory_id IS NOT NULL AND standing = 0 ORDER BY seq DESC LIMIT 1";
const REVISIONS: &str = "
    SELECT seq FROM posts INDEXED BY posts_by_memory
    WHERE memory_id = ?1 AND memory_id IS NOT NULL AND standing <> 1 ORDER BY seq DESC LIMIT ?2";
const TASK_SEQ: &str = "SELECT seq FROM tasks WHERE id = ?1";
const NEWEST_OF_TASK: &str = "
    SELECT seq FROM tasks WHERE id = ?1 UNION ALL SELECT seq FROM tombstones WHERE id = ?1";
const PREVIOUS: &str = "SELECT previous FROM messages WHERE seq = ?1";

const NOTE_READ: &str = "
    INSERT INTO memory_reads (memory_id, read_at) VALUES (?1, ?2)
    ON CONFLICT (memory_id) DO UPDATE SET read_at = excluded.read_at";
const FORGET_READS: &str = "DELETE FROM memory_reads WHERE memory_id = ?1";
const UNREAD: &str = "
    SELECT r.memory_id FROM memory_reads r INDEXED BY memory_reads_by_time
    WHERE r.read_at < ?1 AND EXISTS (
        SELECT 1 FROM posts p INDEXED BY posts_by_memory
        WHERE p.memory_id = r.memory_id AND p.memory_id IS NOT NULL AND p.standing = 0)
    ORDER BY r.read_at, r.memory_id LIMIT ?2";

const IS_LIVE_MEMORY: &str = "SELECT 1 FROM posts WHERE seq = ?1 AND standing = 0 AND memory_id IS NOT NULL";
const PUT: &str = "
    INSERT INTO embeddings (seq, model, failed, at, error, vector) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (seq) DO UPDATE SET model = excluded.model, failed = excluded.failed, at = excluded.at,
        error = excluded.error, vector = excluded.vector";
const EMBEDDED: &str = "UPDATE posts SET embedded = 1 WHERE seq = ?1 AND embedded = 0";
const BARE_AGAIN: &str = "UPDATE posts SET embedded = 0 WHERE seq = ?1";
const DROP: &str = "DELETE FROM embeddings WHERE seq = ?1";
const VECTORS: &str = "
    SELECT p.seq, p.memory_id, p.channel, e.vector
    FROM embeddings e INDEXED BY embeddings_by_model CROSS JOIN posts p ON p.seq = e.seq
    WHERE e.model = ?1 AND e.failed = 0 AND (?2 IS NULL OR p.channel = ?2) AND (?3 IS NULL OR p.sender = ?3)
      AND p.created_at >= ?4 AND p.created_at <= ?5 AND (?6 IS NULL OR p.seq = ?6 OR p.reply_to = ?6)
    ORDER BY e.seq";
const INBOXES: &str = "SELECT id FROM channels WHERE kind = 'ordinary' AND open = 0";
const COUNT: &str = "
    SELECT count(*) FROM embeddings INDEXED BY embeddings_by_model WHERE model = ?1 AND failed = ?2";
const BARE: &str = "
    SELECT seq FROM posts INDEXED BY posts_bare
    WHERE embedded = 0 AND standing = 0 AND memory_id IS NOT NULL ORDER BY seq LIMIT ?1";
const COUNT_BARE: &str = "
    SELECT count(*) FROM posts INDEXED BY posts_bare WHERE embedded = 0 AND standing = 0 AND memory_id IS NOT NULL";
const OTHER_BELOW: &str = "
    SELECT seq FROM embeddings INDEXED BY embeddings_by_model WHERE model < ?1 LIMIT ?2";
const OTHER_ABOVE: &str = "
    SELECT seq FROM embeddings INDEXED BY embeddings_by_model WHERE model > ?1 LIMIT ?2";

impl Scope<'_> {
    /// The number of the live revision of a memory.
    fn live_revision(&self, id: u64) -> Answer<Option<u64>> {
        self.one(LIVE, [id], |row| row.get(0))
    }

    pub(super) fn live_memory(&self, id: u64) -> Answer<Option<Message>> {
        if !can_be(id) {
            return Ok(None);
        }
        if let Some(seq) = self.live_revision(id)? {
            return self.post(seq);
        }
        match self.one(TASK_SEQ, [id], |row| row.get(0))? {
            Some(seq) => self.revision_message(seq),
            None => Ok(None),
        }
    }

    pub(super) fn kept_revisions(&self, id: u64, limit: usize) -> Answer<Vec<Message>> {
        if !can_be(id) {
            return Ok(Vec::new());
        }
        let seqs: Vec<u64> = self.all(REVISIONS, (id, as_limit(limit)), |row| row.get(0))?;
        if seqs.is_empty() {
            return self.revisions_of_task(id, limit);
        }
        seqs.into_iter().filter_map(|seq| self.post(seq).transpose()).collect()
    }

    fn revisions_of_task(&self, id: u64, limit: usize) -> Answer<Vec<Message>> {
        let mut found = Vec::new();
        let mut at: u64 = self.one(NEWEST_OF_TASK, [id], |row| row.get(0))?.unwrap_or(0);
        while at > 0 && found.len() < limit {
            found.extend(self.revision_message(at)?);
            let previous: u64 = self.one(PREVIOUS, [at], |row| row.get(0))?.unwrap_or(0);
            if previous >= at {
                return Err(Fault::Damaged(format!("revision {at} of task {id} follows {previous}")));
            }
            at = previous;
        }
        Ok(found)
    }

    pub(super) fn note_reads(&self, ids: &[u64], at: Option<Timestamp>) -> Answer<()> {
        for &id in ids {
            match at {
                Some(at) if self.live_revision(id)?.is_some() => drop(self.run(NOTE_READ, (id, at.as_millis()))?),
                Some(_) => {}
                None => drop(self.run(FORGET_READS, [id])?),
            }
        }
        Ok(())
    }

    pub(super) fn longest_unread(&self, before: Timestamp, limit: usize) -> Answer<Vec<u64>> {
        self.all(UNREAD, (before.as_millis(), as_limit(limit)), |row| row.get(0))
    }

    pub(super) fn keep_vector(&self, seq: u64, model: &str, vector: &[f32]) -> Answer<()> {
        let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.keep_embedding(seq, |scope| scope.run(PUT, params![seq, model, 0, None::<i64>, None::<&str>, bytes]))
    }

    pub(super) fn keep_failure(&self, seq: u64, model: &str, error: &str, at: Timestamp) -> Answer<()> {
        let none: Option<Vec<u8>> = None;
        self.keep_embedding(seq, |scope| scope.run(PUT, params![seq, model, 1, at.as_millis(), error, none]))
    }

    /// Only of a memory that is still live.
    fn keep_embedding(&self, seq: u64, put: impl FnOnce(&Self) -> Answer<usize>) -> Answer<()> {
        if self.connection.prepare_cached(IS_LIVE_MEMORY)?.exists([seq])? {
            put(self)?;
            self.run(EMBEDDED, [seq])?;
        }
        Ok(())
    }

    pub(super) fn each_vector(
        &self,
        model: &str,
        filter: &MessageFilter<'_>,
        each: &mut dyn FnMut(Found, &[f32]),
    ) -> Answer<()> {
        let channel = match filter.channel.map(|channel| self.channel_id(channel)).transpose()? {
            Some(None) => return Ok(()),
            found => found.flatten(),
        };
        let inboxes: HashSet<i64> = self.all(INBOXES, [], |row| row.get(0))?.into_iter().collect();
        let sender = filter.sender.map(Identity::as_str);
        let since = filter.since.map_or(i64::MIN, Timestamp::as_millis);
        let until = filter.until.map_or(i64::MAX, Timestamp::as_millis);
        let mut statement = self.connection.prepare_cached(VECTORS)?;
        let mut rows = statement.query(params![model, channel, sender, since, until, filter.thread])?;
        let mut vector = Vec::new();
        while let Some(row) = rows.next()? {
            let found = Found { seq: row.get(0)?, id: row.get(1)? };
            // Tags, and whose inbox it is, are no matter of the statement; mostly they are no matter at all.
            if !filter.any_tags.is_empty() || inboxes.contains(&row.get(2)?) {
                let looked = self.looked_at_post(row.get(0)?)?;
                if !looked.is_some_and(|looked| looked.facts().are_looked_at(filter)) {
                    continue;
                }
            }
            let (numbers, rest) = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?.as_chunks();
            if !rest.is_empty() {
                return Err(Fault::Damaged(format!("the vector of message {} is cut", found.seq)));
            }
            vector.clear();
            vector.extend(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            each(found, &vector);
        }
        Ok(())
    }

    pub(super) fn without_vector(&self, model: &str, limit: usize) -> Answer<Vec<Message>> {
        let mut seqs: Vec<u64> = self.all(BARE, [as_limit(limit)], |row| row.get(0))?;
        seqs.extend(self.of_other_models(model, usize::MAX)?);
        seqs.sort_unstable();
        seqs.truncate(limit);
        seqs.into_iter().filter_map(|seq| self.post(seq).transpose()).collect()
    }

    fn of_other_models(&self, model: &str, limit: usize) -> Answer<Vec<u64>> {
        let mut seqs: Vec<u64> = self.all(OTHER_BELOW, (model, as_limit(limit)), |row| row.get(0))?;
        seqs.extend(self.all(OTHER_ABOVE, (model, as_limit(limit)), |row| row.get::<_, u64>(0))?);
        Ok(seqs)
    }

    pub(super) fn any_other_model(&self, model: &str) -> Answer<bool> {
        Ok(!self.of_other_models(model, 1)?.is_empty())
    }

    pub(super) fn drop_other_models(&self, model: &str) -> Answer<usize> {
        let seqs = self.of_other_models(model, usize::MAX)?;
        for seq in &seqs {
            self.run(DROP, [seq])?;
            self.run(BARE_AGAIN, [seq])?;
        }
        Ok(seqs.len())
    }

    pub(super) fn count_embeddings(&self, model: &str) -> Answer<EmbeddingCounts> {
        let count = |failed: bool| self.one(COUNT, (model, failed), |row| row.get::<_, u64>(0));
        let bare: u64 = self.one(COUNT_BARE, [], |row| row.get(0))?.unwrap_or(0);
        let backlog = bare + self.of_other_models(model, usize::MAX)?.len() as u64;
        Ok(EmbeddingCounts { embedded: count(false)?.unwrap_or(0), backlog, rejected: count(true)?.unwrap_or(0) })
    }
}
