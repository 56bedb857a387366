//! The engine: sessions, receipts, fix-up, limits and waiting around the rules of the core.
//!
//! Every surface enters here, with a [`Request`] or one of the reading calls.

use std::sync::Arc;
use std::time::Duration;

use taskbus_core::command::Command;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, Label, ListName};
use taskbus_core::neighbourhood::{ListRules, Tally};
use taskbus_core::refusal::Refusal;
use taskbus_core::task::Status;
use taskbus_core::time::Timestamp;

use crate::answer::{Answer, Got, ListPage, ListView, Registered, SessionView};
use crate::store::{Abort, Store, StoreError, View};

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rules refused; nothing was written.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Abort> for Error {
    fn from(abort: Abort) -> Self {
        match abort {
            Abort::Refused(refusal) => Error::Refused(refusal),
            Abort::Failed(error) => Error::Store(error),
        }
    }
}

/// A change to make.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who asks; an identity that this engine registered.
    pub caller: Identity,
    /// The list; none when the command names a task.
    pub list: Option<ListName>,
    /// What.
    pub command: Command,
    /// Makes a repeated call answer what the first one did.
    pub key: Option<Key>,
}

/// A wish to act under a name.
#[derive(Clone, Debug, Default)]
pub struct Registration {
    /// The wished name.
    pub name: String,
    /// The identity it is a child of.
    pub parent: Option<String>,
    /// What it works on.
    pub context: String,
    /// The client program and its version.
    pub client: String,
    /// How long the session lives.
    pub span: Span,
}

/// How long a session lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// As long as this process sends heartbeats.
    #[default]
    Heartbeat,
    /// Kept by a person or a script that runs one command after another: every process with the same name shares
    /// it, and it lives as long as the leases taken under it.
    Command,
}

/// Which page of a list to show.
#[derive(Clone, Debug, Default)]
pub struct ListAsk {
    /// Which view.
    pub view: View,
    /// Only this status.
    pub status: Option<Status>,
    /// Only this owner.
    pub owner: Option<Identity>,
    /// Only tasks with this label.
    pub label: Option<Label>,
    /// Only tasks below this one, at any depth.
    pub below: Option<TaskId>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// Rows, at most; none: [`PAGE_ROWS_DEFAULT`](taskbus_core::limits::PAGE_ROWS_DEFAULT).
    pub limit: Option<usize>,
}

/// What the maintenance tick did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Abandoned tasks that went back to their queues.
    pub reclaimed: usize,
    /// Expired receipts that were dropped.
    pub receipts: usize,
}

/// The settings of an engine.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Task writes per second and identity.
    pub writes_per_second: u32,
    /// KiB written per second and identity.
    pub write_kib_per_second: u32,
    /// How long a receipt answers a repeated key, in minutes.
    pub receipt_minutes: i64,
}

/// The only door to a store. Cheap to share; every call is synchronous and may block.
pub struct Engine {
    store: Arc<dyn Store>,
    token: String,
    limits: Limits,
}

impl Engine {
    /// An engine over a store, with a fresh owner token for this process.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, limits: Limits) -> Self {
        todo!("{:?}", (store.describe(), limits))
    }

    /// Takes a name: the wished one if nobody else holds it, else with a suffix.
    ///
    /// # Errors
    /// [`Error`]: `validation` for a bad name, or the store's failure. So for every call.
    pub fn register(&self, wish: &Registration) -> Result<Registered, Error> {
        todo!("{wish:?} {} {:?} {}", self.token, self.limits, self.store.describe())
    }

    /// Makes a list; the same call again is fine.
    ///
    /// # Errors
    /// [`Error`]: `conflict` when it exists with other settings.
    pub fn create_list(&self, caller: &Identity, name: &ListName, rules: ListRules) -> Result<ListView, Error> {
        todo!("{caller} {name} {rules:?}")
    }

    /// Every list.
    ///
    /// # Errors
    /// [`Error`].
    pub fn lists(&self) -> Result<Vec<ListView>, Error> {
        todo!()
    }

    /// Every live session.
    ///
    /// # Errors
    /// [`Error`].
    pub fn sessions(&self) -> Result<Vec<SessionView>, Error> {
        todo!()
    }

    /// Runs a command.
    ///
    /// # Errors
    /// [`Error`]: every refusal of the rules, or the store's failure.
    pub fn execute(&self, request: &Request) -> Result<Answer, Error> {
        todo!("{request:?}")
    }

    /// Runs a `next` that waits until something is ready, `wait` is over, or `cancelled` says so. Returns within
    /// [`WAIT_SECONDS_MAX`](taskbus_core::limits::WAIT_SECONDS_MAX).
    ///
    /// # Errors
    /// As [`Engine::execute`].
    pub fn next_waiting(
        &self,
        request: &Request,
        wait: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Answer, Error> {
        todo!("{request:?} {wait:?} {}", cancelled())
    }

    /// One task. A caller of none is a reader without a session, whose fix-ups are signed by nobody.
    ///
    /// # Errors
    /// [`Error`]: `not_found`.
    pub fn get(&self, caller: Option<&Identity>, id: &TaskId, history: bool) -> Result<Got, Error> {
        todo!("{caller:?} {id} {history}")
    }

    /// A page of a list. A caller of none is a reader without a session.
    ///
    /// # Errors
    /// [`Error`]: `not_found` for the list, `validation` for a bad cursor or limit.
    pub fn list(&self, caller: Option<&Identity>, list: &ListName, ask: &ListAsk) -> Result<ListPage, Error> {
        todo!("{caller:?} {list} {ask:?}")
    }

    /// How many tasks of a list are in which condition.
    ///
    /// # Errors
    /// [`Error`]: `not_found` for the list.
    pub fn tally(&self, list: &ListName) -> Result<Tally, Error> {
        todo!("{list}")
    }

    /// Keeps this process's sessions alive; call it every
    /// [`HEARTBEAT_MS`](taskbus_core::limits::HEARTBEAT_MS). Says how many there are.
    ///
    /// # Errors
    /// [`Error`].
    pub fn heartbeat(&self) -> Result<usize, Error> {
        todo!()
    }

    /// Returns abandoned tasks of every list to their queues and drops what has expired. Correctness never
    /// depends on it.
    ///
    /// # Errors
    /// [`Error`].
    pub fn tick(&self) -> Result<Ticked, Error> {
        todo!()
    }

    /// Ends this process's sessions at once.
    ///
    /// # Errors
    /// [`Error`].
    pub fn close(&self) -> Result<(), Error> {
        todo!()
    }

    /// The store's time.
    ///
    /// # Errors
    /// [`Error`].
    pub fn now(&self) -> Result<Timestamp, Error> {
        todo!()
    }

    /// The store underneath, for its description and abilities.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }
}
