//! What comes by its tags.

use taskbus_core::bus::receive::Received;
use taskbus_core::bus::subscription::Source;

use crate::support::{Bus, Call, IDLE_MS, seqs};

const CHANNELS: [&str; 6] = ["general", "general/app", "memory", "tasks/work", "dm/Zed", "dm/Amp"];

fn tags(received: &Received) -> Vec<Vec<String>> {
    received.messages.iter().map(|it| it.matched_tags.iter().map(ToString::to_string).collect()).collect()
}

#[test]
fn tags_bring_ordinary_messages_of_channels_that_are_not_read_directly() {
    let mut bus = Bus::new(&CHANNELS);
    bus.send_with("general/app", "Amp", "too early", &["rust"]);
    bus.subscribe("general", 0);
    bus.follow_tags(&["rust"]);
    for channel in CHANNELS {
        bus.send_with(channel, "Amp", channel, &["rust"]);
    }
    let received = bus.all();
    let contents: Vec<&str> = received.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(contents, ["general", "general/app"]);
    assert_eq!(tags(&received), [vec![], vec!["rust".to_owned()]], "only what came by its tags says which");
}

#[test]
fn a_message_that_several_sets_match_comes_once_with_all_the_tags() {
    let mut bus = Bus::new(&["general"]);
    bus.follow_tags(&["env*", "rust"]);
    bus.follow_tags(&["bug"]);
    bus.send_with("general", "Amp", "x", &["rust", "env:prod", "bug", "other"]);
    bus.send_with("general", "Amp", "x", &["rust", "other"]);
    bus.send_with("general", "Zed", "x", &["bug"]);
    let received = bus.all();
    assert_eq!(seqs(&received), [1]);
    assert_eq!(tags(&received), [["bug", "env:prod", "rust"]]);
}

#[test]
fn a_set_that_came_later_does_not_reach_back() {
    let mut bus = Bus::new(&["general"]);
    bus.follow_tags(&["rust"]);
    bus.send_with("general", "Amp", "x", &["bug"]);
    bus.follow_tags(&["bug"]);
    bus.send_with("general", "Amp", "x", &["bug"]);
    let received = bus.all();
    assert_eq!(seqs(&received), [2]);
    assert_eq!(seqs(&bus.all()), [2]);
    assert!(bus.ack(&received).messages.is_empty());
    assert_eq!(bus.rows[&Source::Tags].cursor, 2);
}

#[test]
fn a_filter_by_channel_leaves_the_tags_out() {
    let mut bus = Bus::new(&["general", "general/app"]);
    bus.follow_tags(&["rust"]);
    bus.subscribe("general", 0);
    bus.send_with("general/app", "Amp", "x", &["rust"]);
    assert!(bus.receive(Call { channels: &["general"], ..Call::default() }).messages.is_empty());
    assert_eq!(seqs(&bus.all()), [1]);
}

#[test]
fn tags_that_were_followed_later_are_not_why_a_message_came() {
    let mut bus = Bus::new(&["general"]);
    bus.follow_tags(&["rust"]);
    bus.send_with("general", "Amp", "x", &["rust", "bug"]);
    bus.follow_tags(&["bug"]);
    assert_eq!(tags(&bus.all()), [["rust"]]);
}

#[test]
fn what_a_channel_does_not_bring_any_more_comes_by_its_tags() {
    let mut bus = Bus::read(&["general"]);
    bus.now = bus.now.plus_millis(IDLE_MS + 1);
    bus.follow_tags(&["rust"]);
    bus.send_with("general", "Amp", "x", &["rust"]);
    let received = bus.all();
    assert_eq!((received.expired.len(), tags(&received)), (1, vec![vec!["rust".to_owned()]]));
}
