//! For unit tests: a desk over a memory store, and calls on it.

use std::sync::Arc;

use serde_json::{Value, json};
use taskbus::store::memory::MemoryStore;

use super::desk::{self, Asked, Desk, Reply};
use super::people::{Hints, People};
use super::table::CORE;
use crate::wire::error::Failure;

/// A client that calls.
#[derive(Clone, Copy)]
pub(super) struct Client {
    pub(super) name: &'static str,
    pub(super) thread: Option<&'static str>,
}

impl Client {
    pub(super) fn named(name: &'static str) -> Self {
        Self { name, thread: None }
    }

    pub(super) fn ask<T>(&self, call: impl FnOnce(&Asked<'_>) -> T) -> T {
        let never = || false;
        call(&Asked { thread: self.thread, client: self.name, version: "1", cancelled: &never, hurry: &never })
    }

    pub(super) fn call(&self, desk: &Desk, tool: &str, arguments: &Value) -> Result<Reply, Failure> {
        let tool = CORE.iter().find(|known| known.name == tool).unwrap();
        self.ask(|asked| desk::call(desk, tool, arguments.as_object().unwrap().clone(), asked))
    }
}

/// A desk over an empty store.
pub(super) fn desk() -> Desk {
    let open = Box::new(|| Ok(Arc::new(MemoryStore::new()) as Arc<_>));
    Desk::new(
        open,
        Err(Failure::shape("channel", "channel is required here")),
        People::new(Hints { name: Some("Rob".to_owned()), ..Hints::default() }),
    )
}

/// A desk with the list `tasks/t`.
pub(super) fn desk_with_list() -> Desk {
    let desk = desk();
    Client::named("c").call(&desk, "create_channel", &json!({"name": "tasks/t"})).unwrap();
    desk
}
