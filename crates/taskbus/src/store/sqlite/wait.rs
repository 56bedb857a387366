//! Waiting for somebody else's commit: the operating system tells when the files are written to.
//!
//! The notice comes before the commit can be seen, so the version is looked at a few times more. One thread of the
//! process listens, the others sleep on its word. A look every second makes up for a notice that got lost.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::Answer;
use super::file::Place;
use super::lock::after;

/// The longest sleep without a look.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Where no notice can be had, a look this often.
const LOOK_OFTEN: Duration = Duration::from_millis(50);
/// Looks after a notice, and the time between them.
const LOOKS: u32 = 20;
const LOOK_APART: Duration = Duration::from_micros(100);

/// The listeners of one process on one store.
#[derive(Debug, Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Somebody listens for all.
    attended: bool,
    ear: Option<ear::Ear>,
}

impl Bell {
    /// Returns when `changed` says so, or when `timeout` is over.
    pub(super) fn wait(
        &self,
        place: &Place,
        timeout: Duration,
        mut changed: impl FnMut() -> Answer<bool>,
    ) -> Answer<()> {
        let until = after(Instant::now(), timeout);
        loop {
            let mut state = self.state();
            if !state.attended {
                state.attended = true;
                let ear = state.ear.take();
                drop(state);
                return self.attend(place, ear, until, changed);
            }
            let left = until.saturating_duration_since(Instant::now()).min(LOOK_AGAIN);
            drop(self.rung.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner));
            if changed()? || Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Listens on behalf of everybody until the own wait is over, then hands over.
    fn attend(
        &self,
        place: &Place,
        ear: Option<ear::Ear>,
        until: Instant,
        mut changed: impl FnMut() -> Answer<bool>,
    ) -> Answer<()> {
        let mut post = Post { bell: self, ear };
        loop {
            let heard = post.prepare(place);
            if changed()? {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if heard && post.listen(left.min(LOOK_AGAIN)) {
                self.rung.notify_all();
                if look_again(&mut changed)? {
                    return Ok(());
                }
            } else if !heard {
                std::thread::sleep(left.min(LOOK_OFTEN));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The notice came before the commit can be seen.
fn look_again(changed: &mut impl FnMut() -> Answer<bool>) -> Answer<bool> {
    for _ in 0..LOOKS {
        if changed()? {
            return Ok(true);
        }
        std::thread::sleep(LOOK_APART);
    }
    Ok(false)
}

/// The place of the one who listens; leaving it lets another take over.
struct Post<'b> {
    bell: &'b Bell,
    ear: Option<ear::Ear>,
}

impl Post<'_> {
    /// Listens to the files as they are now; false where the system gives no notice.
    fn prepare(&mut self, place: &Place) -> bool {
        if self.ear.is_none() {
            self.ear = ear::Ear::new();
        }
        self.ear.as_ref().is_some_and(|ear| ear.attach(&[place.log(), place.path().to_owned()]))
    }

    /// Whether a file was written to within the time.
    fn listen(&self, time: Duration) -> bool {
        self.ear.as_ref().is_some_and(|ear| ear.listen(time))
    }
}

impl Drop for Post<'_> {
    fn drop(&mut self) {
        let mut state = self.bell.state();
        state.attended = false;
        state.ear = self.ear.take();
        drop(state);
        self.bell.rung.notify_all();
    }
}

#[cfg(target_os = "linux")]
mod ear {
    //! Notices of the Linux kernel about writes to files.

    use std::os::fd::OwnedFd;
    use std::path::PathBuf;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    #[derive(Debug)]
    pub(super) struct Ear(OwnedFd);

    impl Ear {
        pub(super) fn new() -> Option<Self> {
            inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok().map(Self)
        }

        /// Watches the files there are; doing so twice changes nothing. False if there are none.
        pub(super) fn attach(&self, files: &[PathBuf]) -> bool {
            let watch = |file: &&PathBuf| inotify::add_watch(&self.0, file.as_path(), WatchFlags::MODIFY).is_ok();
            files.iter().filter(watch).count() > 0
        }

        pub(super) fn listen(&self, time: Duration) -> bool {
            let time = Timespec::try_from(time).ok();
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            let heard = poll(&mut fds, time.as_ref()).is_ok_and(|ready| ready > 0);
            if heard {
                let mut buffer = [0; 4096];
                while rustix::io::read(&self.0, &mut buffer).is_ok_and(|read| read > 0) {}
            }
            heard
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod ear {
    //! Other systems give no notice here; the store is looked at often instead.

    use std::path::PathBuf;
    use std::time::Duration;

    #[derive(Debug)]
    pub(super) struct Ear;

    impl Ear {
        pub(super) fn new() -> Option<Self> {
            None
        }

        pub(super) fn attach(&self, _files: &[PathBuf]) -> bool {
            false
        }

        pub(super) fn listen(&self, _time: Duration) -> bool {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);
    /// A look every second, and what a busy machine adds to that.
    const SOON: Duration = Duration::from_secs(3);
    const WAITERS: u32 = 4;

    /// How long it takes until the last one has seen a change of which no notice comes, and how often they looked.
    fn until_seen(path: &Path) -> (Duration, u32) {
        let (bell, place) = (Bell::default(), Place::find(path).unwrap());
        let (has_changed, looks) = (AtomicBool::new(false), AtomicU32::new(0));
        let look = || {
            looks.fetch_add(1, Ordering::SeqCst);
            Ok(has_changed.load(Ordering::SeqCst))
        };
        thread::scope(|scope| {
            let waits: Vec<_> = (0..WAITERS).map(|_| scope.spawn(|| bell.wait(&place, LONG, look))).collect();
            let begun = Instant::now();
            while looks.load(Ordering::SeqCst) == 0 {
                assert!(begun.elapsed() < LONG, "nobody looks");
                thread::yield_now();
            }
            // No file is written to.
            has_changed.store(true, Ordering::SeqCst);
            let since = Instant::now();
            waits.into_iter().for_each(|wait| wait.join().unwrap().unwrap());
            (since.elapsed(), looks.load(Ordering::SeqCst))
        })
    }

    #[test]
    fn a_change_whose_notice_is_lost_is_seen_within_a_second_by_a_look_each_second() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("taskbus.db");
        std::fs::write(&path, "").unwrap();
        let (took, looks) = until_seen(&path);
        assert!(took < SOON, "{took:?}");
        let seconds = u32::try_from(took.as_secs()).unwrap();
        assert!(looks <= WAITERS * (seconds + 2), "{looks} looks in {took:?}");
    }

    #[test]
    fn where_no_notice_can_be_had_a_change_is_seen_soon() {
        let home = tempfile::tempdir().unwrap();
        let (took, _) = until_seen(&home.path().join("not there.db"));
        assert!(took < SOON, "{took:?}");
    }
}
