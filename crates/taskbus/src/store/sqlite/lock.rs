//! Waiting for one's turn: threads of this process at a gate, processes by short sleeps under a deadline.
//!
//! SQLite's own busy handler backs off to 100 ms and starves whoever came late: of 64 processes that do nothing but
//! write, some wait as long as it lasts. Here everybody sleeps about as long as everybody else, however long ago
//! they came, and never the same twice: first 200 µs, as the lock is held for less; then 2 ms, because 64 processes
//! that wake every 200 µs leave no processor to the one that holds the lock. What processes that write do
//! beside that, to fail cheaply and to let pass whoever is unlucky, is in `front`.

use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::error::{Answer, Fault, is_busy};

/// The shortest sleep between two tries.
const NAP: Duration = Duration::from_micros(100);
/// Added to it at most.
const JITTER_MICROS: u64 = 200;
/// So many sleeps are short,
const SHORT_NAPS: u32 = 2;
/// all others so many times as long.
const LONG_NAP: u32 = 10;

/// How long a call may still wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    since: Instant,
    until: Instant,
}

impl Patience {
    pub(super) fn of(limit: Duration) -> Self {
        let since = Instant::now();
        Self { since, until: after(since, limit) }
    }

    /// Runs `f` until it does not end in "busy", or time is up.
    pub(super) fn persist<T>(&self, mut f: impl FnMut() -> rusqlite::Result<T>) -> Answer<T> {
        let mut naps = 0;
        loop {
            match f() {
                Err(error) if is_busy(&error) && self.left().is_zero() => return Err(self.over()),
                Err(error) if is_busy(&error) => nap(naps),
                result => return Ok(result?),
            }
            naps += 1;
        }
    }

    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// How long it has taken so far.
    pub(super) fn waited(&self) -> Duration {
        self.since.elapsed()
    }

    pub(super) fn over(&self) -> Fault {
        Fault::Busy { waited: self.since.elapsed() }
    }
}

/// The end of a wait; one that is longer than clocks can tell ends in a year.
pub(super) fn after(since: Instant, limit: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    since.checked_add(limit).unwrap_or(since + YEAR)
}

/// Sleeps between two tries, after so many others.
pub(super) fn nap(before: u32) {
    let jitter = Duration::from_micros(RandomState::new().hash_one(()) % JITTER_MICROS);
    std::thread::sleep((NAP + jitter) * if before < SHORT_NAPS { 1 } else { LONG_NAP });
}

/// Lets one thread at a time at the connection that writes.
#[derive(Debug)]
pub(super) struct Gate {
    slot: Mutex<Slot>,
    freed: Condvar,
}

#[derive(Debug)]
struct Slot {
    taken: bool,
    /// How many threads wait for their turn: waking nobody would be a system call too.
    waiting: usize,
    connection: Option<Connection>,
}

/// The right to write. The connection goes back when this is dropped, unless it was left in the middle of
/// something: then it is closed, which rolls back.
pub(super) struct Turn<'g> {
    gate: &'g Gate,
    connection: Option<Connection>,
}

impl Gate {
    /// A gate with a connection at hand.
    pub(super) fn holding(connection: Option<Connection>) -> Self {
        Self { slot: Mutex::new(Slot { taken: false, waiting: 0, connection }), freed: Condvar::new() }
    }

    /// Shows the connection while nobody has the turn.
    pub(super) fn with_idle(&self, f: impl FnOnce(&Connection)) {
        if let Some(connection) = &self.slot().connection {
            f(connection);
        }
    }

    /// Waits for the turn; `connect` makes the connection if there is none.
    pub(super) fn enter(&self, patience: &Patience, connect: impl FnOnce() -> Answer<Connection>) -> Answer<Turn<'_>> {
        let taken = |slot: &mut Slot| slot.taken;
        let mut slot = self.slot();
        slot.waiting += 1;
        let (mut slot, wait) =
            self.freed.wait_timeout_while(slot, patience.left(), taken).unwrap_or_else(PoisonError::into_inner);
        slot.waiting -= 1;
        if wait.timed_out() {
            return Err(patience.over());
        }
        slot.taken = true;
        let mut turn = Turn { gate: self, connection: slot.connection.take() };
        drop(slot);
        if turn.connection.is_none() {
            turn.connection = Some(connect()?);
        }
        Ok(turn)
    }

    /// Lends the connection to a read, while nobody has the turn. Who comes to write in the meantime connects anew.
    pub(super) fn lend(&self) -> Option<Connection> {
        let mut slot = self.slot();
        if slot.taken { None } else { slot.connection.take() }
    }

    /// Takes back what was lent; none, unless somebody has come to write in the meantime.
    pub(super) fn take_back(&self, connection: Connection) -> Option<Connection> {
        let mut slot = self.slot();
        if slot.taken || slot.connection.is_some() {
            return Some(connection);
        }
        slot.connection = Some(connection);
        None
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Turn<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("BUG: a turn has its connection until it ends")
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let connection = self.connection.take().filter(Connection::is_autocommit);
        let mut slot = self.gate.slot();
        slot.taken = false;
        slot.connection = connection;
        if slot.waiting > 0 {
            self.gate.freed.notify_one();
        }
    }
}
