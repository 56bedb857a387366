//! What processes that want to write do in front of SQLite's write lock. Nothing here keeps anybody out: SQLite's lock does
//! that. Two advisory locks of the kernel, which go with the process that has them, spare tries and bound waits:
//!
//! ```text
//!  the place, on the log:          held from before BEGIN to after COMMIT; to find it taken costs one system call, while a
//!                                  BEGIN that fails costs a dozen, and all that its connection has read so far
//!  the flag, on the high-water     raised by one who has waited for long; whoever begins while it is raised sleeps first,
//!  file:                           so that those who come again and again let pass the one who was always late
//! ```
//!
//! A process that was stopped between the place and SQLite's lock stops nobody: who has waited for long tries without it.

use std::fs::{File, TryLockError};
use std::time::Duration;

use super::error::{Answer, is_busy};
use super::lock::{Patience, nap};

/// Who has waited for so long raises the flag.
const LONG: Duration = Duration::from_millis(80);
/// Who has waited for so long tries without the place,
const TOO_LONG: Duration = Duration::from_millis(200);
/// once in so many tries.
const TRIES: u32 = 8;
/// As if one had slept so often already: who lets somebody pass sleeps for long.
const AFTER_YOU: u32 = 2;

/// The files that the two locks are on; without them everybody just tries.
#[derive(Clone, Copy)]
pub(super) struct Front<'f> {
    pub(super) place: Option<&'f File>,
    pub(super) flag: Option<&'f File>,
}

/// A lock of the kernel on a file that is open, given back when this is dropped.
pub(super) struct Held<'f>(&'f File);

impl<'f> Held<'f> {
    /// Tries to have it alone. A file that cannot be locked counts as taken by nobody.
    fn alone(file: &'f File) -> Option<Self> {
        (!is_taken(&file.try_lock())).then_some(Self(file))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _given_back = self.0.unlock();
    }
}

fn is_taken(tried: &Result<(), TryLockError>) -> bool {
    matches!(tried, Err(TryLockError::WouldBlock))
}

impl<'f> Front<'f> {
    /// Runs `begin` until it does not end in "busy", or time is up. What it answers is to be kept no longer than the
    /// lock beside it.
    pub(super) fn persist<T>(
        self,
        patience: &Patience,
        mut begin: impl FnMut() -> rusqlite::Result<T>,
    ) -> Answer<(T, Option<Held<'f>>)> {
        if self.is_flag_raised() {
            nap(AFTER_YOU);
        }
        let (mut place, mut flag, mut naps) = (None, None, 0);
        loop {
            place = place.or_else(|| self.place.and_then(Held::alone));
            if place.is_some() || self.place.is_none() || (patience.waited() > TOO_LONG && naps % TRIES == 0) {
                match begin() {
                    Err(error) if is_busy(&error) => {}
                    result => return Ok((result?, place)),
                }
            }
            if patience.left().is_zero() {
                return Err(patience.over());
            }
            if flag.is_none() && patience.waited() > LONG {
                flag = self.flag.and_then(Held::alone);
            }
            // Who is let pass must be there to pass.
            nap(if flag.is_some() { 0 } else { naps });
            naps += 1;
        }
    }

    /// Those who look do not disturb each other.
    fn is_flag_raised(self) -> bool {
        let Some(flag) = self.flag else { return false };
        let raised = is_taken(&flag.try_lock_shared());
        if !raised {
            let _given_back = flag.unlock();
        }
        raised
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;
    use std::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn busy<T>() -> rusqlite::Result<T> {
        Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None))
    }

    /// The files of one process: locks are those of a handle.
    fn files(dir: &Path) -> [File; 2] {
        let open = |name| File::options().create(true).append(true).read(true).open(dir.join(name)).unwrap();
        ["log", "high"].map(open)
    }

    fn front([place, flag]: &[File; 2]) -> Front<'_> {
        Front { place: Some(place), flag: Some(flag) }
    }

    #[test]
    fn a_place_that_is_taken_is_not_tried_behind_and_one_that_is_free_is_held() {
        let home = tempfile::tempdir().unwrap();
        let (ours, theirs) = (files(home.path()), files(home.path()));
        let (_, held) = front(&theirs).persist(&Patience::of(PATIENCE), || Ok(())).unwrap();
        assert!(held.is_some());
        let tries = Cell::new(0);
        let late = front(&ours).persist(&Patience::of(TOO_LONG / 4), || {
            tries.set(tries.get() + 1);
            Ok(())
        });
        assert!(late.is_err() && tries.get() == 0, "{}", tries.get());
        drop(held);
        let (_, held) = front(&ours).persist(&Patience::of(PATIENCE), || Ok(())).unwrap();
        assert!(held.is_some());
    }

    #[test]
    fn who_sleeps_in_the_place_keeps_nobody_from_the_lock() {
        let home = tempfile::tempdir().unwrap();
        let (ours, theirs) = (files(home.path()), files(home.path()));
        let (_, _asleep) = front(&theirs).persist(&Patience::of(PATIENCE), || Ok(())).unwrap();
        let (passed, held) = front(&ours).persist(&Patience::of(PATIENCE), || Ok(true)).unwrap();
        assert!(passed && held.is_none());
    }

    #[test]
    fn who_has_waited_for_long_raises_the_flag_until_they_are_through() {
        let home = tempfile::tempdir().unwrap();
        let (ours, theirs) = (files(home.path()), files(home.path()));
        let began = Instant::now();
        let until_raised = || if front(&theirs).is_flag_raised() { Ok(()) } else { busy() };
        front(&ours).persist(&Patience::of(PATIENCE), until_raised).unwrap();
        assert!((LONG..PATIENCE).contains(&began.elapsed()), "{:?}", began.elapsed());
        assert!(!front(&theirs).is_flag_raised());
    }

    #[test]
    fn without_files_the_lock_is_tried_until_time_is_up() {
        let nothing = Front { place: None, flag: None };
        let tries = Cell::new(0);
        let come = || {
            tries.set(tries.get() + 1);
            if tries.get() < 4 { busy() } else { Ok(()) }
        };
        assert!(nothing.persist(&Patience::of(PATIENCE), come).unwrap().1.is_none());
        assert!(nothing.persist(&Patience::of(Duration::ZERO), busy::<()>).is_err());
    }
}
