//! The engine: sessions, receipts, fix-up, limits and waiting around the rules of the core.
//!
//! Every surface enters here, with a [`Request`] or one of the reading calls. The engine decides nothing about
//! tasks: [`taskbus_core::decide`] does. A write goes this way:
//!
//! ```text
//! its turn ── session? receipt? (a read) ── which list? ── write transaction:
//!     time ── session again ── receipt again ── decide::run ── answer ── rate ── receipt ── commit
//! ```

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::query::Mode;
use taskbus_core::bus::tag::TagPattern;
use taskbus_core::bus::wishes::RepoWishes;
use taskbus_core::command::Command;
use taskbus_core::decide::Stop;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, Label, ListName};
use taskbus_core::neighbourhood::Tally;
use taskbus_core::refusal::{Missing, Refusal};
use taskbus_core::task::Status;
use taskbus_core::time::Timestamp;

use self::bus::Polls;
use self::bus::capacity::Room;
use self::bus::embed::Embedder;
use self::bus::inspect::Inspector;
use self::bus::reads::Reads;
pub use self::bus::{Follow, HistoryAsk, ReceiveAsk};
use self::keyed::Turns;
pub use self::limits::{ApiKey, EmbeddingAt, InspectionAt, Limits};
pub use self::overview::Overview;
use self::rate::Rate;
pub use self::together::{Commands, Together};
use self::waiters::Waiters;
pub use self::waiters::Waker;
use crate::answer::ListView;
use crate::store::{Abort, Harness, Store, StoreError, View, read_with};

mod bus;
mod hall;
mod history;
mod keyed;
mod limits;
mod next;
mod overview;
mod rate;
mod read;
mod receipts;
mod sessions;
mod tick;
mod together;
mod view;
mod waiters;
mod world;
mod write;

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

impl From<Stop> for Abort {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal) => Abort::Refused(refusal),
            Stop::Lookup(error) => Abort::Failed(error.into()),
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
#[derive(Clone, Debug)]
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
    /// The program that the agent runs in, if it is known.
    pub harness: Option<Harness>,
    /// Whether what the name was subscribed to goes on; if not, all of it ends, and its inbox begins anew.
    pub resume: bool,
    /// What the repository wishes for its agents; none: nothing, not even the channels that every store has.
    pub repo: Option<RepoWishes>,
}

impl Default for Registration {
    fn default() -> Self {
        Self {
            name: String::new(),
            parent: None,
            context: String::new(),
            client: String::new(),
            span: Span::default(),
            harness: None,
            resume: true,
            repo: None,
        }
    }
}

/// How long a session lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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

/// What to search for.
#[derive(Clone, Debug, Default)]
pub struct SearchAsk {
    /// The words (see [`taskbus_core::bus::query`]).
    pub query: String,
    /// By what; none: by both if there is somebody who makes vectors, else by text.
    pub mode: Option<Mode>,
    /// In this channel only.
    pub channel: Option<ChannelName>,
    /// From this identity only.
    pub sender: Option<Identity>,
    /// Sent at this time or later.
    pub since: Option<Timestamp>,
    /// Sent at this time or earlier.
    pub until: Option<Timestamp>,
    /// This message and its direct answers only.
    pub thread: Option<u64>,
    /// With a tag that one of these matches.
    pub tags: Vec<TagPattern>,
    /// Hits, at most.
    pub count: Option<i64>,
    /// Where the last page ended.
    pub cursor: Option<String>,
    /// Whether finding a memory counts as reading it.
    pub touch: bool,
}

/// What the maintenance tick did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Sessions that ended long ago and were forgotten.
    pub sessions: usize,
    /// Abandoned tasks that went back to their queues.
    pub reclaimed: usize,
    /// Expired receipts that were dropped.
    pub receipts: usize,
    /// Messages that were too old.
    pub aged: usize,
    /// Buried messages that were removed for good.
    pub purged: usize,
    /// Empty channels that were dropped.
    pub channels: usize,
    /// Task lists that were dropped because nothing happened in them.
    pub lists: usize,
    /// Memories that were deleted because nobody read them.
    pub memories: usize,
    /// Messages that went because the store was full.
    pub evicted: usize,
    /// Memories that got their vectors.
    pub embedded: usize,
}

/// What an engine takes from the world around it.
pub struct Seams {
    /// The owner token of this process: nobody else may have the same.
    pub token: String,
    /// The time since any fixed point; never runs back. The rate limit and the maintenance are measured by it.
    pub uptime: Box<dyn Fn() -> Duration + Send + Sync>,
    /// Makes what nobody may guess and nobody may have twice: the tokens of what is delivered.
    pub random: Box<dyn Fn() -> String + Send + Sync>,
}

impl Default for Seams {
    fn default() -> Self {
        let start = Instant::now();
        let random = Box::new(sessions::random_token);
        Self { token: sessions::random_token(), uptime: Box::new(move || start.elapsed()), random }
    }
}

/// The only door to a store. Cheap to share; every call is synchronous and may block.
pub struct Engine {
    store: Arc<dyn Store>,
    seams: Seams,
    limits: Limits,
    rate: Rate,
    names: Mutex<BTreeSet<(Identity, Span)>>,
    turns: Turns,
    reads: Reads,
    polls: Polls,
    waiters: Waiters,
    embedder: Option<Arc<Embedder>>,
    inspector: Option<Inspector>,
    room: Room,
}

impl Engine {
    /// An engine over a store, with a fresh owner token for this process.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, limits: Limits) -> Self {
        Self::with_seams(store, limits, Seams::default())
    }

    /// An engine whose token and timer are given.
    #[must_use]
    pub fn with_seams(store: Arc<dyn Store>, limits: Limits, seams: Seams) -> Self {
        let rate = Rate::new(limits.writes_per_second, limits.write_kib_per_second, limits.max_message_kib);
        let (names, turns, reads) = (Mutex::new(BTreeSet::new()), Turns::default(), Reads::default());
        let (polls, waiters) = (Polls::default(), Waiters::default());
        let embedding = limits.embedding.clone().filter(|_| store.has_bus());
        let embedder = embedding.map(|at| Arc::new(Embedder::new(at, Arc::clone(&store))));
        let inspector = limits.inspection.clone().map(Inspector::new);
        Self {
            store,
            seams,
            limits,
            rate,
            names,
            turns,
            reads,
            polls,
            waiters,
            embedder,
            inspector,
            room: Room::default(),
        }
    }

    /// Every list.
    ///
    /// # Errors
    /// [`Error`].
    pub fn lists(&self) -> Result<Vec<ListView>, Error> {
        let rows = read_with(&*self.store, None, |snapshot| snapshot.lists())?;
        Ok(rows.into_iter().map(view::list).collect())
    }

    /// How many tasks of a list are in which condition.
    ///
    /// # Errors
    /// [`Error`]: `not_found` for the list.
    pub fn tally(&self, list: &ListName) -> Result<Tally, Error> {
        let now = self.now()?;
        let tally = read_with(&*self.store, Some(list), |snapshot| {
            let there = snapshot.list(list)?.is_some();
            Ok(if there { Some(snapshot.tally(now)?) } else { None })
        })?;
        tally.ok_or_else(|| missing_list(list).into())
    }

    /// The store's time.
    ///
    /// # Errors
    /// [`Error`].
    pub fn now(&self) -> Result<Timestamp, Error> {
        Ok(self.store.now()?)
    }

    /// The store underneath, for its description and abilities.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }
}

fn missing_list(name: &ListName) -> Refusal {
    Refusal::NotFound(Missing::List { name: name.clone() })
}

fn missing_task(id: &TaskId) -> Refusal {
    Refusal::NotFound(Missing::Task { id: id.clone() })
}
