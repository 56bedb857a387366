//! What happens to processes: one that is stopped while it has the store to itself, and one whose files may not grow.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, kill_process, setrlimit, waitid};
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus::store::write_with;
use taskbus_core::time::Timestamp;

use super::{Outcome, client, first_number, make, make_some, missing};
use crate::term::failure::Failure;
use crate::torture::NEW;
use crate::torture::checker::acts;
use crate::torture::dice::Dice;
use crate::torture::hand::Hand as _;
use crate::torture::hand::library::Library;
use crate::torture::life::carry_out;
use crate::torture::place::Place;
use crate::torture::record::{self, Begin, Log, Number, nanos};
use crate::torture::told::Told;
use crate::torture::worker::{Orders, Part};

/// How long a writer waits that is held up.
const DEADLINE: Duration = Duration::from_millis(250);
/// It is told within this, whatever the machine is doing.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// A process of a check has done its part by then.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much a file may still grow that may not grow, in bytes.
const ROOM: u64 = 60_000;
/// The signal that a process gets when its file may not grow.
const SIGXFSZ: i32 = 25;

fn orders(place: &Place, name: &str, part: Part) -> Orders {
    let (store, log) = (place.store(name), place.path().join(format!("{name}.log")));
    let client = 900 + part as u64;
    Orders { store, log, seed: place.seed, client, life: 0, name: format!("client-{client}"), others: Vec::new(), part }
}

/// A process takes the store to itself and is stopped: others are told in time, and by whom they are held up; when it
/// goes on, so do they.
pub(super) fn stopped(place: &Place, _: &mut Dice) -> Outcome {
    let orders = orders(place, "stopped", Part::Holder);
    let options = SqliteOptions { deadline: DEADLINE, ..SqliteOptions::default() };
    let (mut library, mut number) = (client(&orders.store, options)?, first_number());
    let mut tasks = make_some(&mut library, &mut number, 2)?;
    let mut holder = place.spawn(&orders)?;
    let pid = Pid::from_child(&holder);
    let mut wrongs = Vec::new();
    if !comes_to(|| matches!(waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG), Ok(Some(_)))) {
        wrongs.push("nobody took the store".to_owned());
    }
    let since = Instant::now();
    let told = make(&mut library, &mut number);
    let took = since.elapsed();
    if !matches!(&told, Told::Failed(words) if words.contains("store_busy")) || took > TOLD_WITHIN {
        wrongs.push(format!("held up for {took:?}, a writer was told {told:?}"));
    }
    let _gone = kill_process(pid, Signal::CONT);
    let ended = holder.wait().map_err(|error| Failure::machine("a process of the torture", error))?;
    if !ended.success() {
        wrongs.push(format!("the one that was stopped ended with {ended}"));
    }
    tasks.extend(make_some(&mut library, &mut number, 1)?);
    drop(library);
    wrongs.extend(missing(&orders.store, &tasks)?);
    Ok((u64::from(wrongs.is_empty()), wrongs))
}

fn comes_to(mut done: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// The part of the one that is stopped.
pub(in crate::torture) fn hold_and_stop(orders: &Orders) -> Result<(), Failure> {
    let store = SqliteStore::open(&orders.store, SqliteOptions::default())?;
    let held = write_with(&store, None, |tx| {
        tx.drop_receipts(Timestamp::from_millis(0), 1)?;
        let _stopped = kill_process(getpid(), Signal::STOP);
        Ok(())
    });
    held.map_err(Failure::machine_error)
}

/// Files may not grow beyond a size: what was acknowledged before is there, and without the limit the work goes on.
pub(super) fn cramped(place: &Place, _: &mut Dice) -> Outcome {
    let orders = orders(place, "cramped", Part::Cramped);
    drop(client(&orders.store, SqliteOptions::default())?);
    let mut process = place.spawn(&orders)?;
    let ended = process.wait().map_err(|error| Failure::machine("a process of the torture", error))?;
    let lines = record::read(&orders.log).map_err(|error| Failure::machine("a log", error))?;
    let (mut tasks, mut failed) = (Vec::new(), 0);
    for told in acts(lines).iter().filter_map(|act| act.told()) {
        match told {
            Told::Wrote(seen) => tasks.extend(seen.iter().cloned()),
            Told::Failed(_) => failed += 1,
            _ => {}
        }
    }
    let mut wrongs = Vec::new();
    if !ended.success() || failed == 0 || tasks.is_empty() {
        wrongs.push(format!("{} writes went well and {failed} failed, and it ended with {ended}", tasks.len()));
    }
    let mut library = client(&orders.store, SqliteOptions::default())?;
    tasks.extend(make_some(&mut library, &mut first_number(), 1)?);
    drop(library);
    wrongs.extend(missing(&orders.store, &tasks)?);
    Ok((failed, wrongs))
}

/// The part of the one whose files may not grow: it writes until that fails three times.
pub(in crate::torture) fn cramp(mut library: Library, orders: &Orders) -> Result<(), Failure> {
    let size = std::fs::metadata(&orders.store).map_or(0, |file| file.len());
    let (current, maximum) = (Some(size + ROOM), Some(size + ROOM));
    // Without this, the signal would end the process before it can be told anything.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map_err(Failure::machine_error)?;
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).map_err(Failure::machine_error)?;
    let mut log = Log::open(&orders.log).map_err(Failure::machine_error)?;
    let (mut failed, caller) = (0, library.caller().clone());
    for deed in 0.. {
        let number = Number { client: orders.client, life: 0, deed };
        let begin = Begin { number, at: nanos(), caller: caller.clone(), deed: NEW, key: None, is_wrong: false };
        let told = carry_out(&mut library, &mut log, &begin).map_err(Failure::machine_error)?;
        failed += u32::from(matches!(told, Told::Failed(_)));
        if failed == 3 {
            break;
        }
    }
    Ok(())
}
