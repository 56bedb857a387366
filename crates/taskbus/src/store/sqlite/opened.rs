//! An open file: its connections, and how a transaction runs on one of them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use taskbus_core::name::ListName;

use super::checkpoint::{Checkpointer, Target};
use super::durable::Log;
use super::error::{Answer, Fault};
use super::file::{FileId, Place};
use super::front::Front;
use super::high::High;
use super::lock::{Gate, Patience, Turn};
use super::open::{self, Access};
use super::scope::{About, Opening, Scope};
use super::wait::Bell;
use super::{Durability, Journal, SqliteOptions};
use crate::store::steady::Steady;
use crate::store::{Abort, StoreError};

/// Connections kept for reading; more are opened and closed when more reads run at once.
const READERS_KEPT: usize = 4;
/// A log longer than this is worth a checkpoint when the last connection closes: the next opener would have to read
/// through all of it.
const LOG_BYTES_LEFT: u64 = 1024 * 1024;

const BEGIN: &str = "BEGIN";
const BEGIN_IMMEDIATE: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
const DATA_VERSION: &str = "PRAGMA data_version";

/// The body of a read, inside.
pub(super) type Body<'a> = dyn FnMut(&Scope<'_>) -> Result<(), StoreError> + 'a;

/// One open file.
pub(super) struct Opened {
    label: String,
    place: Place,
    options: SqliteOptions,
    access: Access,
    /// Which file was opened.
    id: FileId,
    log: Option<Log>,
    /// Up to which seq this process has seen to it that everything is on disk.
    on_disk: AtomicU64,
    /// Opened by the first transaction that writes.
    high: OnceLock<High>,
    /// None without a log.
    checkpointer: Option<Checkpointer>,
    gate: Gate,
    /// Two calls have met at the gate: from then on reads have connections of their own. Until then they use the one
    /// that writes, as another one would cost a short command, or a server with one agent, more than it gives.
    have_met: AtomicBool,
    readers: Mutex<Vec<Connection>>,
    /// Never writes, so that its data version counts every commit, those of this process too.
    watcher: Mutex<Option<Connection>>,
    /// Added to the data version, which starts anew with each connection.
    version_base: u64,
    bell: Bell,
    /// The file failed under us: it must be opened anew.
    spent: AtomicBool,
}

impl Opened {
    pub(super) fn new(path: &Path, label: &str, options: SqliteOptions, version_base: u64) -> Answer<Self> {
        let place = Place::find(path)?;
        let before = place.id();
        let (access, mut connection) = open::establish(&place, &options)?;
        // Somebody may have put another file there in between.
        let id = place.id().filter(|id| before.is_none_or(|before| before == *id)).ok_or(Fault::Moved)?;
        let needs_log = connection.is_some() && options.journal == Journal::Log;
        let log = needs_log.then(|| Log::open(&place)).transpose()?;
        let checkpointer = needs_log.then(|| Checkpointer::new(Target { place: place.clone(), id, options }));
        if let (Some(checkpointer), Some(connection)) = (&checkpointer, &mut connection) {
            checkpointer.listen(connection)?;
        }
        let gate = Gate::holding(connection);
        let (readers, watcher, bell) = (Mutex::default(), Mutex::default(), Bell::default());
        let (have_met, spent) = (AtomicBool::new(false), AtomicBool::new(false));
        let (label, high, on_disk) = (label.to_owned(), OnceLock::new(), AtomicU64::new(0));
        Ok(Self {
            label,
            place,
            options,
            access,
            id,
            log,
            on_disk,
            high,
            checkpointer,
            gate,
            have_met,
            readers,
            watcher,
            version_base,
            bell,
            spent,
        })
    }

    /// Shows the connection that writes while nobody has the turn.
    #[cfg(test)]
    pub(super) fn with_idle(&self, f: impl FnOnce(&Connection)) {
        self.gate.with_idle(f);
    }

    /// Whether it must be opened anew.
    pub(super) fn is_spent(&self) -> bool {
        self.spent.load(Ordering::SeqCst) || self.checkpointer.as_ref().is_some_and(Checkpointer::has_failed)
    }

    /// Whether it could only be read when it was opened.
    pub(super) fn is_read_only(&self) -> bool {
        self.access != Access::Full
    }

    pub(super) fn read(&self, list: Option<&ListName>, steady: &Steady, f: &mut Body<'_>) -> Result<(), StoreError> {
        if self.place.id() != Some(self.id) {
            return self.told(Err(Fault::Moved));
        }
        let patience = Patience::of(self.options.deadline);
        let Reader { connection, is_lent } = self.told(self.reader(&patience))?;
        let about = About::list(list);
        let opening = self.told(patience.persist(|| open_with(BEGIN, &connection, about)));
        let begun = opening.and_then(|opening| {
            let now = steady.read(opening.anchor);
            self.told(Scope::enter(&connection, &self.label, about, now, false, opening))
        });
        let result = begun.and_then(|scope| f(&scope));
        if connection.prepare_cached(ROLLBACK).and_then(|mut end| end.execute([])).is_ok() {
            self.put_back(Reader { connection, is_lent });
        }
        result
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Runs a write transaction; what it did, and what it saw, is durable when this returns, except for who is alive. In a
    /// store that lost acknowledged changes it is refused, unless that is accepted.
    pub(super) fn transact(
        &self,
        about: About<'_>,
        steady: &Steady,
        accept: bool,
        f: &mut dyn FnMut(&mut Scope<'_>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        let patience = Patience::of(self.options.deadline);
        let done = {
            let turn = self.told(self.turn(&patience))?;
            let before = turn.total_changes();
            let begun = self.front().persist(&patience, || open_with(BEGIN_IMMEDIATE, &turn, about));
            let (opening, _place) = self.told(begun)?;
            let now = steady.time_of(opening.anchor);
            let scope = self.told(Scope::enter(&turn, &self.label, about, now, true, opening));
            let mut scope = scope.inspect_err(|_| roll_back(&turn))?;
            let high = self.told(self.high(&scope)).inspect_err(|_| roll_back(&turn))?;
            let seq = scope.seq.get();
            let standing = high.judge(seq, scope.epoch.get());
            // Whose file was replaced is behind the new one's numbers, too.
            let guarded = scope.guard(standing, accept).or_else(|fault| self.check_in_place().and(Err(fault)));
            let clocked = guarded.and_then(|()| scope.set_clock(steady));
            // What is written of clocks is no change of the caller's.
            let before = before + self.told(clocked).inspect_err(|_| roll_back(&turn))?;
            let result = f(&mut scope).and_then(|()| Ok(self.told(self.commit(&turn, &scope, &patience))?));
            result.inspect_err(|_| roll_back(&turn))?;
            let wrote = turn.total_changes() != before;
            if let Some(checkpointer) = self.checkpointer.as_ref().filter(|_| wrote) {
                checkpointer.committed(&turn);
            }
            let upto = scope.seq.get();
            let changes = turn.total_changes() - before;
            // Whoever wrote what this call has seen may be dead, and nobody else may flush it. Who only says that somebody
            // lives has seen nothing.
            let saw = !wrote || scope.replayed() || !matches!(about, About::Nothing);
            let rests = saw && upto > self.on_disk.load(Ordering::SeqCst);
            let (lasts, rings) = (changes > scope.fleeting() || rests, changes > scope.quiet());
            Done { high, lasts, rings, newer: upto > seq, upto, epoch: scope.epoch.get() }
        };
        if done.lasts {
            self.told(self.make_durable(done.upto))?;
        }
        if done.newer {
            done.high.note(done.upto, done.epoch, self.options.durability);
        } else if done.rings {
            done.high.ring();
        }
        Ok(())
    }

    fn high(&self, scope: &Scope<'_>) -> Answer<&High> {
        match self.high.get() {
            Some(high) => Ok(high),
            None => {
                let id = scope.store_id()?;
                Ok(self.high.get_or_init(|| High::open(&self.place, &id)))
            }
        }
    }

    fn front(&self) -> Front<'_> {
        Front { place: self.log.as_ref().map(Log::file), flag: self.high.get().and_then(High::file) }
    }

    fn commit(&self, turn: &Turn<'_>, scope: &Scope<'_>, patience: &Patience) -> Answer<()> {
        scope.flush()?;
        self.check_in_place()?;
        patience.persist(|| turn.prepare_cached(COMMIT)?.execute([]).map(drop))
    }

    /// Neither the file may have been moved away or replaced, nor the log that is about to be flushed.
    fn check_in_place(&self) -> Answer<()> {
        let flushed = self.log.as_ref().filter(|_| self.options.durability == Durability::Full);
        let in_place = self.place.id() == Some(self.id) && flushed.is_none_or(Log::is_in_place);
        if in_place { Ok(()) } else { Err(Fault::Moved) }
    }

    /// Brings everything up to this seq to disk.
    fn make_durable(&self, seq: u64) -> Answer<()> {
        if let (Some(log), Durability::Full) = (&self.log, self.options.durability) {
            log.flush().inspect_err(|_| self.spent.store(true, Ordering::SeqCst))?;
        }
        self.on_disk.fetch_max(seq, Ordering::SeqCst);
        Ok(())
    }

    fn turn(&self, patience: &Patience) -> Answer<Turn<'_>> {
        if let Access::ReadOnly(reason) = &self.access {
            return Err(Fault::ReadOnly(reason.clone()));
        }
        self.gate.enter(patience, || self.writer(patience))
    }

    fn writer(&self, patience: &Patience) -> Answer<Connection> {
        let mut connection = open::writer(&self.place, &self.options, patience)?;
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.listen(&mut connection)?;
        }
        Ok(connection)
    }

    fn reader(&self, patience: &Patience) -> Answer<Reader> {
        if self.access != Access::Full {
            let connection = open::reader_of_protected(&self.place)?;
            return Ok(Reader { connection, is_lent: false });
        }
        if !self.have_met.load(Ordering::SeqCst) {
            if let Some(connection) = self.gate.lend() {
                return Ok(Reader { connection, is_lent: true });
            }
            self.have_met.store(true, Ordering::SeqCst);
        }
        let kept = self.pool().pop();
        let connection = kept.map_or_else(|| open::reader(&self.place, &self.options, patience), Ok)?;
        Ok(Reader { connection, is_lent: false })
    }

    fn put_back(&self, reader: Reader) {
        let left = if reader.is_lent { self.gate.take_back(reader.connection) } else { Some(reader.connection) };
        if let Some(connection) = left {
            self.have_met.fetch_or(reader.is_lent, Ordering::SeqCst);
            self.keep(connection);
        }
    }

    /// Keeps a connection for the next read; those of a file that cannot be written serve one read only.
    fn keep(&self, connection: Connection) {
        let mut pool = self.pool();
        if self.access == Access::Full && pool.len() < READERS_KEPT {
            pool.push(connection);
        }
    }

    fn pool(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn version(&self) -> Answer<u64> {
        if self.access != Access::Full {
            return Ok(self.place.stamp());
        }
        let patience = Patience::of(self.options.deadline);
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match &mut *watcher {
            Some(connection) => connection,
            none => none.insert(open::reader(&self.place, &self.options, &patience)?),
        };
        let count: u64 =
            patience.persist(|| connection.prepare_cached(DATA_VERSION)?.query_row([], |row| row.get(0)))?;
        Ok(self.version_base + count)
    }

    pub(super) fn wait(&self, timeout: Duration, changed: impl FnMut() -> Answer<bool>) -> Answer<()> {
        self.bell.wait(&self.place, timeout, changed)
    }

    /// Has everybody who waits look.
    pub(super) fn nudge(&self) {
        self.bell.nudge();
    }

    fn told<T>(&self, answer: Answer<T>) -> Result<T, StoreError> {
        answer.map_err(|fault| fault.told(&self.label))
    }
}

/// What is left to do after a commit.
struct Done<'o> {
    high: &'o High,
    /// Something has to be on disk before the answer.
    lasts: bool,
    /// Somebody may wait for it.
    rings: bool,
    /// It took a number.
    newer: bool,
    upto: u64,
    epoch: u64,
}

/// A connection to read on, and whether it is the one that writes.
struct Reader {
    connection: Connection,
    is_lent: bool,
}

/// Begins a transaction with its first read, which is what takes the snapshot.
fn open_with(how: &str, connection: &Connection, about: About<'_>) -> rusqlite::Result<Opening> {
    connection.prepare_cached(how)?.execute([])?;
    Opening::read(connection, about).inspect_err(|_| roll_back(connection))
}

/// What is left undone is undone when the connection is closed, at the latest.
fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        let _ = connection.execute_batch(ROLLBACK);
    }
}

/// The last connection to close would checkpoint the whole log and remove it, which a short command should not
/// have to wait for; but a long log makes the next one wait.
impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.end();
            self.gate.with_idle(|connection| checkpointer.leave(connection));
        }
        let long = std::fs::metadata(self.place.log()).is_ok_and(|log| log.len() > LOG_BYTES_LEFT);
        if long && self.access == Access::Full {
            // The connection that writes has to be the last one.
            self.pool().clear();
            self.watcher.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.gate.with_idle(|connection| {
                let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use taskbus_core::name::{Identity, ListName};
    use taskbus_core::time::Timestamp;

    use super::*;
    use crate::store::sqlite::SqliteStore;
    use crate::store::{SessionRow, Store, read_with, write_with};

    fn session(name: String) -> SessionRow {
        let now = Timestamp::from_millis(1);
        let (token, client) = ("t".to_owned(), String::new());
        let context = "x".repeat(2000);
        let name = Identity::new(name).unwrap();
        let alive_until = Timestamp::from_millis(9);
        SessionRow { name, token, alive_until, registered_at: now, context, client, pid: 1, harness: None }
    }

    fn register(store: &SqliteStore, n: usize) -> Result<(), Abort> {
        write_with(store, None, |tx| Ok(tx.put_session(&session(format!("agent {n}")))?))
    }

    #[test]
    fn a_full_disk_is_told_and_passes() {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(home.path().join("taskbus.db"), SqliteOptions::default()).unwrap();
        let opened = store.opened().unwrap();
        let limit = |pages: u32| {
            opened.gate.with_idle(|connection| connection.pragma_update(None, "max_page_count", pages).unwrap());
        };
        let pages: u32 = 60;
        limit(pages);
        let fails = (0..).find_map(|n| register(&store, n).err().map(|error| (n, error)));
        let (n, error) = fails.unwrap();
        assert!(matches!(error, Abort::Failed(StoreError::Full { .. })), "{error:?}");
        assert!(error.to_string().contains("nothing was written"), "{error}");
        let sessions = |store: &SqliteStore| {
            read_with(store, None, |snapshot| snapshot.sessions(Timestamp::from_millis(2))).unwrap().len()
        };
        assert_eq!(sessions(&store), n);
        limit(10 * pages);
        register(&store, n).unwrap();
        assert_eq!((sessions(&store), store.check().unwrap()), (n + 1, Vec::new()));
    }

    /// Writes so much that the log is worth a checkpoint.
    fn fill_log(store: &SqliteStore) {
        write_with(store, None, |tx| {
            for n in 0..5_000 {
                tx.put_session(&session(format!("agent {n}")))?;
            }
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_command_starts_no_thread_and_moves_a_long_log_when_it_ends() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("taskbus.db");
        let bytes = || std::fs::metadata(&path).unwrap().len();
        let (idle, command) = [(); 2].map(|()| SqliteStore::open(&path, SqliteOptions::default()).unwrap()).into();
        idle.version().unwrap();
        let before = bytes();
        fill_log(&command);
        assert!(!command.opened().unwrap().checkpointer.as_ref().unwrap().has_thread());
        assert_eq!(bytes(), before);
        drop(command);
        assert!(bytes() > before + 8_000_000, "the other one is open, so closing alone moves nothing");
    }

    #[test]
    fn the_log_of_a_process_that_writes_on_is_moved_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("taskbus.db");
        let bytes = || std::fs::metadata(&path).unwrap().len();
        let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        (0..10).for_each(|n| register(&store, n).unwrap());
        let before = bytes();
        fill_log(&store);
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while bytes() < before + 8_000_000 && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(bytes() > before + 8_000_000);
        assert!(store.opened().unwrap().checkpointer.as_ref().unwrap().has_thread());
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn who_is_alive_is_not_flushed_and_everything_else_is() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("taskbus.db");
        register(&SqliteStore::open(&path, SqliteOptions::default()).unwrap(), 0).unwrap();
        let store = SqliteStore::lazy(&path, SqliteOptions::default());
        let mut opened = Opened::new(&path, "", SqliteOptions::default(), 0).unwrap();
        opened.log = Some(Log::that_cannot_be_flushed(&opened.place));
        store.put_opened(opened);
        register(&store, 0).unwrap();
        let until = Timestamp::from_millis(99);
        write_with(&store, None, |tx| Ok(tx.extend_sessions("t", until)?)).unwrap();
        // A name that was never seen outlives its session.
        assert!(register(&store, 1).unwrap_err().to_string().contains("reached the disk"));
    }

    #[test]
    fn what_a_write_has_seen_is_on_disk_too() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("taskbus.db");
        let other = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        register(&other, 0).unwrap();
        let look = |store: &SqliteStore| write_with(store, None, |tx| Ok(!tx.lists()?.is_empty()));
        let unflushable = || {
            let store = SqliteStore::lazy(&path, SqliteOptions::default());
            let mut opened = Opened::new(&path, "", SqliteOptions::default(), 0).unwrap();
            opened.log = Some(Log::that_cannot_be_flushed(&opened.place));
            store.put_opened(opened);
            store
        };
        assert!(!look(&unflushable()).unwrap(), "there is nothing to flush");
        // Somebody changes something and dies before it is flushed.
        let dead = Connection::open(&path).unwrap();
        dead.execute("UPDATE counters SET seq = 5 WHERE id = 0", []).unwrap();
        assert!(look(&unflushable()).unwrap_err().to_string().contains("reached the disk"));
        // Also if it says by the way that somebody lives; that alone rests on nothing.
        let lives = |list: Option<&ListName>, until| {
            write_with(&unflushable(), list, |tx| Ok(tx.extend_sessions("t", Timestamp::from_millis(until))?))
        };
        let list = ListName::new("tasks/a").unwrap();
        assert!(lives(Some(&list), 98).unwrap_err().to_string().contains("reached the disk"));
        assert_eq!(lives(None, 99).unwrap(), 1);
        look(&other).unwrap();
        let opened = other.opened().unwrap();
        assert_eq!(opened.on_disk.load(Ordering::SeqCst), 5);
    }

    #[test]
    fn reads_share_the_one_connection_until_two_calls_meet() {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(home.path().join("taskbus.db"), SqliteOptions::default()).unwrap();
        let opened = store.opened().unwrap();
        let kept = || opened.pool().len();
        let look = || read_with(&store, None, |snapshot| snapshot.lists()).unwrap().len();
        register(&store, 0).unwrap();
        assert_eq!((look(), look(), kept()), (0, 0, 0));
        assert_eq!(write_with(&store, None, |_| Ok(look())).unwrap(), 0);
        assert_eq!(kept(), 1);
    }

    #[test]
    fn who_writes_does_not_wait_for_a_read_that_shares_its_connection() {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(home.path().join("taskbus.db"), SqliteOptions::default()).unwrap();
        let kept = || store.opened().unwrap().pool().len();
        read_with(&store, None, |_| Ok(register(&store, 1))).unwrap().unwrap();
        assert_eq!(kept(), 1);
        read_with(&store, None, |_| Ok(register(&store, 2))).unwrap().unwrap();
        assert_eq!(kept(), 1);
    }

    #[test]
    fn a_short_log_is_left_for_the_next_one_and_a_long_one_is_not() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("taskbus.db");
        let open = || SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        let log = || std::fs::metadata(home.path().join("taskbus.db-wal")).map_or(0, |log| log.len());
        let store = open();
        register(&store, 0).unwrap();
        store.version().unwrap();
        drop(store);
        assert!(log() > 0);
        let store = open();
        write_with(&store, None, |tx| {
            for n in 0..LOG_BYTES_LEFT / 1000 {
                tx.put_session(&session(format!("agent {n}")))?;
            }
            Ok(())
        })
        .unwrap();
        store.version().unwrap();
        assert!(log() > LOG_BYTES_LEFT);
        drop(store);
        assert_eq!(log(), 0);
    }
}
