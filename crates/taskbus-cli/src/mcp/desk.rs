//! What a call needs: the engine, opened when the first call comes, who is known, and the list that is meant when
//! none is named. Everything here may block, so it runs where blocking is allowed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use taskbus::engine::Engine;
use taskbus_core::limits;
use taskbus_core::name::ListName;

use super::args::{self, Args};
use super::field::Tool;
use super::people::People;
use super::repository::Repository;
use super::typed;
use crate::options::ToolSet;
use crate::project;
use crate::wire::error::Failure;

/// Opens the engine. Called again when it failed before.
pub(super) type Opener = Box<dyn Fn() -> Result<Engine, Failure> + Send + Sync>;

/// Who asks, as far as the connection says.
pub(super) struct Asked<'a> {
    /// The session or thread that the client names beside the arguments.
    pub(super) thread: Option<&'a str>,
    /// The client program.
    pub(super) client: &'a str,
    /// Its version.
    pub(super) version: &'a str,
    /// Whether nobody waits for the answer any more.
    pub(super) cancelled: &'a dyn Fn() -> bool,
    /// Whether a call should not wait any longer: as above, or because the process is about to end.
    pub(super) hurry: &'a dyn Fn() -> bool,
    /// Whether too many calls wait already for this one to wait too.
    pub(super) impatient: bool,
}

/// Runs a tool.
pub(super) fn call(
    desk: &Desk,
    tool: &Tool,
    arguments: Map<String, Value>,
    asked: &Asked<'_>,
) -> Result<Reply, Failure> {
    let mut args = args::read(tool.fields, arguments)?;
    let reply = (tool.run)(desk, &mut args, asked)?;
    debug_assert!(args.left().is_empty(), "BUG: {} takes no {:?}", tool.name, args.left());
    Ok(reply)
}

/// What a call answers.
#[derive(Debug)]
pub(super) struct Reply {
    /// The facts.
    pub(super) facts: Map<String, Value>,
    /// The same facts in another shape, for clients that show the text; none: the facts as JSON.
    pub(super) text: Option<String>,
    /// Whether it says that nothing was done, and why.
    pub(super) is_error: bool,
}

impl From<Map<String, Value>> for Reply {
    fn from(facts: Map<String, Value>) -> Self {
        Self { facts, text: None, is_error: false }
    }
}

impl Reply {
    /// Facts, and the same in words.
    pub(super) fn told(facts: Map<String, Value>, text: String) -> Self {
        Self { facts, text: Some(text), is_error: false }
    }

    /// What stands in the text.
    pub(super) fn into_text(self) -> (String, Value) {
        let facts = Value::Object(self.facts);
        (self.text.unwrap_or_else(|| facts.to_string()), facts)
    }
}

/// A choice among many lists.
#[derive(Clone)]
pub(crate) struct Choice {
    /// The list of this process, or why there is none.
    pub(crate) usual: Result<ListName, Failure>,
    /// The same for the tools of Claude Code, which have a variable of their own.
    pub(crate) claude: Result<ListName, Failure>,
}

/// Which list a call means when it names none.
#[derive(Clone)]
pub(crate) enum Lists {
    /// A store of many.
    Many(Box<Choice>),
    /// A store of one. What `--list` says is no choice there.
    One {
        /// What it says.
        named: Option<String>,
    },
}

/// The budget of an answer, in bytes. The text and the structured form each keep it.
pub(super) const BUDGET: usize = limits::RESULT_BYTES_DEFAULT;

/// The state of the server.
pub(super) struct Desk {
    open: Opener,
    engine: Mutex<Option<Arc<Engine>>>,
    lists: Lists,
    /// Who is known.
    pub(super) people: People,
    /// What the agents of this repository have in common.
    pub(super) repository: Repository,
}

impl Desk {
    /// A desk that has not opened anything yet.
    pub(super) fn new(open: Opener, lists: Lists, people: People, repository: Repository) -> Self {
        Self { open, engine: Mutex::new(None), lists, people, repository }
    }

    /// The engine; opens the store if that was not done.
    pub(super) fn engine(&self) -> Result<Arc<Engine>, Failure> {
        let mut slot = self.lock();
        if let Some(engine) = &*slot {
            return Ok(Arc::clone(engine));
        }
        let engine = Arc::new((self.open)()?);
        *slot = Some(Arc::clone(&engine));
        Ok(engine)
    }

    /// Whether names are held here, so that a caller must have one of its own.
    pub(super) fn keeps_sessions(&self) -> Result<bool, Failure> {
        Ok(self.engine()?.store().abilities().liveness)
    }

    /// The engine, if a call has opened it.
    pub(super) fn opened(&self) -> Option<Arc<Engine>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Engine>>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list that a call names, or the one of this process.
    pub(super) fn list(&self, args: &mut Args) -> Result<ListName, Failure> {
        let given = args.text("channel").map(|given| typed("channel", given, ListName::new)).transpose()?;
        match (&self.lists, given) {
            (Lists::Many(choice), None) => choice.usual.clone(),
            (Lists::Many(_), Some(given)) => Ok(given),
            (Lists::One { named }, None) => self.only(named.as_deref()),
            (Lists::One { .. }, Some(given)) => self.only(Some(given.as_str())),
        }
    }

    /// The list of the tools that have no field for one.
    pub(super) fn own_list(&self, set: ToolSet) -> Result<ListName, Failure> {
        match (&self.lists, set) {
            (Lists::Many(choice), ToolSet::Claude) => choice.claude.clone(),
            (Lists::Many(choice), ToolSet::Core | ToolSet::Full | ToolSet::Kin) => choice.usual.clone(),
            (Lists::One { named }, _) => self.only(named.as_deref()),
        }
    }

    fn only(&self, named: Option<&str>) -> Result<ListName, Failure> {
        let engine = self.engine()?;
        let only = engine.lists()?.pop().expect("BUG: a store of one list has it");
        let chosen = project::choose_only(named, only.name, &engine.store().describe());
        chosen.map(|chosen| chosen.name).map_err(|error| Failure::shape("channel", error.to_string()))
    }
}
