//! Who sits where in a process that serves many clients. Each session of the older era has a desk of its own, as a
//! process over pipes has: with its own engine, so that a name is held by one of them. Requests of the newer era carry
//! no session; there a name that was registered has the desk, and calls find it by `as`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use taskbus_core::limits;
use taskbus_core::name::Identity;
use tokio::sync::Semaphore;

use super::desk::Desk;
use crate::wire::error::Failure;

/// How long a session may say nothing.
pub(super) const IDLE: Duration = Duration::from_secs(limits::HTTP_SESSION_IDLE_SECONDS);

/// One desk, and the turn of those who write at it.
pub(super) struct Seat {
    number: u64,
    /// The desk.
    pub(super) desk: Arc<Desk>,
    /// Writes begin one after another.
    pub(super) turn: Semaphore,
}

impl Seat {
    /// A seat that is nobody's in particular.
    pub(super) fn at(desk: Arc<Desk>) -> Arc<Self> {
        Arc::new(Self { number: 0, desk, turn: Semaphore::new(1) })
    }
}

/// Makes a desk.
pub(super) type MakeDesk = Box<dyn Fn() -> Desk + Send + Sync>;

/// All that are taken.
pub(super) struct Seats {
    make: MakeDesk,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    last: u64,
    all: BTreeMap<u64, Arc<Seat>>,
    names: BTreeMap<Identity, Named>,
}

struct Named {
    seat: Arc<Seat>,
    used: Instant,
}

impl Seats {
    /// None is taken yet.
    pub(super) fn new(make: MakeDesk) -> Self {
        Self { make, taken: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for one more.
    pub(super) fn take(&self) -> Result<Arc<Seat>, Failure> {
        let mut taken = self.lock();
        if taken.all.len() >= limits::HTTP_SESSIONS_MAX {
            let max = limits::HTTP_SESSIONS_MAX;
            let message = format!("{max} sessions are open on this server, which is all it has; end one, or try later");
            return Err(Failure::internal("too_many_sessions", message, true));
        }
        taken.last += 1;
        let seat = Seat { number: taken.last, desk: Arc::new((self.make)()), turn: Semaphore::new(1) };
        let seat = Arc::new(seat);
        taken.all.insert(seat.number, Arc::clone(&seat));
        Ok(seat)
    }

    /// From now on calls find a seat by this name. Tells the one that had it, if it lost it, as after a long sleep of the
    /// machine: nobody finds that any more, so it is to be closed.
    pub(super) fn name(&self, name: Identity, seat: Arc<Seat>) -> Option<Arc<Seat>> {
        self.lock().names.insert(name, Named { seat, used: Instant::now() }).map(|named| named.seat)
    }

    /// The seat of a name, or of the agent whose subagent it is.
    pub(super) fn of(&self, name: &Identity) -> Option<Arc<Seat>> {
        let mut taken = self.lock();
        let mut wanted = Some(name.as_str());
        while let Some(name) = wanted {
            if let Some(named) = taken.names.iter_mut().find(|(own, _)| own.as_str() == name).map(|(_, named)| named) {
                named.used = Instant::now();
                return Some(Arc::clone(&named.seat));
            }
            wanted = name.rsplit_once('/').map(|(parent, _)| parent);
        }
        None
    }

    /// Those by whose names nobody has called for a while. Calls no longer find them; they are to be closed.
    pub(super) fn stale(&self, now: Instant) -> Vec<Arc<Seat>> {
        let is_stale = |_: &Identity, named: &mut Named| now.duration_since(named.used) > IDLE;
        self.lock().names.extract_if(.., is_stale).map(|(_, named)| named.seat).collect()
    }

    /// Gives up what was held at a seat, and then the seat. May block.
    pub(super) fn leave(&self, seat: &Seat) {
        close(&seat.desk);
        self.lock().all.remove(&seat.number);
    }

    /// Every desk that is taken.
    pub(super) fn desks(&self) -> Vec<Arc<Desk>> {
        self.lock().all.values().map(|seat| Arc::clone(&seat.desk)).collect()
    }
}

/// Ends the sessions of a desk. May block.
pub(super) fn close(desk: &Desk) {
    let Some(engine) = desk.opened() else { return };
    if let Err(error) = engine.close() {
        tracing::warn!(%error, "the sessions will end by themselves");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::trial::desk;

    fn name(text: &str) -> Identity {
        Identity::new(text).unwrap()
    }

    #[test]
    fn a_call_finds_the_seat_of_its_name_or_of_its_parent() {
        let seats = Seats::new(Box::new(desk));
        let [zed, amp] = ["Zed", "Amp"].map(|own| {
            let seat = seats.take().unwrap();
            assert!(seats.name(name(own), Arc::clone(&seat)).is_none());
            seat
        });
        let found = |text: &str| seats.of(&name(text)).map(|seat| seat.number);
        assert_eq!([found("Zed"), found("Amp")], [Some(zed.number), Some(amp.number)]);
        assert_eq!([found("Zed/plan/a"), found("Ze"), found("Zedd")], [Some(zed.number), None, None]);
        let again = seats.take().unwrap();
        let lost = seats.name(name("Zed"), Arc::clone(&again)).unwrap();
        assert_eq!((lost.number, found("Zed")), (zed.number, Some(again.number)));
    }

    #[test]
    fn there_are_so_many_seats_and_a_left_one_is_free() {
        let seats = Seats::new(Box::new(desk));
        let mut taken: Vec<_> = (0..limits::HTTP_SESSIONS_MAX).map(|_| seats.take().unwrap()).collect();
        let Err(refused) = seats.take() else { panic!("one too many") };
        assert!(refused.retryable && refused.message.contains(&limits::HTTP_SESSIONS_MAX.to_string()), "{refused:?}");
        seats.leave(&taken.pop().unwrap());
        seats.take().unwrap();
    }

    #[test]
    fn a_name_that_nobody_uses_is_given_up() {
        let seats = Seats::new(Box::new(desk));
        assert!(seats.name(name("Zed"), seats.take().unwrap()).is_none());
        let after = |seconds: u64| Instant::now() + Duration::from_secs(seconds);
        assert!(seats.stale(after(limits::HTTP_SESSION_IDLE_SECONDS - 60)).is_empty());
        assert_eq!(seats.stale(after(limits::HTTP_SESSION_IDLE_SECONDS + 60)).len(), 1);
        assert!(seats.of(&name("Zed")).is_none());
    }
}
