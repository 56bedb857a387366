//! What the maintenance asks for: what is oldest, what is known of itself, and how large the store is.

use rusqlite::params;
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::time::Timestamp;

use super::super::error::Answer;
use super::super::scope::{Scope, valid};
use super::super::tree::as_limit;
use crate::store::bus::NoticeKind;

const OLDEST: &str = "
    SELECT p.seq, c.name FROM posts p INDEXED BY posts_by_age CROSS JOIN channels c ON c.id = p.channel
    WHERE p.ages = 1 AND p.created_at < ?1 ORDER BY p.created_at, p.seq LIMIT ?2";
const BURIED: &str = "
    SELECT seq FROM posts INDEXED BY posts_buried
    WHERE buried_at IS NOT NULL AND buried_at < ?1 ORDER BY buried_at, seq LIMIT ?2";
const NOTICE: &str = "SELECT text FROM notices WHERE kind = ?1";
const PUT_NOTICE: &str = "
    INSERT INTO notices (kind, text, set_at) VALUES (?1, ?2, ?3)
    ON CONFLICT (kind) DO UPDATE SET text = excluded.text, set_at = excluded.set_at";
const DROP_NOTICE: &str = "DELETE FROM notices WHERE kind = ?1";
const MAINTAINER: &str = "SELECT who, until FROM upkeep WHERE id = 0 AND who IS NOT NULL";
const PUT_MAINTAINER: &str = "UPDATE upkeep SET who = ?1, until = ?2 WHERE id = 0";
const ENDED: &str = "
    SELECT name FROM sessions INDEXED BY sessions_by_end WHERE alive_until < ?1 ORDER BY alive_until LIMIT ?2";
const DROP_SESSION: &str = "DELETE FROM sessions WHERE name = ?1";

const PAGE_SIZE: &str = "PRAGMA page_size";
const PAGES: &str = "PRAGMA page_count";
const FREE_PAGES: &str = "PRAGMA freelist_count";
const AUTO_VACUUM: &str = "PRAGMA auto_vacuum";
/// The mode in which free pages are given back when asked to.
const INCREMENTAL: u64 = 2;
/// As many pages as one transaction gives back.
const GIVE_BACK: &str = "PRAGMA incremental_vacuum(256)";

impl Scope<'_> {
    pub(super) fn oldest_posts(&self, before: Option<Timestamp>, limit: usize) -> Answer<Vec<(u64, ChannelName)>> {
        let before = before.map_or(i64::MAX, Timestamp::as_millis);
        let rows = self.all(OLDEST, (before, as_limit(limit)), |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        rows.into_iter().map(|(seq, name)| Ok((seq, valid(ChannelName::new(name), "channel")?))).collect()
    }

    pub(super) fn longest_buried(&self, before: Timestamp, limit: usize) -> Answer<Vec<u64>> {
        self.all(BURIED, (before.as_millis(), as_limit(limit)), |row| row.get(0))
    }

    pub(super) fn notice_of(&self, kind: NoticeKind) -> Answer<Option<String>> {
        self.one(NOTICE, [kind.as_str()], |row| row.get(0))
    }

    pub(super) fn keep_notice(&self, kind: NoticeKind, text: Option<&str>, at: Timestamp) -> Answer<()> {
        match text {
            Some(text) => self.run(PUT_NOTICE, params![kind.as_str(), text, at.as_millis()])?,
            None => self.run(DROP_NOTICE, [kind.as_str()])?,
        };
        Ok(())
    }

    pub(super) fn maintained_by(&self) -> Answer<Option<(String, Timestamp)>> {
        self.one(MAINTAINER, [], |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))))
    }

    pub(super) fn keep_maintainer(&self, who: &str, until: Timestamp) -> Answer<()> {
        self.run(PUT_MAINTAINER, (who, until.as_millis()))?;
        Ok(())
    }

    pub(super) fn any_ended_session(&self, ended_before: Timestamp) -> Answer<bool> {
        Ok(!self.ended(ended_before, 1)?.is_empty())
    }

    pub(super) fn drop_ended(&self, ended_before: Timestamp, limit: usize) -> Answer<usize> {
        self.alive.take();
        let names = self.ended(ended_before, limit)?;
        for name in &names {
            self.run(DROP_SESSION, [name])?;
        }
        Ok(names.len())
    }

    fn ended(&self, before: Timestamp, limit: usize) -> Answer<Vec<i64>> {
        self.all(ENDED, (before.as_millis(), as_limit(limit)), |row| row.get(0))
    }

    pub(super) fn bytes_in_use(&self) -> Answer<u64> {
        Ok(self.number(PAGES)?.saturating_sub(self.number(FREE_PAGES)?) * self.number(PAGE_SIZE)?)
    }

    /// A file made by an older version keeps its free pages for itself.
    pub(super) fn bytes_to_give_back(&self) -> Answer<u64> {
        if self.number(AUTO_VACUUM)? != INCREMENTAL {
            return Ok(0);
        }
        Ok(self.number(FREE_PAGES)? * self.number(PAGE_SIZE)?)
    }

    pub(super) fn give_back(&self) -> Answer<()> {
        if self.bytes_to_give_back()? > 0 {
            self.connection.execute_batch(GIVE_BACK)?;
        }
        Ok(())
    }

    fn number(&self, sql: &str) -> Answer<u64> {
        Ok(self.one(sql, [], |row| row.get(0))?.unwrap_or(0))
    }
}
