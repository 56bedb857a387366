//! How much comes at once.

use taskbus_core::bus::json_bytes;
use taskbus_core::bus::receive::count;
use taskbus_core::limits;

use crate::support::{Bus, Call, IDLE_MS, seqs};

#[test]
fn a_count_has_a_default_and_a_limit() {
    let (default, max) = (limits::RECEIVE_COUNT_DEFAULT, limits::RECEIVE_COUNT_MAX);
    let asked = [None, Some(0), Some(-5), Some(7), Some(max as i64), Some(max as i64 + 1)];
    assert_eq!(asked.map(|asked| count(asked, default, max)), [default, default, default, 7, max, max]);
}

#[test]
fn no_more_messages_come_than_were_asked_for() {
    let mut bus = Bus::read(&["general", "general/app"]);
    for _ in 0..3 {
        bus.send("general", "Amp");
        bus.send("general/app", "Amp");
    }
    let two = bus.receive(Call { count: Some(2), ..Call::default() });
    assert_eq!(seqs(&two), [1, 2]);
    assert_eq!(seqs(&bus.ack(&two)), [3, 4, 5, 6]);
}

#[test]
fn a_result_is_as_large_as_allowed_to_the_byte() {
    let mut bus = Bus::read(&["general"]);
    for _ in 0..50 {
        bus.send_with("general", "Amp", &"ä\n".repeat(20), &[]);
    }
    let whole = json_bytes(&bus.clone().receive(Call { count: Some(5), ..Call::default() }));
    for (bytes, expected) in [(whole - 1, 4), (whole, 5), (whole + 1, 5)] {
        let mut bus = Bus { result_bytes: bytes, ..bus.clone() };
        let received = bus.all();
        assert_eq!(received.messages.len(), expected);
        assert!(json_bytes(&received) <= bytes);
    }
}

#[test]
fn the_first_message_comes_whatever_its_size() {
    let mut bus = Bus::read(&["general"]);
    bus.result_bytes = 1024;
    bus.send_with("general", "Amp", &"x".repeat(5000), &[]);
    bus.send("general", "Amp");
    assert_eq!(seqs(&bus.all()), [1]);
}

#[test]
fn what_must_be_told_comes_before_messages() {
    let mut bus = Bus::read(&["general"]);
    for n in 0..100 {
        bus.subscribe(&format!("general/{n}"), 0);
    }
    bus.now = bus.now.plus_millis(IDLE_MS + 1);
    bus.subscribe("general", 0);
    bus.send("general", "Amp");
    bus.result_bytes = 1024;
    let told = bus.all();
    assert!(told.messages.is_empty() && told.batch.is_none());
    assert_eq!(told.expired.len(), 100);
    assert_eq!(seqs(&bus.all()), [1]);
}

#[test]
fn no_result_is_larger_than_the_largest() {
    let mut bus = Bus::read(&["general"]);
    bus.result_bytes = usize::MAX;
    for _ in 0..80 {
        bus.send_with("general", "Amp", &"x".repeat(64 * 1024), &[]);
    }
    let first = bus.all();
    assert!(json_bytes(&first) <= limits::RESULT_BYTES_MAX);
    assert!(json_bytes(&first) > limits::RESULT_BYTES_MAX - 65 * 1024);
    bus.notice = Some("n".repeat(100_000));
    let again = bus.all();
    assert!(json_bytes(&again) <= limits::RESULT_BYTES_MAX);
    let shown = again.messages.len() as u64;
    assert!(shown < first.messages.len() as u64);
    assert_eq!(bus.pending("general").unwrap().1, shown, "what is not shown again is not acknowledged either");
    assert_eq!(bus.ack(&again).messages[0].seq, shown + 1);
}
