//! Receiving: across processes, after evictions, in the order of everything, and at what cost.

use std::cell::Cell;
use std::time::{Duration, Instant};

use taskbus::core::bus::receive::Received;
use taskbus::core::bus::rules::Start;
use taskbus::core::command::Patch;
use taskbus::core::limits;
use taskbus::engine::{Limits, ReceiveAsk, Span};
use taskbus::store::write_with;

use super::{contents, name, seqs};
use crate::support::{Person, Watched, on_every_store};

on_every_store! {
    fn a_batch_survives_the_process_that_received_it(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        zed.say("general", "one");
        let first = amp.all();
        amp.engine.close().unwrap();
        zed.say("general", "two");
        let again = place.person("Amp");
        let redelivered = again.all();
        assert_eq!((contents(&redelivered), redelivered.redelivered), (vec!["one"], true));
        assert_eq!(contents(&again.ack(&first)), ["two"]);
    }

    fn what_was_evicted_is_told_and_who_never_reads_is_forgotten(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        zed.make("general/app");
        amp.follow("general/app", Start::Now).unwrap();
        amp.follow("general", Start::Now).unwrap();
        let sent: Vec<u64> = (0..3).map(|n| zed.say("general", &n.to_string())).collect();
        write_with(&*place.store, None, |tx| {
            let bus = tx.bus_mut().unwrap();
            bus.remove(&sent[..2])?;
            Ok(bus.set_evicted_before(&name("general"), sent[1] + 1)?)
        })
        .unwrap();
        let first = amp.all();
        let gap = &first.gaps[0];
        assert_eq!((gap.channel.as_str(), gap.to, seqs(&first)), ("general", sent[1], vec![sent[2]]));
        amp.ack(&first);
        let hours = limits::CURSOR_IDLE_HOURS;
        place.clock.advance(hours * 1_800_000);
        amp.receive(&ReceiveAsk { channels: vec![name("general")], ..ReceiveAsk::default() }).unwrap();
        place.clock.advance(hours * 1_800_000 + 1);
        zed.engine.heartbeat().unwrap();
        assert_eq!(amp.all().expired, ["general/app"]);
        zed.say("general/app", "unread");
        assert_eq!(amp.all(), Received::default());
    }

    fn a_subscription_begins_now_or_at_the_oldest_and_never_moves_by_itself(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        zed.say("general", "one");
        amp.follow("general", Start::Oldest).unwrap();
        amp.follow("general", Start::Now).unwrap();
        assert_eq!(contents(&amp.all()), ["one"], "the second time changed nothing");
        let jan = place.person("Jan");
        jan.follow("general", Start::Now).unwrap();
        assert!(jan.all().messages.is_empty());
        zed.say("general", "two");
        assert_eq!(contents(&jan.all()), ["two"]);
        jan.unfollow("general").unwrap();
        jan.unfollow("general/none").unwrap();
        assert_eq!(jan.all(), Received::default(), "the batch went with the subscription");
    }

    fn every_revision_of_a_task_comes_in_order(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("tasks/work", Start::Now).unwrap();
        let id = zed.create("watched");
        zed.claim(&id).unwrap();
        zed.complete(&id).unwrap();
        zed.update(&id, Patch::delete()).unwrap();
        let batch = amp.all();
        let sorts: Vec<&str> = batch.messages.iter().map(|message| message.sort.as_str()).collect();
        assert_eq!(sorts, ["", "", "", "deleted"]);
        assert!(batch.messages[3].content.is_empty() && batch.messages[0].content.contains("watched"));
        assert!(amp.ack(&batch).messages.is_empty());
    }

    fn a_reclaim_by_the_tick_reaches_who_made_the_task(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        let id = zed.create("left behind");
        zed.follow("tasks/work", Start::Now).unwrap();
        amp.claim(&id).unwrap();
        place.silence_all_but(&[&zed]);
        zed.engine.tick().unwrap();
        let batch = zed.all();
        let reclaim = batch.messages.last().unwrap();
        assert_eq!((reclaim.sender.as_ref(), reclaim.sort.as_str()), (None, "reclaimed"));
    }

    fn receiving_nothing_writes_nothing(place) {
        let mut place = place;
        let watched = Watched::over(&mut place);
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        assert_eq!(watched.writes_during(|| drop(amp.all())), 0);
        zed.say("general", "one");
        assert_eq!(watched.writes_during(|| drop(amp.all())), 1);
        assert_eq!(watched.writes_during(|| drop(amp.all())), 0, "the same batch again");
    }

    fn a_batch_that_nobody_saw_is_taken_back(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        zed.say("general", "one");
        amp.engine.take_back(&amp.name, &amp.all()).unwrap();
        let next = amp.all();
        assert_eq!((contents(&next), next.redelivered), (vec!["one"], false));
        amp.engine.take_back(&amp.name, &amp.all()).unwrap();
        assert!(amp.all().redelivered, "what was delivered before stays delivered");
        amp.engine.take_back(&amp.name, &Received::default()).unwrap();
    }

    fn a_call_in_a_hurry_brings_what_is_there(place) {
        let (zed, amp) = (place.person("Zed"), place.person("Amp"));
        amp.follow("general", Start::Now).unwrap();
        zed.say("general", "one");
        let batch = amp.engine.receive(&amp.name, &ReceiveAsk::default(), &|| true).unwrap();
        assert_eq!(contents(&batch), ["one"]);
        amp.ack(&batch);
        let said = Cell::new(false);
        let hurry = || {
            if !said.replace(true) {
                zed.say("general", "too late");
            }
            true
        };
        let ask = ReceiveAsk { wait: Duration::from_secs(40), ..ReceiveAsk::default() };
        assert_eq!(amp.engine.receive(&amp.name, &ask, &hurry).unwrap(), Received::default());
        assert_eq!(contents(&amp.all()), ["too late"]);
    }

    fn a_small_result_still_brings_everything(place) {
        let limits = Limits { result_default_kib: 1, ..Limits::default() };
        let (zed, amp) = (place.person("Zed"), place.person_with("Amp", limits));
        amp.follow("general", Start::Now).unwrap();
        let sent: Vec<u64> = (0..20).map(|n| zed.say("general", &format!("{n} {}", "x".repeat(n * 60)))).collect();
        let (mut got, mut batch) = (Vec::new(), amp.all());
        while batch.batch.is_some() {
            assert!(batch.messages.len() == 1 || serde_json::to_string(&batch).unwrap().len() <= 1024);
            got.extend(seqs(&batch));
            batch = amp.ack(&batch);
        }
        assert_eq!(got, sent);
    }
}

/// Fifty readers at different places of a channel, and how long the next hundred messages take one of them, by the
/// median.
fn next_hundred(history: usize) -> Duration {
    let place = crate::support::sqlite();
    let limits = Limits { result_default_kib: 64, ..Limits::default() };
    let zed = place.person_with("Zed", limits);
    let readers: Vec<Person> = (0..50)
        .map(|n| {
            place.flood(&zed, "general", (history - 100) / 50);
            let reader = place.join(zed.engine.clone(), &format!("reader {n}"), Span::Heartbeat);
            reader.follow("general", Start::Now).unwrap();
            reader
        })
        .collect();
    place.flood(&zed, "general", 100);
    let mut times: Vec<Duration> = readers
        .iter()
        .map(|reader| {
            let start = Instant::now();
            assert_eq!(reader.all().messages.len(), 100);
            start.elapsed()
        })
        .collect();
    times.sort();
    times[25]
}

#[test]
fn the_next_batch_takes_no_longer_when_the_history_is_long() {
    // Others may keep this machine busy; a scan of the history would take many times as long.
    let is_flat = || next_hundred(30_000) < 3 * next_hundred(1_000);
    assert!(is_flat() || is_flat());
}
