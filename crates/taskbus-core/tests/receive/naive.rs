//! A naive reader: it writes down every message that it was shown and acknowledged, and every gap that it was told.
//! Whatever happens, what its rows call read is what it wrote down, and in the end it has everything.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use taskbus_core::bus::receive::Received;
use taskbus_core::bus::subscription::Source;

use crate::support::{Bus, Call, name};

const CHANNELS: [&str; 4] = ["general", "general/app", "memory", "dm/Zed"];
/// Not read directly, but by its tags.
const TAGGED: &str = "general/far";
const SENDERS: [&str; 3] = ["Zed", "Amp", ""];

#[derive(Clone, Debug)]
enum Act {
    Send { channel: usize, sender: usize, long: bool, tagged: bool },
    Receive { ack: Acked, count: usize, filter: Option<usize>, include_own: bool, tight: bool },
    TakeBack,
    Evict { channel: usize, most: usize },
    Bury { message: usize },
    Follow { tag: usize },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Acked {
    No,
    Last,
    Stale,
}

fn act() -> impl Strategy<Value = Act> {
    let send = (0..=CHANNELS.len(), 0..SENDERS.len(), any::<bool>(), any::<bool>())
        .prop_map(|(channel, sender, long, tagged)| Act::Send { channel, sender, long, tagged });
    let acked = prop_oneof![2 => Just(Acked::No), 3 => Just(Acked::Last), 1 => Just(Acked::Stale)];
    let filter = proptest::option::weighted(0.2, 0..CHANNELS.len());
    let receive = (acked, 1..6_usize, filter, any::<bool>(), any::<bool>())
        .prop_map(|(ack, count, filter, include_own, tight)| Act::Receive { ack, count, filter, include_own, tight });
    prop_oneof![
        6 => send,
        6 => receive,
        1 => Just(Act::TakeBack),
        1 => (0..CHANNELS.len(), 0..8_usize).prop_map(|(channel, most)| Act::Evict { channel, most }),
        1 => any::<usize>().prop_map(|message| Act::Bury { message }),
        1 => (0..2_usize).prop_map(|tag| Act::Follow { tag }),
    ]
}

/// The reader and what it wrote down.
struct Naive {
    bus: Bus,
    last: Option<Received>,
    stale: Option<String>,
    read: BTreeSet<u64>,
    gaps: BTreeMap<String, Vec<(u64, u64)>>,
}

impl Naive {
    fn new() -> Self {
        let mut bus = Bus::read(&CHANNELS);
        bus.channels.insert(name(TAGGED), 0);
        bus.follow_tags(&["bug", "env*"]);
        Self { bus, last: None, stale: None, read: BTreeSet::new(), gaps: BTreeMap::new() }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Send { channel, sender, long, tagged } => {
                let content = if *long { "long ".repeat(60) } else { "short".to_owned() };
                let tags: &[&str] = if *tagged { &["bug", "env:prod", "rust"] } else { &["rust"] };
                let channel = CHANNELS.get(*channel).copied().unwrap_or(TAGGED);
                self.bus.send_with(channel, SENDERS[*sender], &content, tags);
            }
            Act::Receive { ack, count, filter, include_own, tight } => {
                self.bus.result_bytes = if *tight { 700 } else { 64 * 1024 };
                let filter: Vec<&str> = filter.iter().map(|channel| CHANNELS[*channel]).collect();
                self.receive(*ack, *count, &filter, *include_own);
            }
            Act::TakeBack => {
                if let Some(token) = self.last.take().and_then(|batch| batch.batch) {
                    taskbus_core::bus::receive::take_back(&token, &mut self.bus).unwrap();
                }
            }
            Act::Evict { channel, most } => self.evict(CHANNELS[*channel], *most),
            Act::Bury { message } => {
                if let Some(seq) = self.bus.messages.len().checked_sub(1).map(|last| message % (last + 1)) {
                    self.bus.buried.insert(self.bus.messages[seq].seq);
                }
            }
            Act::Follow { tag } => self.bus.follow_tags(&[["rust", "other"][*tag]]),
        }
    }

    fn evict(&mut self, channel: &str, most: usize) {
        let own: Vec<u64> =
            self.bus.messages.iter().filter(|it| it.channel == name(channel)).map(|it| it.seq).collect();
        if let Some(last) = own.iter().take(most).next_back() {
            self.bus.evict(channel, last + 1);
        }
    }

    fn receive(&mut self, ack: Acked, count: usize, channels: &[&str], include_own: bool) -> bool {
        let last = self.last.as_ref().and_then(|batch| batch.batch.clone());
        let token = match ack {
            Acked::No => None,
            Acked::Last => last.clone(),
            Acked::Stale => self.stale.clone(),
        };
        let acked = token.is_some() && token == last;
        if acked && let Some(batch) = self.last.take() {
            let fresh = batch.messages.iter().all(|message| self.read.insert(message.seq));
            assert!(fresh, "a message came after it was acknowledged");
            self.stale = token.clone();
        }
        let got = self.bus.receive(Call { ack: token.as_deref(), count: Some(count), channels, include_own });
        for gap in &got.gaps {
            self.gaps.entry(gap.channel.to_string()).or_default().push((gap.from, gap.to));
        }
        self.compare(&got);
        let came = got.batch.is_some();
        // A pending batch may be covered by a gap; otherwise it comes again under its token.
        self.last = Some(got).filter(|got| got.batch.is_some());
        came
    }

    /// The same batch has what it had, unless that is gone.
    fn compare(&self, got: &Received) {
        let Some(before) = self.last.as_ref().filter(|last| last.batch.is_some() && last.batch == got.batch) else {
            assert!(!got.redelivered || self.last.is_none(), "another batch came in the place of the pending one");
            return;
        };
        let live = |seq: u64| self.bus.messages.iter().any(|it| it.seq == seq) && !self.bus.buried.contains(&seq);
        let left: Vec<u64> = before.messages.iter().map(|it| it.seq).filter(|seq| live(*seq)).collect();
        let came: Vec<u64> = got.messages.iter().map(|it| it.seq).collect();
        assert!(got.redelivered);
        assert_eq!(came, left);
    }

    /// Everything that a row calls read was acknowledged, told to be missing, or is the reader's own.
    fn check(&self) {
        for message in self.bus.messages.iter().filter(|it| !self.bus.buried.contains(&it.seq)) {
            let row = self.bus.rows.get(&Source::Channel(message.channel.clone()));
            let Some(row) = row.filter(|row| message.seq <= row.cursor) else { continue };
            let own = message.sender.as_ref() == Some(&row.who);
            let told = self.gaps.get(message.channel.as_str());
            let missing = told.is_some_and(|gaps| gaps.iter().any(|(from, to)| (*from..=*to).contains(&message.seq)));
            assert!(own || missing || self.read.contains(&message.seq), "{} was skipped", message.seq);
        }
    }

    /// Reads until nothing comes.
    fn drain(&mut self) {
        self.bus.result_bytes = 64 * 1024;
        for _ in 0..2 * self.bus.messages.len() + 3 {
            if !self.receive(Acked::Last, 3, &[], false) {
                break;
            }
            self.check();
        }
        assert!(!self.bus.rows.values().any(|row| row.pending.is_some()));
        for message in self.bus.messages.iter().filter(|it| !self.bus.buried.contains(&it.seq)) {
            let tagged = self.bus.sets.iter().any(|it| it.since_seq < message.seq && it.set.matches(&message.tags));
            let mine = message.channel != name(TAGGED) || tagged;
            let foreign = message.sender.as_ref().is_none_or(|sender| sender.as_str() != "Zed");
            assert!(!(mine && foreign) || self.read.contains(&message.seq), "{} never came", message.seq);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_skipped_and_nothing_is_read_unseen(acts in proptest::collection::vec(act(), 1..60)) {
        let mut naive = Naive::new();
        for act in &acts {
            naive.act(act);
            naive.check();
        }
        naive.drain();
    }
}
