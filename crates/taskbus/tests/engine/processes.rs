//! What only shows when several processes are at one bus at the same time: senders, somebody who evicts, and a reader.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::bus::message::{Content, Draft, Revision, Sort};
use taskbus::core::bus::rules::Start;
use taskbus::core::limits::MESSAGE_RETENTION_HOURS;
use taskbus::engine::{Engine, Follow, Limits, ReceiveAsk, SearchAsk, Span};
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
    let engine = engine(path);
    until_told(|_| {
        let seen = engine.store().version().unwrap();
        engine.tick().unwrap();
        engine.store().wait(seen, Duration::from_millis(20)).unwrap();
    });
}

fn say(person: &Person, content: &str) -> u64 {
    send(person, &ChannelName::general(), content)
}

fn remember(person: &Person, content: &str) -> u64 {
    send(person, &ChannelName::memory(), content)
}

fn send(person: &Person, channel: &ChannelName, content: &str) -> u64 {
    let content = Content::new(content).unwrap();
    let draft =
        Draft { content, sort: Sort::default(), subject: None, reply_to: None, metadata: None, tags: Vec::new() };
    person.engine.send(&person.name, channel, &draft, None).unwrap().seq
}

fn edit(person: &Person, id: u64, content: &str) {
    let content = Content::new(content).unwrap();
    let change = Revision { content, sort: Sort::default(), subject: None, metadata: None, tags: None };
    person.engine.edit_memory(&person.name, id, &change, None).unwrap();
}

/// Does something again and again until the input of this process ends.
fn until_told(mut something: impl FnMut(usize)) {
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    std::thread::spawn(move || {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        ended.store(true, Ordering::SeqCst);
    });
    (0..).take_while(|_| !over.load(Ordering::SeqCst)).for_each(&mut something);
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
            return (0..EACH).for_each(|n| {
                say(&person, &format!("{part} says {n}"));
            });
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

/// Of several processes that tick at the same time one does the work, and none of it twice.
#[test]
fn processes_that_tick_together_do_the_maintenance_once() {
    const OLD: usize = 2500;
    if let Some((part, path)) = part() {
        let aged: usize = {
            let engine = engine(&path);
            (0..20).map(|_| engine.tick().unwrap().aged).sum()
        };
        return std::fs::write(path.with_extension(part), aged.to_string()).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("taskbus.db");
    let zed = join(&path, "Zed");
    post_old(zed.engine.store(), OLD);
    let parts = ["one", "two", "three", "four"];
    let children =
        parts.map(|part| child("processes::processes_that_tick_together_do_the_maintenance_once", part, &path));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let aged = parts.map(|part| std::fs::read_to_string(path.with_extension(part)).unwrap().parse::<usize>().unwrap());
    assert_eq!(aged.iter().sum::<usize>(), OLD, "{aged:?}");
    assert_eq!(aged.iter().filter(|aged| **aged > 0).count(), 1, "{aged:?}");
}

/// While another process sends what fits better and edits what is there, a search is paged to its end.
#[test]
fn pages_end_without_duplicates_while_another_process_writes() {
    const SAID: usize = 200;
    if let Some((part, path)) = part() {
        let person = join(&path, &part);
        let asked = std::io::stdin().lines().map_while(Result::ok).flat_map(|_| 0..5);
        return asked.enumerate().for_each(|(n, _)| {
            say(&person, "grape grape");
            edit(&person, (SAID + 1 + n % 60) as u64, &format!("grape {n} times"));
        });
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("taskbus.db");
    let zed = join(&path, "Zed");
    let mut there: BTreeSet<u64> = (0..SAID).map(|n| say(&zed, &format!("grape {n}"))).collect();
    there.extend((0..60).map(|n| remember(&zed, &format!("a grape to keep, {n}"))));
    let mut writer = child("processes::pages_end_without_duplicates_while_another_process_writes", "Amp", &path);
    let latest = || read_with(zed.engine.store(), None, |snapshot| snapshot.bus().unwrap().latest_seq()).unwrap();
    let (mut cursor, mut seen, mut last) = (None, BTreeSet::new(), latest());
    loop {
        // It writes while this looks, and something was written since the last page.
        writer.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        until_written(zed.engine.store(), last);
        last = latest();
        let ask = SearchAsk { query: "grape".to_owned(), count: Some(20), cursor, ..SearchAsk::default() };
        let page = zed.engine.search(&zed.name, &ask).unwrap();
        for hit in page.hits {
            let id = hit.message.memory.map_or(hit.message.seq, |memory| memory.id);
            assert!(seen.insert(id), "{id} came twice");
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
    assert!(seen.is_superset(&there), "{:?}", there.difference(&seen).collect::<Vec<_>>());
}

/// Waits until there is a message behind this one.
fn until_written(store: &dyn Store, last: u64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = store.version().unwrap();
        if read_with(store, None, |snapshot| snapshot.bus().unwrap().latest_seq()).unwrap() > last {
            return;
        }
        assert!(Instant::now() < deadline, "nobody writes");
        store.wait(seen, Duration::from_secs(1)).unwrap();
    }
}

/// What one process makes of a memory, another reads and finds.
#[test]
fn an_edit_is_seen_by_other_processes() {
    if let Some((part, path)) = part() {
        return edit(&join(&path, &part), 1, "They stick.");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("taskbus.db");
    let zed = join(&path, "Zed");
    assert_eq!(remember(&zed, "They turn."), 1);
    let mut editor = child("processes::an_edit_is_seen_by_other_processes", "Amp", &path);
    assert!(editor.wait().unwrap().success());
    let memory = zed.engine.memory(&zed.name, 1).unwrap();
    assert_eq!((memory.content.as_str(), memory.sender.unwrap().as_str()), ("They stick.", "Amp"));
    assert_eq!((zed.search("stick").len(), zed.search("turn").len()), (1, 0));
}
