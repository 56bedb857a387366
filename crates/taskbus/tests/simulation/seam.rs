//! The store as all agents see it: it fails when it is told to, before it begins, before it commits or behind that, and
//! it can be opened anew under everybody's feet.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taskbus::core::id::TaskId;
use taskbus::core::name::ListName;
use taskbus::core::time::Timestamp;
use taskbus::store::{Abilities, Abort, ReadBody, Store, StoreError, WhereBody, WriteBody};

/// How the next write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It never begins.
    Busy,
    /// It is rolled back when everything is done.
    Before,
    /// It is committed, and nobody hears of it.
    Behind,
}

pub(crate) struct Seam {
    inner: Mutex<Arc<dyn Store>>,
    armed: Mutex<Option<Fault>>,
}

impl Seam {
    pub(crate) fn over(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::new(store), armed: Mutex::new(None) })
    }

    pub(crate) fn inner(&self) -> Arc<dyn Store> {
        Arc::clone(&self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another handle on the same place takes over; the old one is closed.
    pub(crate) fn reopen(&self, open: impl FnOnce() -> Arc<dyn Store>) {
        let mut inner = self.inner.lock().unwrap();
        *inner = open();
    }

    pub(crate) fn arm(&self, fault: Option<Fault>) {
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Whether the fault that was armed has come about.
    pub(crate) fn has_fired(&self) -> bool {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn fire(&self) -> Option<Fault> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Runs a write with the fault that is armed, if any.
    fn failing(&self, write: impl FnOnce(bool) -> Result<(), Abort>) -> Result<(), Abort> {
        match self.fire() {
            None => write(true),
            Some(Fault::Busy) => Err(StoreError::Busy { store: "simulated".to_owned(), waited_ms: 0 }.into()),
            Some(Fault::Before) => write(false).and(Err(broken())),
            Some(Fault::Behind) => write(true).and(Err(broken())),
        }
    }
}

fn broken() -> Abort {
    StoreError::Failed { store: "simulated".to_owned(), source: "an I/O error".into() }.into()
}

/// What a body did is kept, or not.
fn end(kept: bool) -> Result<(), Abort> {
    if kept { Ok(()) } else { Err(broken()) }
}

impl Store for Seam {
    fn abilities(&self) -> Abilities {
        self.inner().abilities()
    }

    fn has_bus(&self) -> bool {
        self.inner().has_bus()
    }

    fn describe(&self) -> String {
        "simulated".to_owned()
    }

    fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner().now()
    }

    fn locate(&self, id: &TaskId) -> Result<Option<ListName>, StoreError> {
        self.inner().locate(id)
    }

    fn index_texts(&self) -> Result<(), StoreError> {
        self.inner().index_texts()
    }

    fn read(&self, list: Option<&ListName>, f: &mut ReadBody<'_>) -> Result<(), StoreError> {
        self.inner().read(list, f)
    }

    fn write(&self, list: Option<&ListName>, f: &mut WriteBody<'_>) -> Result<(), Abort> {
        self.failing(|kept| self.inner().write(list, &mut |tx| f(tx).and_then(|()| end(kept))))
    }

    fn write_where(&self, id: &TaskId, f: &mut WhereBody<'_>) -> Result<(), Abort> {
        self.failing(|kept| self.inner().write_where(id, &mut |tx, list| f(tx, list).and_then(|()| end(kept))))
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.inner().version()
    }

    fn wait(&self, seen: u64, timeout: Duration) -> Result<(), StoreError> {
        self.inner().wait(seen, timeout)
    }
}
