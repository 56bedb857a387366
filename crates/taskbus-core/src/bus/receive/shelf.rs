//! The subscriptions of one caller during one delivery: read once, changed here, written once if they changed.

use super::super::select::{Found, Part, Wanted, select};
use super::{Facts, Gap};
use crate::bus::channel::ChannelName;
use crate::bus::mailbox::{Mailbox, Reader};
use crate::bus::subscription::{FollowedTags, Pending, Source, Subscription};
use crate::limits;
use crate::name::Identity;
use crate::neighbourhood::Look;
use crate::time::Timestamp;

/// A row is written for the sake of its last activity alone only when that is older than this, in milliseconds.
const RENEW_MS: i64 = 60_000;

pub(super) struct Shelf {
    caller: Identity,
    rows: Vec<Row>,
    /// Every channel the caller is subscribed to, those left out of this call too.
    direct: Vec<ChannelName>,
    sets: Vec<FollowedTags>,
}

struct Row {
    now: Subscription,
    /// Whether the call asks for it; if not, it is here for its pending batch alone.
    asked: bool,
    changed: bool,
    /// The first number of its channel that may have survived.
    evicted_before: u64,
}

impl Shelf {
    /// The rows that a call is about: those the caller may read, of the channels named, and all with a pending batch.
    pub(super) fn load(channels: &[ChannelName], reader: &dyn Reader, facts: &Facts) -> Look<Self> {
        let all = reader.subscriptions()?;
        let direct = all.iter().filter_map(|row| row.source.channel().cloned()).collect();
        let mine = all.into_iter().filter(|row| row.source.is_readable_by(&facts.caller));
        let asked =
            |row: &Subscription| channels.is_empty() || row.source.channel().is_some_and(|it| channels.contains(it));
        let rows = mine.map(|row| Row { asked: asked(&row), now: row, changed: false, evicted_before: 0 });
        let rows = rows.filter(|row| row.asked || row.now.pending.is_some()).collect();
        Ok(Self { caller: facts.caller.clone(), rows, direct, sets: reader.followed_tags()? })
    }

    /// Ends what was not read for too long, and says which; what is beyond the limit waits for the next call.
    pub(super) fn expire(&mut self, mailbox: &mut dyn Mailbox, facts: &Facts) -> Look<Vec<String>> {
        let mut told = Vec::new();
        for row in self.rows.extract_if(.., |row| row.now.is_expired(facts.now, facts.idle_ms)) {
            if told.len() < limits::NOTICES_MAX {
                mailbox.end(&row.now.source)?;
                told.push(row.now.source);
            }
        }
        self.direct.retain(|name| !told.iter().any(|source| source.channel() == Some(name)));
        if told.contains(&Source::Tags) {
            self.sets.clear();
        }
        Ok(told.iter().map(ToString::to_string).collect())
    }

    /// The caller reads these rows now.
    pub(super) fn renew(&mut self, now: Timestamp) {
        for row in &mut self.rows {
            if row.now.last_activity.plus_millis(RENEW_MS) <= now {
                row.now.last_activity = now;
                row.changed = true;
            }
        }
    }

    /// Everything of the batch is read; false when no row has it.
    pub(super) fn acknowledge(&mut self, token: &str) -> bool {
        let mut known = false;
        for row in &mut self.rows {
            if let Some(pending) = row.now.pending.take_if(|pending| pending.token == token) {
                row.now.cursor = row.now.cursor.max(pending.end);
                row.changed = true;
                known = true;
            }
        }
        known
    }

    /// Ends what reads a channel that is gone, without a word.
    pub(super) fn drop_gone(&mut self, mailbox: &mut dyn Mailbox) -> Look<()> {
        let mut kept = Vec::with_capacity(self.rows.len());
        for mut row in self.rows.drain(..) {
            let floor = match row.now.source.channel() {
                Some(channel) => mailbox.evicted_before(channel)?,
                None => Some(0),
            };
            match floor {
                Some(floor) => {
                    row.evicted_before = floor;
                    kept.push(row);
                }
                None => mailbox.end(&row.now.source)?,
            }
        }
        self.rows = kept;
        Ok(())
    }

    /// Moves over what was evicted, and says where; whether there is more of it than one call tells.
    pub(super) fn skip_evicted(&mut self) -> (Vec<Gap>, bool) {
        let mut gaps = Vec::new();
        for row in &mut self.rows {
            let Source::Channel(channel) = &row.now.source else { continue };
            let last_gone = row.evicted_before.saturating_sub(1);
            if row.now.cursor >= last_gone {
                continue;
            }
            if gaps.len() == limits::NOTICES_MAX {
                return (gaps, true);
            }
            gaps.push(Gap { channel: channel.clone(), from: row.now.cursor + 1, to: last_gone });
            row.now.cursor = last_gone;
            row.now.pending.take_if(|pending| pending.end <= last_gone);
            row.changed = true;
        }
        (gaps, false)
    }

    /// The token of the batch that is pending, if one is.
    pub(super) fn pending_token(&self) -> Option<String> {
        self.rows.iter().find_map(|row| row.now.pending.as_ref()).map(|pending| pending.token.clone())
    }

    /// What is new.
    pub(super) fn new_messages(&self, reader: &dyn Reader, include_own: bool, count: usize) -> Look<Vec<Found>> {
        self.select(reader, include_own, count, |row| (row.now.cursor, if row.asked { u64::MAX } else { 0 }))
    }

    /// What is left of a pending batch, with or without the caller's own messages as it was made.
    pub(super) fn pending_messages(&self, reader: &dyn Reader, token: &str, count: usize) -> Look<Vec<Found>> {
        let end = |row: &Subscription| row.pending.as_ref().filter(|it| it.token == token).map_or(0, |it| it.end);
        self.select(reader, token.ends_with(":o1"), count, |row| (row.now.cursor, end(&row.now)))
    }

    fn select(
        &self,
        reader: &dyn Reader,
        include_own: bool,
        limit: usize,
        range: impl Fn(&Row) -> (u64, u64),
    ) -> Look<Vec<Found>> {
        let parts = self.rows.iter().map(|row| {
            let (after, until) = range(row);
            Part { source: &row.now.source, after, until }
        });
        let not_from = (!include_own).then_some(&self.caller);
        select(&Wanted { parts: parts.collect(), direct: &self.direct, sets: &self.sets, not_from, limit }, reader)
    }

    /// These messages are pending now; a row that has none of them stays as it is.
    pub(super) fn hand_out(&mut self, token: &str, shown: &[Found]) {
        for Found { message, part } in shown {
            let row = &mut self.rows[*part];
            row.now.pending = Some(Pending { token: token.to_owned(), end: message.seq });
            row.changed = true;
        }
    }

    /// A pending batch ends, for every row, where what was really shown ends: so an acknowledgement never moves over
    /// something unseen.
    pub(super) fn hand_out_again(&mut self, token: &str, shown: &[Found]) {
        for (part, row) in self.rows.iter_mut().enumerate() {
            let Some(pending) = row.now.pending.as_mut().filter(|pending| pending.token == token) else { continue };
            let last = shown.iter().rfind(|found| found.part == part);
            let end = last.map_or(row.now.cursor, |found| found.message.seq);
            row.changed |= pending.end != end;
            pending.end = end;
        }
    }

    /// Writes what changed.
    pub(super) fn keep(self, mailbox: &mut dyn Mailbox) -> Look<()> {
        for row in self.rows.iter().filter(|row| row.changed) {
            mailbox.put(&row.now)?;
        }
        Ok(())
    }
}
