//! What the connections of one process share, and how a call gets its turn and its desk. Over pipes there is one
//! connection and one desk; over HTTP there are many.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};
use taskbus::engine::Engine;
use taskbus_core::name::Identity;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::desk::{self, Asked, Desk, Reply};
use super::field::Effect;
use super::seats::{Seat, Seats};
use super::table::Offered;
use super::watch::Watch;
use crate::blocking::blocking;
use crate::wire::error::Failure;
use crate::wire::lenient;

/// Calls that run at the same time over pipes; more wait their turn.
pub(super) const CALLS_MAX: usize = 32;
/// Of those, calls that wait for a task; more do not wait, so that there is always room for the others.
const WAITS_MAX: usize = 24;
/// The same for a process that serves many clients.
pub(super) const WEB_CALLS_MAX: usize = 160;
const WEB_WAITS_MAX: usize = 128;

/// Who calls, as far as the connection says.
pub(super) struct Caller {
    /// The session or thread that the client names beside the arguments.
    pub(super) thread: Option<String>,
    /// The client program.
    pub(super) client: String,
    /// Its version.
    pub(super) version: String,
    /// Nobody waits for the answer any more.
    pub(super) cancelled: CancellationToken,
}

/// What is shared.
pub(super) struct House {
    /// The desk of whoever has no seat: the only one over pipes; else for reading.
    pub(super) common: Arc<Seat>,
    /// The ear of the process.
    pub(super) watch: Arc<Watch>,
    /// The end has come.
    pub(super) ending: CancellationToken,
    /// The seats, where many clients are served.
    seats: Option<Arc<Seats>>,
    calls: Semaphore,
    waits: Semaphore,
}

impl House {
    /// A house for one client.
    pub(super) fn of_one(desk: Arc<Desk>, ending: CancellationToken) -> Self {
        Self::new(desk, None, ending, [CALLS_MAX, WAITS_MAX])
    }

    /// A house for many, with a desk for those who only look.
    pub(super) fn of_many(desk: Arc<Desk>, seats: Arc<Seats>, ending: CancellationToken) -> Self {
        Self::new(desk, Some(seats), ending, [WEB_CALLS_MAX, WEB_WAITS_MAX])
    }

    fn new(desk: Arc<Desk>, seats: Option<Arc<Seats>>, ending: CancellationToken, room: [usize; 2]) -> Self {
        let [calls, waits] = room.map(Semaphore::new);
        let watch = Arc::new(Watch::new(Arc::clone(&desk)));
        Self { common: Seat::at(desk), watch, ending, seats, calls, waits }
    }

    /// The seat of a client that shakes hands.
    pub(super) fn enter(&self) -> Result<Arc<Seat>, Failure> {
        self.seats.as_ref().map_or_else(|| Ok(Arc::clone(&self.common)), |seats| seats.take())
    }

    /// The client is gone.
    pub(super) fn leave(&self, seat: Arc<Seat>) {
        let (Some(seats), Ok(runtime)) = (self.seats.clone(), tokio::runtime::Handle::try_current()) else { return };
        runtime.spawn(blocking(move || seats.leave(&seat)));
    }

    /// Gives up the names by which nobody has called for a while.
    pub(super) fn sweep(&self) {
        for seat in self.seats.iter().flat_map(|seats| seats.stale(Instant::now())) {
            self.leave(seat);
        }
    }

    /// Asks the engine for what a resource holds, one of so many calls.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Engine) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let running = self.calls.acquire().await;
        let desk = Arc::clone(&self.common.desk);
        let answer = blocking(move || look(&*desk.engine()?)).await;
        drop(running);
        answer?
    }

    /// Runs a tool for a client: at its own seat, or, if it has none, at that of the name it calls under.
    pub(super) async fn call(
        &self,
        own: Option<&Arc<Seat>>,
        offered: Offered,
        arguments: Map<String, Value>,
        caller: Caller,
    ) -> Result<Reply, Failure> {
        match (own, &self.seats) {
            (Some(seat), _) => self.run(seat, offered, arguments, caller).await,
            (None, Some(seats)) if offered.tool.name == "register" => {
                self.register(seats, offered, arguments, caller).await
            }
            (None, Some(seats)) => {
                let seat = self.seat_for(seats, offered, &arguments)?;
                self.run(&seat, offered, arguments, caller).await
            }
            (None, None) => self.run(&self.common, offered, arguments, caller).await,
        }
    }

    /// Without a session whoever takes a name is somebody new: two clients that wish for the same name get two.
    async fn register(
        &self,
        seats: &Seats,
        offered: Offered,
        arguments: Map<String, Value>,
        caller: Caller,
    ) -> Result<Reply, Failure> {
        let seat = seats.take()?;
        let outcome = self.run(&seat, offered, arguments, caller).await;
        let name = outcome.as_ref().ok().and_then(|reply| Identity::new(reply.facts.get("as")?.as_str()?).ok());
        let useless = match name {
            Some(name) => seats.name(name, seat),
            None => Some(seat),
        };
        if let Some(seat) = useless {
            self.leave(seat);
        }
        outcome
    }

    fn seat_for(&self, seats: &Seats, offered: Offered, arguments: &Map<String, Value>) -> Result<Arc<Seat>, Failure> {
        let given = arguments.get("as").and_then(Value::as_str).map(str::trim).filter(|name| !name.is_empty());
        let known = given.and_then(|name| seats.of(&Identity::new(name).ok()?));
        if let Some(seat) = known {
            return Ok(seat);
        }
        let is_anonymous = given.is_none() && offered.tool.effect != Effect::Read;
        if is_anonymous && self.common.desk.keeps_sessions()? {
            return Err(anonymous(offered));
        }
        Ok(Arc::clone(&self.common))
    }

    /// Calls begin in the order in which they came, each after the writes before it have ended: an agent that makes
    /// several at once finds its tasks in the order in which it named them. Only writes keep the turn.
    async fn run(
        &self,
        seat: &Seat,
        offered: Offered,
        arguments: Map<String, Value>,
        caller: Caller,
    ) -> Result<Reply, Failure> {
        let tool = offered.tool;
        let turn = seat.turn.acquire().await;
        let running = self.calls.acquire().await;
        let waits =
            arguments.get("wait_seconds").is_some_and(|given| lenient::integer(given).is_ok_and(|seconds| seconds > 0));
        let waiting = if waits { self.waits.try_acquire().ok() } else { None };
        let impatient = waits && waiting.is_none();
        let turn = turn.ok().filter(|_| !waits && tool.effect != Effect::Read);
        let (desk, ending) = (Arc::clone(&seat.desk), self.ending.clone());
        let waking = waits.then(|| tokio::spawn(wake(Arc::clone(&desk), caller.cancelled.clone(), ending.clone())));
        let outcome = blocking(move || {
            let cancelled = || caller.cancelled.is_cancelled();
            let hurry = || ending.is_cancelled() || caller.cancelled.is_cancelled();
            let asked = Asked { impatient, ..caller.asked(&cancelled, &hurry) };
            desk::call(&desk, tool, arguments, &asked)
        })
        .await;
        drop((turn, running, waiting));
        if let Some(waking) = waking {
            waking.abort();
        }
        outcome?
    }
}

impl Caller {
    fn asked<'a>(&'a self, cancelled: &'a dyn Fn() -> bool, hurry: &'a dyn Fn() -> bool) -> Asked<'a> {
        let (thread, client, version) = (self.thread.as_deref(), self.client.as_str(), self.version.as_str());
        Asked { thread, client, version, cancelled, hurry, impatient: false }
    }
}

/// Nothing but a name tells the callers without a session apart, and two must not work as one.
fn anonymous(offered: Offered) -> Failure {
    let name = offered.tool.name;
    if offered.tool.fields.iter().any(|field| field.name == "as") {
        let message = "as is required here: these requests have no session, so call register first and pass the name \
                       that it returns as `as` with every call";
        return Failure::shape("as", message);
    }
    let message = format!(
        "{name} takes no name and this request has no session to tell whose it is; use the tools of the set core with \
         `as`, or start taskbus mcp over standard input and output"
    );
    Failure::internal("no_session", message, false)
}

/// Wakes the calls that wait, once one of them is cancelled or the client is gone.
async fn wake(desk: Arc<Desk>, cancelled: CancellationToken, ending: CancellationToken) {
    tokio::select! {
        () = cancelled.cancelled() => {}
        () = ending.cancelled() => {}
    }
    if let Some(engine) = desk.opened() {
        engine.waker().wake();
    }
}
