//! Which messages come next out of several sources: the lowest numbers of all of them, each message once.

use std::collections::BTreeMap;

use crate::bus::channel::ChannelName;
use crate::bus::mailbox::{Reader, Scan, ScanPlace};
use crate::bus::message::Message;
use crate::bus::subscription::{FollowedTags, Source};
use crate::name::{Identity, Label};
use crate::neighbourhood::Look;

/// What to look for.
pub(super) struct Wanted<'a> {
    /// Which part of which source, each known by its place here.
    pub(super) parts: Vec<Part<'a>>,
    /// The channels that come by themselves, and so not by their tags.
    pub(super) direct: &'a [ChannelName],
    /// The sets of tags that are followed.
    pub(super) sets: &'a [FollowedTags],
    /// Nothing that this identity sent.
    pub(super) not_from: Option<&'a Identity>,
    /// At most so many.
    pub(super) limit: usize,
}

/// A part of a source.
pub(super) struct Part<'a> {
    pub(super) source: &'a Source,
    /// Only numbers above this.
    pub(super) after: u64,
    /// Only numbers up to this.
    pub(super) until: u64,
}

/// A message, and which part it is of.
pub(super) struct Found {
    pub(super) message: Message,
    pub(super) part: usize,
}

/// The messages, in order.
pub(super) fn select(wanted: &Wanted<'_>, reader: &dyn Reader) -> Look<Vec<Found>> {
    let mut found = BTreeMap::new();
    // Channels first: what comes by itself does not come by its tags.
    for (part, it) in wanted.parts.iter().enumerate() {
        if let Source::Channel(name) = it.source {
            look(ScanPlace::Channel(name), it.after, part, wanted, reader, &mut found)?;
        }
    }
    for (part, it) in wanted.parts.iter().enumerate().filter(|(_, it)| *it.source == Source::Tags) {
        for followed in wanted.sets {
            let place = ScanPlace::Tags { set: &followed.set, except: wanted.direct };
            look(place, it.after.max(followed.since_seq), part, wanted, reader, &mut found)?;
        }
    }
    Ok(found.into_values().map(|found| with_matched_tags(found, wanted)).collect())
}

/// Adds what one place has. When there is enough already, only what comes before the last of it is of interest.
fn look(
    place: ScanPlace<'_>,
    after: u64,
    part: usize,
    wanted: &Wanted<'_>,
    reader: &dyn Reader,
    found: &mut BTreeMap<u64, Found>,
) -> Look<()> {
    let mut until = wanted.parts[part].until;
    if found.len() >= wanted.limit {
        until = until.min(found.last_key_value().map_or(0, |(seq, _)| *seq));
    }
    if after >= until {
        return Ok(());
    }
    let scan = Scan { place, after, until, not_from: wanted.not_from, limit: wanted.limit };
    for message in reader.scan(&scan)? {
        found.entry(message.seq).or_insert(Found { message, part });
    }
    while found.len() > wanted.limit {
        found.pop_last();
    }
    Ok(())
}

fn with_matched_tags(mut found: Found, wanted: &Wanted<'_>) -> Found {
    if *wanted.parts[found.part].source == Source::Tags {
        found.message.matched_tags = matched_tags(&found.message, wanted.sets);
    }
    found
}

/// The tags of a message because of which it is delivered.
fn matched_tags(message: &Message, sets: &[FollowedTags]) -> Vec<Label> {
    let matching = sets.iter().filter(|it| it.since_seq < message.seq && it.set.matches(&message.tags));
    let mut tags: Vec<Label> = matching.flat_map(|it| it.set.matched(&message.tags)).cloned().collect();
    tags.sort();
    tags.dedup();
    tags
}
