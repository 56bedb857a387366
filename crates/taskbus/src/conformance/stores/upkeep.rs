//! What the maintenance needs: the oldest first, and what it has to remember.

use taskbus_core::bus::channel::{ChannelKind, ChannelName};

use super::bus::{Bus, Letter, NO_BUS, at, channel, who};
use super::{Crew, StorePlace, Verdict};
use crate::store::bus::{MessageQuery, NoticeKind};
use crate::store::{SessionRow, read_with, write_with};

pub(super) fn the_oldest_ordinary_messages_are_evicted_first(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let (general, inbox) = (ChannelName::general(), channel("dm/amp"));
    bus.write(|tx| tx.create_channel(&inbox, ChannelKind::Ordinary, at(1)));
    let late = bus.post(&Letter::to(&general, "x").sent_at(30));
    let early = bus.post(&Letter::to(&inbox, "x").sent_at(10));
    let middle = bus.post(&Letter::to(&general, "x").sent_at(20));
    bus.post(&Letter::to(&ChannelName::memory(), "x").sent_at(5));
    let oldest = |before: Option<i64>, limit| bus.read(|bus| bus.evictable(before.map(at), limit));
    let expected = [(early, inbox), (middle, general.clone()), (late, general)];
    assert_eq!(oldest(None, 9), expected, "memories stay");
    assert_eq!((oldest(Some(30), 9), oldest(None, 1)), (expected[..2].to_vec(), expected[..1].to_vec()));
    assert_eq!(oldest(Some(10), 9), []);
    bus.write(|tx| tx.remove(&[early, middle]));
    assert_eq!(oldest(None, 9), expected[2..]);
    Verdict::Held
}

pub(super) fn notices_and_the_lease_are_remembered(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let state = || {
        bus.read(|bus| Ok((bus.notice(NoticeKind::Capacity)?, bus.notice(NoticeKind::Embedding)?, bus.maintainer()?)))
    };
    assert_eq!(state(), (None, None, None));
    bus.write(|tx| {
        tx.put_notice(NoticeKind::Capacity, Some("full"), at(1))?;
        tx.put_notice(NoticeKind::Capacity, Some("very full"), at(2))?;
        tx.put_maintainer("one", at(5))?;
        tx.put_maintainer("two", at(6))
    });
    assert_eq!(state(), (Some("very full".to_owned()), None, Some(("two".to_owned(), at(6)))));
    bus.write(|tx| {
        tx.put_notice(NoticeKind::Capacity, None, at(3))?;
        tx.put_notice(NoticeKind::Embedding, None, at(3))
    });
    assert_eq!(state().0, None);
    Verdict::Held
}

pub(super) fn sessions_that_ended_are_dropped_and_their_names_stay(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let session = |name: &str, until: i64| SessionRow {
        name: who(name),
        token: name.to_owned(),
        alive_until: at(until),
        registered_at: at(1),
        context: String::new(),
        client: String::new(),
        pid: 1,
        harness: None,
    };
    let put = write_with(&*bus.store, None, |tx| {
        tx.put_session(&session("early", 10))?;
        tx.put_session(&session("middle", 20))?;
        Ok(tx.put_session(&session("late", 30))?)
    });
    put.expect("sessions are written");
    assert!(bus.read(|bus| bus.has_ended_sessions(at(11))) && !bus.read(|bus| bus.has_ended_sessions(at(10))));
    assert_eq!(bus.write(|tx| tx.drop_sessions(at(30), 1)), 1, "no more than asked for");
    assert_eq!(bus.write(|tx| tx.drop_sessions(at(30), 9)), 1);
    assert_eq!(bus.write(|tx| tx.drop_sessions(at(30), 9)), 0, "who ends at that time has not ended before it");
    let left = read_with(&*bus.other, None, |snapshot| {
        Ok((snapshot.sessions(at(0))?.len(), snapshot.is_known(&who("early"))?))
    });
    assert_eq!(left.expect("they can be read"), (1, true));
    Verdict::Held
}

pub(super) fn a_reset_leaves_nothing_but_the_numbers(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let crew = Crew::at(place);
    crew.person("zed").add("task");
    bus.post(&Letter::to(&ChannelName::general(), "word").tagged(&["a"]));
    bus.post(&Letter::to(&ChannelName::memory(), "word"));
    let newest = bus.read(|bus| bus.latest_seq());
    bus.write(|tx| {
        tx.put_maintainer("one", at(5))?;
        tx.reset()
    });
    assert_eq!(bus.read(|bus| Ok((bus.channels()?, bus.latest_seq()?, bus.maintainer()?))), (vec![], newest, None));
    let sessions = read_with(&*bus.other, None, |snapshot| snapshot.sessions(at(0))).expect("they can be read");
    assert_eq!(sessions, []);
    assert_eq!(bus.search("word", &Default::default()), []);
    assert_eq!(bus.seqs(&MessageQuery::anywhere(0, 9)), [0; 0]);
    let id = crew.person("amp").add("after it");
    assert!(id.as_number() > Some(newest), "{id} after {newest}");
    assert!(bus.read(|bus| bus.used_bytes()) > 0);
    bus.write(|tx| tx.shrink());
    assert_eq!(crew.person("jan").order(), [id]);
    Verdict::Held
}
