//! Subscriptions and sets of tags: who reads what, and how far.

use rusqlite::{Row as SqlRow, params};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::tag::TagSet;
use taskbus_core::name::Identity;
use taskbus_core::time::Timestamp;

use super::super::error::Answer;
use super::super::scope::{Scope, valid};
use crate::store::bus::{Pending, Source, SubscriptionRow, TagSetRow};

const SUBSCRIPTIONS: &str = "
    SELECT source, cursor, last_activity, token, pending_end FROM subscriptions WHERE who = ?1 ORDER BY source";
const SUBSCRIBERS: &str = "
    SELECT who FROM subscriptions INDEXED BY subscriptions_by_source WHERE source = ?1 ORDER BY who";
const PUT: &str = "
    INSERT INTO subscriptions (who, source, cursor, last_activity, token, pending_end) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (who, source) DO UPDATE SET cursor = excluded.cursor, last_activity = excluded.last_activity,
        token = excluded.token, pending_end = excluded.pending_end";
const END: &str = "DELETE FROM subscriptions WHERE who = ?1 AND source = ?2";
const TAG_SETS: &str = "SELECT patterns, since_seq FROM tag_sets WHERE who = ?1 ORDER BY patterns";
const PUT_TAG_SET: &str = "
    INSERT INTO tag_sets (who, patterns, since_seq) VALUES (?1, ?2, ?3)
    ON CONFLICT (who, patterns) DO UPDATE SET since_seq = excluded.since_seq";
const END_TAG_SET: &str = "DELETE FROM tag_sets WHERE who = ?1 AND patterns = ?2";

/// A subscription as it is stored.
struct Stored {
    source: String,
    cursor: u64,
    last_activity: i64,
    pending: Option<(String, u64)>,
}

impl Scope<'_> {
    pub(super) fn subscriptions_of(&self, who: &Identity) -> Answer<Vec<SubscriptionRow>> {
        let rows = self.all(SUBSCRIPTIONS, [who.as_str()], stored)?.into_iter();
        let mut rows: Vec<SubscriptionRow> = rows.map(|stored| checked(who, stored)).collect::<Answer<_>>()?;
        rows.sort_by(|a, b| a.source.cmp(&b.source));
        Ok(rows)
    }

    pub(super) fn subscribers_of(&self, channel: &ChannelName) -> Answer<Vec<Identity>> {
        let names: Vec<String> = self.all(SUBSCRIBERS, [channel.as_str()], |row| row.get(0))?;
        names.into_iter().map(|name| valid(Identity::new(name), "subscriber")).collect()
    }

    pub(super) fn keep_subscription(&self, row: &SubscriptionRow) -> Answer<()> {
        let (token, end) = row.pending.as_ref().map(|pending| (&pending.token, pending.end)).unzip();
        let source = row.source.to_string();
        let values = params![row.who.as_str(), source, row.cursor, row.last_activity.as_millis(), token, end];
        self.run(PUT, values)?;
        Ok(())
    }

    pub(super) fn drop_subscription(&self, who: &Identity, source: &Source) -> Answer<()> {
        self.run(END, (who.as_str(), source.to_string()))?;
        Ok(())
    }

    pub(super) fn tag_sets_of(&self, who: &Identity) -> Answer<Vec<TagSetRow>> {
        let rows: Vec<(String, u64)> = self.all(TAG_SETS, [who.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let set = |(patterns, since_seq): (String, u64)| {
            let patterns: Vec<&str> = patterns.split(',').collect();
            Ok(TagSetRow { set: valid(TagSet::new(&patterns), "set of tags")?, since_seq })
        };
        rows.into_iter().map(set).collect()
    }

    pub(super) fn keep_tag_set(&self, who: &Identity, row: &TagSetRow) -> Answer<()> {
        self.run(PUT_TAG_SET, (who.as_str(), row.set.key(), row.since_seq))?;
        Ok(())
    }

    pub(super) fn drop_tag_set(&self, who: &Identity, set: &TagSet) -> Answer<()> {
        self.run(END_TAG_SET, (who.as_str(), set.key()))?;
        Ok(())
    }
}

fn stored(row: &SqlRow<'_>) -> rusqlite::Result<Stored> {
    let (token, end): (Option<String>, Option<u64>) = (row.get(3)?, row.get(4)?);
    Ok(Stored { source: row.get(0)?, cursor: row.get(1)?, last_activity: row.get(2)?, pending: token.zip(end) })
}

fn checked(who: &Identity, stored: Stored) -> Answer<SubscriptionRow> {
    let source = if stored.source == Source::Tags.to_string() {
        Source::Tags
    } else {
        Source::Channel(valid(ChannelName::new(stored.source), "source")?)
    };
    Ok(SubscriptionRow {
        who: who.clone(),
        source,
        cursor: stored.cursor,
        last_activity: Timestamp::from_millis(stored.last_activity),
        pending: stored.pending.map(|(token, end)| Pending { token, end }),
    })
}
