//! Processes that wait: for a message through the engine, or by looking at the store every 10 ms; and what waiting
//! costs while nothing happens.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use taskbus::engine::{Engine, Follow, ReceiveAsk};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::peek::PeekAsk;
use taskbus_core::bus::rules::Start;
use taskbus_core::name::Identity;

use super::job::{heard_go, ready, say};
use crate::bench::lists::field::{Mode, engine, register};
use crate::bench::raw::Poll;
use crate::term::failure::Failure;

/// Between two looks of one who polls.
const LOOK: Duration = Duration::from_millis(10);
/// Until one who waits is at rest.
const SETTLE: Duration = Duration::from_millis(300);
/// Nobody waits longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a message, says when it came, reads it, and begins anew at the next word.
pub(super) fn work(store: &Path, worker: usize) -> Result<(), Failure> {
    let (engine, name) = follow(store, &format!("waiter {worker}"))?;
    say(&())?;
    while heard_go()? {
        read_all(&engine, &name)?;
        say(&())?;
        let came = engine.wait_for(&name, &PeekAsk::default(), Some(PATIENCE), &mut |_| true, &|| false)?;
        let at = now_nanos();
        came.ok_or_else(late)?;
        say(&at)?;
    }
    Ok(())
}

/// Leaves nothing unread: not what woke it last, nor what woke others since.
fn read_all(engine: &Engine, name: &Identity) -> Result<(), Failure> {
    let mut ack = None;
    loop {
        let received = engine.receive(name, &ReceiveAsk { ack, ..ReceiveAsk::default() }, &|| false)?;
        if received.messages.is_empty() {
            return Ok(());
        }
        ack = received.batch;
    }
}

/// The same by looking again and again.
pub(super) fn poll(store: &Path) -> Result<(), Failure> {
    let poll = Poll::open(store)?;
    say(&())?;
    while heard_go()? {
        let seen = poll.version()?;
        say(&())?;
        while poll.version()? == seen {
            std::thread::sleep(LOOK);
        }
        say(&now_nanos())?;
    }
    Ok(())
}

/// Waits for a message that does not come; says for which part of the time it used the processor, once it waits.
pub(super) fn idle(store: &Path, worker: usize, time: Duration) -> Result<(), Failure> {
    let (engine, name) = follow(store, &format!("idler {worker}"))?;
    ready()?;
    let whole = SETTLE + time + SETTLE;
    let wait = || engine.wait_for(&name, &PeekAsk::default(), Some(whole), &mut |_| true, &|| false);
    let (used, came) = std::thread::scope(|scope| {
        let waiting = scope.spawn(wait);
        std::thread::sleep(SETTLE);
        let before = processor_time();
        std::thread::sleep(time);
        let used = processor_time().saturating_sub(before);
        (used, waiting.join().expect("BUG: waiting does not panic"))
    });
    match came? {
        None => say(&(used.as_secs_f64() / time.as_secs_f64())),
        Some(_) => Err(Failure::Broken("a message came that nobody sent".to_owned())),
    }
}

fn follow(store: &Path, name: &str) -> Result<(Engine, Identity), Failure> {
    let engine = engine(store, Mode::Relaxed, None)?;
    let name = register(&engine, name)?;
    engine.subscribe(&name, &Follow::Channel(ChannelName::general()), Start::Now)?;
    Ok((engine, name))
}

fn late() -> Failure {
    Failure::Broken(format!("a message did not come in {} s", PATIENCE.as_secs()))
}

/// The time by the one clock that all processes have.
pub(super) fn now_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// How long all threads of this process have run so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
