//! Waiting until a directory changes, for stores that keep files in one. The operating system says when; where it
//! cannot, we look now and then.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest time between two looks, in case nobody says anything.
const LOOK: Duration = Duration::from_secs(1);

/// Returns when `is_changed` says so, or at `deadline`. It is asked at the start and whenever something in the
/// directory happened.
///
/// # Errors
/// What `is_changed` returns.
pub(in crate::store) fn wait<E>(
    directory: &Path,
    deadline: Instant,
    is_changed: &mut dyn FnMut() -> Result<bool, E>,
) -> Result<(), E> {
    let watch = Watch::new(directory).ok();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if is_changed()? || left.is_zero() {
            return Ok(());
        }
        let heard = watch.as_ref().map(|watch| watch.listen(left.min(LOOK)));
        if !matches!(heard, Some(Ok(()))) {
            std::thread::sleep(left.min(SLOW_LOOK));
        }
    }
}

/// The time between two looks where the operating system says nothing.
const SLOW_LOOK: Duration = Duration::from_millis(50);

#[cfg(target_os = "linux")]
struct Watch(rustix::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Watch {
    fn new(directory: &Path) -> io::Result<Self> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let kinds = WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE;
        add_watch(&watch, directory, kinds | WatchFlags::ONLYDIR)?;
        Ok(Self(watch))
    }

    /// Returns when something happened, or after this time.
    fn listen(&self, time: Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let time =
            Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.drain(),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what was said out of the way: what matters is that there was something.
    fn drain(&self) -> io::Result<()> {
        let mut buffer = [0_u8; 4096];
        loop {
            match rustix::io::read(&self.0, &mut buffer) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
struct Watch;

#[cfg(not(target_os = "linux"))]
impl Watch {
    fn new(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn listen(&self, _: Duration) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
