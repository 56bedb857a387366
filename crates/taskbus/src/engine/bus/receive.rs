//! Receiving: a look first, a transaction only when the look says that something changes; and waiting for that without
//! holding anything.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::receive::{self, Ask, Facts, Received};
use taskbus_core::limits::{EMPTY_POLLS_MAX, WAIT_SECONDS_MAX};
use taskbus_core::name::Identity;
use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::time::Timestamp;

use super::post::{Glance, Post, Window};
use super::{bus, bus_mut};
use crate::engine::{Engine, Error};
use crate::store::{Snapshot, read_with, write_with};

/// Identities whose empty waits are counted; beyond that all are forgotten.
const POLLERS_MAX: usize = 1024;
const HOUR_MS: i64 = 3_600_000;

/// What to receive.
#[derive(Clone, Debug, Default)]
pub struct ReceiveAsk {
    /// The token of the batch that was worked through.
    pub ack: Option<String>,
    /// Messages, at most; none, or no positive number: as the configuration says.
    pub count: Option<i64>,
    /// How long to wait until there is something.
    pub wait: Duration,
    /// Only from these channels; empty: from all.
    pub channels: Vec<ChannelName>,
    /// What the caller sent itself, too.
    pub include_own: bool,
    /// Somebody watches: empty waits are not counted.
    pub exempt_from_polling: bool,
}

impl Engine {
    /// Delivers what is unread, or waits for it until `hurry` says that it should not wait any longer. Then only what was
    /// there from the start is delivered: what comes later is for whoever still waits.
    ///
    /// # Errors
    /// [`Error`]: `validation` for a wait that is too long, `polling` when this process waited in vain too often for
    /// this identity.
    pub fn receive(&self, caller: &Identity, ask: &ReceiveAsk, hurry: &dyn Fn() -> bool) -> Result<Received, Error> {
        self.authorize(caller)?;
        self.check_wait(ask.wait)?;
        let deadline = Instant::now() + ask.wait;
        let mut pass = Ask { ack: ask.ack.clone(), channels: ask.channels.clone(), include_own: ask.include_own };
        let mut ack_ignored = false;
        loop {
            let seen = self.store.version()?;
            let mut received = self.deliver(caller, &pass, ask.count)?;
            // An acknowledgement is applied once, and what came of it is told in the end.
            pass.ack = None;
            ack_ignored |= received.ack_ignored;
            received.ack_ignored = ack_ignored;
            let left = deadline.saturating_duration_since(Instant::now());
            if received.is_news() || left.is_zero() {
                self.count_polls(caller, ask, &received)?;
                return Ok(received);
            }
            self.pause(seen, left, hurry)?;
            if hurry() {
                return Ok(received);
            }
        }
    }

    /// Nobody saw this: a batch that was made for it is new again. What was delivered before it stays delivered.
    ///
    /// # Errors
    /// [`Error`].
    pub fn take_back(&self, caller: &Identity, received: &Received) -> Result<(), Error> {
        let Some(token) = received.batch.as_ref().filter(|_| !received.redelivered) else { return Ok(()) };
        Ok(write_with(self.store(), None, |tx| {
            let now = self.store.now()?;
            self.enter(tx, caller, now)?;
            Ok(receive::take_back(token, &mut Post { bus: bus_mut(tx)?, who: caller })?)
        })?)
    }

    fn check_wait(&self, wait: Duration) -> Result<(), Refusal> {
        let max = self.limits.receive_max_wait_seconds.min(WAIT_SECONDS_MAX);
        if wait <= Duration::from_secs(max) {
            return Ok(());
        }
        let seconds = |seconds| i64::try_from(seconds).unwrap_or(i64::MAX);
        Err(Invalid::WaitTooLong { given: seconds(wait.as_secs()), max: seconds(max) }.into())
    }

    /// One delivery, in a transaction if it changes anything.
    fn deliver(&self, caller: &Identity, ask: &Ask, count: Option<i64>) -> Result<Received, Error> {
        let facts = self.delivery_facts(caller, count, self.store.now()?);
        let glance = |snapshot: &dyn Snapshot| {
            if let Err(refusal) = self.session(snapshot, caller)? {
                return Ok(Err(refusal));
            }
            Ok(Ok(Glance::receive(Window { bus: bus(snapshot)?, who: caller }, ask, &facts)?))
        };
        // An acknowledgement is nearly always one, and then the look would be for nothing.
        let looked = if ask.ack.is_none() { read_with(self.store(), None, glance)?? } else { None };
        if let Some(received) = looked {
            return Ok(received);
        }
        Ok(write_with(self.store(), None, |tx| {
            let facts = Facts { now: self.store.now()?, ..facts.clone() };
            self.enter(tx, caller, facts.now)?;
            Ok(receive::receive(ask, &mut Post { bus: bus_mut(tx)?, who: caller }, &facts)?)
        })?)
    }

    fn delivery_facts(&self, caller: &Identity, count: Option<i64>, now: Timestamp) -> Facts {
        let limits = &self.limits;
        Facts {
            now,
            caller: caller.clone(),
            token: (self.seams.random)(),
            count: receive::count(count, limits.receive_default_count, limits.receive_max_count),
            count_max: limits.receive_max_count,
            result_bytes: limits.result_default_kib.saturating_mul(1024),
            idle_ms: self.idle_ms(),
        }
    }

    /// A subscription that was not read for longer than this has ended, in milliseconds.
    pub(super) fn idle_ms(&self) -> i64 {
        self.limits.cursor_idle_hours.saturating_mul(HOUR_MS)
    }

    fn count_polls(&self, caller: &Identity, ask: &ReceiveAsk, received: &Received) -> Result<(), Refusal> {
        if !received.messages.is_empty() {
            self.polls.reset(caller);
        } else if !ask.wait.is_zero() && !received.is_news() && !ask.exempt_from_polling {
            let waits = self.polls.count(caller);
            if waits >= EMPTY_POLLS_MAX {
                return Err(Refusal::Polling { waits });
            }
        }
        Ok(())
    }
}

/// How often in a row an identity waited for messages in this process and none came.
#[derive(Default)]
pub(in crate::engine) struct Polls(Mutex<HashMap<Identity, u32>>);

impl Polls {
    fn count(&self, who: &Identity) -> u32 {
        let mut polls = self.lock();
        if polls.len() >= POLLERS_MAX && !polls.contains_key(who) {
            polls.clear();
        }
        let count = polls.entry(who.clone()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    fn reset(&self, who: &Identity) {
        self.lock().remove(who);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Identity, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_pollers_are_counted() {
        let (polls, zed) = (Polls::default(), Identity::new("Zed").unwrap());
        assert_eq!([polls.count(&zed), polls.count(&zed)], [1, 2]);
        polls.reset(&zed);
        assert_eq!(polls.count(&zed), 1);
        for n in 0..2 * POLLERS_MAX {
            polls.count(&Identity::new(format!("w{n}")).unwrap());
        }
        assert!(polls.lock().len() <= POLLERS_MAX);
    }
}
