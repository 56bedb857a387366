//! Channels: their rows, and the counts that are kept in them. A task list is a channel too; its counts are those that
//! the tasks keep anyway.

use rusqlite::{Row as SqlRow, params};
use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::time::Timestamp;

use super::super::error::{Answer, Fault};
use super::super::scope::{Scope, valid};
use crate::store::bus::ChannelRow;

const CHANNELS: &str = "
    SELECT name, kind, created_at, live, rows, latest_seq, last_activity, evicted_before
    FROM channels ORDER BY name";
const CHANNEL: &str = "
    SELECT name, kind, created_at, live, rows, latest_seq, last_activity, evicted_before
    FROM channels WHERE name = ?1";
const LISTS: &str = "
    SELECT l.name, 'memory', l.created_at,
           c.ready + c.blocked + c.parked + c.deferred + c.in_progress + c.completed, c.seq, c.seq,
           (SELECT m.created_at FROM messages m WHERE m.seq = c.seq), 0
    FROM lists l JOIN counters c ON c.id = l.id ORDER BY l.name";
const LIST: &str = "
    SELECT l.name, 'memory', l.created_at,
           c.ready + c.blocked + c.parked + c.deferred + c.in_progress + c.completed, c.seq, c.seq,
           (SELECT m.created_at FROM messages m WHERE m.seq = c.seq), 0
    FROM lists l JOIN counters c ON c.id = l.id WHERE l.name = ?1";
const CHANNEL_ID: &str = "SELECT id FROM channels WHERE name = ?1";
const CREATE: &str = "INSERT OR IGNORE INTO channels (name, kind, open, created_at) VALUES (?1, ?2, ?3, ?4)";
const NOTE_EVICTION: &str = "UPDATE channels SET evicted_before = ?2 WHERE name = ?1";
const POSTED: &str = "
    UPDATE channels SET live = live + ?2, rows = rows + 1, latest_seq = ?3, last_activity = ?4 WHERE id = ?1";
const BURIED: &str = "UPDATE channels SET live = live - 1, last_activity = ?2 WHERE id = ?1";
const REMOVED: &str = "UPDATE channels SET live = live - ?2, rows = rows - 1 WHERE id = ?1";

/// A channel as it is stored, its words not checked yet; `rows` of a list is anything but 0 when it has any.
struct Stored {
    name: String,
    kind: String,
    created_at: i64,
    live: u64,
    rows: u64,
    latest_seq: u64,
    last_activity: Option<i64>,
    evicted_before: u64,
}

impl Scope<'_> {
    pub(super) fn channel_rows(&self) -> Answer<Vec<ChannelRow>> {
        self.flush()?;
        let mut stored = self.all(CHANNELS, [], stored)?;
        stored.extend(self.all(LISTS, [], self::stored)?);
        let mut rows: Vec<ChannelRow> = stored.into_iter().map(checked).collect::<Answer<_>>()?;
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(rows)
    }

    pub(super) fn channel_row(&self, name: &ChannelName) -> Answer<Option<ChannelRow>> {
        self.flush()?;
        let sql = if name.list().is_some() { LIST } else { CHANNEL };
        self.one(sql, [name.as_str()], stored)?.map(checked).transpose()
    }

    /// The number of a channel that is no task list.
    pub(super) fn channel_id(&self, name: &ChannelName) -> Answer<Option<i64>> {
        self.one(CHANNEL_ID, [name.as_str()], |row| row.get(0))
    }

    pub(super) fn make_channel(&self, name: &ChannelName, kind: ChannelKind, now: Timestamp) -> Answer<()> {
        if name.list().is_some() {
            return Err(Fault::Misuse(format!("BUG: made the task list {name} as a channel")));
        }
        let open = kind == ChannelKind::Ordinary && name.owner().is_none();
        self.run(CREATE, (name.as_str(), kind.as_str(), open, now.as_millis()))?;
        Ok(())
    }

    pub(super) fn note_eviction(&self, name: &ChannelName, seq: u64) -> Answer<()> {
        self.run(NOTE_EVICTION, (name.as_str(), seq))?;
        Ok(())
    }

    /// A message came.
    pub(super) fn count_posted(&self, channel: i64, live: bool, seq: u64, at: Timestamp) -> Answer<()> {
        self.run(POSTED, params![channel, live, seq, at.as_millis()])?;
        Ok(())
    }

    /// A live message was buried.
    pub(super) fn count_buried(&self, channel: i64, at: Timestamp) -> Answer<()> {
        self.run(BURIED, (channel, at.as_millis()))?;
        Ok(())
    }

    /// A message was removed.
    pub(super) fn count_removed(&self, channel: i64, live: bool) -> Answer<()> {
        self.run(REMOVED, (channel, live))?;
        Ok(())
    }
}

fn stored(row: &SqlRow<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        name: row.get(0)?,
        kind: row.get(1)?,
        created_at: row.get(2)?,
        live: row.get(3)?,
        rows: row.get(4)?,
        latest_seq: row.get(5)?,
        last_activity: row.get(6)?,
        evicted_before: row.get(7)?,
    })
}

fn checked(stored: Stored) -> Answer<ChannelRow> {
    let kind = ChannelKind::from_word(&stored.kind);
    Ok(ChannelRow {
        name: valid(ChannelName::new(stored.name), "channel")?,
        kind: kind.ok_or_else(|| Fault::Damaged(format!("a channel has the unknown kind {:?}", stored.kind)))?,
        created_at: Timestamp::from_millis(stored.created_at),
        live: stored.live,
        empty: stored.rows == 0,
        latest_seq: stored.latest_seq,
        last_activity: stored.last_activity.map(Timestamp::from_millis),
        evicted_before: stored.evicted_before,
    })
}
