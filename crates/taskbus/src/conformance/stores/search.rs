//! Search in texts: the same words, the same order, on every store.

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::message::{Headline, MemoryRef};
use taskbus_core::command::{Command, Patch};
use taskbus_core::text::{Body, Note};

use super::bus::{Bus, Letter, NO_BUS, at, channel, patterns, who};
use super::{Crew, StorePlace, Verdict, draft};
use crate::store::bus::{Found, MessageFilter};

fn seqs(found: &[Found]) -> Vec<u64> {
    found.iter().map(|found| found.seq).collect()
}

pub(super) fn a_message_is_found_that_has_every_term(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let general = ChannelName::general();
    let subject = Headline::new("About keys").expect("a subject of the suite is valid");
    let one = bus.post(&Letter { subject, ..Letter::to(&general, "Die Straße ist gesperrt, wait-free.") });
    let two = bus.post(&Letter::to(&general, "Nothing of it: ÉTÉ, free to wait"));
    let all = MessageFilter::default();
    for (text, found) in [
        ("STRASSE", vec![one]),
        ("straße gesperrt", vec![one]),
        ("gesp*", vec![one]),
        ("gesp", vec![]),
        ("keys ist", vec![one]),
        ("été", vec![two]),
        ("e\u{301}te\u{301}", vec![two]),
        ("ete", vec![]),
        ("wait-free", vec![one]),
        ("wait-fr*", vec![one]),
        ("nothing AND", vec![]),
        ("\"it", vec![two]),
        ("-it", vec![two]),
        ("keys die", vec![one]),
        ("!?", vec![]),
    ] {
        assert_eq!(seqs(&bus.search(text, &all)), found, "{text}");
    }
    let both = seqs(&bus.search("free", &all));
    assert_eq!((both.len(), both.contains(&one), both.contains(&two)), (2, true, true));
    Verdict::Held
}

pub(super) fn only_what_is_live_is_found(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let memory = ChannelName::memory();
    let id = bus.post(&Letter::to(&memory, "old words"));
    assert_eq!(bus.search("words", &MessageFilter::default()), [Found { seq: id, id }]);
    let second = bus.revise(id, MemoryRef { id, revision: 2 }, "new words");
    assert_eq!(bus.search("words", &MessageFilter::default()), [Found { seq: second, id }]);
    assert_eq!(bus.search("old", &MessageFilter::default()), []);
    bus.write(|tx| tx.bury(second, at(3)));
    assert_eq!(bus.search("words", &MessageFilter::default()), []);
    let ordinary = bus.post(&Letter::to(&ChannelName::general(), "more words"));
    assert_eq!(seqs(&bus.search("words", &MessageFilter::default())), [ordinary]);
    bus.write(|tx| tx.remove(&[ordinary]));
    assert_eq!(bus.search("words", &MessageFilter::default()), []);
    Verdict::Held
}

pub(super) fn of_a_task_its_subject_description_result_and_notes_are_found(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let text = |text: &str| Some(Body::new(text).expect("a text of the suite is valid"));
    let note = |text: &str| Some(Note::new(text).expect("a note of the suite is valid"));
    let id = zed.create(super::Draft { description: text("with a can"), ..draft("Water the plants") }).id;
    let number = id.as_number().expect("a store with a bus has numbers for ids");
    let finds = |words: &str| bus.search(words, &MessageFilter::default());
    let newest = || bus.read(|bus| bus.latest_seq());
    assert_eq!(finds("plants can"), [Found { seq: newest(), id: number }]);
    zed.claim(&id).expect("it can be claimed");
    assert_eq!(finds("plants"), [Found { seq: newest(), id: number }], "the live revision is");
    zed.update(&id, Patch { note: note("the tap drips"), ..Patch::default() }).expect("a note can be left");
    zed.update(&id, Patch::complete(note("all are wet"))).expect("it can be completed");
    assert_eq!(finds("tap wet water"), [Found { seq: newest(), id: number }]);
    zed.update(&id, Patch::delete()).expect("it can be deleted");
    assert_eq!(finds("water"), []);
    zed.ask(Command::Restore(id), None).expect("it can be restored");
    assert_eq!(finds("tap wet water"), [Found { seq: newest(), id: number }]);
    bus.write(|tx| tx.delete_channel(&ChannelName::from(&crew.list)));
    assert_eq!(finds("water"), []);
    Verdict::Held
}

pub(super) fn a_search_looks_only_where_it_may(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let (zed, amp, jan) = (who("zed"), who("amp"), who("jan"));
    let (general, inbox) = (ChannelName::general(), channel("dm/amp"));
    bus.write(|tx| tx.create_channel(&inbox, ChannelKind::Ordinary, at(1)));
    let first = bus.post(&Letter::to(&general, "word").from(&zed).sent_at(10).tagged(&["env:prod"]));
    let answer = Letter { reply_to: Some(first), ..Letter::to(&general, "word").from(&amp).sent_at(20) };
    let second = bus.post(&answer.tagged(&["b"]));
    let private = bus.post(&Letter::to(&inbox, "word").from(&zed).sent_at(30));
    let env = patterns(&["env*"]);
    let all = MessageFilter::default();
    for (filter, found) in [
        (all, vec![first, second, private]),
        (MessageFilter { channel: Some(&general), ..all }, vec![first, second]),
        (MessageFilter { visible_to: Some(&zed), ..all }, vec![first, second, private]),
        (MessageFilter { visible_to: Some(&amp), ..all }, vec![first, second, private]),
        (MessageFilter { visible_to: Some(&jan), ..all }, vec![first, second]),
        (MessageFilter { sender: Some(&amp), ..all }, vec![second]),
        (MessageFilter { since: Some(at(20)), ..all }, vec![second, private]),
        (MessageFilter { until: Some(at(20)), ..all }, vec![first, second]),
        (MessageFilter { thread: Some(first), ..all }, vec![first, second]),
        (MessageFilter { any_tags: &env, ..all }, vec![first]),
    ] {
        let mut seqs = seqs(&bus.search("word", &filter));
        seqs.sort_unstable();
        assert_eq!(seqs, found, "{filter:?}");
    }
    Verdict::Held
}

pub(super) fn the_best_is_found_first(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let general = ChannelName::general();
    let long = bus.post(&Letter::to(&general, "rare among a great many other words that say nothing at all of it"));
    let short = bus.post(&Letter::to(&general, "rare thing"));
    let twice = bus.post(&Letter::to(&general, "rare rare"));
    let same = bus.post(&Letter::to(&general, "rare thing"));
    for _ in 0..9 {
        bus.post(&Letter::to(&general, "common thing"));
    }
    let all = MessageFilter::default();
    assert_eq!(seqs(&bus.search("rare", &all)), [twice, short, same, long], "equals by number");
    bus.store.index_texts().expect("texts can be indexed");
    let terms = taskbus_core::bus::query::Query::parse("rare").expect("a query of the suite is valid").terms;
    let hits = bus.read(|bus| bus.search(&terms, &all, 2));
    assert_eq!(hits.len(), 2);
    assert!(hits[0].score > hits[1].score && hits[1].score > 0.0, "{hits:?}");
    Verdict::Held
}
