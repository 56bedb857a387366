//! Every question of the bus, asked of a snapshot, with the answers as text to compare.

use taskbus::core::bus::channel::ChannelName;
use taskbus::core::bus::query::Query;
use taskbus::core::bus::tag::TagPattern;
use taskbus::store::bus::{BusSnapshot, MessageFilter, MessageQuery, NoticeKind};
use taskbus::store::{ListRow, Snapshot};

use crate::support::{at, who};

pub(crate) const CHANNELS: [&str; 9] =
    ["general", "memory", "general/a", "memory/a", "plain", "dm/Amp", "dm/Jan", "tasks/work", "tasks/other"];
pub(crate) const NAMES: [&str; 3] = ["Amp", "Jan", "Poe"];
pub(crate) const MODELS: [&str; 3] = ["m1", "m2", "m3"];
const QUERIES: [&str; 12] = [
    "red",
    "RED fox",
    "gr*",
    "\"quick fox\"",
    "straße",
    "STRASSE",
    "red red* -fox",
    "note",
    "quick-brown",
    "été",
    "*x blue",
    "brown* fox*",
];

/// What was asked, and what was answered.
pub(crate) type Lines = Vec<String>;

macro_rules! ask {
    ($lines:ident, $what:expr, $answer:expr) => {
        $lines.push(format!("{:?}: {:?}", $what, $answer))
    };
}

pub(crate) fn channel(name: &str) -> ChannelName {
    ChannelName::new(name).unwrap()
}

pub(crate) fn patterns(texts: &[&str]) -> Vec<TagPattern> {
    texts.iter().map(|text| TagPattern::new(text).unwrap()).collect()
}

/// What a look at the bus shows; quick.
pub(crate) fn summary(bus: &dyn BusSnapshot, lists: &[ListRow]) -> Lines {
    let mut lines = Vec::new();
    ask!(lines, "channels", bus.channels().unwrap());
    ask!(lines, "lists", lists);
    ask!(lines, "latest", bus.latest_seq().unwrap());
    let newest = bus.latest_seq().unwrap();
    ask!(lines, "newest", bus.message(newest).unwrap());
    let name = channel(CHANNELS[usize::try_from(newest).unwrap() % CHANNELS.len()]);
    let last = MessageQuery { newest_first: true, ..MessageQuery::of(&name, 0, 2) };
    ask!(lines, ("one", &name), (bus.channel(&name).unwrap(), bus.messages(&last).unwrap()));
    ask!(lines, "evictable", bus.evictable(None, 3).unwrap());
    ask!(lines, "bare", bus.unembedded("m1", 3).unwrap());
    lines
}

/// One of so many parts of the questions is asked in one go; all are asked in the course of a test.
const PARTS: usize = 16;

/// A part of everything but searches.
pub(crate) fn everything(snapshot: &dyn Snapshot, part: usize) -> Lines {
    let bus = snapshot.bus().unwrap();
    let mut lines = summary(bus, &snapshot.lists().unwrap());
    let newest = bus.latest_seq().unwrap();
    let recent = newest.saturating_sub(10)..=newest + 1;
    for seq in recent.chain((0..=newest).filter(|seq| seq % PARTS as u64 == part as u64 % PARTS as u64)) {
        ask!(lines, ("message", seq), bus.message(seq).unwrap());
        ask!(lines, ("memory", seq), bus.memory(seq).unwrap());
        ask!(lines, ("revisions", seq), (bus.revisions(seq, 2).unwrap(), bus.revisions(seq, 100).unwrap()));
    }
    lines.extend(streams(bus, newest, part));
    lines.extend(people(bus));
    lines.extend(upkeep(bus));
    lines
}

fn streams(bus: &dyn BusSnapshot, newest: u64, part: usize) -> Lines {
    let (mut lines, mut at) = (Vec::new(), 0);
    let (amp, except) = (who("Amp"), [channel("general"), channel("dm/Jan")]);
    let sets = [patterns(&[]), patterns(&["a"]), patterns(&["b*"]), patterns(&["a", "b:*"]), patterns(&["z"])];
    let channels = CHANNELS.map(channel);
    for channel in channels.iter().map(Some).chain([None]) {
        for (all, any) in [(0, 0), (1, 0), (3, 0), (2, 1), (0, 2), (0, 3), (4, 0), (0, 4)] {
            let base =
                MessageQuery { channel, all_tags: &sets[all], any_tags: &sets[any], ..MessageQuery::anywhere(0, 9) };
            for query in [
                base,
                MessageQuery { limit: usize::MAX, ..base },
                MessageQuery { newest_first: true, limit: 3, ..base },
                MessageQuery { after: newest / 2, not_from: Some(&amp), ..base },
                MessageQuery { before: Some(newest / 2 + 1), newest_first: true, except: &except, ..base },
                MessageQuery { after: newest, before: Some(newest / 2), ..base },
            ] {
                at += 1;
                if at % PARTS != part % PARTS {
                    continue;
                }
                ask!(lines, query, bus.messages(&query).unwrap());
                ask!(lines, ("count", query), bus.count(&query).unwrap());
            }
        }
    }
    lines
}

fn people(bus: &dyn BusSnapshot) -> Lines {
    let mut lines = Vec::new();
    for name in NAMES.map(who) {
        ask!(lines, ("subscriptions", &name), bus.subscriptions(&name).unwrap());
        ask!(lines, ("tag sets", &name), bus.tag_sets(&name).unwrap());
    }
    for name in CHANNELS.map(channel) {
        ask!(lines, ("subscribers", &name), (bus.subscribers(&name).unwrap(), bus.channel(&name).unwrap()));
    }
    lines
}

fn upkeep(bus: &dyn BusSnapshot) -> Lines {
    let mut lines = Vec::new();
    for limit in [1, 4, 1000] {
        for time in [0, 300, 600, 2000] {
            ask!(lines, ("evictable", time), bus.evictable(Some(at(time)), limit).unwrap());
            ask!(lines, ("buried", time), bus.buried(at(time), limit).unwrap());
            ask!(lines, ("unread", time), bus.unread_memories(at(time), limit).unwrap());
            ask!(lines, ("ended", time), bus.has_ended_sessions(at(time)).unwrap());
        }
        for model in MODELS {
            ask!(lines, ("bare", model), bus.unembedded(model, limit).unwrap());
        }
    }
    for model in MODELS {
        ask!(
            lines,
            ("embeddings", model),
            (bus.embedding_counts(model).unwrap(), bus.has_other_models(model).unwrap())
        );
        for filter in filters(&patterns(&["b*"])) {
            let mut vectors = Vec::new();
            bus.vectors(model, &filter, &mut |found, vector| vectors.push((found, vector.to_vec()))).unwrap();
            ask!(lines, ("vectors", model, filter), vectors);
        }
    }
    for kind in [NoticeKind::Capacity, NoticeKind::Embedding] {
        ask!(lines, kind, bus.notice(kind).unwrap());
    }
    ask!(lines, "maintainer", bus.maintainer().unwrap());
    lines
}

/// Filters of a search, each alone and a few together.
fn filters(tags: &[TagPattern]) -> Vec<MessageFilter<'_>> {
    let leak = |name: &str| &*Box::leak(Box::new(who(name)));
    let general = &*Box::leak(Box::new(channel("general")));
    let work = &*Box::leak(Box::new(channel("tasks/work")));
    let all = MessageFilter::default();
    vec![
        all,
        MessageFilter { channel: Some(general), ..all },
        MessageFilter { channel: Some(work), ..all },
        MessageFilter { visible_to: Some(leak("Amp")), ..all },
        MessageFilter { sender: Some(leak("Jan")), visible_to: Some(leak("Poe")), ..all },
        MessageFilter { since: Some(at(300)), ..all },
        MessageFilter { until: Some(at(600)), ..all },
        MessageFilter { thread: Some(3), ..all },
        MessageFilter { any_tags: tags, ..all },
    ]
}

/// A part of the searches: what is found in which order, and the scores.
pub(crate) fn searches(bus: &dyn BusSnapshot, part: usize) -> (Lines, Vec<f64>) {
    let (mut lines, mut scores, mut at) = (Vec::new(), Vec::new(), 0);
    let tags = patterns(&["a", "b:*"]);
    for text in QUERIES {
        let query = Query::parse(text).unwrap();
        for filter in filters(&tags) {
            for limit in [2, 1000] {
                at += 1;
                if at % PARTS != part % PARTS {
                    continue;
                }
                let hits = bus.search(&query.terms, &filter, limit).unwrap();
                ask!(lines, (text, filter, limit), hits.iter().map(|hit| hit.found).collect::<Vec<_>>());
                scores.extend(hits.iter().map(|hit| hit.score));
            }
        }
    }
    (lines, scores)
}
