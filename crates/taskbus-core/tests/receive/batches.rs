//! Batches: acknowledged, delivered again, and never mixed with anything new.

use taskbus_core::bus::receive::{Received, take_back};

use crate::support::{Bus, Call, seqs};

#[test]
fn a_batch_comes_again_until_it_is_acknowledged() {
    let mut bus = Bus::read(&["general"]);
    bus.send("general", "Amp");
    bus.send("general", "Amp");
    let first = bus.all();
    assert_eq!((seqs(&first), first.redelivered), (vec![1, 2], false));
    assert!(first.instruction.as_ref().unwrap().contains(first.batch.as_deref().unwrap()));
    bus.send("general", "Amp");
    let again = bus.all();
    assert_eq!((seqs(&again), again.redelivered, &again.batch), (vec![1, 2], true, &first.batch));
    let next = bus.ack(&first);
    assert_eq!((seqs(&next), next.redelivered, next.ack_ignored), (vec![3], false, false));
    let stale = bus.receive(Call { ack: first.batch.as_deref(), ..Call::default() });
    assert!(stale.ack_ignored && stale.redelivered && seqs(&stale) == [3]);
    let empty = bus.ack(&next);
    assert_eq!(empty, Received::default(), "no messages, no batch");
}

#[test]
fn channels_come_in_one_order_and_without_what_the_caller_sent() {
    let mut bus = Bus::read(&["general", "general/app"]);
    for (channel, sender) in [("general/app", "Amp"), ("general", "Zed"), ("general", "Amp"), ("general/app", "Jan")] {
        bus.send(channel, sender);
    }
    let without = bus.all();
    assert_eq!(seqs(&without), [1, 3, 4]);
    bus.ack(&without);
    let mut bus = Bus { rows: Bus::read(&["general", "general/app"]).rows, ..bus };
    assert_eq!(seqs(&bus.receive(Call { include_own: true, ..Call::default() })), [1, 2, 3, 4]);
}

#[test]
fn what_nobody_sent_is_hidden_from_nobody() {
    let mut bus = Bus::read(&["tasks/work"]);
    bus.send("tasks/work", "Zed");
    bus.send("tasks/work", "");
    assert_eq!(seqs(&bus.all()), [2], "the reclaim by the tick, though the task is Zed's own");
}

#[test]
fn a_pending_batch_comes_whole_whatever_the_filter_and_the_limits() {
    let mut bus = Bus::read(&["general", "general/app"]);
    for channel in ["general", "general/app", "general"] {
        bus.send_with(channel, "Amp", &"x".repeat(500), &[]);
    }
    let first = bus.all();
    bus.result_bytes = 600;
    bus.send("general/app", "Amp");
    let again = bus.receive(Call { count: Some(1), channels: &["general/app"], ..Call::default() });
    assert_eq!((seqs(&again), again.batch), (vec![1, 2, 3], first.batch));
}

#[test]
fn a_pending_batch_keeps_its_own_choice_about_own_messages() {
    let mut bus = Bus::read(&["general"]);
    for sender in ["Zed", "Amp", "Zed", "Amp"] {
        bus.send("general", sender);
    }
    let without = bus.receive(Call { count: Some(1), ..Call::default() });
    assert_eq!(seqs(&without), [2]);
    assert_eq!(seqs(&bus.receive(Call { include_own: true, ..Call::default() })), [2]);
    let token = without.batch.unwrap();
    let with = bus.receive(Call { ack: Some(&token), include_own: true, ..Call::default() });
    assert_eq!((seqs(&with), seqs(&bus.all())), (vec![3, 4], vec![3, 4]), "and no message of others is skipped");
}

#[test]
fn an_acknowledgement_through_a_filter_does_not_change_what_is_new() {
    let mut bus = Bus::read(&["general", "general/app"]);
    bus.send("general", "Amp");
    let first = bus.all();
    bus.send("general", "Amp");
    bus.send("general/app", "Amp");
    let token = first.batch.unwrap();
    let only = bus.receive(Call { ack: Some(&token), channels: &["general/app"], ..Call::default() });
    // The row of `general` took part because it held the batch; once it is acknowledged it is none of those asked for.
    assert_eq!((seqs(&only), only.ack_ignored), (vec![3], false));
    assert_eq!(bus.row("general").cursor, 1);
    assert_eq!(seqs(&bus.ack(&only)), [2]);
}

#[test]
fn a_channel_that_did_not_fit_into_a_batch_is_not_pending() {
    let mut bus = Bus::read(&["general", "general/app"]);
    bus.send("general", "Amp");
    bus.send("general/app", "Amp");
    let first = bus.receive(Call { count: Some(1), ..Call::default() });
    assert_eq!((seqs(&first), bus.pending("general/app")), (vec![1], None));
    assert_eq!(seqs(&bus.ack(&first)), [2]);
}

#[test]
fn a_pending_batch_ends_at_what_is_left_of_it() {
    let mut bus = Bus::read(&["memory", "memory/app", "general"]);
    for channel in ["memory", "memory", "memory/app", "general"] {
        bus.send(channel, "Amp");
    }
    let first = bus.all();
    bus.buried = [2, 3].into();
    assert_eq!(seqs(&bus.all()), [1, 4]);
    let token = first.batch.as_deref().unwrap();
    let ends = ["memory", "memory/app", "general"].map(|channel| bus.pending(channel));
    assert_eq!(ends, [Some((token, 1)), Some((token, 0)), Some((token, 4))], "to the cursor where nothing is left");
}

#[test]
fn a_batch_of_which_nothing_is_left_comes_empty_until_it_is_acknowledged() {
    let mut bus = Bus::read(&["memory"]);
    bus.send("memory", "Amp");
    let first = bus.all();
    bus.buried = [1].into();
    bus.send("memory", "Amp");
    let empty = bus.all();
    assert!(empty.messages.is_empty() && empty.redelivered && empty.is_news());
    assert_eq!(empty.batch, first.batch);
    assert_eq!(seqs(&bus.ack(&empty)), [2]);
}

#[test]
fn a_batch_that_nobody_saw_is_new_again() {
    let mut bus = Bus::read(&["general", "general/app"]);
    bus.send("general", "Amp");
    let lost = bus.all();
    take_back(lost.batch.as_deref().unwrap(), &mut bus).unwrap();
    let next = bus.all();
    assert_eq!((seqs(&next), next.redelivered), (vec![1], false));
    take_back(lost.batch.as_deref().unwrap(), &mut bus).unwrap();
    assert!(bus.all().redelivered, "another batch stays");
}

#[test]
fn nothing_is_written_when_nothing_happened() {
    let mut bus = Bus::read(&["general", "general/app"]);
    bus.all();
    assert_eq!(bus.writes, 0);
    bus.now = bus.now.plus_millis(60_000);
    bus.all();
    assert_eq!(bus.writes, 2, "a row that is read keeps living");
}
