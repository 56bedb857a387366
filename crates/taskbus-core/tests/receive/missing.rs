//! What ended, what was evicted, and what nobody may see.

use taskbus_core::bus::subscription::Source;
use taskbus_core::limits;

use crate::support::{Bus, Call, IDLE_MS, name, seqs};

#[test]
fn what_was_evicted_is_told_and_what_survived_comes() {
    let mut bus = Bus::read(&["general"]);
    for _ in 0..3 {
        bus.send("general", "Amp");
    }
    bus.evict("general", 3);
    let received = bus.all();
    let gap = &received.gaps[0];
    assert_eq!((gap.channel.as_str(), gap.from, gap.to), ("general", 1, 2));
    assert_eq!(seqs(&received), [3]);
    assert!(bus.ack(&received).gaps.is_empty(), "told once");
}

#[test]
fn a_gap_takes_the_part_of_a_batch_that_it_covers() {
    let mut bus = Bus::read(&["general", "general/app"]);
    for channel in ["general", "general/app", "general", "general"] {
        bus.send(channel, "Amp");
    }
    bus.all();
    bus.evict("general", 4);
    bus.evict("general/app", 3);
    let again = bus.all();
    assert_eq!((seqs(&again), again.redelivered), (vec![4], true));
    assert_eq!(bus.pending("general/app"), None, "all of it was covered");
}

#[test]
fn a_cursor_behind_the_boundary_sees_no_gap() {
    let mut bus = Bus::read(&["general"]);
    for _ in 0..4 {
        bus.send("general", "Amp");
    }
    bus.evict("general", 3);
    for (cursor, gaps) in [(1, 1), (2, 0), (3, 0)] {
        bus.subscribe("general", cursor);
        assert_eq!(bus.all().gaps.len(), gaps, "cursor {cursor}");
    }
}

#[test]
fn who_does_not_read_for_too_long_is_told_so() {
    let mut bus = Bus::read(&["general", "general/app", "dm/Zed"]);
    bus.follow_tags(&["rust"]);
    bus.now = bus.now.plus_millis(IDLE_MS);
    assert!(bus.clone().all().expired.is_empty(), "at the limit");
    bus.now = bus.now.plus_millis(1);
    bus.subscribe("general", 0);
    for channel in ["general", "general/app", "dm/Zed"] {
        bus.send_with(channel, "Amp", "text", &["rust"]);
    }
    let received = bus.all();
    assert_eq!(received.expired, ["tags/", "general/app"]);
    assert_eq!(seqs(&received), [1, 3], "the inbox never ends");
    assert!(bus.rows.len() == 2 && bus.sets.is_empty());
}

#[test]
fn only_so_many_ended_subscriptions_are_told_at_once() {
    let mut bus = Bus::new(&[]);
    for n in 0..limits::NOTICES_MAX + 3 {
        bus.subscribe(&format!("general/{n}"), 0);
    }
    bus.now = bus.now.plus_millis(IDLE_MS + 1);
    assert_eq!(bus.all().expired.len(), limits::NOTICES_MAX);
    assert_eq!(bus.all().expired.len(), 3);
    assert!(!bus.all().is_news());
}

#[test]
fn nothing_comes_while_gaps_are_left_to_tell() {
    let names: Vec<String> = (0..=limits::NOTICES_MAX).map(|n| format!("general/{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bus = Bus::read(&names);
    bus.subscribe("general", 0);
    bus.channels.insert(name("general"), 0);
    bus.send("general", "Amp");
    let batch = bus.all();
    names.iter().for_each(|channel| bus.evict(channel, 10));
    let first = bus.all();
    assert_eq!(first.gaps.len(), limits::NOTICES_MAX);
    assert!(first.messages.is_empty() && first.batch.is_none());
    assert!(first.instruction.unwrap().contains("receive again"));
    let second = bus.all();
    assert_eq!((second.gaps.len(), seqs(&second)), (1, vec![1]));
    assert_eq!(second.batch, batch.batch);
}

#[test]
fn what_reads_a_channel_that_is_gone_ends_without_a_word() {
    let mut bus = Bus::read(&["general", "general/app"]);
    bus.channels.remove(&name("general/app"));
    assert!(!bus.all().is_news());
    assert!(!bus.rows.contains_key(&Source::Channel(name("general/app"))));
}

#[test]
fn a_foreign_inbox_is_neither_read_nor_acknowledged_nor_ended() {
    let mut bus = Bus::read(&["dm/Amp", "dm/Zed"]);
    bus.send("dm/Amp", "Jan");
    bus.send("dm/Zed", "Jan");
    let first = bus.all();
    assert_eq!(seqs(&first), [2]);
    bus.ack(&first);
    bus.now = bus.now.plus_millis(IDLE_MS + 1);
    assert!(bus.receive(Call { channels: &["dm/Amp"], ..Call::default() }).messages.is_empty());
    assert_eq!(bus.row("dm/Amp").cursor, 0);
}

#[test]
fn a_notice_comes_with_every_result() {
    let mut bus = Bus::read(&["general"]);
    bus.notice = Some("the store is full".to_owned());
    let empty = bus.all();
    assert_eq!(empty.notice.as_deref(), Some("the store is full"));
    assert!(!empty.is_news(), "nobody is woken by it");
    bus.send("general", "Amp");
    assert!(bus.all().notice.is_some());
}
