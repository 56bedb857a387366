//! What a store keeps and for how long (reference D): the order of the maintenance, what is due, and how much must go
//! when the store is full. Pure: the engine asks and removes, in short transactions.

use std::collections::BTreeMap;

use crate::bus::channel::ChannelName;
use crate::time::Timestamp;

/// A step of the maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Sessions that ended long ago are forgotten; their names are not.
    Sessions,
    /// Abandoned tasks go back to their queues.
    Abandoned,
    /// Receipts that expired are dropped.
    Receipts,
    /// Messages that are too old are dropped.
    Age,
    /// Buried messages that were kept long enough are removed.
    Tombstones,
    /// Channels with nothing in them and nobody at them are dropped.
    Channels,
    /// Task lists in which nothing happens are dropped.
    TaskLists,
    /// Memories that nobody reads are deleted.
    Memories,
    /// When the store is larger than it may be, the oldest messages are dropped.
    Capacity,
    /// Free space is given back.
    Shrink,
    /// Texts that were written since are taken into the index, so that the next search need not.
    Texts,
    /// Memories without a vector get one.
    Embeddings,
}

impl Step {
    /// Every step, in the order in which they run.
    pub const ORDER: [Step; 12] = [
        Step::Sessions,
        Step::Abandoned,
        Step::Receipts,
        Step::Age,
        Step::Tombstones,
        Step::Channels,
        Step::TaskLists,
        Step::Memories,
        Step::Capacity,
        Step::Shrink,
        Step::Texts,
        Step::Embeddings,
    ];

    /// Whether a store that keeps task lists only has it too.
    #[must_use]
    pub fn is_of_lists(self) -> bool {
        matches!(self, Step::Abandoned | Step::Receipts)
    }

    /// Its name, for a log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Step::Sessions => "sessions",
            Step::Abandoned => "abandoned tasks",
            Step::Receipts => "receipts",
            Step::Age => "age",
            Step::Tombstones => "tombstones",
            Step::Channels => "empty channels",
            Step::TaskLists => "task lists",
            Step::Memories => "memories",
            Step::Capacity => "capacity",
            Step::Shrink => "free space",
            Step::Texts => "texts",
            Step::Embeddings => "embeddings",
        }
    }
}

/// Whose turn the maintenance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Another process does it.
    Anothers,
    /// This process does, for longer than until its next tick.
    Ours,
    /// Nobody does, or this process not for long enough: it may, until this time.
    Take {
        /// Two intervals from now.
        until: Timestamp,
    },
}

/// Nobody holds the maintenance for longer than this at a time: a later end was written by a clock that was wrong.
const HELD_MS_MAX: i64 = 2 * HOUR_MS;

/// Whose turn it is, given who did it last and until when, for a process that ticks once in an interval.
#[must_use]
pub fn turn(held: Option<(&str, Timestamp)>, me: &str, now: Timestamp, interval_ms: i64) -> Turn {
    let believable = |until: Timestamp| until > now && until <= now.plus_millis(HELD_MS_MAX);
    match held {
        Some((who, until)) if who != me && believable(until) => Turn::Anothers,
        Some((who, until)) if who == me && until > now.plus_millis(interval_ms) => Turn::Ours,
        Some(_) | None => Turn::Take { until: now.plus_millis(interval_ms.saturating_mul(2)) },
    }
}

/// Milliseconds of an hour.
const HOUR_MS: i64 = 3_600_000;
/// How long an empty channel is left alone: whoever made it may be about to use it. In hours.
pub const EMPTY_CHANNEL_HOURS: i64 = 1;
/// How long the session of a process that is gone is remembered, in hours.
pub const ENDED_SESSION_HOURS: i64 = 24;

/// Less free space than this is left where it is, for what is written next. In bytes.
pub const SHRINK_BYTES_MIN: u64 = MIB;

/// What is older than so many hours is due before this time; none when the number of hours is 0, which means never.
#[must_use]
pub fn due_before(now: Timestamp, hours: i64) -> Option<Timestamp> {
    (hours > 0).then(|| now.plus_millis(hours.saturating_mul(-HOUR_MS)))
}

/// What is known of a channel when it is asked whether it may go.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its name.
    pub name: &'a ChannelName,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it has no message at all, not even a buried one.
    pub is_empty: bool,
    /// When anything last happened in it.
    pub last_activity: Option<Timestamp>,
}

impl Seen<'_> {
    /// Whether it is of no use to anybody: empty for an hour, and no channel that every store has, no inbox and no task
    /// list, which somebody may have made for work to come. Whether somebody listens is asked next.
    #[must_use]
    pub fn is_of_no_use(&self, now: Timestamp) -> bool {
        let stays = self.name.is_default() || self.name.owner().is_some() || self.name.list().is_some();
        let old = due_before(now, EMPTY_CHANNEL_HOURS).is_some_and(|before| self.created_at < before);
        !stays && self.is_empty && old
    }

    /// Whether it is a task list in which nothing happened since that time.
    #[must_use]
    pub fn is_idle_list(&self, before: Timestamp) -> bool {
        let last = self.last_activity.map_or(self.created_at, |at| at.max(self.created_at));
        self.name.list().is_some() && last < before
    }
}

/// Of each channel that messages were evicted from, the lowest number that may survive.
#[must_use]
pub fn borders(evicted: &[(u64, ChannelName)]) -> BTreeMap<&ChannelName, u64> {
    let mut borders = BTreeMap::new();
    for (seq, channel) in evicted {
        let border = borders.entry(channel).or_insert(0);
        *border = seq.saturating_add(1).max(*border);
    }
    borders
}

/// How large a store may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In MiB.
    pub mib: u64,
    /// How much of it an eviction leaves free, in percent.
    pub free_percent: u64,
}

/// Bytes of a MiB.
const MIB: u64 = 1024 * 1024;

impl Budget {
    /// Whether a store of so many bytes is too large, so that an eviction begins.
    #[must_use]
    pub fn is_over(self, used_bytes: u64) -> bool {
        used_bytes > self.mib.saturating_mul(MIB)
    }

    /// Whether a store of so many bytes is so far from full that a second of writing does not fill it.
    #[must_use]
    pub fn has_headroom(self, used_bytes: u64) -> bool {
        used_bytes.saturating_add(HEADROOM_BYTES) <= self.mib.saturating_mul(MIB)
    }

    /// Whether an eviction has freed enough.
    #[must_use]
    pub fn is_met(self, used_bytes: u64) -> bool {
        let kept = 100_u64.saturating_sub(self.free_percent);
        used_bytes <= self.mib.saturating_mul(MIB) / 100 * kept
    }
}

/// More than is written in a second.
const HEADROOM_BYTES: u64 = 64 * MIB;

/// So many bytes in whole MiB, as people are told.
#[must_use]
pub fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ChannelName {
        ChannelName::new(text).unwrap()
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(hours * HOUR_MS)
    }

    #[test]
    fn the_maintenance_has_the_order_of_the_reference() {
        let of_lists: Vec<Step> = Step::ORDER.into_iter().filter(|step| step.is_of_lists()).collect();
        assert_eq!(of_lists, [Step::Abandoned, Step::Receipts]);
        let names: Vec<&str> = Step::ORDER.iter().map(|step| step.as_str()).collect();
        assert_eq!(
            names.join(", "),
            "sessions, abandoned tasks, receipts, age, tombstones, empty channels, task lists, memories, capacity, \
             free space, texts, embeddings"
        );
    }

    #[test]
    fn one_process_does_the_maintenance_until_it_is_silent_for_two_intervals() {
        let take = Turn::Take { until: at(3) };
        assert_eq!(turn(None, "a", at(1), HOUR_MS), take);
        assert_eq!(turn(Some(("b", at(2))), "a", at(1), HOUR_MS), Turn::Anothers);
        assert_eq!(turn(Some(("b", at(1))), "a", at(1), HOUR_MS), take);
        assert_eq!(turn(Some(("a", at(3))), "a", at(1), HOUR_MS), Turn::Ours);
        assert_eq!(turn(Some(("a", at(2))), "a", at(1), HOUR_MS), take);
        assert_eq!(turn(Some(("b", at(3))), "a", at(1), HOUR_MS), Turn::Anothers);
        assert_eq!(turn(Some(("b", at(4))), "a", at(1), HOUR_MS), take, "nobody holds it for three hours");
    }

    #[test]
    fn no_hours_mean_never() {
        assert_eq!(due_before(at(10), 0), None);
        assert_eq!(due_before(at(10), 3), Some(at(7)));
        assert!(due_before(at(10), i64::MAX).is_some_and(|before| before < at(0)));
    }

    #[test]
    fn an_empty_channel_goes_after_an_hour_and_those_that_all_have_never() {
        let goes = |channel: &str, is_empty, created| {
            Seen { name: &name(channel), created_at: at(created), is_empty, last_activity: None }.is_of_no_use(at(10))
        };
        assert!(goes("general/app", true, 8) && goes("memory/app", true, 8) && goes("x", true, 8));
        assert!(!goes("x", false, 8) && !goes("x", true, 10 - EMPTY_CHANNEL_HOURS));
        for stays in ["general", "memory", "dm/Zed", "tasks/app"] {
            assert!(!goes(stays, true, 0), "{stays}");
        }
    }

    #[test]
    fn a_list_is_idle_since_its_last_message_or_its_making() {
        let idle = |channel: &str, created, last: Option<i64>| {
            Seen { name: &name(channel), created_at: at(created), is_empty: false, last_activity: last.map(at) }
                .is_idle_list(at(10))
        };
        assert!(idle("tasks/app", 1, Some(9)) && idle("tasks/app", 1, None));
        assert!(!idle("tasks/app", 1, Some(10)) && !idle("tasks/app", 10, None) && !idle("tasks/app", 11, Some(2)));
        assert!(!idle("memory/app", 1, None) && !idle("general/app", 1, None));
    }

    #[test]
    fn the_border_of_a_channel_is_behind_its_last_eviction() {
        let evicted = [(3, name("a")), (9, name("b")), (7, name("a"))];
        let borders: Vec<(String, u64)> = borders(&evicted).into_iter().map(|(n, at)| (n.to_string(), at)).collect();
        assert_eq!(borders, [("a".to_owned(), 8), ("b".to_owned(), 10)]);
    }

    #[test]
    fn an_eviction_begins_above_the_budget_and_ends_well_below() {
        let budget = Budget { mib: 100, free_percent: 25 };
        assert!(!budget.is_over(100 * MIB) && budget.is_over(100 * MIB + 1));
        assert!(budget.has_headroom(36 * MIB) && !budget.has_headroom(36 * MIB + 1));
        assert!(budget.is_met(75 * MIB) && !budget.is_met(75 * MIB + 1));
        assert_eq!((mib(0), mib(1), mib(MIB), mib(MIB + 1)), (0, 1, 1, 2));
    }
}
