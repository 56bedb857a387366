//! What only shows when several processes are at one bus at the same time: senders, somebody who evicts, and a reader.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::bus::message::{Content, Draft, Sort};
use taskbus::core::bus::rules::Start;
use taskbus::core::limits::MESSAGE_RETENTION_HOURS;
use taskbus::engine::{Engine, Follow, Limits, ReceiveAsk, Span};
use taskbus::store::bus::{NewMessage, Place};
use taskbus::store::sqlite::{Durability, SqliteOptions, SqliteStore};
use taskbus::store::{Author, Store, read_with, write_with};

use crate::support::{Person, wish};

/// What a child is told by its environment: its part, and where the store is.
const PART: &str = "TASKBUS_TEST_PART";
const STORE: &str = "TASKBUS_TEST_STORE";

fn engine(path: &Path) -> Arc<Engine> {
    let options = SqliteOptions { durability: Durability::Relaxed, ..SqliteOptions::default() };
    let fast = Limits { writes_per_second: 1_000_000, write_kib_per_second: 1_000_000, ..Limits::default() };
    Arc::new(Engine::new(Arc::new(SqliteStore::open(path, options).unwrap()), fast))
}

fn join(path: &Path, name: &str) -> Person {
    let engine = engine(path);
    let name = engine.register(&wish(name, Span::Heartbeat)).unwrap().name;
    Person { engine, name }
}

fn child(test: &str, part: &str, path: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(PART, part).env(STORE, path);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

/// The part of this process, if it is a child.
fn part() -> Option<(String, PathBuf)> {
    Some((std::env::var(PART).ok()?, std::env::var_os(STORE)?.into()))
}

/// Does the maintenance, again and again, until its input ends.
fn maintain(path: &Path) {
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    std::thread::spawn(move || {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        ended.store(true, Ordering::SeqCst);
    });
    let engine = engine(path);
    while !over.load(Ordering::SeqCst) {
        let seen = engine.store().version().unwrap();
        engine.tick().unwrap();
        engine.store().wait(seen, Duration::from_millis(20)).unwrap();
    }
}

fn say(person: &Person, content: &str) {
    let content = Content::new(content).unwrap();
    let draft =
        Draft { content, sort: Sort::default(), subject: None, reply_to: None, metadata: None, tags: Vec::new() };
    person.engine.send(&person.name, &ChannelName::general(), &draft, None).unwrap();
}

/// Messages of long ago, straight into the store.
fn post_old(store: &dyn Store, count: usize) {
    let channel = ChannelName::general();
    write_with(store, None, |tx| {
        let bus = tx.bus_mut().unwrap();
        bus.create_channel(&channel, ChannelKind::Ordinary, store.now()?)?;
        for n in 0..count {
            bus.post(&NewMessage {
                channel: &channel,
                sender: None,
                author: &Author::default(),
                at: store.now()?.plus_millis(-(MESSAGE_RETENTION_HOURS + 1) * 3_600_000),
                sort: &Sort::default(),
                subject: None,
                content: &format!("old {n}"),
                reply_to: None,
                metadata: None,
                tags: &[],
                place: Place::Ordinary,
            })?;
        }
        Ok(())
    })
    .unwrap();
}

/// Waits until the maintenance has begun to drop what is old.
fn until_evicted(store: &dyn Store) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = store.version().unwrap();
        let row = read_with(store, None, |snapshot| snapshot.bus().unwrap().channel(&ChannelName::general())).unwrap();
        if row.unwrap().evicted_before > 0 {
            return;
        }
        assert!(Instant::now() < deadline, "nothing was evicted");
        store.wait(seen, Duration::from_secs(1)).unwrap();
    }
}

/// Every number is delivered once or told as a gap, whatever is evicted between two looks.
#[test]
fn gaps_and_deliveries_cover_every_message_while_others_send_and_evict() {
    const OLD: usize = 2500;
    const EACH: usize = 150;
    match part() {
        Some((part, path)) if part == "maintain" => return maintain(&path),
        Some((part, path)) => {
            let person = join(&path, &part);
            return (0..EACH).for_each(|n| say(&person, &format!("{part} says {n}")));
        }
        None => {}
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("taskbus.db");
    let zed = join(&path, "Zed");
    post_old(zed.engine.store(), OLD);
    zed.engine.subscribe(&zed.name, &Follow::Channel(ChannelName::general()), Start::Oldest).unwrap();
    let test = "processes::gaps_and_deliveries_cover_every_message_while_others_send_and_evict";
    let mut maintainer = child(test, "maintain", &path);
    let mut senders = ["Amp", "Jan"].map(|name| child(test, name, &path));
    let (mut seen, mut gapped, mut ack, mut done) = (BTreeSet::new(), BTreeSet::new(), None, false);
    loop {
        // Asked before the look: what is sent before the senders end is there for the last one.
        let over = senders.iter_mut().all(|sender| sender.try_wait().unwrap().is_some());
        let ask = ReceiveAsk {
            ack: ack.take(),
            count: Some(100),
            wait: Duration::from_millis(100),
            exempt_from_polling: true,
            ..ReceiveAsk::default()
        };
        let received = zed.engine.receive(&zed.name, &ask, &|| false).unwrap();
        for gap in &received.gaps {
            gapped.extend(gap.from..=gap.to);
        }
        for message in &received.messages {
            assert!(seen.insert(message.seq), "{} came twice", message.seq);
        }
        ack = received.batch.clone();
        until_evicted(zed.engine.store());
        if !received.is_news() {
            if done {
                break;
            }
            done = over;
        }
    }
    drop(maintainer.stdin.take());
    assert!(maintainer.wait().unwrap().success());
    for mut sender in senders {
        assert!(sender.wait().unwrap().success());
    }
    let last = read_with(zed.engine.store(), None, |snapshot| snapshot.bus().unwrap().latest_seq()).unwrap();
    assert_eq!(last as usize, OLD + 2 * EACH);
    assert!(!gapped.is_empty() && !seen.is_empty());
    let missing: Vec<u64> = (1..=last).filter(|seq| !seen.contains(seq) && !gapped.contains(seq)).collect();
    assert_eq!(missing, [0; 0], "neither delivered nor told");
    let fresh = (OLD as u64 + 1..=last).filter(|seq| !seen.contains(seq)).count();
    assert_eq!(fresh, 0, "nothing young is ever evicted");
}
