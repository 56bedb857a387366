//! The floor of a wake: processes that do nothing but hear the system's notice that a file was written to, a bare one
//! with nothing to look into. No wake by such a notice can be faster, and that of a crowd takes its time.

use std::path::Path;

use crate::term::failure::Failure;

/// Whether this system gives such notices.
pub(super) const IS_GIVEN: bool = cfg!(target_os = "linux");

/// Hears a notice, says when it came, and begins anew at the next word.
#[cfg(target_os = "linux")]
pub(super) fn work(file: &Path) -> Result<(), Failure> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    use super::job::{heard_go, say};
    use super::wait::now_nanos;

    let failed = |error| Failure::machine("the system gives no notice", error);
    let ear = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(failed)?;
    inotify::add_watch(&ear, file, WatchFlags::MODIFY).map_err(failed)?;
    say(&())?;
    while heard_go()? {
        let mut buffer = [0; 4096];
        while rustix::io::read(&ear, &mut buffer).is_ok_and(|read| read > 0) {}
        say(&())?;
        poll(&mut [PollFd::new(&ear, PollFlags::IN)], None).map_err(failed)?;
        say(&now_nanos())?;
    }
    Ok(())
}

/// There is none.
#[cfg(not(target_os = "linux"))]
pub(super) fn work(_: &Path) -> Result<(), Failure> {
    Err(Failure::Machine("the system gives no notice".to_owned()))
}
