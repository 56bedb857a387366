//! Following tags.

use taskbus::core::bus::rules::Start;
use taskbus::core::limits;
use taskbus::engine::{ReceiveAsk, Registration, Span};

use super::{contents, tagged};
use crate::support::{on_every_store, wish};

const HOUR: i64 = 3_600_000;

on_every_store! {
    fn tagged_messages_come_from_ordinary_channels_that_are_not_followed(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        zed.make("general/app");
        zed.post("general/app", &tagged("too early", &["rust"]), None).unwrap();
        amp.follow_tags(&["rust"]);
        amp.follow("general", Start::Now).unwrap();
        for channel in ["general", "general/app", "memory", "dm/Amp", "dm/Zed"] {
            zed.post(channel, &tagged(channel, &["rust", "other"]), None).unwrap();
        }
        let batch = amp.all();
        assert_eq!(contents(&batch), ["general", "general/app", "dm/Amp"]);
        let by_tags: Vec<usize> = batch.messages.iter().map(|message| message.matched_tags.len()).collect();
        assert_eq!(by_tags, [0, 1, 0], "the others came by themselves");
        assert!(amp.ack(&batch).messages.is_empty());
    }

    fn a_set_wants_all_of_its_patterns_and_ends_by_its_name(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow_tags(&["rust", "env*"]);
        amp.follow_tags(&["ENV*", "rust"]);
        amp.follow_tags(&["bug"]);
        zed.post("general", &tagged("half", &["rust"]), None).unwrap();
        zed.post("general", &tagged("both", &["rust", "env:prod"]), None).unwrap();
        let batch = amp.all();
        assert_eq!(contents(&batch), ["both"]);
        amp.ack(&batch);
        amp.unfollow_tags(&["env*", "rust"]);
        zed.post("general", &tagged("not any more", &["rust", "env:prod"]), None).unwrap();
        zed.post("general", &tagged("still", &["bug"]), None).unwrap();
        let batch = amp.all();
        assert_eq!(contents(&batch), ["still"]);
        amp.ack(&batch);
        amp.unfollow_tags(&["bug"]);
        amp.unfollow_tags(&["bug"]);
        zed.post("general", &tagged("nothing", &["bug"]), None).unwrap();
        assert!(!amp.all().is_news());
    }

    fn tags_end_with_the_name_or_when_nobody_reads_them(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow_tags(&["rust"]);
        place.clock.advance(limits::CURSOR_IDLE_HOURS * HOUR + 1);
        zed.engine.heartbeat().unwrap();
        zed.post("general", &tagged("unread", &["rust"]), None).unwrap();
        let told = amp.all();
        assert_eq!((told.expired, told.messages), (vec!["tags/".to_owned()], vec![]));
        zed.post("general", &tagged("unread", &["rust"]), None).unwrap();
        assert!(!amp.all().is_news(), "the sets went with it");
        amp.follow_tags(&["rust"]);
        amp.engine.register(&Registration { resume: false, ..wish("Amp", Span::Heartbeat) }).unwrap();
        zed.post("general", &tagged("unread", &["rust"]), None).unwrap();
        assert!(!amp.all().is_news());
    }

    fn a_further_set_keeps_the_others_alive(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow_tags(&["rust"]);
        place.clock.advance(limits::CURSOR_IDLE_HOURS * HOUR + 1);
        zed.engine.heartbeat().unwrap();
        amp.follow_tags(&["bug"]);
        zed.post("general", &tagged("one", &["rust"]), None).unwrap();
        let batch = amp.receive(&ReceiveAsk::default()).unwrap();
        assert_eq!((contents(&batch), batch.expired.len()), (vec!["one"], 0));
    }

    fn a_set_that_is_followed_already_does_not_begin_anew(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow_tags(&["rust"]);
        zed.post("general", &tagged("between", &["rust"]), None).unwrap();
        amp.follow_tags(&["rust"]);
        assert_eq!(contents(&amp.all()), ["between"]);
    }

    fn the_maintenance_leaves_what_is_followed_alone(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow_tags(&["rust"]);
        amp.follow("memory", Start::Now).unwrap();
        zed.engine.tick().unwrap();
        zed.post("general", &tagged("by its tags", &["rust"]), None).unwrap();
        zed.say("memory", "in a channel that had no row");
        assert_eq!(contents(&amp.all()), ["by its tags", "in a channel that had no row"]);
    }
}
