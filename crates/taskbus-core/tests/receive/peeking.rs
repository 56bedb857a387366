//! Looking without a trace.

use taskbus_core::bus::peek::{Floors, PeekAsk, Seen, always_wakes, is_confidential};

use taskbus_core::bus::message::Message;
use taskbus_core::bus::subscription::Source;
use taskbus_core::name::{Identity, Label};

use crate::support::{Bus, name};

fn of(channels: &[&str]) -> PeekAsk {
    PeekAsk { channels: channels.iter().map(|text| name(text)).collect(), include_own: false }
}

#[test]
fn a_look_shows_what_was_not_handed_out_yet() {
    let mut bus = Bus::read(&["general", "general/app"]);
    bus.send("general", "Amp");
    assert_eq!(bus.peek(&of(&[]), &Floors::default()), Some(vec![1]));
    bus.all();
    let (rows, writes) = (bus.rows.clone(), bus.writes);
    assert_eq!(bus.peek(&of(&[]), &Floors::default()), Some(vec![]), "it is pending");
    bus.send("general", "Zed");
    bus.send("general/app", "Amp");
    assert_eq!(bus.peek(&of(&[]), &Floors::default()), Some(vec![3]));
    assert_eq!(bus.peek(&of(&["general"]), &Floors::default()), Some(vec![]));
    assert_eq!(bus.peek(&PeekAsk { include_own: true, ..of(&[]) }, &Floors::default()), Some(vec![2, 3]));
    assert_eq!((bus.rows, bus.writes), (rows, writes));
}

#[test]
fn a_look_without_a_subscription_is_none() {
    let mut bus = Bus::read(&["general"]);
    assert_eq!(bus.peek(&of(&["general/app"]), &Floors::default()), None);
    bus.rows.clear();
    bus.subscribe("dm/Amp", 0);
    assert_eq!(bus.peek(&of(&[]), &Floors::default()), None, "a foreign inbox does not count");
}

#[test]
fn what_did_not_match_is_not_looked_at_again() {
    let mut bus = Bus::read(&["general"]);
    bus.follow_tags(&["rust"]);
    bus.channels.insert(name("general/app"), 0);
    bus.send("general", "Amp");
    bus.send_with("general/app", "Amp", "x", &["rust"]);
    let mut floors = Floors::default();
    let seen = |seq: u64, source| Seen { message: bus.messages[seq as usize - 1].clone(), source };
    floors.pass(&seen(2, Source::Tags));
    assert_eq!(bus.peek(&of(&[]), &floors), Some(vec![1]));
    floors.pass(&seen(1, Source::Channel(name("general"))));
    assert_eq!(bus.peek(&of(&[]), &floors), Some(vec![]));
}

#[test]
fn what_is_meant_for_one_alone_wakes_it_whatever_it_says_and_is_shown_to_nobody_else() {
    let mut bus = Bus::read(&[]);
    bus.send("dm/Zed", "Amp");
    bus.send("general", "Amp");
    let [to_zed, to_all] = [bus.messages[0].clone(), bus.messages[1].clone()];
    let zed = Identity::new("Zed").unwrap();
    assert!(always_wakes(&to_zed, &zed) && !always_wakes(&to_zed, &Identity::new("Jan").unwrap()));
    assert!(!always_wakes(&to_all, &zed));
    assert!(is_confidential(&to_zed) && !is_confidential(&to_all));
    let by_tag = Message { matched_tags: vec![Label::new("rust").unwrap()], ..to_all };
    assert!(always_wakes(&by_tag, &zed));
}
