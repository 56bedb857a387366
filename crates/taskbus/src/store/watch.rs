//! Waiting for a change in a directory, for stores that keep files in one: the kernel tells of every name that is made,
//! written, moved or removed; locks and temporary names are no change. A look every second makes up for what it does
//! not tell (a file system of another machine), and where it tells nothing at all, a look is taken often.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::store::StoreError;

/// The longest sleep without a look.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Where no notice can be had, a look this often.
const LOOK_OFTEN: Duration = Duration::from_millis(100);

/// The ears of one process on one directory; the kernel has few to give, so they are used again.
#[derive(Debug)]
pub(super) struct Watch {
    /// Whether something with this name is no change.
    is_noise: fn(&str) -> bool,
    idle: Mutex<Vec<ear::Ear>>,
}

impl Watch {
    /// Ears that do not listen to some names.
    pub(super) fn new(is_noise: fn(&str) -> bool) -> Self {
        Self { is_noise, idle: Mutex::default() }
    }

    /// Returns when `changed` says so, or when `timeout` is over.
    pub(super) fn wait(
        &self,
        directory: &Path,
        timeout: Duration,
        mut changed: impl FnMut() -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let until = Instant::now() + timeout;
        let mut ear = self.idle().pop().or_else(ear::Ear::new);
        let result = loop {
            let hears = ear.as_mut().is_some_and(|ear| ear.attach(directory));
            let left = match changed() {
                Ok(false) => until.saturating_duration_since(Instant::now()),
                other => break other.map(drop),
            };
            match &mut ear {
                _ if left.is_zero() => break Ok(()),
                Some(ear) if hears => ear.listen(left.min(LOOK_AGAIN), self.is_noise),
                _ => std::thread::sleep(left.min(LOOK_OFTEN)),
            }
        };
        self.idle().extend(ear);
        result
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<ear::Ear>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(target_os = "linux")]
mod ear {
    //! Notices of the Linux kernel about names in a directory.

    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

    #[derive(Debug)]
    pub(super) struct Ear(OwnedFd);

    impl Ear {
        pub(super) fn new() -> Option<Self> {
            inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok().map(Self)
        }

        /// Listens to the directory as it is now, or for it to be made; doing so twice changes nothing.
        pub(super) fn attach(&mut self, directory: &Path) -> bool {
            let inside = WatchFlags::CREATE | WatchFlags::CLOSE_WRITE | WatchFlags::MODIFY | WatchFlags::MOVE;
            let gone = WatchFlags::DELETE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            let listens = |path: &Path| inotify::add_watch(&self.0, path, inside | gone | WatchFlags::ONLYDIR).is_ok();
            listens(directory) || directory.parent().is_some_and(listens)
        }

        /// Returns at a notice that may mean a change, or when the time is over.
        pub(super) fn listen(&mut self, time: Duration, is_noise: fn(&str) -> bool) {
            let until = Instant::now() + time;
            loop {
                let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
                let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
                let heard = poll(&mut fds, left.as_ref()).is_ok_and(|ready| ready > 0);
                if !heard || self.hears_a_change(is_noise) {
                    return;
                }
            }
        }

        /// Reads what there is to hear.
        fn hears_a_change(&mut self, is_noise: fn(&str) -> bool) -> bool {
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = inotify::Reader::new(&self.0, &mut buffer);
            let mut any = false;
            while let Ok(event) = reader.next() {
                let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                let lost = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                any |= lost || name.is_none_or(|name| !is_noise(&name));
            }
            any
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod ear {
    //! Other systems give no notice here; the directory is looked at often instead.

    use std::path::Path;
    use std::time::Duration;

    #[derive(Debug)]
    pub(super) struct Ear;

    impl Ear {
        pub(super) fn new() -> Option<Self> {
            None
        }

        pub(super) fn attach(&mut self, _directory: &Path) -> bool {
            false
        }

        pub(super) fn listen(&mut self, _time: Duration, _is_noise: fn(&str) -> bool) {}
    }
}
