//! Looking without a trace.

use taskbus_core::bus::peek::{Floors, PeekAsk, Seen};
use taskbus_core::bus::subscription::Source;

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
