//! Keeps a shared list and a task directory of Claude Code in step, both ways, while both are worked on.
//!
//! Each step looks at both sides, [plans](plan_step) what differs, and does it: on the shared list through the engine,
//! under its rules; in the directory row by row. A change that the rules refuse (a task that somebody else holds, a
//! blocked start) is taken back in the directory, and told. Nothing is ever deleted on the shared list because a file
//! is gone: Claude Code clears its lists by itself. One mirror runs on a list at a time; its name is its lock.
//!
//! ```text
//! settle: views ── plan_step ── actions ── views ── … ── nothing left      run: settle ── wait for either side ── …
//! ```

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use taskbus_core::id::TaskId;
use taskbus_core::limits::{HEARTBEAT_MS, IDENTITY_BYTES_MAX};
use taskbus_core::name::{Identity, ListName};
use taskbus_core::refusal::Refusal;

use self::fields::Half;
use self::files::Files;
use self::shared::Shared;
use crate::engine::{Engine, Error, Registration};
use crate::store::StoreError;
use crate::store::rows::RowStore;

mod act;
mod action;
mod difference;
mod fields;
mod files;
mod plan;
mod shared;

pub use action::{Action, Memory, Notice, Texts};
pub use fields::{Fields, Half as OtherHalf, Hold, SideTask};
pub use plan::{SideView, plan_step};

/// What the mirror's sessions call themselves.
const CLIENT: &str = "taskbus mirror";
/// Steps before a settling is left to the next look.
const STEPS_MAX: usize = 200;
/// The longest time between two looks at whether to stop, in milliseconds.
const STOP_MS: u64 = 100;
/// The pause after a failure that may pass, in milliseconds.
const TROUBLE_MS: u64 = 1_000;

/// Why a mirror ends.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// Another one runs on the same list.
    #[error("{name} mirrors this directory already; stop it, or wait half a minute if it was killed")]
    Running {
        /// Under which name.
        name: Identity,
    },
    /// The shared side refused or failed.
    #[error(transparent)]
    Shared(#[from] Error),
    /// The directory failed.
    #[error(transparent)]
    Files(#[from] StoreError),
}

/// What a mirror did or noticed.
#[derive(Debug)]
pub enum Event {
    /// A file was made for a shared task.
    FileMade {
        /// The shared task.
        shared: TaskId,
        /// The file.
        file: TaskId,
    },
    /// A shared task was made for a file.
    TaskMade {
        /// The shared task.
        shared: TaskId,
        /// The file.
        file: TaskId,
    },
    /// A file was changed as its shared task was.
    FileChanged {
        /// The file.
        file: TaskId,
    },
    /// A shared task was changed as its file was.
    TaskChanged {
        /// The shared task.
        shared: TaskId,
    },
    /// The file of a deleted task was removed.
    FileRemoved {
        /// The file.
        file: TaskId,
    },
    /// The shared list refused a change that was made in the directory; the file goes back to what the list says, or
    /// stays different where it never could be.
    Refused {
        /// The shared task, or the file that has none.
        id: TaskId,
        /// Why.
        refusal: Refusal,
    },
    /// Something to know.
    Notice(Notice),
    /// One side could not be reached; it is tried again.
    Trouble(StoreError),
}

/// A mirror between a list and a directory.
pub struct Mirror<'a, R> {
    shared: Shared<'a>,
    files: Files<'a, R>,
    memory: Memory,
    /// When it last gave a sign of life.
    beat: Instant,
}

impl<'a, R: RowStore> Mirror<'a, R> {
    /// Takes the mirror's name on the shared list.
    ///
    /// # Errors
    /// [`MirrorError::Running`] when somebody has it; what the engine says, such as that there is no such list.
    pub fn start(engine: &'a Engine, list: &'a ListName, rows: &'a R) -> Result<Self, MirrorError> {
        engine.tally(list)?;
        let directory = rows.list_name();
        let wish = Registration {
            name: name_for(&directory),
            context: format!("mirrors {} to {list}", rows.describe()),
            client: CLIENT.to_owned(),
            ..Registration::default()
        };
        let me = engine.register(&wish)?.name;
        if me.as_str() != wish.name {
            engine.close()?;
            let name = Identity::new(wish.name).unwrap_or(me);
            return Err(MirrorError::Running { name });
        }
        let files = Files { rows, list, me: me.clone() };
        let (memory, beat) = (Memory::default(), Instant::now());
        Ok(Self { shared: Shared::new(engine, list, directory, me), files, memory, beat })
    }

    /// Brings both sides into step, as far as they go. Says whether there was anything to do.
    ///
    /// # Errors
    /// [`MirrorError`].
    pub fn settle(&mut self, report: &mut dyn FnMut(Event)) -> Result<bool, MirrorError> {
        for step in 0..STEPS_MAX {
            let actions = self.plan()?;
            if actions.is_empty() {
                return Ok(step > 0);
            }
            for action in &actions {
                self.live()?;
                self.act(action, report)?;
            }
        }
        Ok(true)
    }

    /// Keeps both sides in step until `stop` says so, then gives the names back.
    ///
    /// # Errors
    /// [`MirrorError`] for what does not pass by itself.
    pub fn run(mut self, stop: &(dyn Fn() -> bool + Sync), report: &mut dyn FnMut(Event)) -> Result<(), MirrorError> {
        let (engine, rows) = (self.shared.engine, self.files.rows);
        let (changed, changes) = channel();
        let also_changed = changed.clone();
        let done = AtomicBool::new(false);
        let ended = || stop() || done.load(Ordering::SeqCst);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                watch(&|| engine.store().version(), &|seen, time| engine.store().wait(seen, time), &changed, &ended);
            });
            scope.spawn(|| {
                watch(&|| rows.version(), &|seen, time| rows.wait(seen, time), &also_changed, &ended);
            });
            let result = self.follow(stop, &changes, report);
            done.store(true, Ordering::SeqCst);
            result
        });
        engine.close()?;
        result
    }

    /// Settles at every change, and once in a while.
    fn follow(
        &mut self,
        stop: &dyn Fn() -> bool,
        changes: &Receiver<()>,
        report: &mut dyn FnMut(Event),
    ) -> Result<(), MirrorError> {
        let mut wanted = true;
        while !stop() {
            if wanted && !self.settled_or_troubled(report)? {
                std::thread::sleep(Duration::from_millis(TROUBLE_MS));
                continue;
            }
            wanted = changes.recv_timeout(Duration::from_millis(STOP_MS)).is_ok() || self.is_due();
            while changes.try_recv().is_ok() {}
        }
        Ok(())
    }

    fn is_due(&self) -> bool {
        self.beat.elapsed() >= Duration::from_millis(HEARTBEAT_MS / 2)
    }

    /// Keeps the sessions of the mirror alive, and does what is due on the shared list.
    fn live(&mut self) -> Result<(), Error> {
        if self.is_due() {
            self.shared.engine.heartbeat()?;
            self.shared.engine.tick()?;
            self.beat = Instant::now();
        }
        Ok(())
    }

    /// Settles; false for trouble that may pass.
    fn settled_or_troubled(&mut self, report: &mut dyn FnMut(Event)) -> Result<bool, MirrorError> {
        let settled = self.live().map_err(MirrorError::from).and_then(|()| self.settle(report));
        match settled {
            Ok(_) => Ok(true),
            Err(MirrorError::Files(error) | MirrorError::Shared(Error::Store(error))) if may_pass(&error) => {
                report(Event::Trouble(error));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn plan(&self) -> Result<Vec<Action>, MirrorError> {
        let files = self.files.view()?;
        let named = files.tasks.values().filter_map(|file| match &file.half {
            Half::Here(id) => Some(id.clone()),
            Half::None | Half::Elsewhere(_) => None,
        });
        let shared = self.shared.view(&named.collect::<BTreeSet<_>>())?;
        Ok(plan_step(&shared, &files, &self.memory))
    }
}

/// Says when a side has changed. One that cannot be watched is looked at by the clock.
fn watch(
    version: &dyn Fn() -> Result<u64, StoreError>,
    wait: &dyn Fn(u64, Duration) -> Result<(), StoreError>,
    changed: &Sender<()>,
    ended: &dyn Fn() -> bool,
) {
    let mut seen = None;
    while !ended() {
        match version() {
            Ok(now) if seen == Some(now) => {
                if wait(now, Duration::from_millis(STOP_MS * 5)).is_err() {
                    std::thread::sleep(Duration::from_millis(STOP_MS));
                }
            }
            Ok(now) => {
                seen = Some(now);
                let _ = changed.send(());
            }
            Err(_) => std::thread::sleep(Duration::from_millis(STOP_MS)),
        }
    }
}

/// Whether a failure may pass without anybody doing anything.
fn may_pass(error: &StoreError) -> bool {
    error.retryable() || matches!(error, StoreError::Moved { .. })
}

fn name_for(directory: &ListName) -> String {
    let name = format!("claude {}", directory.short());
    name[..name.floor_char_boundary(IDENTITY_BYTES_MAX)].to_owned()
}
