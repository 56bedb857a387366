//! Memories: revisions, when they were read, and their vectors.

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::MemoryRef;

use super::bus::{Bus, Letter, NO_BUS, at};
use super::{StorePlace, Verdict};
use crate::store::bus::{EmbeddingCounts, MessageFilter, MessageQuery, Place};

pub(super) fn a_memory_is_known_by_its_first_number(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let memory = ChannelName::memory();
    let id = bus.post(&Letter::to(&memory, "first"));
    let second = bus.revise(id, MemoryRef { id, revision: 2 }, "second");
    let third = bus.revise(second, MemoryRef { id, revision: 3 }, "third");
    let live = bus.read(|bus| bus.memory(id)).expect("it is live");
    assert_eq!((live.seq, live.content.as_str(), live.memory), (third, "third", Some(MemoryRef { id, revision: 3 })));
    assert_eq!(bus.read(|bus| bus.memory(second)), None, "a memory is not known by a later number");
    let kept = |limit| bus.read(|bus| bus.revisions(id, limit)).iter().map(|message| message.seq).collect::<Vec<_>>();
    assert_eq!((kept(9), kept(2)), (vec![third, second, id], vec![third, second]));
    assert_eq!(bus.seqs(&MessageQuery::of(&memory, 0, 9)), [third], "only the live revision is delivered");
    assert_eq!(bus.read(|bus| bus.message(second)), None);
    assert_eq!(bus.read(|bus| bus.buried(at(3), 9)), [id, second]);
    assert_eq!(bus.read(|bus| bus.buried(at(2), 9)), [0; 0]);
    bus.write(|tx| tx.remove(&[id, second]));
    assert_eq!(kept(9), [third], "the first may be gone, the memory keeps its id");
    assert_eq!(bus.read(|bus| Ok(bus.memory(id)?.map(|message| message.seq))), Some(third));
    Verdict::Held
}

pub(super) fn the_note_of_a_deletion_is_delivered_and_nothing_more(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let memory = ChannelName::memory();
    let id = bus.post(&Letter::to(&memory, "unforgettable"));
    let note = bus.write(|tx| {
        tx.bury(id, at(2))?;
        let place = Place::Deletion(MemoryRef { id, revision: 2 });
        Letter { place, ..Letter::to(&memory, "") }.send(tx)
    });
    assert_eq!(bus.seqs(&MessageQuery::of(&memory, 0, 9)), [note]);
    assert_eq!(bus.read(|bus| bus.memory(id)), None);
    assert_eq!(bus.read(|bus| bus.channel(&memory)).expect("it is there").live, 0);
    assert_eq!(bus.read(|bus| bus.unembedded("m", 9)), []);
    assert_eq!(bus.read(|bus| Ok(bus.revisions(id, 9)?.len())), 1, "it is no revision");
    bus.write(|tx| {
        tx.put_vector(note, "m", &[1.0])?;
        tx.touch_memories(&[id], Some(at(3)))
    });
    assert_eq!(bus.read(|bus| bus.embedding_counts("m")), EmbeddingCounts::default());
    assert_eq!(bus.read(|bus| bus.unread_memories(at(9), 9)), [0; 0]);
    let aged = bus.read(|bus| bus.evictable(None, 9));
    assert_eq!(aged, [(note, memory)], "it ages as ordinary messages do");
    Verdict::Held
}

pub(super) fn memories_are_watched_from_when_they_are_read(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let ids: Vec<u64> = (0..3).map(|_| bus.post(&Letter::to(&ChannelName::memory(), "x"))).collect();
    let ordinary = bus.post(&Letter::to(&ChannelName::general(), "x"));
    bus.write(|tx| {
        tx.touch_memories(&[ids[1], ordinary, 999], Some(at(5)))?;
        tx.touch_memories(&[ids[0]], Some(at(7)))
    });
    let unread = |before, limit| bus.read(|bus| bus.unread_memories(at(before), limit));
    assert_eq!(unread(9, 9), [ids[1], ids[0]], "the longest unread first; what was never read is not watched");
    assert_eq!((unread(7, 9), unread(9, 1), unread(5, 9)), (vec![ids[1]], vec![ids[1]], vec![]));
    let revised = bus.revise(ids[1], MemoryRef { id: ids[1], revision: 2 }, "again");
    assert_eq!(unread(9, 9), [ids[1], ids[0]], "it is the memory that is watched");
    bus.write(|tx| {
        tx.touch_memories(&[ids[0]], None)?;
        tx.bury(revised, at(8))
    });
    assert_eq!(unread(9, 9), [0; 0]);
    Verdict::Held
}

pub(super) fn vectors_are_those_of_live_memories(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let ids: Vec<u64> = (0..3).map(|_| bus.post(&Letter::to(&ChannelName::memory(), "x"))).collect();
    let ordinary = bus.post(&Letter::to(&ChannelName::general(), "x"));
    let odd = [0.1, -0.0, f32::MIN_POSITIVE, 1.0e30];
    bus.write(|tx| {
        tx.put_vector(ids[0], "m", &odd)?;
        tx.put_vector(ids[1], "m", &[2.0])?;
        tx.put_vector(ids[2], "other", &[3.0])?;
        tx.put_vector(ordinary, "m", &[4.0])?;
        tx.put_vector(999, "m", &[5.0])
    });
    let vectors = |model: &str| {
        bus.read(|bus| {
            let mut vectors = Vec::new();
            let mut each = |found: crate::store::bus::Found, vector: &[f32]| vectors.push((found.id, vector.to_vec()));
            bus.vectors(model, &MessageFilter::default(), &mut each)?;
            Ok(vectors)
        })
    };
    assert_eq!(vectors("m"), [(ids[0], odd.to_vec()), (ids[1], vec![2.0])], "to the last bit");
    let revised = bus.revise(ids[1], MemoryRef { id: ids[1], revision: 2 }, "again");
    assert_eq!(vectors("m"), [(ids[0], odd.to_vec())], "a vector goes with its revision");
    bus.write(|tx| tx.put_vector(ids[1], "m", &[6.0]));
    assert_eq!(vectors("m").len(), 1, "one that comes too late is not kept");
    assert!(bus.read(|bus| bus.has_other_models("m")));
    let bare = |model: &str| bus.read(|bus| bus.unembedded(model, 9)).iter().map(|m| m.seq).collect::<Vec<_>>();
    assert_eq!((bare("m"), bare("other")), (vec![ids[2], revised], vec![ids[0], revised]));
    assert_eq!(bus.write(|tx| tx.keep_model("m")), 1);
    assert_eq!((vectors("other").len(), bus.read(|bus| bus.has_other_models("m"))), (0, false));
    Verdict::Held
}

pub(super) fn a_failure_takes_a_memory_off_the_backlog(place: &dyn StorePlace) -> Verdict {
    let Some(bus) = Bus::at(place) else { return NO_BUS };
    let ids: Vec<u64> = (0..3).map(|_| bus.post(&Letter::to(&ChannelName::memory(), "x"))).collect();
    let counts = |model: &str| {
        let EmbeddingCounts { embedded, backlog, rejected } = bus.read(|bus| bus.embedding_counts(model));
        (embedded, backlog, rejected)
    };
    let bare = || bus.read(|bus| bus.unembedded("m", 9)).iter().map(|message| message.seq).collect::<Vec<_>>();
    assert_eq!((counts("m"), bare()), ((0, 3, 0), ids.clone()));
    bus.write(|tx| {
        tx.put_embedding_failure(ids[0], "m", "too long", at(2))?;
        tx.put_vector(ids[1], "m", &[1.0])
    });
    assert_eq!((counts("m"), counts("other"), bare()), ((1, 1, 1), (0, 3, 0), vec![ids[2]]));
    bus.write(|tx| tx.put_vector(ids[0], "m", &[1.0]));
    assert_eq!(counts("m"), (2, 1, 0), "a vector takes its place");
    bus.write(|tx| tx.bury(ids[0], at(3)));
    assert_eq!(counts("m"), (1, 1, 0));
    Verdict::Held
}
