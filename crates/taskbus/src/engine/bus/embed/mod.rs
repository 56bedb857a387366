//! Vectors for memories. A pass asks the server for those that are missing, 64 at a time: one pass follows each write
//! of a memory, in a thread of its own, and the tick makes up for what that could not do. A vector is kept only if its
//! text is still live when it comes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use taskbus_core::bus::embedding::{are_texts_to_blame, may_be_the_texts_fault, text_of};
use taskbus_core::bus::message::Message;
use taskbus_core::limits::{EMBEDDING_BATCH, EMBEDDING_BATCHES_PER_TICK};

use self::server::{Server, Trouble};
use super::{bus, bus_mut};
use crate::engine::{EmbeddingAt, Error};
use crate::store::bus::NoticeKind;
use crate::store::{Store, StoreError, read_with, write_with};

mod server;

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(30);

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Memories that have a vector now.
    pub(super) embedded: usize,
    /// Memories that the server took alone no more than with others.
    pub(super) rejected: usize,
}

/// Why a pass ended early.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Trouble(#[from] Trouble),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who makes vectors for the memories of a store.
pub(in crate::engine) struct Embedder {
    server: Server,
    store: Arc<dyn Store>,
    /// One pass at a time; a second would ask for the same texts.
    passing: Mutex<()>,
    background: Mutex<Background>,
    rest: Condvar,
}

/// The thread that runs a pass after a write.
#[derive(Default)]
struct Background {
    runs: bool,
    /// Something was written while it ran.
    again: bool,
    /// The process ends: no further pass is begun.
    ending: bool,
}

impl Embedder {
    pub(in crate::engine) fn new(at: EmbeddingAt, store: Arc<dyn Store>) -> Self {
        Self {
            server: Server::new(at),
            store,
            passing: Mutex::new(()),
            background: Mutex::default(),
            rest: Condvar::new(),
        }
    }

    pub(super) fn model(&self) -> &str {
        self.server.model()
    }

    /// A query as a vector; none when the server does not make one in time.
    pub(super) fn query(&self, text: &str) -> Option<Vec<f32>> {
        match self.server.vectors(&[text], self.server.query_timeout()) {
            Ok(vectors) => vectors.into_iter().next(),
            Err(trouble) => {
                tracing::warn!(%trouble, "a search by meaning became one by text");
                None
            }
        }
    }

    /// Starts a pass in the background, unless one runs: that one goes on then.
    pub(super) fn wake(self: &Arc<Self>) {
        let mut background = self.lock();
        if background.ending {
            return;
        }
        background.again = true;
        if background.runs {
            return;
        }
        background.runs = true;
        let own = Arc::clone(self);
        let started = std::thread::Builder::new().name("embeddings".to_owned()).spawn(move || own.run());
        if let Err(error) = started {
            background.runs = false;
            tracing::warn!(%error, "embedding is left to the tick");
        }
    }

    /// Waits until what was written is embedded, as far as one pass can, and lets no further pass begin.
    pub(in crate::engine) fn finish(&self) {
        let mut background = self.lock();
        background.ending = true;
        while background.runs {
            background = self.rest.wait(background).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self) {
        while self.goes_on() {
            if let Err(error) = self.pass(None) {
                tracing::warn!(%error, "memories were not embedded");
            }
        }
    }

    /// Whether the thread has something to do; if not, it is about to end.
    fn goes_on(&self) -> bool {
        let mut background = self.lock();
        background.runs = background.again;
        background.again = false;
        self.rest.notify_all();
        background.runs
    }

    /// One pass: at most four requests, and as many single ones as a refused one needs. Sets the notice about what went
    /// wrong, or clears it.
    pub(super) fn pass(&self, deadline: Option<Instant>) -> Result<Passed, Error> {
        let Ok(_alone) = self.passing.try_lock() else { return Ok(Passed::default()) };
        let mut passed = Passed::default();
        let end = self.batches(&mut passed, deadline);
        self.tell(end.as_ref().err())?;
        match end {
            Ok(()) => Ok(passed),
            Err(Stopped::Store(error)) => Err(error.into()),
            Err(Stopped::Trouble(trouble)) => {
                tracing::warn!(%trouble, "memories were not embedded");
                Ok(passed)
            }
        }
    }

    fn batches(&self, passed: &mut Passed, deadline: Option<Instant>) -> Result<(), Stopped> {
        self.forget_other_models()?;
        for _ in 0..EMBEDDING_BATCHES_PER_TICK {
            let model = self.model();
            let missing = read_with(&*self.store, None, |snapshot| bus(snapshot)?.unembedded(model, EMBEDDING_BATCH))?;
            if missing.is_empty() || time_left(deadline).is_zero() {
                break;
            }
            self.batch(&missing, passed, deadline)?;
        }
        Ok(())
    }

    fn batch(&self, missing: &[Message], passed: &mut Passed, deadline: Option<Instant>) -> Result<(), Stopped> {
        let texts: Vec<String> = missing.iter().map(text_of).collect();
        let refs: Vec<&str> = texts.iter().map(String::as_str).collect();
        match self.server.vectors(&refs, time_left(deadline)) {
            Ok(vectors) => {
                let seqs = missing.iter().map(|message| message.seq);
                self.keep(&seqs.zip(vectors).collect::<Vec<_>>(), &[], passed)
            }
            Err(Trouble::Refused { status, .. }) if may_be_the_texts_fault(status) => {
                self.one_by_one(missing, &refs, passed, deadline)
            }
            Err(trouble) => Err(trouble.into()),
        }
    }

    /// Finds out which texts the server refuses. What it took before it failed otherwise is kept.
    fn one_by_one(
        &self,
        missing: &[Message],
        texts: &[&str],
        passed: &mut Passed,
        deadline: Option<Instant>,
    ) -> Result<(), Stopped> {
        let (mut taken, mut refused, mut end) = (Vec::new(), Vec::new(), Ok(()));
        for (message, text) in missing.iter().zip(texts) {
            match self.server.vectors(&[text], time_left(deadline)) {
                Ok(mut vectors) => taken.extend(vectors.pop().map(|vector| (message.seq, vector))),
                Err(Trouble::Refused { status, words }) if may_be_the_texts_fault(status) => {
                    refused.push((message.seq, Trouble::Refused { status, words }));
                }
                Err(trouble) => {
                    end = Err(trouble.into());
                    break;
                }
            }
        }
        let model = self.model();
        let counts = read_with(&*self.store, None, |snapshot| bus(snapshot)?.embedding_counts(model))?;
        if !are_texts_to_blame(taken.len(), counts.embedded) {
            let first = refused.into_iter().next().map(|(_, trouble)| Err(trouble.into()));
            return end.and(first.unwrap_or(Ok(())));
        }
        self.keep(&taken, &refused, passed)?;
        end
    }

    fn keep(&self, taken: &[(u64, Vec<f32>)], refused: &[(u64, Trouble)], passed: &mut Passed) -> Result<(), Stopped> {
        if taken.is_empty() && refused.is_empty() {
            return Ok(());
        }
        let kept = write_with(&*self.store, None, |tx| {
            let now = self.store.now()?;
            let bus = bus_mut(tx)?;
            for (seq, vector) in taken {
                bus.put_vector(*seq, self.model(), vector)?;
            }
            for (seq, trouble) in refused {
                bus.put_embedding_failure(*seq, self.model(), &trouble.to_string(), now)?;
            }
            Ok(())
        });
        kept.map_err(failed)?;
        passed.embedded += taken.len();
        passed.rejected += refused.len();
        Ok(())
    }

    fn forget_other_models(&self) -> Result<(), StoreError> {
        let model = self.model();
        if read_with(&*self.store, None, |snapshot| bus(snapshot)?.has_other_models(model))? {
            let forgotten = write_with(&*self.store, None, |tx| Ok(bus_mut(tx)?.keep_model(model)?));
            tracing::info!(model, vectors = forgotten.map_err(failed)?, "vectors of other models were dropped");
        }
        Ok(())
    }

    /// Says what went wrong to everybody, once; and says it no longer when nothing does.
    fn tell(&self, trouble: Option<&Stopped>) -> Result<(), Error> {
        let pid = std::process::id();
        let text = match trouble {
            Some(Stopped::Trouble(trouble)) => Some(format!("{trouble} (process {pid})")),
            // A store that fails takes no notice either.
            Some(Stopped::Store(_)) => return Ok(()),
            None => None,
        };
        let told = read_with(&*self.store, None, |snapshot| bus(snapshot)?.notice(NoticeKind::Embedding))?;
        if told != text {
            write_with(&*self.store, None, |tx| {
                let now = self.store.now()?;
                Ok(bus_mut(tx)?.put_notice(NoticeKind::Embedding, text.as_deref(), now)?)
            })?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Background> {
        self.background.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a request may take that must be over by the deadline.
fn time_left(deadline: Option<Instant>) -> Duration {
    deadline.map_or(REQUEST, |deadline| deadline.saturating_duration_since(Instant::now()).min(REQUEST))
}

/// Nothing here is refused by any rule.
fn failed(abort: crate::store::Abort) -> StoreError {
    match abort {
        crate::store::Abort::Failed(error) => error,
        crate::store::Abort::Refused(refusal) => {
            StoreError::Failed { store: "in use".to_owned(), source: Box::new(refusal) }
        }
    }
}
