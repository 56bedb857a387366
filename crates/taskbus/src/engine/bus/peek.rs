//! Looking for what is unread without a trace, and waiting for it: for hooks and for a command in the background, which
//! hold no session.

use std::time::{Duration, Instant};

use taskbus_core::bus::message::Message;
use taskbus_core::bus::peek::{self, Floors, PeekAsk, Seen};
use taskbus_core::name::Identity;
use taskbus_core::refusal::{Missing, Refusal};

use super::bus;
use super::post::Window;
use crate::engine::{Engine, Error};
use crate::store::read_with;

/// How long one pause is when nobody says how long to wait.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

impl Engine {
    /// What is unread and was not handed out yet. It needs subscriptions, no session, and leaves no trace.
    ///
    /// # Errors
    /// [`Error`]: `not_found` when no subscription fits.
    pub fn peek(&self, who: &Identity, ask: &PeekAsk) -> Result<Vec<Message>, Error> {
        Ok(self.look_for(who, ask, &Floors::default())?.into_iter().map(|seen| seen.message).collect())
    }

    /// Waits until something unread matches; none when the time is over or `cancelled` says so. Without a time it waits
    /// for ever. What did not match once is not asked about again.
    ///
    /// # Errors
    /// As [`Engine::peek`].
    pub fn wait_for(
        &self,
        who: &Identity,
        ask: &PeekAsk,
        timeout: Option<Duration>,
        matches: &mut dyn FnMut(&Message) -> bool,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Message>>, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut floors = Floors::default();
        loop {
            let version = self.store.version()?;
            let woken = self.matching(who, ask, &mut floors, matches)?;
            if !woken.is_empty() {
                return Ok(Some(woken));
            }
            let left = deadline.map_or(PAUSE_MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() || cancelled() {
                return Ok(None);
            }
            self.pause(version, left, cancelled)?;
        }
    }

    fn matching(
        &self,
        who: &Identity,
        ask: &PeekAsk,
        floors: &mut Floors,
        matches: &mut dyn FnMut(&Message) -> bool,
    ) -> Result<Vec<Message>, Error> {
        loop {
            let seen = self.look_for(who, ask, floors)?;
            let (yes, no): (Vec<Seen>, Vec<Seen>) = seen.into_iter().partition(|seen| matches(&seen.message));
            no.iter().for_each(|seen| floors.pass(seen));
            if !yes.is_empty() || no.is_empty() {
                return Ok(yes.into_iter().map(|seen| seen.message).collect());
            }
        }
    }

    fn look_for(&self, who: &Identity, ask: &PeekAsk, floors: &Floors) -> Result<Vec<Seen>, Error> {
        let limit = self.limits.receive_max_count;
        let seen = read_with(self.store(), None, |snapshot| {
            Ok(peek::peek(who, ask, floors, limit, &Window { bus: bus(snapshot)?, who })?)
        })?;
        Ok(seen.ok_or_else(|| Refusal::from(Missing::Subscription { who: who.clone() }))?)
    }
}
