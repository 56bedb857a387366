//! What the tick does on a bus: what goes, what stays, who may do it, and what it costs when there is nothing to do.

use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::bus::message::{Content, Message, Revision, Sort};
use taskbus::core::bus::rules::Start;
use taskbus::core::bus::tag::{self, TagPattern, TagSet};
use taskbus::core::limits::{
    CLEANUP_INTERVAL_SECONDS, MEMORY_EXPIRY_HOURS, MESSAGE_RETENTION_HOURS, STORE_BUDGET_MIB, TASK_EXPIRY_HOURS,
    TOMBSTONE_MIN_HOURS,
};
use taskbus::core::name::Key;
use taskbus::core::refusal::Refusal;
use taskbus::engine::{Follow, Limits, SearchAsk, Ticked};
use taskbus::store::bus::{ChannelRow, MessageQuery, NoticeKind, Source, SubscriptionRow};
use taskbus::store::{read_with, write_with};

use crate::support::{Person, Place, Watched, list, on_every_store, refusal};

const HOUR_MS: i64 = 3_600_000;

fn name(text: &str) -> ChannelName {
    ChannelName::new(text).unwrap()
}

fn row(place: &Place, channel: &str) -> Option<ChannelRow> {
    read_with(&*place.store, None, |snapshot| snapshot.bus().unwrap().channel(&name(channel))).unwrap()
}

fn texts(place: &Place, channel: &str) -> Vec<String> {
    let channel = name(channel);
    let query = MessageQuery::of(&channel, 0, 10_000);
    let messages = read_with(&*place.store, None, |snapshot| snapshot.bus().unwrap().messages(&query)).unwrap();
    messages.into_iter().map(|message| format!("{}{}", message.sort.as_str(), message.content)).collect()
}

fn notice(place: &Place) -> Option<String> {
    read_with(&*place.store, None, |snapshot| snapshot.bus().unwrap().notice(NoticeKind::Capacity)).unwrap()
}

fn note(place: &Place, person: &Person, content: &str) -> u64 {
    place.remember(person, &place.draft("memory", content))
}

fn change(content: &str) -> Revision {
    let content = Content::new(content).unwrap();
    Revision { content, sort: Sort::default(), subject: None, metadata: None, tags: None }
}

fn follow(place: &Place, person: &Person, channel: &str) {
    let row = SubscriptionRow {
        who: person.name.clone(),
        source: Source::Channel(name(channel)),
        cursor: 0,
        last_activity: place.now(),
        pending: None,
    };
    write_with(&*place.store, None, |tx| Ok(tx.bus_mut().unwrap().put_subscription(&row)?)).unwrap();
}

fn make(place: &Place, channel: &str) {
    let now = place.now();
    write_with(&*place.store, None, |tx| {
        Ok(tx.bus_mut().unwrap().create_channel(&name(channel), ChannelKind::Ordinary, now)?)
    })
    .unwrap();
}

/// Moves the clock, and keeps these alive.
fn later(place: &Place, millis: i64, alive: &[&Person]) {
    place.clock.advance(millis);
    for person in alive {
        person.engine.heartbeat().unwrap();
    }
}

on_every_store! {
    fn messages_go_by_age_and_memories_and_tasks_stay(place) {
        let zed = place.person("Zed");
        place.say(&zed, "general", "old");
        let last = place.say(&zed, "dm/Zed", "old letter");
        note(&place, &zed, "a memory");
        zed.create("a task");
        later(&place, MESSAGE_RETENTION_HOURS * HOUR_MS, &[&zed]);
        let young = place.say(&zed, "general", "young");
        assert_eq!(zed.engine.tick().unwrap().aged, 0, "not at the limit");
        later(&place, 1, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().aged, 2, "one past it");
        assert_eq!((texts(&place, "general"), texts(&place, "dm/Zed")), (vec!["young".to_owned()], vec![]));
        assert_eq!(texts(&place, "memory"), ["a memory"]);
        assert_eq!(zed.engine.tally(&list()).unwrap().ready, 1);
        let before = |channel: &str| row(&place, channel).unwrap().evicted_before;
        assert_eq!((before("dm/Zed"), before("memory")), (last + 1, 0));
        assert!(before("general") > 1 && before("general") <= young);
    }

    fn much_that_is_old_goes_in_short_transactions(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let zed = place.person("Zed");
        zed.create("the list stays");
        for n in 0..2500 {
            place.say(&zed, "general", &format!("old {n}"));
        }
        later(&place, MESSAGE_RETENTION_HOURS * HOUR_MS + 1, &[&zed]);
        let mut ticked = Ticked::default();
        let writes = watched.writes_during(|| ticked = zed.engine.tick().unwrap());
        assert_eq!((ticked.aged, writes), (2500, 3));
        assert_eq!(texts(&place, "general"), [""; 0]);
    }

    fn what_was_buried_is_removed_later(place) {
        let zed = place.person("Zed");
        let id = note(&place, &zed, "one");
        zed.engine.edit_memory(&zed.name, id, &change("two"), None).unwrap();
        let other = note(&place, &zed, "other");
        zed.engine.delete_memory(&zed.name, other, None).unwrap();
        let revisions = || read_with(&*place.store, None, |s| s.bus().unwrap().revisions(id, 10)).unwrap().len();
        later(&place, TOMBSTONE_MIN_HOURS * HOUR_MS, &[&zed]);
        assert_eq!((zed.engine.tick().unwrap().purged, revisions()), (0, 2));
        later(&place, 1, &[&zed]);
        assert_eq!((zed.engine.tick().unwrap().purged, revisions()), (2, 1));
        assert_eq!(texts(&place, "memory"), ["two", "deleted"]);
        later(&place, MESSAGE_RETENTION_HOURS * HOUR_MS, &[&zed]);
        zed.engine.tick().unwrap();
        assert_eq!(texts(&place, "memory"), ["two"], "the note of a deletion ages like a message");
    }

    fn what_goes_takes_its_tags_along(place) {
        let zed = place.person("Zed");
        let tagged = |channel: &str| Message { tags: tag::normalize(&["go"]).unwrap(), ..place.draft(channel, "tagged") };
        place.post(&zed, &tagged("general"));
        let id = place.remember(&zed, &tagged("memory"));
        let patterns = [TagPattern::new("g*").unwrap()];
        let found = |channel: Option<&ChannelName>| {
            let query = MessageQuery { channel, any_tags: &patterns, ..MessageQuery::anywhere(0, 10) };
            read_with(&*place.store, None, |s| s.bus().unwrap().messages(&query)).unwrap().len()
        };
        let memory = ChannelName::memory();
        assert_eq!((found(None), found(Some(&memory))), (1, 1));
        zed.engine.delete_memory(&zed.name, id, None).unwrap();
        later(&place, MESSAGE_RETENTION_HOURS * HOUR_MS + 1, &[&zed]);
        zed.engine.tick().unwrap();
        assert_eq!((found(None), found(Some(&memory))), (0, 0));
        let fresh = place.say(&zed, "general", "not tagged");
        assert_eq!(found(None), 0, "and nobody inherits them: {fresh}");
    }

    fn what_an_identity_follows_by_tags_survives_the_sweeps(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let set = TagSet::new(&["go"]).unwrap();
        zed.engine.subscribe(&zed.name, &Follow::Tags(set), Start::Now).unwrap();
        zed.create("the list stays");
        make(&place, "general/empty");
        later(&place, 2 * HOUR_MS, &[&amp]);
        assert_eq!(amp.engine.tick().unwrap().channels, 1);
        let rows = read_with(&*place.store, None, |s| s.bus().unwrap().subscriptions(&zed.name)).unwrap();
        let sources: Vec<String> = rows.iter().map(|row| row.source.to_string()).collect();
        assert_eq!(sources, ["tags/", "dm/Zed"]);
        let sets = read_with(&*place.store, None, |s| s.bus().unwrap().tag_sets(&zed.name)).unwrap();
        assert_eq!(sets.len(), 1);
    }

    fn an_empty_channel_goes_when_nobody_who_is_there_listens(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        for channel in ["general/empty", "general/heard", "general", "memory", "dm/Zed"] {
            make(&place, channel);
        }
        place.say(&zed, "general/full", "something");
        follow(&place, &amp, "general/heard");
        follow(&place, &amp, "general/empty");
        later(&place, HOUR_MS, &[&zed, &amp]);
        assert_eq!(zed.engine.tick().unwrap().channels, 0, "whoever made it may be about to use it");
        write_with(&*place.store, None, |tx| {
            Ok(tx.bus_mut().unwrap().end_subscription(&amp.name, &Source::Channel(name("general/empty")))?)
        })
        .unwrap();
        later(&place, 1, &[&zed, &amp]);
        assert_eq!(zed.engine.tick().unwrap().channels, 1);
        assert!(row(&place, "general/empty").is_none() && row(&place, "general/heard").is_some());
        later(&place, 40_000, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().channels, 1, "Amp is gone");
        for channel in ["general", "memory", "dm/Zed", "general/full", "tasks/work"] {
            assert!(row(&place, channel).is_some(), "{channel}");
        }
        let left = read_with(&*place.store, None, |s| s.bus().unwrap().subscriptions(&amp.name)).unwrap();
        let sources: Vec<String> = left.iter().map(|row| row.source.to_string()).collect();
        assert_eq!(sources, ["dm/Amp"], "a channel takes its subscriptions along");
    }

    fn a_task_list_in_which_nothing_happens_goes_whole(place) {
        let zed = place.person("Zed");
        let id = zed.create("never done");
        follow(&place, &zed, "tasks/work");
        later(&place, TASK_EXPIRY_HOURS * HOUR_MS, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().lists, 0);
        zed.claim(&id).unwrap();
        later(&place, TASK_EXPIRY_HOURS * HOUR_MS, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().lists, 0, "a claim is something");
        let never = place.person_with("Amp", Limits { task_expiry_hours: 0, ..Limits::default() });
        later(&place, 130_000, &[&zed, &never]);
        assert_eq!(never.engine.tick().unwrap().lists, 0, "0 means never");
        later(&place, 130_000, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().lists, 1);
        assert!(row(&place, "tasks/work").is_none());
        assert_eq!(refusal(zed.engine.get(Some(&zed.name), &id, false)).code(), "not_found");
        assert!(zed.search("never").is_empty());
    }

    fn a_memory_goes_when_nobody_reads_it(place) {
        let zed = place.person("Zed");
        let read = note(&place, &zed, "plum: read by its id");
        let found = note(&place, &zed, "plum: found");
        let edited = note(&place, &zed, "plum: edited");
        let seen = note(&place, &zed, "plum: only seen in passing");
        later(&place, HOUR_MS, &[&zed]);
        zed.engine.memory(&zed.name, read).unwrap();
        zed.engine.edit_memory(&zed.name, edited, &change("edited"), None).unwrap();
        let ask = SearchAsk { query: "found".to_owned(), touch: true, ..SearchAsk::default() };
        assert_eq!(zed.engine.search(&zed.name, &ask).unwrap().hits.len(), 1);
        assert_eq!(zed.search("plum").len(), 3, "a search of a person is no reading");
        later(&place, (MEMORY_EXPIRY_HOURS - 1) * HOUR_MS, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().memories, 0);
        later(&place, 1, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().memories, 1);
        assert_eq!(refusal(zed.engine.memory(&zed.name, seen)).code(), "not_found");
        let memory = ChannelName::memory();
        let query = MessageQuery { after: edited, ..MessageQuery::of(&memory, 0, 10) };
        let told = read_with(&*place.store, None, |s| s.bus().unwrap().messages(&query)).unwrap();
        let last = told.last().unwrap();
        assert_eq!((last.sort.as_str(), &last.sender, last.memory.unwrap().id), ("deleted", &None, seen));
        later(&place, HOUR_MS, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().memories, 3);
        let keeps = place.person_with("Amp", Limits { memory_expiry_hours: 0, ..Limits::default() });
        note(&place, &keeps, "for ever");
        later(&place, 3 * MEMORY_EXPIRY_HOURS * HOUR_MS, &[&keeps]);
        assert_eq!((keeps.engine.tick().unwrap().memories, found > read), (0, true));
    }

    fn a_full_store_drops_its_oldest_messages_and_says_so(place) {
        let small = Limits { sqlite_budget_mib: 1, writes_per_second: 10_000, ..Limits::default() };
        let zed = place.person_with("Zed", small.clone());
        let memory = note(&place, &zed, "stays");
        for n in 0..30 {
            place.say(&zed, if n % 2 == 0 { "general" } else { "general/app" }, &format!("{n} {}", "x".repeat(40_000)));
        }
        let ticked = zed.engine.tick().unwrap();
        assert!(ticked.evicted > 0 && ticked.evicted <= 30, "{ticked:?}");
        assert!(zed.engine.bus_status().unwrap().used_mib <= 1);
        let left = texts(&place, "general").len() + texts(&place, "general/app").len();
        assert_eq!(left, 30 - ticked.evicted);
        assert!(notice(&place).unwrap().contains("sqlite_budget_mib"));
        assert!(zed.engine.memory(&zed.name, memory).is_ok());
        assert!(row(&place, "general").unwrap().evicted_before > 0);
        assert_eq!(zed.engine.tick().unwrap().evicted, 0);
        assert_eq!(notice(&place), None, "it is full no longer");
    }

    fn a_write_into_a_full_store_makes_room_or_is_refused(place) {
        let small = Limits { sqlite_budget_mib: 1, writes_per_second: 10_000, write_kib_per_second: 1_000_000, ..Limits::default() };
        let zed = place.person_with("Zed", small);
        let id = note(&place, &zed, "small");
        for n in 0..40 {
            place.say(&zed, "general", &format!("{n} {}", "x".repeat(40_000)));
        }
        zed.engine.edit_memory(&zed.name, id, &change("edited"), None).unwrap();
        assert!(texts(&place, "general").len() < 40 && notice(&place).is_some());
        let ids: Vec<u64> = (0..40).map(|n| note(&place, &zed, &format!("{n} {}", "y".repeat(40_000)))).collect();
        let refused = refusal(zed.engine.edit_memory(&zed.name, id, &change("more"), None));
        assert!(matches!(refused, Refusal::CapacityExhausted { budget_mib: 1, .. }), "{refused}");
        assert!(!refused.retryable() && refused.to_string().contains("sqlite_budget_mib"));
        assert!(texts(&place, "general").is_empty(), "everything that could go went");
        assert!(notice(&place).unwrap().contains("sends are refused"));
        for id in ids {
            zed.engine.delete_memory(&zed.name, id, None).unwrap();
        }
        later(&place, (TOMBSTONE_MIN_HOURS + 1) * HOUR_MS, &[&zed]);
        zed.engine.tick().unwrap();
        assert_eq!(notice(&place), None);
        zed.engine.edit_memory(&zed.name, id, &change("more"), None).unwrap();
    }

    fn a_repeated_call_is_answered_by_a_full_store_too(place) {
        let small = Limits { sqlite_budget_mib: 1, ..Limits::default() };
        let zed = place.person_with("Zed", small);
        let id = note(&place, &zed, "small");
        let key = Key::new("k").unwrap();
        let first = zed.engine.edit_memory(&zed.name, id, &change("edited"), Some(&key)).unwrap();
        for n in 0..40 {
            note(&place, &zed, &format!("{n} {}", "y".repeat(40_000)));
        }
        assert_eq!(zed.engine.edit_memory(&zed.name, id, &change("edited"), Some(&key)).unwrap(), first);
        let refused = refusal(zed.send(taskbus::core::command::Command::Create(Box::new(
            taskbus::core::command::Draft::new(taskbus::core::text::Subject::new("x").unwrap()),
        )), None));
        assert_eq!(refused.code(), "capacity_exhausted", "tasks take room too");
    }

    fn an_idle_tick_on_a_bus_takes_no_write_lock(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        for channel in ["general", "general/app", "memory"] {
            make(&place, channel);
        }
        for n in 0..20 {
            place.say(&zed, "general", &format!("hello {n}"));
            note(&place, &zed, &format!("memory {n}"));
            zed.create(&format!("task {n}"));
        }
        let (gone, edited) = (note(&place, &zed, "gone"), note(&place, &zed, "edited"));
        zed.engine.delete_memory(&zed.name, gone, None).unwrap();
        zed.engine.edit_memory(&zed.name, edited, &change("again"), None).unwrap();
        follow(&place, &amp, "general");
        for _ in 0..3 {
            later(&place, 60_000, &[&zed, &amp]);
            let idle = || assert_eq!(amp.engine.tick().unwrap(), Ticked::default());
            assert_eq!(watched.writes_during(idle), 0);
        }
        let version = place.store.version().unwrap();
        amp.engine.tick().unwrap();
        assert_eq!(place.store.version().unwrap(), version, "not even behind the seam");
    }

    fn one_process_does_the_maintenance_at_a_time(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        zed.create("the list stays");
        let tick = |person: &Person| {
            place.say(person, "general", "old");
            later(&place, MESSAGE_RETENTION_HOURS * HOUR_MS + 1, &[&zed, &amp]);
            person.engine.tick().unwrap().aged
        };
        assert_eq!(tick(&zed), 1);
        let interval_ms = i64::try_from(CLEANUP_INTERVAL_SECONDS).unwrap() * 1000;
        later(&place, 2 * interval_ms - 1, &[&zed, &amp]);
        let orphan = zed.create("orphan");
        zed.claim_for(&orphan, 1).unwrap();
        place.clock.advance(1);
        let hasty = place.person("Jan");
        assert_eq!(hasty.engine.tick().unwrap(), Ticked::default(), "nothing is due yet");
        place.clock.advance(1_000);
        assert_eq!(amp.engine.tick().unwrap().reclaimed, 1, "the first was silent for two intervals");
        zed.claim_for(&orphan, 1).unwrap();
        later(&place, 1_000, &[&zed, &amp]);
        assert_eq!(zed.engine.tick().unwrap(), Ticked::default(), "another does it now");
        assert_eq!(amp.engine.tick().unwrap().reclaimed, 1);
    }

    fn a_step_that_fails_does_not_keep_the_next_from_its_work(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let zed = place.person("Zed");
        let id = zed.create("orphan");
        zed.claim_for(&id, 1).unwrap();
        place.say(&zed, "general", "old");
        later(&place, MESSAGE_RETENTION_HOURS * HOUR_MS + 1, &[&zed]);
        watched.fail_next(1);
        assert!(zed.engine.tick().is_err());
        assert_eq!(texts(&place, "general"), [""; 0], "the messages went");
        assert_eq!(zed.engine.tick().unwrap(), Ticked { reclaimed: 1, ..Ticked::default() });
    }

    fn sessions_of_the_dead_are_forgotten_after_a_day_and_their_names_are_not(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        later(&place, 24 * HOUR_MS + 30_000, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().sessions, 0);
        later(&place, 1, &[&zed]);
        assert_eq!(zed.engine.tick().unwrap().sessions, 1);
        let known = read_with(&*place.store, Some(&list()), |snapshot| {
            assert!(snapshot.session(&amp.name)?.is_none());
            Ok(snapshot.is_known(&amp.name)?)
        });
        assert!(known.unwrap());
        assert_eq!(refusal(amp.engine.heartbeat().map(|_| ()).and_then(|()| amp.engine.memory(&amp.name, 1).map(|_| ()))).code(), "not_registered");
        assert_eq!(place.person("Amp").name.as_str(), "Amp");
    }

    fn a_channel_is_deleted_unless_somebody_who_is_there_listens(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        place.say(&zed, "general/app", "hello");
        follow(&place, &zed, "general/app");
        follow(&place, &amp, "general/app");
        let delete = |channel: &str| zed.engine.delete_channel(&zed.name, &name(channel));
        let refused = refusal(delete("general/app"));
        assert_eq!(refused.code(), "conflict");
        assert!(refused.to_string().contains("Amp") && !refused.to_string().contains("Zed"), "{refused}");
        for (channel, code) in [("general", "validation"), ("dm/Zed", "validation"), ("general/nowhere", "not_found")] {
            assert_eq!(refusal(delete(channel)).code(), code, "{channel}");
        }
        amp.engine.close().unwrap();
        let gone = delete("general/app").unwrap();
        assert_eq!((gone.deleted.as_str(), gone.messages), ("general/app", 1));
        assert!(row(&place, "general/app").is_none() && zed.search("hello").is_empty());
        zed.create("with a task");
        assert_eq!(delete("tasks/work").unwrap().messages, 1);
        assert!(row(&place, "tasks/work").is_none());
        assert_eq!(refusal(zed.engine.delete_channel(&amp.name, &name("x"))).code(), "not_registered");
    }

    fn a_reset_empties_the_store_and_numbers_go_on(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        place.say(&zed, "general/app", "hello");
        note(&place, &zed, "a memory");
        zed.create("a task");
        let last = place.say(&amp, "dm/Zed", "a letter");
        let emptied = zed.engine.reset().unwrap();
        assert_eq!((emptied.sessions.len(), emptied.messages), (2, 4));
        let status = zed.engine.bus_status().unwrap();
        let names: Vec<&str> = status.channels.iter().map(|channel| channel.name.as_str()).collect();
        assert_eq!((names, status.sessions.len()), (vec!["general", "memory"], 0));
        assert!(status.channels.iter().all(|channel| channel.messages == 0));
        assert_eq!(refusal(zed.engine.search(&zed.name, &SearchAsk { query: "hello".to_owned(), ..SearchAsk::default() })).code(), "not_registered");
        let again = place.person("Zed");
        assert!(place.say(&again, "general", "hello") > last);
    }

    fn the_status_says_what_there_is(place) {
        let zed = place.person("Zed");
        let seq = place.say(&zed, "general", "hello");
        zed.create("a task");
        let status = zed.engine.bus_status().unwrap();
        assert_eq!((status.budget_mib, &status.notice, &status.embedding), (STORE_BUDGET_MIB, &None, &None));
        assert!(status.used_mib <= 4);
        assert_eq!(status.sessions.len(), 1);
        let of = |channel: &str| status.channels.iter().find(|row| row.name.as_str() == channel).unwrap();
        assert_eq!((of("general").messages, of("general").latest_seq), (1, seq));
        assert_eq!((of("tasks/work").messages, of("tasks/work").kind), (1, ChannelKind::Memory));
        assert_eq!(of("tasks/work").last_activity, Some(place.now()));
    }
}
