//! Waiting for the next ready task, without holding anything: a look when something changed or at least once a
//! second, a transaction only when the look says that it is worth one.

use std::time::{Duration, Instant};

use taskbus_core::command::{Command, Next};
use taskbus_core::decide::{self, Facts};
use taskbus_core::limits::WAIT_SECONDS_MAX;
use taskbus_core::name::ListName;

use super::world::Peek;
use super::write::Call;
use super::{Engine, Error, Request};
use crate::answer::{Answer, Taken, Written};
use crate::store::read_with;

/// Longest time between two looks: deferred tasks, ended sessions and lost wake-ups are found by then.
const LOOK_MS_MAX: u64 = 1_000;
/// Shortest time between two looks that nobody's change woke.
const LOOK_MS_MIN: u64 = 5;

/// What is waited for.
struct Waiting<'a> {
    request: &'a Request,
    list: ListName,
    command: Command,
    completed: Option<Written>,
}

/// What a look saw.
struct Look {
    worth_a_try: bool,
    pause: Duration,
}

impl Engine {
    /// Runs a `next` that waits until something is ready, `wait` is over, or `cancelled` says so. Returns within
    /// [`WAIT_SECONDS_MAX`].
    ///
    /// # Errors
    /// As [`Engine::execute`].
    pub fn next_waiting(
        &self,
        request: &Request,
        wait: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Answer, Error> {
        let Command::Next(next) = &request.command else { return self.execute(request) };
        if wait.is_zero() {
            return self.execute(request);
        }
        let deadline = Instant::now() + wait.min(Duration::from_secs(WAIT_SECONDS_MAX));
        let first = match self.run(&Call::new(request).one_try())? {
            Answer::Next(taken) if taken.idle.is_some() => *taken,
            answer => return Ok(answer),
        };
        let waiting = Waiting {
            request,
            list: self.list_of(request)?,
            command: Command::Next(Box::new(Next { complete: None, ..(**next).clone() })),
            completed: first.completed.clone(),
        };
        self.wait_for_task(&waiting, first, deadline, cancelled)
    }

    fn wait_for_task(
        &self,
        waiting: &Waiting<'_>,
        mut idle: Taken,
        deadline: Instant,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Answer, Error> {
        let call = || Call::new(waiting.request).later_try(waiting.command.clone(), waiting.completed.clone());
        loop {
            let seen = self.store.version()?;
            let look = self.look(waiting)?;
            if cancelled() {
                return Ok(Answer::Next(Box::new(idle)));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.run(&call());
            }
            if look.worth_a_try {
                match self.run(&call().one_try())? {
                    Answer::Next(taken) if taken.idle.is_some() => idle = *taken,
                    answer => return Ok(answer),
                }
            }
            self.pause(seen, look.pause.min(left), cancelled)?;
        }
    }

    /// Whether a try would do something, and when to look again if nothing wakes us.
    fn look(&self, waiting: &Waiting<'_>) -> Result<Look, Error> {
        let facts = Facts { now: self.store.now()?, caller: Some(waiting.request.caller.clone()) };
        Ok(read_with(self.store(), Some(&waiting.list), |snapshot| {
            let ours = self.session(snapshot, &waiting.request.caller)?.is_ok();
            let ready = Peek::is_worth(snapshot, |world| decide::run(&waiting.command, world, &facts).map(|_| ()))?;
            let ends = snapshot.held(1)?.first().and_then(taskbus_core::task::Task::leased_until);
            let left =
                ends.map_or(LOOK_MS_MAX, |at| u64::try_from(at.as_millis() - facts.now.as_millis()).unwrap_or(0));
            let pause = Duration::from_millis(left.clamp(LOOK_MS_MIN, LOOK_MS_MAX));
            Ok(Look { worth_a_try: ready || !ours, pause })
        })?)
    }
}
