//! Watches resources for clients that asked to hear of their changes. One thread for the whole process waits for the
//! store to change, as long as anybody listens; then each listener looks at what it watches, and tells of what differs
//! from the last look. Nothing is looked at while nobody writes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch::{Receiver, Sender, channel};

use super::desk::Desk;
use super::resources::{Mark, Resource};
use crate::blocking::blocking;
use crate::wire::error::Failure;

/// What one client may watch at the same time.
pub(super) const WATCHED_MAX: usize = 64;
/// How long one wait for the store lasts, and so how long the thread outlives its last listener.
const WAIT: Duration = Duration::from_secs(10);

/// The ear of this process.
pub(super) struct Watch {
    desk: Arc<Desk>,
    changes: Sender<()>,
    runs: Mutex<bool>,
}

/// Somebody who watches some resources.
pub(super) struct Listener {
    watch: Arc<Watch>,
    changes: Receiver<()>,
    watched: Vec<Watched>,
}

/// A resource, under the address by which it was asked for.
struct Watched {
    address: String,
    resource: Resource,
    mark: Mark,
}

impl Watch {
    /// Nobody listens yet.
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        Self { desk, changes: channel(()).0, runs: Mutex::new(false) }
    }

    /// Listens from now on to these addresses; those that name nothing are left out.
    pub(super) async fn listen(self: &Arc<Self>, addresses: Vec<String>) -> Result<Listener, Failure> {
        let this = Arc::clone(self);
        blocking(move || this.listen_now(addresses)).await?
    }

    fn listen_now(self: &Arc<Self>, addresses: Vec<String>) -> Result<Listener, Failure> {
        let engine = self.desk.engine()?;
        let changes = self.subscribe()?;
        let watched = addresses.into_iter().filter_map(|address| Some((Resource::parse(&address)?, address)));
        // Marks are taken once changes are heard, so that nothing falls between.
        let watched = watched.map(|(resource, address)| {
            let mark = resource.mark(&engine)?;
            Ok(Watched { address, resource, mark })
        });
        Ok(Listener { watch: Arc::clone(self), changes, watched: watched.collect::<Result<_, Failure>>()? })
    }

    /// The ear, open from now on.
    fn subscribe(self: &Arc<Self>) -> Result<Receiver<()>, Failure> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.changes.subscribe();
        if !*runs {
            let seen = self.desk.engine()?.store().version().map_err(|error| Failure::from(&error))?;
            let this = Arc::clone(self);
            std::thread::Builder::new()
                .name("watch".to_owned())
                .spawn(move || this.run(seen))
                .map_err(|error| Failure::internal("no_thread", format!("no thread to watch with: {error}"), true))?;
            *runs = true;
        }
        Ok(changes)
    }

    /// Hears of changes until nobody listens. A store that fails is tried again after a while.
    fn run(&self, mut seen: u64) {
        while self.is_wanted() {
            match self.wait(seen) {
                Ok(now) if now == seen => {}
                Ok(now) => {
                    seen = now;
                    self.changes.send_replace(());
                }
                Err(failure) => {
                    tracing::warn!(failure.message, "resources are not watched for a while");
                    std::thread::sleep(WAIT);
                }
            }
        }
    }

    fn wait(&self, seen: u64) -> Result<u64, Failure> {
        let engine = self.desk.engine()?;
        let store = engine.store();
        store.wait(seen, WAIT).and_then(|()| store.version()).map_err(|error| Failure::from(&error))
    }

    /// Whether anybody listens. Decided under the lock, so that nobody begins to listen to a thread that ends.
    fn is_wanted(&self) -> bool {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        *runs = self.changes.receiver_count() > 0;
        *runs
    }
}

impl Listener {
    /// What is watched.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &str> {
        self.watched.iter().map(|watched| watched.address.as_str())
    }

    /// Waits for changes, and says which of the watched resources have changed: perhaps none. Not to be called again
    /// after it was given up halfway.
    pub(super) async fn changed(&mut self) -> Result<Vec<String>, Failure> {
        self.changes.changed().await.expect("BUG: a listener keeps the ear");
        let (watch, mut watched) = (Arc::clone(&self.watch), std::mem::take(&mut self.watched));
        let (watched, changed) = blocking(move || {
            let changed = look(&watch.desk, &mut watched);
            (watched, changed)
        })
        .await?;
        self.watched = watched;
        changed
    }
}

/// The addresses of what differs from the last look.
fn look(desk: &Desk, watched: &mut [Watched]) -> Result<Vec<String>, Failure> {
    let engine = desk.engine()?;
    let mut changed = Vec::new();
    for watched in watched {
        let mark = watched.resource.mark(&engine)?;
        if mark != watched.mark {
            watched.mark = mark;
            changed.push(watched.address.clone());
        }
    }
    Ok(changed)
}
