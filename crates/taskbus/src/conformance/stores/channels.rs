//! Channels, what is counted of them, and who follows them.

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::tag::TagSet;
use taskbus_core::name::ListName;

use super::bus::{Bus, Letter, NO_BUS, at, channel, who};
use super::{Crew, StorePlace, Verdict};
use crate::store::bus::{MessageQuery, Pending, Source, SubscriptionRow, TagSetRow};
use crate::store::read_with;

fn subscription(name: &str, source: Source, cursor: u64) -> SubscriptionRow {
    SubscriptionRow { who: who(name), source, cursor, last_activity: at(1), pending: None }
}

pub(super) fn channels_are_listed_by_name_with_inboxes_and_lists(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let crew = Crew::at(place);
    crew.person("zed");
    bus.write(|tx| {
        tx.create_channel(&channel("dm/zoe"), ChannelKind::Ordinary, at(5))?;
        tx.create_channel(&channel("general/x"), ChannelKind::Ordinary, at(6))?;
        tx.create_channel(&channel("plain"), ChannelKind::Memory, at(7))
    });
    let rows = bus.read(|bus| bus.channels());
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert!(names.is_sorted(), "{names:?}");
    for wanted in ["dm/zoe", "general", "general/x", "memory", "plain", crew.list.as_str()] {
        assert_eq!(names.iter().filter(|name| **name == wanted).count(), 1, "{wanted} in {names:?}");
    }
    for row in &rows {
        assert_eq!(bus.read(|bus| bus.channel(&row.name)).as_ref(), Some(row));
    }
    let plain = rows.iter().find(|row| row.name == channel("plain")).expect("it is listed");
    assert_eq!((plain.kind, plain.created_at), (ChannelKind::Memory, at(7)));
    let list = rows.iter().find(|row| row.name.list().is_some()).expect("it is listed");
    assert_eq!(list.kind, ChannelKind::Memory);
    assert_eq!(bus.read(|bus| bus.channel(&channel("nowhere"))), None);
    Verdict::Held
}

pub(super) fn a_channel_counts_what_it_has(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let row = || bus.read(|bus| bus.channel(&ChannelName::memory())).expect("it is there");
    let counts = || (row().live, row().empty, row().latest_seq, row().last_activity, row().evicted_before);
    assert_eq!(counts(), (0, true, 0, None, 0));
    let one = bus.post(&Letter::to(&ChannelName::memory(), "one").sent_at(10));
    let two = bus.post(&Letter::to(&ChannelName::memory(), "two").sent_at(20));
    assert_eq!(counts(), (2, false, two, Some(at(20)), 0));
    bus.write(|tx| tx.bury(two, at(30)));
    assert_eq!(counts(), (1, false, two, Some(at(30)), 0), "what is buried is there, but not live");
    bus.write(|tx| {
        tx.remove(&[two, one])?;
        tx.set_evicted_before(&ChannelName::memory(), two + 1)
    });
    assert_eq!(counts(), (0, true, two, Some(at(30)), two + 1), "numbers and times never fall");
    Verdict::Held
}

pub(super) fn a_list_counts_as_a_channel(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let name = ChannelName::from(&crew.list);
    let row = || bus.read(|bus| bus.channel(&name)).expect("it is there");
    assert_eq!((row().live, row().empty, row().latest_seq), (0, true, 0));
    let id = zed.add("task");
    bus.post(&Letter::to(&ChannelName::general(), "not of the list"));
    zed.complete(&id).expect("it can be completed");
    let newest = bus.read(|bus| bus.latest_seq());
    let activity = bus.read(|bus| bus.message(newest)).expect("a revision is a message").created_at;
    assert_eq!((row().live, row().empty, row().latest_seq), (1, false, newest));
    assert_eq!(row().last_activity, Some(activity));
    bus.post(&Letter::to(&ChannelName::general(), "not of the list"));
    assert_eq!(row().latest_seq, newest);
    Verdict::Held
}

pub(super) fn a_channel_goes_with_all_that_is_in_it(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let (general, memory) = (ChannelName::general(), ChannelName::memory());
    let kept = bus.post(&Letter::to(&general, "kept").tagged(&["a"]));
    let gone = bus.post(&Letter::to(&memory, "gone").tagged(&["a"]));
    bus.write(|tx| {
        tx.touch_memories(&[gone], Some(at(3)))?;
        tx.put_vector(gone, "m", &[1.0])?;
        tx.put_subscription(&subscription("zed", Source::Channel(memory.clone()), 0))?;
        tx.put_subscription(&subscription("zed", Source::Channel(general.clone()), 0))?;
        tx.delete_channel(&memory)
    });
    assert_eq!(bus.read(|bus| Ok((bus.channel(&memory)?, bus.message(gone)?, bus.memory(gone)?))), (None, None, None));
    assert_eq!(bus.seqs(&MessageQuery::of(&memory, 0, 9)), [0; 0]);
    assert_eq!(bus.read(|bus| bus.unread_memories(at(9), 9)), [0; 0]);
    assert_eq!(bus.read(|bus| Ok(bus.embedding_counts("m")?.embedded)), 0);
    let left = bus.read(|bus| bus.subscriptions(&who("zed")));
    assert_eq!(left, [subscription("zed", Source::Channel(general.clone()), 0)]);
    assert_eq!(bus.seqs(&MessageQuery::of(&general, 0, 9)), [kept]);
    bus.write(|tx| tx.create_channel(&memory, ChannelKind::Memory, at(4)));
    assert_eq!(bus.seqs(&MessageQuery::of(&memory, 0, 9)), [0; 0], "a new one of that name is empty");
    Verdict::Held
}

pub(super) fn a_list_goes_with_its_tasks_and_no_id_comes_again(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let first = zed.add("first");
    let second = zed.add_waiting("second", &[&first]);
    let other = ListName::from_short("kept").expect("a list of the suite is valid");
    let elsewhere = super::Person { list: other.clone(), ..crew.person("amp") };
    elsewhere.engine.create_list(&elsewhere.name, &other, crew.rules).expect("the list is made");
    let kept = elsewhere.add("kept");
    let name = ChannelName::from(&crew.list);
    bus.write(|tx| tx.put_subscription(&subscription("poe", Source::Channel(name.clone()), 0)));
    bus.write(|tx| tx.delete_channel(&name));
    assert_eq!(read_with(&*bus.other, None, |snapshot| snapshot.list(&crew.list)).expect("it can be read"), None);
    for id in [&first, &second] {
        let seq = id.as_number().expect("a store with a bus has numbers for ids");
        assert_eq!(bus.read(|bus| Ok((bus.message(seq)?, bus.memory(seq)?))), (None, None));
        assert_eq!(bus.other.locate(id).expect("it can be asked"), None);
    }
    assert_eq!(bus.read(|bus| bus.subscriptions(&who("poe"))), []);
    assert_eq!(elsewhere.order(), [kept], "another list is not touched");
    let again = crew.person("jan");
    let third = again.add("third");
    assert!(third > second, "{third} after {second}");
    assert_eq!(again.order(), [third]);
    Verdict::Held
}

pub(super) fn subscriptions_are_kept_by_who_and_what(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let general = || Source::Channel(ChannelName::general());
    let pending = Some(Pending { token: "t".to_owned(), end: 9 });
    bus.write(|tx| {
        tx.put_subscription(&subscription("zed", general(), 1))?;
        tx.put_subscription(&subscription("zed", Source::Tags, 2))?;
        tx.put_subscription(&subscription("amp", general(), 3))?;
        tx.put_subscription(&SubscriptionRow { pending: pending.clone(), ..subscription("zed", general(), 4) })
    });
    let rows = bus.read(|bus| bus.subscriptions(&who("zed")));
    let handed_out = SubscriptionRow { pending, ..subscription("zed", general(), 4) };
    assert_eq!(rows, [subscription("zed", Source::Tags, 2), handed_out]);
    let nowhere = channel("nowhere");
    bus.write(|tx| tx.put_subscription(&subscription("zed", Source::Channel(nowhere.clone()), 5)));
    assert_eq!(bus.read(|bus| bus.subscribers(&ChannelName::general())), [who("amp"), who("zed")]);
    assert_eq!(bus.read(|bus| bus.subscribers(&nowhere)), [who("zed")], "the channel need not be there");
    bus.write(|tx| {
        tx.end_subscription(&who("zed"), &general())?;
        tx.end_subscription(&who("nobody"), &general())
    });
    assert_eq!(bus.read(|bus| bus.subscribers(&ChannelName::general())), [who("amp")]);
    Verdict::Held
}

pub(super) fn sets_of_tags_are_kept_by_their_patterns(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let set = |patterns: &[&str]| TagSet::new(patterns).expect("patterns of the suite are valid");
    let row = |patterns: &[&str], since_seq| TagSetRow { set: set(patterns), since_seq };
    bus.write(|tx| {
        tx.put_tag_set(&who("zed"), &row(&["b", "a*"], 1))?;
        tx.put_tag_set(&who("zed"), &row(&["a*", "b"], 2))?;
        tx.put_tag_set(&who("zed"), &row(&["c"], 3))?;
        tx.put_tag_set(&who("amp"), &row(&["c"], 4))
    });
    assert_eq!(bus.read(|bus| bus.tag_sets(&who("zed"))), [row(&["a*", "b"], 2), row(&["c"], 3)]);
    bus.write(|tx| {
        tx.end_tag_set(&who("zed"), &set(&["b", "a*"]))?;
        tx.end_tag_set(&who("zed"), &set(&["b"]))
    });
    assert_eq!(bus.read(|bus| bus.tag_sets(&who("zed"))), [row(&["c"], 3)]);
    assert_eq!(bus.read(|bus| bus.tag_sets(&who("amp"))), [row(&["c"], 4)]);
    Verdict::Held
}
