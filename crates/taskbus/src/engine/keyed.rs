//! The one path of every write that a caller asks for, be it of a task, a message or a memory:
//!
//! ```text
//! its turn ── session? receipt? state? (a read, if anything needs it) ── inspection ── room ── write transaction:
//!     time ── session again ── receipt again ── the body: state, rules, rows ── rate ── receipt ── commit
//! ```
//!
//! A call that is about tasks, nobody inspects it, and there is room as far as is known, leaves out the
//! read: the transaction looks at the same things again, and the read would cost a fifth of the call.
//!
//! What is written is the body's own; what comes before and after is here, once.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::refusal::Refusal;
use taskbus_core::time::Timestamp;

use super::rate::Cost;
use super::read::Found;
use super::{Engine, Error, receipts};
use crate::store::{Abort, Author, SessionRow, Snapshot, Tx, read_with, write_with};

/// What a caller asks for, as receipts see it.
pub(super) struct Asked<'a> {
    pub(super) caller: &'a Identity,
    key: Option<(&'a Key, String)>,
    inspected: Option<Inspected<'a>>,
    grows: bool,
}

/// What the inspection is told of a call.
struct Inspected<'a> {
    operation: &'static str,
    payload: Box<dyn Fn() -> Value + 'a>,
}

impl<'a> Asked<'a> {
    /// A call without a key is never answered twice.
    pub(super) fn new(caller: &'a Identity, key: Option<&'a Key>, payload: impl FnOnce() -> Value) -> Self {
        let key = key.map(|key| (key, receipts::fingerprint(payload())));
        Self { caller, key, inspected: None, grows: false }
    }

    /// The same as a write that the inspection is asked about, under this name and with this payload: the names of the
    /// tools and of their fields.
    pub(super) fn inspected(self, operation: &'static str, payload: impl Fn() -> Value + 'a) -> Self {
        Self { inspected: Some(Inspected { operation, payload: Box::new(payload) }), ..self }
    }

    /// The same as a write that needs room in the store.
    pub(super) fn growing(self) -> Self {
        Self { grows: true, ..self }
    }
}

/// What can be refused without the write lock.
pub(super) type Check<'a> = &'a mut dyn FnMut(&dyn Snapshot) -> Found<()>;

/// The list that a write is about.
pub(super) enum About {
    /// None.
    Nothing,
    /// This one.
    List(ListName),
    /// The one that a task belongs to, live or deleted.
    Task(TaskId),
}

/// What the body of a write finds around it.
pub(super) struct Inside<'a> {
    pub(super) session: &'a SessionRow,
    pub(super) now: Timestamp,
    /// None also for a task that no list has.
    pub(super) list: Option<&'a ListName>,
}

impl Inside<'_> {
    /// Who writes, as it is kept beside what is written.
    pub(super) fn author(&self) -> Author {
        Author { context: self.session.context.clone(), client: self.session.client.clone() }
    }
}

/// What the body of a write did.
pub(super) struct Done<T> {
    pub(super) answer: T,
    pub(super) cost: Cost,
    /// Whether the same call again shall be answered the same.
    pub(super) keep: bool,
}

/// What was found out before the write lock is taken.
enum Before {
    /// It was answered before.
    Answered,
    /// It is new, and the store may be too full for it.
    New { full: bool },
}

impl Engine {
    /// Runs a write. `check` is what is looked at before the write lock is taken, if anything; `about` says which list the
    /// write is about. Both come after the receipt, so that a repeated call is answered whatever has happened since.
    pub(super) fn keyed<T: Serialize + DeserializeOwned>(
        &self,
        asked: &Asked<'_>,
        check: Option<Check<'_>>,
        about: impl FnOnce() -> Result<About, Error>,
        body: impl FnMut(&mut dyn Tx, &Inside<'_>) -> Result<Done<T>, Abort>,
    ) -> Result<T, Error> {
        let _turn = self.turns.take(asked);
        let full = match self.before(asked, check)? {
            Before::Answered => match self.answered(asked)? {
                Some(answer) => return Ok(answer),
                None => false,
            },
            Before::New { full } => full,
        };
        let about = match about() {
            Ok(about) => about,
            Err(error) => return self.answered(asked)?.ok_or(error),
        };
        if let (Some(inspector), Some(inspected)) = (&self.inspector, &asked.inspected) {
            inspector.inspect(inspected.operation, asked.caller, &(inspected.payload)())?;
        }
        if full {
            self.make_room()?;
        }
        self.write_asked(asked, &about, body)
    }

    /// Whether anything has to be known before the write lock is taken.
    fn looks_first(&self, asked: &Asked<'_>) -> bool {
        let inspected = self.inspector.is_some() && asked.inspected.is_some();
        inspected || (asked.grows && !self.has_room())
    }

    /// The answer that a call was given before. Not from a mere read: who gave it may have died before it was on disk, and
    /// what a write has seen is.
    fn answered<T: DeserializeOwned>(&self, asked: &Asked<'_>) -> Result<Option<T>, Error> {
        if asked.key.is_none() {
            return Ok(None);
        }
        let answer = write_with(self.store(), None, |tx| {
            let now = self.store.now()?;
            self.session(tx, asked.caller)??;
            Ok(replayed(tx, asked, now)??)
        });
        Ok(answer?)
    }

    /// What can be said without the write lock: the caller holds no session, the answer was given before, or the
    /// state refuses.
    fn before(&self, asked: &Asked<'_>, mut check: Option<Check<'_>>) -> Result<Before, Error> {
        if check.is_none() && !self.looks_first(asked) {
            return Ok(Before::New { full: false });
        }
        let now = self.store.now()?;
        let known = read_with(self.store(), None, |snapshot| {
            if let Err(refusal) = self.session(snapshot, asked.caller)? {
                return Ok(Err(refusal));
            }
            match replayed::<IgnoredAny>(snapshot, asked, now)? {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(Ok(Before::Answered)),
                Err(refusal) => return Ok(Err(refusal)),
            }
            let full = asked.grows && self.is_full(snapshot)?;
            let checked = check.as_mut().map_or(Ok(Ok(())), |check| check(snapshot))?;
            Ok(checked.map(|()| Before::New { full }))
        })?;
        Ok(known?)
    }

    fn write_asked<T: Serialize + DeserializeOwned>(
        &self,
        asked: &Asked<'_>,
        about: &About,
        mut body: impl FnMut(&mut dyn Tx, &Inside<'_>) -> Result<Done<T>, Abort>,
    ) -> Result<T, Error> {
        let charged = Cell::new(Cost::default());
        let answer = self.write_about(about, |tx, list| {
            // A store may run this again: what an earlier run charged was for nothing.
            self.rate.refund(asked.caller, charged.take());
            let now = self.store.now()?;
            let session = self.enter(tx, asked.caller, now)?;
            if let Some(answer) = replayed(tx, asked, now)?? {
                return Ok(answer);
            }
            let done = body(tx, &Inside { session: &session, now, list })?;
            self.charge(asked.caller, done.cost, &charged)?;
            self.keep(tx, asked, &done, now)?;
            Ok(done.answer)
        });
        if answer.is_err() {
            self.rate.refund(asked.caller, charged.get());
        }
        Ok(answer?)
    }

    fn write_about<T>(
        &self,
        about: &About,
        mut f: impl FnMut(&mut dyn Tx, Option<&ListName>) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        let list = match about {
            About::Nothing => None,
            About::List(list) => Some(list),
            About::Task(id) => {
                let mut result = None;
                self.store.write_where(id, &mut |tx, list| {
                    result = Some(f(tx, list)?);
                    Ok(())
                })?;
                return Ok(result.expect("BUG: a write that returned Ok ran its body"));
            }
        };
        write_with(self.store(), list, |tx| f(tx, list))
    }

    fn charge(&self, who: &Identity, cost: Cost, charged: &Cell<Cost>) -> Result<(), Abort> {
        self.rate.charge(who, cost, (self.seams.uptime)()).map_err(|wait_ms| Refusal::RateLimited {
            who: who.clone(),
            limit: format!(
                "{} writes or {} KiB a second",
                self.limits.writes_per_second, self.limits.write_kib_per_second
            ),
            wait_ms,
        })?;
        charged.set(cost);
        Ok(())
    }

    fn keep<T: Serialize>(
        &self,
        tx: &mut dyn Tx,
        asked: &Asked<'_>,
        done: &Done<T>,
        now: Timestamp,
    ) -> Result<(), Abort> {
        let Some((key, fingerprint)) = asked.key.as_ref().filter(|_| done.keep) else { return Ok(()) };
        let receipt = receipts::receipt(fingerprint, &done.answer, now, self.limits.receipt_minutes)?;
        Ok(tx.put_receipt(asked.caller, key, &receipt)?)
    }
}

fn replayed<T: DeserializeOwned>(snapshot: &dyn Snapshot, asked: &Asked<'_>, now: Timestamp) -> Found<Option<T>> {
    match &asked.key {
        Some((key, fingerprint)) => receipts::replay(snapshot, asked.caller, key, fingerprint, now),
        None => Ok(Ok(None)),
    }
}

/// Calls with the same key of the same caller go one after the other in this process, so that of two that race the
/// second finds the receipt of the first.
#[derive(Default)]
pub(super) struct Turns {
    taken: Mutex<HashSet<(Identity, Key)>>,
    free: Condvar,
}

/// The turn of one call, until it is dropped.
struct Turn<'a> {
    turns: &'a Turns,
    id: (Identity, Key),
}

impl Turns {
    fn take(&self, asked: &Asked<'_>) -> Option<Turn<'_>> {
        let (key, _) = asked.key.as_ref()?;
        let id = (asked.caller.clone(), (*key).clone());
        let others = |taken: &mut HashSet<_>| taken.contains(&id);
        let mut taken = self.free.wait_while(self.lock(), others).unwrap_or_else(PoisonError::into_inner);
        taken.insert(id.clone());
        Some(Turn { turns: self, id })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(Identity, Key)>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.id);
        self.turns.free.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_same_key_of_the_same_caller_waits_for_its_turn() {
        let (zed, amp) = (Identity::new("Zed").unwrap(), Identity::new("Amp").unwrap());
        let key = Key::new("k").unwrap();
        let asked = |who| Asked::new(who, Some(&key), || Value::Null);
        let turns = Turns::default();
        let first = turns.take(&asked(&zed));
        assert!(turns.take(&asked(&amp)).is_some(), "a key belongs to its sender");
        assert!(turns.take(&Asked::new(&zed, None, || Value::Null)).is_none());
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _second = turns.take(&asked(&zed));
                tell.send("second").unwrap();
            });
            tell.send("first").unwrap();
            drop(first);
        });
        drop(tell);
        assert_eq!(told.into_iter().collect::<Vec<_>>(), ["first", "second"]);
    }
}
