//! What registering does: the inbox, what goes on, and what the repository wishes.

use taskbus::answer::Registered;
use taskbus::core::bus::rules::Start;
use taskbus::core::bus::wishes::RepoWishes;
use taskbus::core::limits;
use taskbus::engine::{HistoryAsk, Limits, Registration, Span};

use super::{contents, name, tagged};
use crate::support::{Person, Place, on_every_store, wish};

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn unread(registered: &Registered) -> Vec<(&str, usize)> {
    registered.pending.iter().map(|view| (view.channel.as_str(), view.pending)).collect()
}

/// A new process takes the name.
fn take(place: &Place, wish: &Registration) -> (Person, Registered) {
    let engine = place.engine(Limits::default());
    let registered = engine.register(wish).unwrap();
    (Person { engine, name: registered.name.clone() }, registered)
}

on_every_store! {
    fn a_name_that_comes_back_goes_on_where_it_was(place) {
        let zed = place.person("Zed");
        let (amp, first) = take(&place, &wish("Amp", Span::Heartbeat));
        assert_eq!((first.resumed, unread(&first)), (false, vec![("dm/Amp", 0)]));
        amp.follow("general", Start::Now).unwrap();
        amp.engine.close().unwrap();
        zed.say("general", "one");
        zed.say("dm/Amp", "two");
        let (amp, again) = take(&place, &wish("Amp", Span::Heartbeat));
        assert_eq!((again.resumed, unread(&again)), (true, vec![("dm/Amp", 1), ("general", 1)]));
        assert_eq!(again.others.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["Zed"]);
        amp.say("general", "my own does not count");
        let third = amp.engine.register(&wish("Amp", Span::Heartbeat)).unwrap();
        assert_eq!(unread(&third), [("dm/Amp", 1), ("general", 1)]);
    }

    fn a_name_that_begins_anew_has_no_backlog(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        zed.say("general", "one");
        zed.say("dm/Amp", "two");
        let anew = Registration { resume: false, ..wish("Amp", Span::Heartbeat) };
        let registered = amp.engine.register(&anew).unwrap();
        assert_eq!(unread(&registered), [("dm/Amp", 0)]);
        zed.say("dm/Amp", "three");
        assert_eq!(contents(&amp.all()), ["three"]);
    }

    fn messages_to_a_first_inbox_are_delivered(place) {
        let zed = place.person("Zed");
        place.silence_all_but(&[&zed]);
        let amp = place.person("Amp");
        zed.say("dm/Amp", "before you looked");
        assert_eq!(contents(&amp.all()), ["before you looked"]);
    }

    fn what_nobody_read_ends_when_the_name_comes_back(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        amp.follow_tags(&["rust"]);
        place.clock.advance(limits::CURSOR_IDLE_HOURS * 3_600_000 + 1);
        zed.engine.heartbeat().unwrap();
        let (amp, registered) = take(&place, &wish("Amp", Span::Heartbeat));
        assert_eq!((registered.resumed, unread(&registered)), (true, vec![("dm/Amp", 0)]));
        zed.post("general", &tagged("x", &["rust"]), None).unwrap();
        assert!(!amp.all().is_news(), "and without a word");
    }

    fn a_repository_says_what_its_agents_read(place) {
        let zed = place.person("Zed");
        zed.make("plain");
        let wishes = RepoWishes {
            channels: Some(texts(&["general", "general/app", "memory/app", "plain", "none", "tasks/app", "a/b"])),
            tag_sets: vec![texts(&["rust", "env*"])],
            tags: texts(&["rust", "no tag"]),
        };
        let wish = Registration { repo: Some(wishes), ..wish("Amp", Span::Heartbeat) };
        let (amp, registered) = take(&place, &wish);
        let names = |list: &[taskbus::core::bus::channel::ChannelName]| {
            list.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(&registered.subscribed), ["general", "general/app", "plain"]);
        assert_eq!(names(&registered.memory_channels), ["memory/app"]);
        assert_eq!(registered.ignored_channels, ["tasks/app"]);
        assert_eq!(registered.subscribe_failed.keys().collect::<Vec<_>>(), ["a/b", "none"]);
        assert_eq!(registered.tag_subscriptions[0].key(), "env*,rust");
        assert_eq!((registered.repo_tags.len(), registered.ignored_tags.len()), (1, 1));
        assert!(!registered.resumed, "its own inbox does not count");
        for channel in ["general/app", "memory/app", "plain"] {
            zed.say(channel, channel);
        }
        assert_eq!(contents(&amp.all()), ["general/app", "plain"]);
        let again = amp.engine.register(&wish).unwrap();
        assert_eq!((again.resumed, again.subscribed.len()), (true, 3));
        assert!(amp.all().redelivered, "nothing moved");
    }

    fn a_subscription_to_memories_ends_when_the_repository_names_them(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("memory", Start::Now).unwrap();
        let with = Registration { repo: Some(RepoWishes::default()), ..wish("Amp", Span::Heartbeat) };
        let registered = amp.engine.register(&with).unwrap();
        assert_eq!(unread(&registered), [("dm/Amp", 0), ("general", 0)]);
        zed.say("memory", "searched, not read");
        assert!(!amp.all().is_news());
    }

    fn others_are_told_of_unless_it_is_switched_off(place) {
        let zed = place.person_with("Zed", Limits { discovery_enabled: false, ..Limits::default() });
        place.person("Amp");
        assert!(zed.engine.register(&wish("Zed", Span::Heartbeat)).unwrap().others.is_empty());
    }

    fn a_clean_end_keeps_what_was_followed(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        amp.engine.close().unwrap();
        zed.say("general", "one");
        assert_eq!(contents(&place.person("Amp").all()), ["one"]);
    }

    fn a_long_backlog_is_counted_up_to_a_limit(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        let most = limits::PENDING_COUNTED_MAX;
        let register = || {
            let registered = amp.engine.register(&wish("Amp", Span::Heartbeat)).unwrap();
            let shown = zed.engine.history(&zed.name, &HistoryAsk::of(name("general"))).unwrap();
            (unread(&registered)[1].1, shown.total)
        };
        place.flood(&zed, "general", most - 1);
        assert_eq!(register(), (most - 1, Some(most - 1)));
        place.flood(&zed, "general", 1);
        assert_eq!(register(), (most, None));
        place.flood(&zed, "general", 1);
        assert_eq!(register(), (most, None));
    }
}
