//! Locks, conditions and threads of which one runs at a time, and a seed decides which. Each is a thread of the system that
//! waits for its turn; it hands the turn on before it takes a lock, and when it has to wait.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LockResult;
pub(crate) use std::sync::PoisonError;
use std::time::Duration;

/// What one thread does.
pub(crate) type Body = Box<dyn FnOnce() + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Ready,
    /// For a lock or a condition, by its place in memory.
    Waits(usize),
    Ended,
}

#[derive(Default)]
struct World {
    dice: u64,
    stands: Vec<Stand>,
    current: usize,
    /// Why it ended badly.
    broken: Option<String>,
    handles: Vec<std::thread::JoinHandle<()>>,
}

/// One run, and what tells of a new turn.
#[derive(Default)]
struct Run {
    world: std::sync::Mutex<World>,
    turn: std::sync::Condvar,
}

thread_local! {
    static ME: Cell<Option<(&'static Run, usize)>> = const { Cell::new(None) };
}

fn me() -> (&'static Run, usize) {
    ME.get().expect("only threads of a run take these locks")
}

impl World {
    /// Somebody who can go on; nobody can if all wait.
    fn pick(&mut self) {
        let ready: Vec<usize> = (0..self.stands.len()).filter(|at| self.stands[*at] == Stand::Ready).collect();
        if ready.is_empty() {
            if self.stands.iter().any(|stand| *stand != Stand::Ended) {
                self.broken.get_or_insert_with(|| format!("everybody waits: {:?}", self.stands));
            }
            return;
        }
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.current = ready[usize::try_from(self.dice >> 33).unwrap() % ready.len()];
    }
}

impl Run {
    fn lock(&self) -> std::sync::MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the turn on, and returns when it comes back.
    fn pass(&self, who: usize, stand: Stand) {
        let mut world = self.lock();
        world.stands[who] = stand;
        world.pick();
        self.turn.notify_all();
        self.until_turn(world, who);
    }

    fn until_turn(&self, mut world: std::sync::MutexGuard<'_, World>, who: usize) {
        while world.current != who || world.stands[who] != Stand::Ready {
            if world.broken.is_some() {
                drop(world);
                std::panic::resume_unwind(Box::new("the run is over"));
            }
            world = self.turn.wait(world).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whoever waits for this can go on.
    fn wake(&self, what: usize) {
        let mut world = self.lock();
        world.stands.iter_mut().filter(|stand| **stand == Stand::Waits(what)).for_each(|stand| *stand = Stand::Ready);
    }

    /// A thread more, ready.
    fn start(&'static self, body: Body) {
        let mut world = self.lock();
        let who = world.stands.len();
        world.stands.push(Stand::Ready);
        let handle = std::thread::spawn(move || {
            ME.set(Some((self, who)));
            let ran = catch_unwind(AssertUnwindSafe(|| {
                self.until_turn(self.lock(), who);
                body();
            }));
            let mut world = self.lock();
            if let Err(panic) = ran {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
                world.broken.get_or_insert(said.unwrap_or_default());
            }
            world.stands[who] = Stand::Ended;
            world.pick();
            self.turn.notify_all();
        });
        world.handles.push(handle);
    }
}

/// Runs these threads, and those that they start, under the schedule of a seed; says what went wrong.
pub(crate) fn run(seed: u64, bodies: Vec<Body>) -> Result<(), String> {
    // Threads outlive no run, but the compiler cannot know; a run is small.
    let run: &'static Run = Box::leak(Box::default());
    // Nobody has the turn before all are there.
    run.lock().current = usize::MAX;
    run.lock().dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bodies.into_iter().for_each(|body| run.start(body));
    run.lock().pick();
    run.turn.notify_all();
    loop {
        let Some(handle) = run.lock().handles.pop() else { break };
        handle.join().expect("a thread catches its panics");
    }
    let broken = run.lock().broken.take();
    broken.map_or(Ok(()), Err)
}

/// A lock.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

/// A lock that is held.
pub(crate) struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    held: Option<std::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let (run, who) = me();
        run.pass(who, Stand::Ready);
        Ok(self.take())
    }

    fn take(&self) -> MutexGuard<'_, T> {
        let (run, who) = me();
        loop {
            match self.0.try_lock() {
                Ok(held) => return MutexGuard { lock: self, held: Some(held) },
                Err(std::sync::TryLockError::Poisoned(held)) => {
                    return MutexGuard { lock: self, held: Some(held.into_inner()) };
                }
                Err(std::sync::TryLockError::WouldBlock) => run.pass(who, Stand::Waits(self.place())),
            }
        }
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl<T> std::ops::Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("it is held until it is dropped")
    }
}

impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("it is held until it is dropped")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.held.take());
        me().0.wake(self.lock.place());
    }
}

/// A condition. Nobody is woken but by a notice.
#[derive(Debug, Default)]
pub(crate) struct Condvar(());

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let ((run, who), lock) = (me(), guard.lock);
        drop(guard);
        run.pass(who, Stand::Waits(self.place()));
        Ok(lock.take())
    }

    /// The time is never over.
    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        _: Duration,
        mut idle: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        while idle(&mut guard) {
            guard = self.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        Ok((guard, ()))
    }

    pub(crate) fn notify_all(&self) {
        me().0.wake(self.place());
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Threads.
pub(crate) mod thread {
    /// Makes one.
    pub(crate) struct Builder(());

    impl Builder {
        pub(crate) fn new() -> Self {
            Self(())
        }

        pub(crate) fn name(self, _: String) -> Self {
            self
        }

        pub(crate) fn spawn(self, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
            super::me().0.start(Box::new(body));
            Ok(())
        }
    }
}
