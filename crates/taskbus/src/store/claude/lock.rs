//! The locks of a task directory.
//!
//! Claude Code locks by making directories: `.lock.lock` for the list, `N.json.lock` for one task. Whoever made one
//! holds it, refreshes its time of change while it lasts, and removes it; one that was not refreshed for ten seconds
//! is taken for abandoned. We do the same, the list first, then tasks in ascending order, always under a deadline.
//!
//! That protocol alone makes everybody wait ten seconds for a process that was killed, and lets one that was merely
//! stopped lose its lock. So between processes of taskbus a lock of the kernel on `.lock` comes first, which Claude
//! Code does not use and which dies with its process. Under it, a lock directory that bears our mark (see
//! [`super::dir`]) can only be a dead one's, and is taken over at once.
//!
//! Claude Code asks for a lock some thirty times and then fails. Processes of taskbus that hand the list on to each
//! other without a pause would starve it, so a time is left between two holds, a third of the last hold: until the
//! time at which `.lock` says that it was changed.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::dir::{Dir, Stamp};
use super::error::failed;
use super::names::{self, SENTINEL};
use crate::store::StoreError;
use crate::store::plain::FileId;

/// A lock that was not refreshed for longer is abandoned, in milliseconds.
const STALE_MS: i64 = 10_000;
/// A lock of ours is refreshed when it was not for this long, in milliseconds; the protocol asks for 5,000.
const REFRESH_MS: u64 = 4_000;
/// Nothing is written under a lock that could not be refreshed for this long, in milliseconds.
const UNSURE_MS: u64 = 6_000;
/// The longest time left for others after a hold, in milliseconds.
const GAP_MS_MAX: u64 = 50;
/// Shortest and longest pause between two tries, in milliseconds.
const PAUSE_MS: (u64, u64) = (1, 20);

/// Lets a test refuse what some file systems refuse, and know when a writer waits.
pub trait Touch: Send + Sync {
    /// Whether the time of a lock may be set.
    ///
    /// # Errors
    /// What the file system would answer.
    fn allow(&self) -> io::Result<()>;

    /// Told whenever a lock of another program was found held and will be tried again.
    fn waits(&self) {}
}

/// Refuses nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyTouch;

impl Touch for AnyTouch {
    fn allow(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Who waits, for what, until when.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    /// The store, for errors.
    pub(super) store: &'a str,
    /// When the wait began.
    pub(super) since: Instant,
    /// How long it may take.
    pub(super) limit: Duration,
}

impl Patience<'_> {
    fn is_over(&self) -> bool {
        self.since.elapsed() >= self.limit
    }

    /// The error of a wait that is over.
    pub(super) fn busy(&self) -> StoreError {
        let waited_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        StoreError::Busy { store: self.store.to_owned(), waited_ms }
    }

    /// Pauses before another try, longer each time, a little at random.
    pub(super) fn pause(&self, tries: u32) -> Result<(), StoreError> {
        if self.is_over() {
            return Err(self.busy());
        }
        let most = (PAUSE_MS.0 << tries.min(5)).min(PAUSE_MS.1);
        let mut byte = [0_u8];
        getrandom::fill(&mut byte).expect("BUG: the operating system always has random bytes");
        std::thread::sleep(Duration::from_micros(most * 500 + most * 500 * u64::from(byte[0]) / 256));
        Ok(())
    }
}

/// The locks that one transaction holds; dropped, they are released.
pub(super) struct Locks<'a> {
    dir: &'a Dir,
    touch: &'a dyn Touch,
    patience: Patience<'a>,
    held: Vec<Held>,
    /// The kernel's lock, and which file bears it. None where the sentinel cannot be locked.
    sentinel: Option<(FileId, File)>,
    /// Whether an unfinished lock of ours is surely a dead one's.
    is_sure: bool,
    /// When the list was locked.
    since: Instant,
}

struct Held {
    name: String,
    id: FileId,
    fresh: Instant,
}

impl<'a> Locks<'a> {
    /// Locks the list.
    pub(super) fn list(dir: &'a Dir, touch: &'a dyn Touch, patience: Patience<'a>) -> Result<Self, StoreError> {
        let sentinel = lock_sentinel(dir, patience)?;
        let is_sure = sentinel.is_some() && dir.is_local();
        let mut locks = Self { dir, touch, patience, held: Vec::new(), sentinel, is_sure, since: Instant::now() };
        locks.leave_a_gap()?;
        locks.take(names::lock_of(SENTINEL))?;
        locks.since = Instant::now();
        Ok(locks)
    }

    /// Locks the file of a task. To be called in ascending order of ids.
    pub(super) fn file(&mut self, name: &str) -> Result<(), StoreError> {
        self.take(names::lock_of(name))
    }

    /// Releases the locks of files and keeps the list's.
    pub(super) fn release_files(&mut self) {
        while self.held.len() > 1 {
            self.release_last();
        }
    }

    /// Whether unfinished things of ours are surely left over from a dead process.
    pub(super) fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// Refreshes what is due. Where times cannot be set, it does nothing, and [`Locks::hold`] says for how long that
    /// is good enough.
    pub(super) fn refresh(&mut self) {
        for held in &mut self.held {
            if held.fresh.elapsed() >= Duration::from_millis(REFRESH_MS)
                && self.touch.allow().and_then(|()| self.dir.touch(&held.name)).is_ok()
            {
                held.fresh = Instant::now();
            }
        }
    }

    /// Whether everything is still ours, surely: nobody took a lock over, and none is so old that somebody might.
    pub(super) fn hold(&mut self) -> Result<bool, StoreError> {
        self.refresh();
        for held in &self.held {
            let stamp = self.dir.stamp(&held.name).map_err(|error| failed(self.patience.store, error))?;
            let is_ours = stamp.is_some_and(|stamp| stamp.id == held.id);
            if !is_ours || held.fresh.elapsed() >= Duration::from_millis(UNSURE_MS) {
                return Ok(false);
            }
        }
        match &self.sentinel {
            Some((id, _)) => is_named(self.dir, *id).map_err(|error| failed(self.patience.store, error)),
            None => Ok(true),
        }
    }

    /// Waits out the time that the last holder left for others.
    fn leave_a_gap(&self) -> Result<(), StoreError> {
        let stamp = self.dir.stamp(SENTINEL).map_err(|error| failed(self.patience.store, error))?;
        let ahead = stamp.map_or(0, |stamp| stamp.modified_ms() - now_ms());
        if let Ok(ahead) = u64::try_from(ahead).map(|ahead| ahead.min(GAP_MS_MAX)) {
            std::thread::sleep(Duration::from_millis(ahead));
        }
        Ok(())
    }

    fn take(&mut self, name: String) -> Result<(), StoreError> {
        let io = |error| failed(self.patience.store, error);
        for tries in 0.. {
            match self.dir.make_lock(&name) {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io(error)),
            }
            if self.take_over(&name).map_err(io)? {
                continue;
            }
            self.touch.waits();
            self.patience.pause(tries)?;
        }
        let fresh = Instant::now();
        // Gone at once: somebody took it for abandoned, and the next check finds that out.
        let id = self.dir.stamp(&name).map_err(io)?.map_or((0, 0), |stamp| stamp.id);
        self.held.push(Held { name, id, fresh });
        Ok(())
    }

    /// Removes an abandoned lock; says whether it is worth trying again at once.
    fn take_over(&self, name: &str) -> io::Result<bool> {
        let Some(stamp) = self.dir.stamp(name)? else { return Ok(true) };
        if !stamp.is_dir() || !self.is_abandoned(&stamp) {
            return Ok(false);
        }
        // Another one who found it abandoned may have been faster; what is there now is then not what we judged.
        if self.dir.stamp(name)? != Some(stamp) {
            return Ok(true);
        }
        match self.dir.remove_lock(name) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_abandoned(&self, stamp: &Stamp) -> bool {
        (self.is_sure && stamp.is_unfinished()) || now_ms().saturating_sub(stamp.modified_ms()) > STALE_MS
    }

    fn release_last(&mut self) {
        let Some(held) = self.held.pop() else { return };
        // One that somebody took over is theirs. A lock that cannot be removed is taken over later: what was written
        // under it is written, and that is what the caller is told.
        if self.dir.stamp(&held.name).ok().flatten().is_some_and(|stamp| stamp.id == held.id) {
            let _ = self.dir.remove_lock(&held.name);
        }
    }
}

impl Drop for Locks<'_> {
    fn drop(&mut self) {
        let had_list = !self.held.is_empty();
        while !self.held.is_empty() {
            self.release_last();
        }
        if let Some((_, file)) = self.sentinel.as_ref().filter(|_| had_list) {
            let gap = (self.since.elapsed() / 3).min(Duration::from_millis(GAP_MS_MAX));
            // Where times cannot be set, there is no gap.
            let _ = self.touch.allow().and_then(|()| Dir::touch_later(file, gap));
        }
    }
}

/// Waits for the kernel's lock on the sentinel.
fn lock_sentinel(dir: &Dir, patience: Patience<'_>) -> Result<Option<(FileId, File)>, StoreError> {
    let io = |error| failed(patience.store, error);
    for tries in 0.. {
        let (id, file) = match dir.open_sentinel(SENTINEL) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        match file.try_lock() {
            // Somebody removed the file between opening and locking: the lock of a name that is gone is none.
            Ok(()) if is_named(dir, id).map_err(io)? => return Ok(Some((id, file))),
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => patience.pause(tries)?,
            Err(std::fs::TryLockError::Error(_)) => return Ok(None),
        }
    }
    Err(patience.busy())
}

fn is_named(dir: &Dir, id: FileId) -> io::Result<bool> {
    Ok(dir.stamp(SENTINEL)?.is_some_and(|stamp| stamp.id == id))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoTouch;

    impl Touch for NoTouch {
        fn allow(&self) -> io::Result<()> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }

    struct Place {
        place: tempfile::TempDir,
        dir: Dir,
    }

    fn place() -> Place {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open(place.path()).unwrap().unwrap();
        Place { place, dir }
    }

    fn patience(limit_ms: u64) -> Patience<'static> {
        Patience { store: "claude:here", since: Instant::now(), limit: Duration::from_millis(limit_ms) }
    }

    impl Place {
        fn lock(&self, limit_ms: u64) -> Result<Locks<'_>, StoreError> {
            Locks::list(&self.dir, &AnyTouch, patience(limit_ms))
        }

        /// A lock as another program makes it, changed so many seconds ago.
        fn foreign(&self, name: &str, seconds_ago: i64) {
            let path = self.place.path().join(name);
            std::fs::create_dir(&path).unwrap();
            let age = Duration::from_secs(seconds_ago.unsigned_abs());
            let now = SystemTime::now();
            let at = if seconds_ago < 0 { now + age } else { now - age };
            File::open(path).unwrap().set_modified(at).unwrap();
        }

        fn has(&self, name: &str) -> bool {
            self.place.path().join(name).exists()
        }
    }

    #[test]
    fn locks_come_and_go_and_the_sentinel_stays_empty() {
        let place = place();
        let mut locks = place.lock(1_000).unwrap();
        locks.file("1.json").unwrap();
        assert!(place.has(".lock.lock") && place.has("1.json.lock") && locks.hold().unwrap() && locks.is_sure());
        locks.release_files();
        assert!(place.has(".lock.lock") && !place.has("1.json.lock"));
        drop(locks);
        assert!(!place.has(".lock.lock"));
        assert_eq!(std::fs::metadata(place.place.path().join(".lock")).unwrap().len(), 0);
    }

    #[test]
    fn a_held_lock_is_waited_for_until_the_deadline() {
        let place = place();
        let _first = place.lock(1_000).unwrap();
        let error = place.lock(50).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Busy { waited_ms: 50.., .. }), "{error}");
    }

    #[test]
    fn only_an_old_lock_of_another_program_is_taken_over() {
        for (name, age) in [(".lock.lock", 0), (".lock.lock", 9), (".lock.lock", -3600), ("1.json.lock", 5)] {
            let place = place();
            place.foreign(name, age);
            let busy = place.lock(40).and_then(|mut locks| locks.file("1.json"));
            assert!(matches!(busy, Err(StoreError::Busy { .. })), "{name} {age}");
            assert!(place.has(name), "{name} {age}");
        }
        for name in [".lock.lock", "1.json.lock"] {
            let place = place();
            place.foreign(name, 11);
            place.lock(1_000).and_then(|mut locks| locks.file("1.json")).unwrap();
        }
    }

    #[test]
    fn what_a_killed_taskbus_left_is_taken_over_at_once() {
        let place = place();
        place.dir.make_lock(".lock.lock").unwrap();
        place.dir.make_lock("1.json.lock").unwrap();
        place.lock(1_000).and_then(|mut locks| locks.file("1.json")).unwrap();
    }

    #[test]
    fn a_lock_that_somebody_took_over_is_not_released_and_not_trusted() {
        let place = place();
        let mut locks = place.lock(1_000).unwrap();
        place.dir.remove_lock(".lock.lock").unwrap();
        place.foreign("decoy", 0);
        place.foreign(".lock.lock", 0);
        assert!(!locks.hold().unwrap());
        drop(locks);
        assert!(place.has(".lock.lock"));
    }

    #[test]
    fn a_sentinel_that_was_replaced_is_not_trusted() {
        let place = place();
        let mut locks = place.lock(1_000).unwrap();
        std::fs::rename(place.place.path().join(".lock"), place.place.path().join("aside")).unwrap();
        assert!(!locks.hold().unwrap());
    }

    #[test]
    fn a_lock_is_refreshed_while_it_lasts_unless_times_cannot_be_set() {
        let place = place();
        let age = |locks: &mut Locks<'_>, ms| locks.held[0].fresh = Instant::now() - Duration::from_millis(ms);
        let changed = || place.dir.stamp(".lock.lock").unwrap().unwrap().changed_ns;
        let mut locks = place.lock(1_000).unwrap();
        let before = changed();
        age(&mut locks, REFRESH_MS - 500);
        assert!(locks.hold().unwrap() && changed() == before, "not due");
        age(&mut locks, 60_000);
        assert!(locks.hold().unwrap() && changed() > before, "refreshed");
        drop(locks);
        let mut locks = Locks::list(&place.dir, &NoTouch, patience(1_000)).unwrap();
        age(&mut locks, UNSURE_MS - 500);
        assert!(locks.hold().unwrap(), "held for less than anybody would take it over");
        age(&mut locks, UNSURE_MS);
        assert!(!locks.hold().unwrap());
    }

    #[test]
    fn something_else_under_the_name_of_the_sentinel_costs_only_the_quick_takeover() {
        let place = place();
        std::fs::create_dir(place.place.path().join(".lock")).unwrap();
        let locks = place.lock(1_000).unwrap();
        assert!(!locks.is_sure());
    }
}
