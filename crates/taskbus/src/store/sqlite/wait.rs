//! Waiting for somebody else's commit: the operating system tells when the high-water file is written to, which a commit
//! does once it can be seen, unless it only says that somebody lives on.
//!
//! Where there is no such file it tells of the database and its log. That notice comes before the commit can be seen, and in
//! several pieces, so the version is looked at a few times more. One thread of the process listens, the others sleep on its
//! word. A look every second makes up for a notice that got lost.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::Answer;
use super::file::Place;
use super::lock::after;

/// The longest sleep without a look.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Where no notice can be had, a look this often.
const LOOK_OFTEN: Duration = Duration::from_millis(50);
/// Looks after a notice that comes too early, and the time between them.
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
    /// What is heard beside the notices of the system.
    nudge: Option<ear::Nudge>,
    /// Counts what was heard.
    rings: u64,
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
            // Whatever comes after this rings once more.
            let rings = state.rings;
            drop(state);
            if changed()? || Instant::now() >= until {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now()).min(LOOK_AGAIN);
            let quiet = |state: &mut State| state.attended && state.rings == rings;
            drop(self.rung.wait_timeout_while(self.state(), left, quiet).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Has everybody who waits ask whether something changed.
    pub(super) fn nudge(&self) {
        self.ring();
        if let Some(nudge) = &self.state().nudge {
            nudge.give();
        }
    }

    fn ring(&self) {
        self.state().rings += 1;
        self.rung.notify_all();
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
            let notice = post.prepare(place);
            if changed()? {
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if notice == Notice::None {
                std::thread::sleep(left.min(LOOK_OFTEN));
            } else if post.listen(left.min(LOOK_AGAIN)) {
                self.ring();
                if look_again(&mut changed, notice)? {
                    return Ok(());
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the system tells of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    /// That it can be seen.
    Timely,
    /// That files are written to, before it can be seen.
    Early,
    /// Nothing.
    None,
}

/// A notice may have come before the commit can be seen.
fn look_again(changed: &mut impl FnMut() -> Answer<bool>, notice: Notice) -> Answer<bool> {
    let more = if notice == Notice::Early { LOOKS } else { 0 };
    for _ in 0..more {
        if changed()? {
            return Ok(true);
        }
        std::thread::sleep(LOOK_APART);
    }
    changed()
}

/// The place of the one who listens; leaving it lets another take over.
struct Post<'b> {
    bell: &'b Bell,
    ear: Option<ear::Ear>,
}

impl Post<'_> {
    /// Listens to the files as they are now.
    fn prepare(&mut self, place: &Place) -> Notice {
        if self.ear.is_none()
            && let Some((ear, nudge)) = ear::Ear::new()
        {
            self.ear = Some(ear);
            self.bell.state().nudge = Some(nudge);
        }
        let Some(ear) = &self.ear else { return Notice::None };
        let bell = place.high();
        if std::fs::symlink_metadata(&bell).is_ok_and(|meta| meta.is_file()) && ear.attach(&bell) {
            return Notice::Timely;
        }
        let files = [place.log(), place.path().to_owned()];
        if files.iter().filter(|file| ear.attach(file)).count() > 0 { Notice::Early } else { Notice::None }
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
    //! Notices of the Linux kernel about writes to files, and nudges of this process.

    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    #[derive(Debug)]
    pub(super) struct Ear {
        notices: OwnedFd,
        nudges: Arc<OwnedFd>,
    }

    /// Whoever has this can be heard by the ear that it came with.
    #[derive(Debug)]
    pub(super) struct Nudge(Arc<OwnedFd>);

    impl Ear {
        pub(super) fn new() -> Option<(Self, Nudge)> {
            let notices = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            let nudges = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).ok()?);
            Some((Self { notices, nudges: Arc::clone(&nudges) }, Nudge(nudges)))
        }

        /// Watches a file; doing so twice changes nothing. False if there is none.
        pub(super) fn attach(&self, file: &Path) -> bool {
            inotify::add_watch(&self.notices, file, WatchFlags::MODIFY).is_ok()
        }

        /// Whether anything is heard within the time.
        pub(super) fn listen(&self, time: Duration) -> bool {
            let time = Timespec::try_from(time).ok();
            let mut fds = [PollFd::new(&self.notices, PollFlags::IN), PollFd::new(&*self.nudges, PollFlags::IN)];
            let heard = poll(&mut fds, time.as_ref()).is_ok_and(|ready| ready > 0);
            let [of_files, of_nudges] = fds.map(|fd| !fd.revents().is_empty());
            let mut buffer = [0; 4096];
            while of_files && rustix::io::read(&self.notices, &mut buffer).is_ok_and(|read| read == buffer.len()) {}
            if of_nudges {
                let _counted = rustix::io::read(&*self.nudges, &mut [0; 8]);
            }
            heard
        }
    }

    impl Nudge {
        /// A full counter is heard too.
        pub(super) fn give(&self) {
            let _counted = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod ear {
    //! Other systems give no notice here; the store is looked at often instead.

    use std::path::Path;
    use std::time::Duration;

    #[derive(Debug)]
    pub(super) struct Ear;

    #[derive(Debug)]
    pub(super) struct Nudge;

    impl Ear {
        pub(super) fn new() -> Option<(Self, Nudge)> {
            None
        }

        pub(super) fn attach(&self, _file: &Path) -> bool {
            false
        }

        pub(super) fn listen(&self, _time: Duration) -> bool {
            false
        }
    }

    impl Nudge {
        pub(super) fn give(&self) {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;

    #[cfg(target_os = "linux")]
    use {
        crate::store::sqlite::{Durability, SqliteOptions, SqliteStore},
        crate::store::{SessionRow, write_with},
        taskbus_core::name::{Identity, ListName},
        taskbus_core::neighbourhood::ListRules,
        taskbus_core::time::Timestamp,
    };

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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_commit_that_can_be_seen_is_told_once_and_that_somebody_lives_on_is_not() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::find(&home.path().join("taskbus.db")).unwrap();
        for durability in [Durability::Full, Durability::Relaxed] {
            let store = SqliteStore::open(place.path(), SqliteOptions { durability, ..Default::default() }).unwrap();
            put_session(&store, 1);
            let (ear, _nudge) = ear::Ear::new().unwrap();
            assert!(ear.attach(&place.high()));
            let rings = |what: &str, expected: bool| assert_eq!(ear.listen(Duration::ZERO), expected, "{what}");
            for seconds in [10, 20] {
                write_with(&store, None, |tx| Ok(tx.extend_sessions("t", at(seconds))?)).unwrap();
                rings("somebody lives on", false);
            }
            write_with(&store, None, |_| Ok(())).unwrap();
            rings("nothing was written", false);
            put_session(&store, 30);
            rings("a session", true);
            let name = ListName::new(format!("tasks/{durability:?}").to_lowercase()).unwrap();
            write_with(&store, None, |tx| Ok(tx.create_list(&name, ListRules::default(), at(1))?)).unwrap();
            rings("a list", true);
            write_with(&store, None, |tx| Ok(tx.end_sessions("t")?)).unwrap();
            rings("the end of a session", true);
            rings("nothing more", false);
        }
    }

    #[cfg(target_os = "linux")]
    fn put_session(store: &SqliteStore, seconds: i64) {
        let session = SessionRow {
            name: Identity::new("Zed").unwrap(),
            token: "t".to_owned(),
            alive_until: at(seconds),
            registered_at: at(1),
            context: String::new(),
            client: String::new(),
            pid: 1,
            harness: None,
        };
        write_with(store, None, |tx| Ok(tx.put_session(&session)?)).unwrap();
    }

    #[cfg(target_os = "linux")]
    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn where_no_notice_can_be_had_a_change_is_seen_soon() {
        let home = tempfile::tempdir().unwrap();
        let (took, _) = until_seen(&home.path().join("not there.db"));
        assert!(took < SOON, "{took:?}");
    }
}
