//! One transaction: the connection, the list in scope, and what a writing one still has to add to the counters.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use rusqlite::{Connection, OptionalExtension, Params, Row as SqlRow};
use taskbus_core::clock::Anchor;
use taskbus_core::document;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::Dependent;
use taskbus_core::task::{Stamp, Task};
use taskbus_core::time::Timestamp;

use super::anchor;
use super::counters::Pending;
use super::error::{Answer, Fault};
use super::graph::Walked;
use super::lists::{self, Stored};
use super::migrate::check_min_reader;
use super::rollback::Accepted;
use super::sum;
use crate::store::chain::Link;
use crate::store::{ListRow, StoreError};

/// The list that no list has: questions about a list that does not exist find nothing.
pub(super) const NO_LIST: i64 = -1;

/// The first read of a transaction: what it nearly always needs, in one go.
const OPENING: &str = "
    SELECT c.seq, c.min_reader, l.id, l.policy, l.max_reclaims, l.created_at, k.seq, k.deferred, c.epoch, c.head,
           k.ready + k.blocked + k.parked + k.deferred + k.in_progress + k.completed, k.in_progress,
           c.clock
    FROM counters c LEFT JOIN lists l ON l.name = ?1 LEFT JOIN counters k ON k.id = l.id WHERE c.id = 0";
/// The same, for the list that a task belongs to.
const OPENING_OF_TASK: &str = "
    SELECT c.seq, c.min_reader, l.id, l.policy, l.max_reclaims, l.created_at, k.seq, k.deferred, c.epoch, c.head,
           k.ready + k.blocked + k.parked + k.deferred + k.in_progress + k.completed, k.in_progress,
           c.clock, l.name
    FROM counters c LEFT JOIN lists l ON l.id = coalesce(
        (SELECT list FROM tasks WHERE id = ?1), (SELECT list FROM tombstones WHERE id = ?1))
    LEFT JOIN counters k ON k.id = l.id WHERE c.id = 0";
const LIST_ID: &str = "SELECT id FROM lists WHERE name = ?1";
const LIST_NAME: &str = "SELECT name FROM lists WHERE id = ?1";
const NAME_ID: &str = "SELECT id FROM names WHERE name = ?1";
const TASK: &str = "
    SELECT t.id, m.revision, m.created_at, m.sender, m.content, m.sum
    FROM tasks t JOIN messages m ON m.seq = t.seq WHERE t.id = ?1 AND t.list = ?2";
const TOMBSTONE: &str = "
    SELECT t.id, m.revision, m.created_at, m.sender, m.content, m.sum
    FROM tombstones t JOIN messages m ON m.seq = t.seq WHERE t.id = ?1 AND t.list = ?2";

/// Which list a transaction is about.
#[derive(Clone, Copy)]
pub(super) enum About<'a> {
    /// None.
    Nothing,
    /// This one.
    List(&'a ListName),
    /// The one that a task belongs to, live or deleted.
    Task(&'a TaskId),
}

impl<'a> About<'a> {
    /// A list, if there is one.
    pub(super) fn list(list: Option<&'a ListName>) -> Self {
        list.map_or(Self::Nothing, Self::List)
    }
}

/// A transaction on a connection.
pub(super) struct Scope<'c> {
    pub(super) connection: &'c Connection,
    /// The store's name, for errors.
    store: &'c str,
    list: Option<Cow<'c, ListName>>,
    list_id: Cell<Option<i64>>,
    /// The list, if it was there when the transaction began, as it was then.
    pub(super) found: Option<ListRow>,
    /// How many tasks of the list were deferred when the transaction began.
    pub(super) deferred: i64,
    /// How many were in progress.
    pub(super) in_progress: i64,
    /// The store's clock when the transaction began.
    pub(super) now: Timestamp,
    /// What that goes by.
    pub(super) anchor: Option<Anchor>,
    /// The newest seq.
    pub(super) seq: Cell<u64>,
    /// How often the store was put back to an earlier state, from 1 on.
    pub(super) epoch: Cell<u64>,
    /// The link of the newest revision; none before the first.
    pub(super) head: Cell<Option<Link>>,
    /// That the transaction went on above numbers that were lost.
    pub(super) accepted: Cell<Option<Accepted>>,
    /// None in a transaction that only reads.
    pub(super) pending: Option<RefCell<Pending>>,
    /// How many rows were changed that need not outlive a power cut.
    fleeting: Cell<u64>,
    /// How many of them nobody waits for.
    quiet: Cell<u64>,
    /// Whether a call was found that was answered before.
    replayed: Cell<bool>,
    /// Names looked up so far.
    names: RefCell<Vec<(Identity, i64)>>,
    /// The one task that was found ready: the decision asks for it next.
    expected: RefCell<Option<Task>>,
    /// Whose session was looked at last, and until when that lives.
    pub(super) alive: RefCell<Option<(Identity, Timestamp)>>,
    /// Who waits for the task that was asked about last, as it is until something is written.
    pub(super) dependents: RefCell<Option<(i64, Vec<Dependent>)>>,
    /// The last search along dependencies that found no way.
    pub(super) walked: RefCell<Option<Walked>>,
}

/// What a transaction finds when it begins.
pub(super) struct Opening {
    seq: u64,
    min_reader: i64,
    list: Option<(i64, Stored)>,
    deferred: i64,
    in_progress: i64,
    epoch: u64,
    head: Option<Vec<u8>>,
    pub(super) anchor: Option<Anchor>,
}

impl Opening {
    /// Reads it; only now does SQLite take the snapshot.
    pub(super) fn read(connection: &Connection, about: About<'_>) -> rusqlite::Result<Self> {
        match about {
            About::Nothing => Self::query(connection, OPENING, [None::<&str>], None),
            About::List(list) => Self::query(connection, OPENING, [list.as_str()], Some(list)),
            About::Task(id) => Self::query(connection, OPENING_OF_TASK, [as_row_id(id)], None),
        }
    }

    fn query(
        connection: &Connection,
        sql: &str,
        params: impl Params,
        list: Option<&ListName>,
    ) -> rusqlite::Result<Self> {
        connection.prepare_cached(sql)?.query_row(params, |row| {
            let stored = |id: i64| -> rusqlite::Result<(i64, Stored)> {
                let name = list.map_or_else(|| row.get(13), |list| Ok(list.to_string()))?;
                let (policy, max_reclaims, created_at) = (row.get(3)?, row.get(4)?, row.get(5)?);
                let (latest_seq, live) = (row.get(6)?, row.get(10)?);
                Ok((id, Stored { name, policy, max_reclaims, created_at, latest_seq, live }))
            };
            Ok(Self {
                seq: row.get(0)?,
                min_reader: row.get(1)?,
                list: row.get::<_, Option<i64>>(2)?.map(stored).transpose()?,
                deferred: row.get::<_, Option<i64>>(7)?.unwrap_or(0),
                in_progress: row.get::<_, Option<i64>>(11)?.unwrap_or(0),
                epoch: row.get(8)?,
                head: row.get(9)?,
                anchor: row.get_ref(12)?.as_blob_or_null()?.and_then(anchor::decoded),
            })
        })
    }
}

impl<'c> Scope<'c> {
    /// Enters the transaction that has begun on the connection; refuses a file that a newer version has changed since
    /// it was opened.
    pub(super) fn enter(
        connection: &'c Connection,
        store: &'c str,
        about: About<'c>,
        now: Timestamp,
        writes: bool,
        opening: Opening,
    ) -> Answer<Self> {
        check_min_reader(opening.min_reader, 0)?;
        let (list_id, found) = match opening.list {
            Some((id, stored)) => (Some(id), Some(lists::checked(stored)?)),
            None => (None, None),
        };
        let head = opening.head.as_deref().map(link_from).transpose()?;
        let list = match about {
            About::Nothing => None,
            About::List(list) => Some(Cow::Borrowed(list)),
            About::Task(_) => found.as_ref().map(|row| Cow::Owned(row.name.clone())),
        };
        Ok(Self {
            connection,
            store,
            list,
            list_id: Cell::new(list_id),
            found,
            deferred: opening.deferred,
            in_progress: opening.in_progress,
            now,
            anchor: opening.anchor,
            seq: Cell::new(opening.seq),
            epoch: Cell::new(opening.epoch),
            accepted: Cell::new(None),
            head: Cell::new(head),
            pending: writes.then(RefCell::default),
            fleeting: Cell::new(0),
            quiet: Cell::new(0),
            replayed: Cell::new(false),
            names: RefCell::default(),
            expected: RefCell::default(),
            alive: RefCell::default(),
            dependents: RefCell::default(),
            walked: RefCell::default(),
        })
    }

    /// Turns an inner answer into one of the seam.
    pub(super) fn told<T>(&self, answer: Answer<T>) -> Result<T, StoreError> {
        answer.map_err(|fault| fault.told(self.store))
    }

    /// The id of the list in scope, [`NO_LIST`] if there is no such list.
    pub(super) fn list(&self) -> Answer<i64> {
        if let Some(id) = self.list_id.get() {
            return Ok(id);
        }
        let Some(name) = &self.list else {
            return Err(Fault::Misuse("BUG: asked about the tasks of no list".to_owned()));
        };
        let found = self.one(LIST_ID, [name.as_str()], |row| row.get(0))?;
        self.list_id.set(found);
        Ok(found.unwrap_or(NO_LIST))
    }

    /// Whether the list in scope was there when it was last looked for.
    pub(super) fn is_list_known(&self) -> bool {
        self.list_id.get().is_some()
    }

    pub(super) fn list_in_scope(&self) -> Option<&ListName> {
        self.list.as_deref()
    }

    /// The name of a list.
    pub(super) fn list_name(&self, id: i64) -> Answer<ListName> {
        let name: String = self.connection.prepare_cached(LIST_NAME)?.query_row([id], |row| row.get(0))?;
        valid(ListName::new(name), "list")
    }

    /// A list is gone; if it is the one in scope, what is known of that is forgotten.
    pub(super) fn forget_list(&self, gone: i64) {
        if self.list_id.get() == Some(gone) {
            self.forget_scope();
        }
    }

    /// The list in scope is gone.
    pub(super) fn forget_scope(&self) {
        self.list_id.set(None);
        self.walked.take();
        self.forget_tasks();
        self.forget_pending();
    }

    /// All names are gone.
    pub(super) fn forget_names(&self) {
        self.names.borrow_mut().clear();
        self.alive.take();
    }

    /// A number that was found beside something else.
    pub(super) fn know_name(&self, name: &Identity, id: i64) {
        if !self.names.borrow().iter().any(|(known, _)| known == name) {
            self.names.borrow_mut().push((name.clone(), id));
        }
    }

    /// The number of an identity, if it was ever seen.
    pub(super) fn name_id(&self, name: &Identity) -> Answer<Option<i64>> {
        if let Some((_, id)) = self.names.borrow().iter().find(|(known, _)| known == name) {
            return Ok(Some(*id));
        }
        let found = self.one(NAME_ID, [name.as_str()], |row| row.get(0))?;
        self.names.borrow_mut().extend(found.map(|id| (name.clone(), id)));
        Ok(found)
    }

    /// The live task of the list in scope.
    pub(super) fn live_task(&self, id: &TaskId) -> Answer<Option<Task>> {
        match self.expected.borrow_mut().take_if(|task| task.id == *id) {
            Some(task) => Ok(Some(task)),
            None => self.document(TASK, id),
        }
    }

    /// Keeps a live task that was read for the next question.
    pub(super) fn keep_ahead(&self, task: &Task) {
        self.expected.replace(Some(task.clone()));
    }

    /// Something is written: what was kept of tasks may be old.
    pub(super) fn forget_tasks(&self) {
        self.expected.take();
        self.dependents.take();
    }

    /// The deleted task of the list in scope.
    pub(super) fn dead_task(&self, id: &TaskId) -> Answer<Option<Task>> {
        self.document(TOMBSTONE, id)
    }

    fn document(&self, sql: &'static str, id: &TaskId) -> Answer<Option<Task>> {
        let Some(number) = as_row_id(id) else { return Ok(None) };
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query((number, self.list()?))?;
        rows.next()?.map(task_from).transpose()
    }

    /// The live tasks with these numbers, in this order.
    pub(super) fn live_tasks(&self, ids: &[i64]) -> Answer<Vec<Task>> {
        let tasks = ids.iter().map(|&id| {
            let task = self.live_task(&task_id(id)?)?;
            task.ok_or_else(|| Fault::Damaged(format!("task {id} is listed but has no document")))
        });
        tasks.collect()
    }

    /// The first row of a query.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&SqlRow<'_>) -> rusqlite::Result<T>,
    ) -> Answer<Option<T>> {
        Ok(self.connection.prepare_cached(sql)?.query_row(params, read).optional()?)
    }

    /// Every row of a query.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&SqlRow<'_>) -> rusqlite::Result<T>,
    ) -> Answer<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Runs a statement; says how many rows it changed.
    pub(super) fn run(&self, sql: &str, params: impl Params) -> Answer<usize> {
        Ok(self.connection.prepare_cached(sql)?.execute(params)?)
    }

    /// Runs a statement about who is alive: a power cut ends every process of which its rows tell.
    pub(super) fn run_fleeting(&self, sql: &str, params: impl Params) -> Answer<()> {
        let count = self.run(sql, params)?;
        self.fleeting.set(self.fleeting.get() + count as u64);
        Ok(())
    }

    /// Runs one that says that somebody lives on, which wakes nobody.
    pub(super) fn run_quiet(&self, sql: &str, params: impl Params) -> Answer<()> {
        let before = self.fleeting.get();
        self.run_fleeting(sql, params)?;
        self.quiet.set(self.quiet.get() + self.fleeting.get() - before);
        Ok(())
    }

    /// How many rows were changed that need not outlive a power cut.
    pub(super) fn fleeting(&self) -> u64 {
        self.fleeting.get()
    }

    /// Says that the answer was given before.
    pub(super) fn note_replayed(&self) {
        self.replayed.set(true);
    }

    /// Whether it was.
    pub(super) fn replayed(&self) -> bool {
        self.replayed.get()
    }

    /// How many rows were changed that nobody waits for.
    pub(super) fn quiet(&self) -> u64 {
        self.quiet.get()
    }
}

/// Reads a task from id, revision, time, sender and document.
pub(super) fn task_from(row: &SqlRow<'_>) -> Answer<Task> {
    let (id, revision, at): (i64, u64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let sender = text_or_none(row, 3)?;
    let text = row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)?;
    let (stored, _) = sum::halves(row.get(5)?);
    sum::check(stored, sum::of_document(id, revision, at, sender, text), || {
        format!("revision {revision} of task {id}")
    })?;
    let by = sender.map(|name| valid(Identity::new(name), "sender")).transpose()?;
    let updated = Stamp { at: Timestamp::from_millis(at), by };
    document::decode(task_id(id)?, revision, updated, text).map_err(|error| Fault::Damaged(error.to_string()))
}

/// A text column that may hold none, not copied.
pub(super) fn text_or_none<'r>(row: &'r SqlRow<'_>, at: usize) -> Answer<Option<&'r str>> {
    Ok(row.get_ref(at)?.as_str_or_null().map_err(rusqlite::Error::from)?)
}

/// A stored link.
pub(super) fn link_from(bytes: &[u8]) -> Answer<Link> {
    Link::from_stored(bytes).ok_or_else(|| Fault::Damaged(format!("a link has {} bytes", bytes.len())))
}

/// The row that a task id names; none for text, which this store never mints.
pub(super) fn as_row_id(id: &TaskId) -> Option<i64> {
    id.as_number().and_then(|number| i64::try_from(number).ok())
}

/// The task id of a row.
pub(super) fn task_id(id: i64) -> Answer<TaskId> {
    let number = u64::try_from(id).ok().and_then(|number| TaskId::number(number).ok());
    number.ok_or_else(|| Fault::Damaged(format!("{id} is no task id")))
}

/// Task ids of rows.
pub(super) fn task_ids(ids: &[i64]) -> Answer<Vec<TaskId>> {
    ids.iter().map(|&id| task_id(id)).collect()
}

/// What was checked before it was stored, and must still pass.
pub(super) fn valid<T, E: std::fmt::Display>(parsed: Result<T, E>, what: &str) -> Answer<T> {
    parsed.map_err(|error| Fault::Damaged(format!("a stored {what} {error}")))
}
