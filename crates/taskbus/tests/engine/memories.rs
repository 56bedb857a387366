//! Memories: read, revised, deleted, and found again.

use taskbus::core::bus::channel::ChannelName;
use taskbus::core::bus::message::{Content, Headline, Message, Revision, Sort};
use taskbus::core::bus::tag::{self, TagPattern};
use taskbus::core::limits;
use taskbus::core::name::Key;
use taskbus::core::refusal::{Invalid, Missing, Refusal};
use taskbus::engine::{Limits, SearchAsk};
use taskbus::store::read_with;

use crate::support::{Person, Place, Watched, on_every_store, refusal};

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn change(content: &str) -> Revision {
    Revision {
        content: Content::new(content).unwrap(),
        sort: Sort::default(),
        subject: None,
        metadata: None,
        tags: None,
    }
}

/// A memory with everything that a memory can have.
fn full(place: &Place, person: &Person) -> u64 {
    let draft = Message {
        subject: Headline::new("Keys").unwrap(),
        sort: Sort::new("fact").unwrap(),
        metadata: Some([("a".to_owned(), "b".to_owned())].into()),
        tags: tag::normalize(&["rust"]).unwrap(),
        ..place.draft("memory", "They turn.")
    };
    place.remember(person, &draft)
}

fn messages(place: &Place, channel: &str) -> Vec<Message> {
    let name = ChannelName::new(channel).unwrap();
    let query = taskbus::store::bus::MessageQuery::of(&name, 0, 1000);
    read_with(&*place.store, None, |snapshot| snapshot.bus().unwrap().messages(&query)).unwrap()
}

on_every_store! {
    fn a_memory_is_read_by_its_id_in_its_newest_revision(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = full(&place, &zed);
        let first = amp.engine.memory(&amp.name, id).unwrap();
        assert_eq!((first.seq, first.content.as_str(), first.sender), (id, "They turn.", Some(zed.name.clone())));
        let edited = amp.engine.edit_memory(&amp.name, id, &change("They stick."), None).unwrap();
        assert_eq!((edited.memory_id, edited.revision, edited.replaced), (id, 2, id));
        let second = zed.engine.memory(&zed.name, id).unwrap();
        assert_eq!((second.seq, second.content.as_str()), (edited.seq, "They stick."));
        assert_eq!(second.sender, Some(amp.name.clone()));
        let third = zed.engine.edit_memory(&zed.name, id, &change("They break."), None).unwrap();
        assert_eq!((third.revision, third.replaced), (3, edited.seq));
        assert_eq!(messages(&place, "memory").len(), 1, "only the newest revision is delivered");
    }

    fn an_edit_keeps_what_it_does_not_name_of_subject_and_tags_and_replaces_type_and_metadata(place) {
        let zed = place.person("Zed");
        let id = full(&place, &zed);
        let kept = zed.engine.edit_memory(&zed.name, id, &change("Two."), None).map(|_| ());
        kept.unwrap();
        let memory = zed.engine.memory(&zed.name, id).unwrap();
        assert_eq!(memory.subject, Headline::new("Keys").unwrap());
        assert_eq!(memory.tags, tag::normalize(&["rust"]).unwrap());
        assert_eq!((memory.sort.as_str(), memory.metadata), ("", None));
        let clear = Revision { subject: Some(None), tags: Some(Vec::new()), ..change("Three.") };
        zed.engine.edit_memory(&zed.name, id, &clear, None).unwrap();
        let memory = zed.engine.memory(&zed.name, id).unwrap();
        assert_eq!((memory.subject, memory.tags.len()), (None, 0));
        let again = Revision { tags: Some(tag::normalize(&["go"]).unwrap()), ..change("Four.") };
        zed.engine.edit_memory(&zed.name, id, &again, None).unwrap();
        assert_eq!(zed.engine.memory(&zed.name, id).unwrap().tags, tag::normalize(&["go"]).unwrap());
    }

    fn a_deleted_memory_is_gone_and_its_channel_is_told(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = full(&place, &zed);
        assert_eq!(amp.engine.delete_memory(&amp.name, id, None).unwrap().deleted, id);
        let gone = || Refusal::NotFound(Missing::Memory { id });
        assert_eq!(refusal(zed.engine.memory(&zed.name, id)), gone());
        assert_eq!(refusal(zed.engine.edit_memory(&zed.name, id, &change("x"), None)), gone());
        assert_eq!(refusal(zed.engine.delete_memory(&zed.name, id, None)), gone());
        let told = messages(&place, "memory");
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].sort.as_str(), told[0].content.as_str()), ("deleted", ""));
        assert_eq!((&told[0].sender, told[0].memory.map(|memory| memory.id)), (&Some(amp.name.clone()), Some(id)));
        assert!(zed.search("turn").is_empty() && zed.search("deleted").is_empty());
    }

    fn a_task_is_read_as_its_document_and_changed_only_as_a_task(place) {
        let zed = place.person("Zed");
        let id = zed.create("Mend the roof");
        let taskbus::core::id::TaskId::Number(number) = id else { panic!("{id}") };
        let raw = zed.engine.memory(&zed.name, number).unwrap();
        let document: serde_json::Value = serde_json::from_str(&raw.content).unwrap();
        assert_eq!(document["subject"], "Mend the roof");
        for refused in [
            refusal(zed.engine.edit_memory(&zed.name, number, &change("x"), None)),
            refusal(zed.engine.delete_memory(&zed.name, number, None)),
        ] {
            assert!(matches!(refused, Refusal::Invalid(Invalid::IsTaskList { .. })), "{refused}");
            assert!(refused.to_string().contains("task_update"), "{refused}");
        }
    }

    fn a_keyed_edit_is_answered_again_after_the_memory_has_gone(place) {
        let zed = place.person("Zed");
        let id = full(&place, &zed);
        let edit = |text: &str, k: &str| zed.engine.edit_memory(&zed.name, id, &change(text), Some(&key(k)));
        let first = edit("Two.", "e").unwrap();
        assert_eq!(edit("Two.", "e").unwrap(), first);
        assert!(matches!(refusal(edit("Other.", "e")), Refusal::Conflict(_)));
        let deleted = zed.engine.delete_memory(&zed.name, id, Some(&key("d"))).unwrap();
        assert_eq!(zed.engine.delete_memory(&zed.name, id, Some(&key("d"))).unwrap(), deleted);
        assert_eq!(edit("Two.", "e").unwrap(), first);
        assert!(matches!(refusal(edit("Two.", "new")), Refusal::NotFound(_)));
    }

    fn what_is_too_large_is_refused_to_the_byte(place) {
        let zed = place.person_with("Zed", Limits { max_message_kib: 1, writes_per_second: 10_000, ..Limits::default() });
        let id = full(&place, &zed);
        let mut text = "x".repeat(500);
        let refused = loop {
            match zed.engine.edit_memory(&zed.name, id, &change(&text), None) {
                Ok(_) => text.push('x'),
                Err(error) => break refusal::<()>(Err(error)),
            }
        };
        let Refusal::Invalid(Invalid::TooLarge { actual, max, .. }) = refused else { panic!("{refused}") };
        assert_eq!((actual, max), (1025, 1024));
    }

    fn an_edit_is_charged_by_its_size_and_a_deletion_as_one_call(place) {
        let slow = Limits { writes_per_second: 2, write_kib_per_second: 64, ..Limits::default() };
        let zed = place.person_with("Zed", slow);
        let (one, two) = (full(&place, &zed), full(&place, &zed));
        zed.engine.edit_memory(&zed.name, one, &change("Two."), None).unwrap();
        zed.engine.delete_memory(&zed.name, one, None).unwrap();
        let refused = refusal(zed.engine.delete_memory(&zed.name, two, None));
        assert!(matches!(refused, Refusal::RateLimited { .. }));
        assert!(zed.engine.memory(&zed.name, two).is_ok(), "and nothing was written");
    }

    fn only_who_is_registered_may_ask(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = full(&place, &zed);
        for refused in [
            refusal(zed.engine.memory(&amp.name, id).map(|_| ())),
            refusal(zed.engine.edit_memory(&amp.name, id, &change("x"), None).map(|_| ())),
            refusal(zed.engine.delete_memory(&amp.name, id, None).map(|_| ())),
            refusal(zed.engine.search(&amp.name, &SearchAsk { query: "x".to_owned(), ..SearchAsk::default() }).map(|_| ())),
        ] {
            assert!(matches!(refused, Refusal::NotRegistered(_)), "{refused}");
        }
    }

    fn reading_again_soon_writes_nothing(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let zed = place.person("Zed");
        let id = full(&place, &zed);
        let read = || drop(zed.engine.memory(&zed.name, id).unwrap());
        assert_eq!(watched.writes_during(read), 1);
        assert_eq!(watched.writes_during(|| (0..3).for_each(|_| read())), 0);
        place.clock.advance(600_000);
        zed.engine.heartbeat().unwrap();
        assert_eq!(watched.writes_during(read), 1);
    }

    fn words_are_found_in_subject_and_content_whatever_their_case(place) {
        let zed = place.person("Zed");
        let one = place.say(&zed, "general", "Die STRAẞE ist gesperrt");
        let two = full(&place, &zed);
        let three = place.say(&zed, "general", "cafe\u{301} at noon; the café is open");
        assert_eq!(zed.search("straße"), [one]);
        assert_eq!(zed.search("STRASSE gesperrt"), [one]);
        assert_eq!(zed.search("keys turn"), [two], "one word in the subject, one in the content");
        assert_eq!(zed.search("CAFÉ"), [three]);
        assert_eq!(zed.search("cafe"), [0; 0]);
        assert_eq!(zed.search("gesp*"), [one]);
        assert_eq!(zed.search("gesp"), [0; 0]);
        assert_eq!(zed.search("noon nowhere"), [0; 0]);
    }

    fn punctuation_is_never_syntax(place) {
        let zed = place.person("Zed");
        let hit = place.say(&zed, "general", "Use the WAL-file, not \"OR\": it's in a_b/c.d (50%) and NEAR(x)");
        for query in [
            "\"WAL", "WAL-file", "wal-fi*", "\"OR\"", "it's", "a_b/c.d", "(50%)", "50%", "NEAR(x)", "NEAR", "use AND not",
            "wal -file", "+wal", "^use", "x)", "{wal}", "wal;", "wal'", "wal\\", "a_b*", "*wal", "wal**", "use:", "\u{0}wal",
        ] {
            assert_eq!(zed.search(query), [hit], "{query:?}");
        }
        for query in ["column:wal", "wal NOT zebra", "wal OR zebra", "\"wal over\"", "wal*file2", "\"\"\"", "--", "%", "_", "'"] {
            assert_eq!(zed.search(query), [0; 0], "{query:?}");
        }
        for query in ["", "  ", "*", "** *"] {
            let ask = SearchAsk { query: query.to_owned(), ..SearchAsk::default() };
            assert_eq!(refusal(zed.engine.search(&zed.name, &ask)), Refusal::Invalid(Invalid::NoQuery), "{query:?}");
        }
        assert!(zed.try_search(&"x".repeat(limits::QUERY_BYTES_MAX + 1)).is_err());
    }

    fn filters_narrow_what_is_found(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let one = place.say(&zed, "general", "apple pie");
        place.clock.advance(1000);
        let two = place.say(&amp, "general/app", "apple juice");
        let then = place.now();
        place.clock.advance(1000);
        let answer = Message { reply_to: Some(two), ..place.draft("general", "apple core") };
        let three = place.post(&zed, &answer);
        let tagged = Message { tags: tag::normalize(&["env:prod"]).unwrap(), ..place.draft("memory", "apple tree") };
        let four = place.remember(&zed, &tagged);
        let ask = |ask: SearchAsk| zed.found(&SearchAsk { query: "apple".to_owned(), ..ask });
        let channel = |name: &str| Some(ChannelName::new(name).unwrap());
        assert_eq!(ask(SearchAsk::default()), [one, two, three, four]);
        assert_eq!(ask(SearchAsk { channel: channel("general"), ..SearchAsk::default() }), [one, three]);
        assert_eq!(ask(SearchAsk { channel: channel("nowhere"), ..SearchAsk::default() }), [0; 0]);
        assert_eq!(ask(SearchAsk { sender: Some(amp.name.clone()), ..SearchAsk::default() }), [two]);
        assert_eq!(ask(SearchAsk { since: Some(then), ..SearchAsk::default() }), [two, three, four]);
        assert_eq!(ask(SearchAsk { until: Some(then), ..SearchAsk::default() }), [one, two]);
        assert_eq!(ask(SearchAsk { thread: Some(two), ..SearchAsk::default() }), [two, three]);
        let tags = vec![TagPattern::new("go").unwrap(), TagPattern::new("env*").unwrap()];
        assert_eq!(ask(SearchAsk { tags, ..SearchAsk::default() }), [four]);
    }

    fn letters_to_others_are_not_found(place) {
        let (zed, amp, jan) = (place.person("Zed"), place.person("Amp"), place.person("Jan"));
        let to_amp = place.say(&zed, "dm/Amp", "a secret plum");
        let to_zed = place.say(&jan, "dm/Zed", "another plum");
        assert_eq!(zed.search("plum"), [to_amp, to_zed], "those I sent and those I got");
        assert_eq!(amp.search("plum"), [to_amp]);
        assert_eq!(jan.search("plum"), [to_zed]);
        let inbox = |person: &Person, name: &str| {
            let channel = Some(ChannelName::new(name).unwrap());
            person.engine.search(&person.name, &SearchAsk { query: "plum".to_owned(), channel, ..SearchAsk::default() })
        };
        assert_eq!(inbox(&zed, "dm/Zed").unwrap().hits.len(), 1);
        let (foreign, missing) = (refusal(inbox(&zed, "dm/Amp")), refusal(inbox(&zed, "dm/Nobody")));
        assert_eq!(foreign.to_string().replace("Amp", "Nobody"), missing.to_string());
        assert_eq!(foreign.code(), "not_found");
    }

    fn tasks_are_found_by_their_text_and_count_as_their_newest_revision(place) {
        let zed = place.person("Zed");
        let id = zed.create("Mend the roof");
        zed.claim(&id).unwrap();
        let found = zed.try_search("roof").unwrap();
        assert_eq!(found.hits.len(), 1);
        let memory = found.hits[0].message.memory.unwrap();
        assert_eq!((memory.id.to_string(), memory.revision), (id.to_string(), 2));
    }

    fn pages_end_without_duplicates_while_others_write(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let mut wanted: Vec<u64> = (0..25).map(|n| place.say(&zed, "general", &format!("grape {n}"))).collect();
        wanted.extend((0..15).map(|n| place.remember(&zed, &place.draft("memory", &format!("grape memory {n}")))));
        let (mut cursor, mut seen, mut pages) = (None, Vec::new(), 0);
        loop {
            let ask = SearchAsk { query: "grape".to_owned(), count: Some(7), cursor: cursor.clone(), ..SearchAsk::default() };
            let page = zed.engine.search(&zed.name, &ask).unwrap();
            pages += 1;
            seen.extend(page.hits.iter().map(|hit| hit.message.memory.map_or(hit.message.seq, |memory| memory.id)));
            // New ones that fit better, and edited ones that were shown or are still to come.
            place.say(&amp, "general", "grape");
            for id in [wanted[25 + pages], wanted[39 - pages]] {
                amp.engine.edit_memory(&amp.name, id, &change(&format!("grape grape {pages}")), None).unwrap();
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages, 6);
        seen.sort_unstable();
        assert_eq!(seen, wanted);
        for bad in ["-1", "12 ", "x!"] {
            let ask = SearchAsk { query: "grape".to_owned(), cursor: Some(bad.to_owned()), ..SearchAsk::default() };
            assert_eq!(refusal(zed.engine.search(&zed.name, &ask)), Refusal::Invalid(Invalid::Cursor), "{bad}");
        }
    }

    fn an_answer_ends_where_it_would_grow_too_large_but_has_one_hit_at_least(place) {
        let zed = place.person_with("Zed", Limits { result_default_kib: 1, ..Limits::default() });
        let small: Vec<u64> = (0..20).map(|n| place.say(&zed, "general", &format!("kiwi {n}"))).collect();
        let (mut cursor, mut seen) = (None, Vec::new());
        loop {
            let ask = SearchAsk { query: "kiwi".to_owned(), cursor, ..SearchAsk::default() };
            let page = zed.engine.search(&zed.name, &ask).unwrap();
            let bytes = serde_json::to_string(&page).unwrap().len();
            assert!(!page.hits.is_empty() && bytes <= 1024, "{bytes}");
            assert!(page.next.is_none() || bytes > 700, "{bytes}");
            seen.extend(page.hits.iter().map(|hit| hit.message.seq));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, small);
        let large = place.say(&zed, "general", &format!("melon {}", "x".repeat(5000)));
        assert_eq!(zed.search("melon"), [large]);
    }
}
