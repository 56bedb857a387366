//! For unit tests: a desk over a memory store, and calls on it.

use std::sync::Arc;

use serde_json::{Value, json};
use taskbus::engine::{Engine, Limits};
use taskbus::store::Store;
use taskbus::store::memory::MemoryStore;
use taskbus_core::name::ListName;

use super::desk::{self, Asked, Choice, Desk, Lists, Reply};
use super::people::{Hints, People};
use super::repository::Repository;
use super::table::{Offer, Offered};
use super::voice;
use crate::options::ToolSet;
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
        call(&Asked {
            thread: self.thread,
            client: self.name,
            version: "1",
            cancelled: &never,
            hurry: &never,
            impatient: false,
        })
    }

    pub(super) fn call(&self, desk: &Desk, tool: &str, arguments: &Value) -> Result<Reply, Failure> {
        let tool = offered(tool).tool;
        self.ask(|asked| desk::call(desk, tool, arguments.as_object().unwrap().clone(), asked))
    }

    /// What the client gets: the text, the facts, and whether it is an error.
    pub(super) fn hear(&self, desk: &Desk, tool: &str, arguments: &Value) -> (String, Value, bool) {
        let outcome = self.call(desk, tool, arguments);
        let reply = outcome.unwrap_or_else(|failure| voice::refusal(offered(tool).set, failure));
        let is_error = reply.is_error;
        let (text, facts) = reply.into_text();
        (text, facts, is_error)
    }
}

/// The tool with this name, of any set.
pub(super) fn offered(name: &str) -> Offered {
    Offer::of(&ToolSet::ALL, false).find(name).unwrap_or_else(|| panic!("there is no tool {name}"))
}

/// A desk over an empty store.
pub(super) fn desk() -> Desk {
    let nowhere = || Failure::shape("channel", "channel is required here");
    on(Arc::new(MemoryStore::new()), many(Err(nowhere()), Err(nowhere())), "Roo")
}

/// A desk with the list `tasks/t`.
pub(super) fn desk_with_list() -> Desk {
    let desk = desk();
    Client::named("c").call(&desk, "create_channel", &json!({"name": "tasks/t"})).unwrap();
    desk
}

/// A choice among many lists.
pub(super) fn many(usual: Result<ListName, Failure>, claude: Result<ListName, Failure>) -> Lists {
    Lists::Many(Box::new(Choice { usual, claude }))
}

/// A desk over a store, whose agents are called so.
pub(super) fn on(store: Arc<dyn Store>, lists: Lists, name: &str) -> Desk {
    let hints = Hints { name: Some(name.to_owned()), ..Hints::default() };
    let open = Box::new(move || Ok(Engine::new(Arc::clone(&store), Limits::default())));
    Desk::new(open, lists, People::new(hints), Repository::default())
}
