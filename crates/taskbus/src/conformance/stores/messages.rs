//! Messages: their one order, what filters let pass, and revisions of tasks among them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::message::{Headline, Message};
use taskbus_core::command::Patch;
use taskbus_core::document;

use super::bus::{Bus, Letter, NO_BUS, at, channel, patterns, who};
use super::{Crew, StorePlace, Verdict};
use crate::store::bus::{MessageQuery, NoticeKind, Source, SubscriptionRow};
use crate::store::{Abort, StoreError, Tx, read_with};

pub(super) fn messages_and_revisions_have_one_order(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let mut numbers = Vec::new();
    for round in 0..3 {
        numbers.push(bus.post(&Letter::to(&ChannelName::general(), "between")));
        numbers.push(zed.add(&format!("task {round}")).as_number().expect("a store with a bus has numbers for ids"));
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(bus.read(|bus| bus.latest_seq()), numbers[5]);
    bus.write(|tx| {
        tx.remove(&[numbers[0], numbers[2], numbers[4]])?;
        tx.delete_channel(&ChannelName::from(&crew.list))
    });
    assert_eq!(bus.read(|bus| bus.latest_seq()), numbers[5], "it never runs back");
    assert!(bus.post(&Letter::to(&ChannelName::general(), "next")) > numbers[5]);
    Verdict::Held
}

pub(super) fn a_message_is_read_as_it_was_written(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let text = "two\nlines, 'quotes', \"more\", ünï, 🚌 and a tab\t.";
    let letter = Letter::to(&ChannelName::general(), text).from(&who("zed")).sent_at(77).tagged(&["b", "a:c"]);
    let seq = bus.post(&Letter { reply_to: Some(1), ..letter.clone() });
    let read = bus.read(|bus| bus.message(seq)).expect("it is there");
    let Message { channel, sender, created_at, content, reply_to, memory, tags, .. } = read;
    assert_eq!((channel, sender, created_at, content), (letter.channel, letter.sender, at(77), text.to_owned()));
    assert_eq!((reply_to, memory, tags), (Some(1), None, letter.tags));
    assert_eq!(bus.read(|bus| bus.message(seq + 1)), None);
    Verdict::Held
}

pub(super) fn messages_come_in_the_order_asked_for(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let general = ChannelName::general();
    // More than a store would take in one stride.
    let seqs: Vec<u64> = bus.write(|tx| (0..40).map(|_| Letter::to(&general, "x").send(tx)).collect());
    assert_eq!(bus.seqs(&MessageQuery::of(&general, 0, 100)), seqs);
    assert_eq!(bus.seqs(&MessageQuery::of(&general, seqs[29], 5)), seqs[30..35]);
    let before = MessageQuery { before: Some(seqs[10]), newest_first: true, ..MessageQuery::of(&general, seqs[2], 4) };
    assert_eq!(bus.seqs(&before), [seqs[9], seqs[8], seqs[7], seqs[6]]);
    assert_eq!(bus.seqs(&MessageQuery { limit: 0, ..before }), [0; 0]);
    bus.write(|tx| tx.remove(&seqs[5..35]));
    let left = [&seqs[..5], &seqs[35..]].concat();
    assert_eq!(bus.seqs(&MessageQuery::of(&general, 0, 100)), left, "holes are passed over");
    Verdict::Held
}

pub(super) fn filters_let_pass_what_they_say(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let (general, inbox) = (ChannelName::general(), channel("dm/amp"));
    bus.write(|tx| tx.create_channel(&inbox, ChannelKind::Ordinary, at(1)));
    let (zed, amp) = (who("zed"), who("amp"));
    let mut posted = Vec::new();
    for (sender, tags) in [
        (&zed, &["env", "rust"][..]),
        (&amp, &["env:prod"]),
        (&amp, &["environment", "rust"]),
        (&zed, &["en"]),
        (&zed, &[]),
    ] {
        posted.push(bus.post(&Letter::to(&general, "x").from(sender).tagged(tags)));
    }
    bus.post(&Letter::to(&inbox, "x").tagged(&["env"]));
    bus.post(&Letter::to(&ChannelName::memory(), "x").tagged(&["env"]));
    let all = MessageQuery::anywhere(0, 100);
    assert_eq!(bus.seqs(&all), posted, "inboxes and memories are not told to everybody");
    let pick = |picked: &[usize]| picked.iter().map(|at| posted[*at]).collect::<Vec<_>>();
    assert_eq!(bus.seqs(&MessageQuery { not_from: Some(&zed), ..all }), pick(&[1, 2]));
    assert_eq!(bus.seqs(&MessageQuery { except: std::slice::from_ref(&general), ..all }), [0; 0]);
    for (wanted, found) in
        [(&["env"][..], &[0][..]), (&["env*"], &[0, 1, 2]), (&["env:*"], &[1]), (&["en", "rust"], &[0, 2, 3])]
    {
        assert_eq!(bus.seqs(&MessageQuery { any_tags: &patterns(wanted), ..all }), pick(found), "any of {wanted:?}");
    }
    for (wanted, found) in [(&["env*", "rust"][..], &[0, 2][..]), (&["rust", "x"], &[]), (&["en*"], &[0, 1, 2, 3])] {
        assert_eq!(bus.seqs(&MessageQuery { all_tags: &patterns(wanted), ..all }), pick(found), "all of {wanted:?}");
    }
    Verdict::Held
}

pub(super) fn every_revision_of_a_task_is_a_message_of_its_list(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let crew = Crew::at(place);
    let zed = crew.person("zed");
    let id = zed.add("Water the plants");
    zed.claim(&id).expect("it can be claimed");
    let done = zed.complete(&id).expect("it can be completed").task;
    zed.update(&id, Patch::delete()).expect("it can be deleted");
    let name = ChannelName::from(&crew.list);
    let messages = bus.messages(&MessageQuery::of(&name, 0, 100));
    let number = id.as_number().expect("a store with a bus has numbers for ids");
    assert_eq!(messages.len(), 4);
    for (at, message) in messages.iter().enumerate() {
        let memory = message.memory.expect("a revision says of what it is");
        assert_eq!((memory.id, memory.revision), (number, at as u64 + 1));
        assert_eq!((&message.channel, message.sender.as_ref()), (&name, Some(&zed.name)));
        assert_eq!(message.subject.as_ref().map(Headline::as_str), Some("Water the plants"));
    }
    assert_eq!((messages[3].sort.as_str(), messages[3].content.as_str()), ("deleted", ""));
    let history = read_with(&*bus.other, Some(&crew.list), |snapshot| snapshot.history(&id, None, 9));
    let completed = history.expect("it can be read").swap_remove(1).task;
    assert_eq!(completed.revision, done.revision);
    assert_eq!(messages[2].content, document::encode(&completed), "the content is the task as it was then");
    assert_eq!(bus.read(|bus| bus.memory(number)), None, "a deleted task has no live revision");
    zed.update(&id, Patch::default()).expect_err("a deleted task is not changed");
    assert_eq!(bus.read(|bus| bus.revisions(number, 2)), [messages[3].clone(), messages[2].clone()]);
    Verdict::Held
}

/// Every verb, and then the transaction ends badly: nothing is as it would be with it.
pub(super) fn a_bus_that_was_written_to_in_vain_is_as_it_was(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let (general, memory) = (ChannelName::general(), ChannelName::memory());
    let kept = bus.post(&Letter::to(&general, "kept").tagged(&["a"]));
    let id = bus.post(&Letter::to(&memory, "kept too"));
    bus.write(|tx| tx.touch_memories(&[id], Some(at(3))));
    let look = || {
        bus.read(|bus| {
            let streams = [MessageQuery::of(&general, 0, 9), MessageQuery::of(&memory, 0, 9)];
            let messages = streams.iter().map(|query| bus.messages(query)).collect::<Result<Vec<_>, _>>()?;
            let upkeep = (bus.notice(NoticeKind::Capacity)?, bus.maintainer()?, bus.unread_memories(at(9), 9)?);
            Ok((bus.channels()?, messages, bus.latest_seq()?, bus.subscriptions(&who("zed"))?, upkeep))
        })
    };
    let before = look();
    let spoil = |tx: &mut dyn Tx| -> Result<(), StoreError> {
        let bus = tx.bus_mut().expect("a store with a bus hands it out");
        bus.create_channel(&channel("new"), ChannelKind::Ordinary, at(4))?;
        Letter::to(&general, "spoilt").send(bus)?;
        bus.bury(id, at(5))?;
        bus.remove(&[kept])?;
        bus.touch_memories(&[id], None)?;
        let source = Source::Channel(general.clone());
        bus.put_subscription(&SubscriptionRow {
            who: who("zed"),
            source,
            cursor: 1,
            last_activity: at(1),
            pending: None,
        })?;
        bus.put_notice(NoticeKind::Capacity, Some("spoilt"), at(5))?;
        bus.put_maintainer("zed", at(9))?;
        bus.delete_channel(&memory)?;
        bus.reset()
    };
    let failed = bus.store.write(None, &mut |tx| {
        spoil(tx)?;
        Err(Abort::Failed(StoreError::Moved { store: "a test".to_owned() }))
    });
    assert!(failed.is_err());
    assert_eq!(look(), before);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        bus.store.write(None, &mut |tx| {
            spoil(tx)?;
            std::panic::resume_unwind(Box::new("a panic on purpose"))
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(look(), before);
    Verdict::Held
}
