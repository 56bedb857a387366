//! What a command works at: the engine over the chosen store, the list, and the name to act under. Each is looked
//! up when it is first needed, so that a command pays only for what it uses.

use std::cell::OnceCell;
use std::path::Path;

use taskbus::answer::Answer;
use taskbus::engine::{Engine, Error, Registration, Request, Span};
use taskbus::store::sqlite::{BackedUp, Restored};
use taskbus_core::command::Command;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::refusal::{Conflict, Missing, Refusal};

use super::input::Input;
use super::user;
use crate::config::{self, Config};
use crate::options::Globals;
use crate::project::{self, ChosenList, Source, Surroundings};
use crate::store::{self, Opener, StoreUrl};
use crate::term::failure::Failure;
use crate::term::report::say;

/// What this program calls itself in sessions and revisions.
pub(crate) const CLIENT: &str = concat!("taskbus-cli/", env!("CARGO_PKG_VERSION"));

/// The place of work of one command.
pub(crate) struct Desk {
    /// The engine.
    pub(crate) engine: Engine,
    /// What the user decided for every process.
    pub(crate) config: Config,
    /// Where texts come from.
    pub(crate) input: Input,
    url: StoreUrl,
    globals: Globals,
    list: OnceCell<ChosenList>,
    caller: OnceCell<Identity>,
}

/// What a command wrote may still be turned into vectors: that is waited for.
impl Drop for Desk {
    fn drop(&mut self) {
        if let Err(error) = self.engine.close() {
            tracing::warn!(%error, "the sessions will end by themselves");
        }
    }
}

impl Desk {
    /// Opens the store.
    pub(crate) fn open(globals: Globals) -> Result<Self, Failure> {
        let config = config::here(globals.config.as_deref())?;
        let url = store::choose(globals.store.as_deref(), &config)?;
        let engine = Engine::new(store::open(&url, config.sqlite(), Opener::Command)?, config.limits());
        let (list, caller) = (OnceCell::new(), OnceCell::new());
        Ok(Self { engine, config, input: Input::default(), url, globals, list, caller })
    }

    /// What does not add up in the store.
    pub(crate) fn check_store(&self) -> Result<Vec<String>, Failure> {
        Ok(store::check(&self.url, self.config.sqlite())?)
    }

    /// How the store stands against the file that says which numbers were acknowledged; none if it has no such file.
    pub(crate) fn high_water(&self) -> Result<Option<String>, Failure> {
        store::high_water(&self.url, self.config.sqlite())
    }

    /// Goes on with a store that lost acknowledged changes.
    pub(crate) fn accept_rollback(&self) -> Result<String, Failure> {
        store::accept_rollback(&self.url, self.config.sqlite())
    }

    /// Writes a copy of the store.
    pub(crate) fn backup(&self, to: &Path, replace: bool) -> Result<BackedUp, Failure> {
        Ok(store::as_sqlite(&self.url, self.config.sqlite())?.backup(to, replace)?)
    }

    /// Puts a copy in the place of the store.
    pub(crate) fn restore_backup(&self, from: &Path) -> Result<Restored, Failure> {
        Ok(store::as_sqlite(&self.url, self.config.sqlite())?.restore_backup(from)?)
    }

    /// The list, and how it was found.
    pub(crate) fn chosen_list(&self) -> Result<&ChosenList, Failure> {
        if self.list.get().is_none() {
            let found = self.find_list()?;
            let _first = self.list.set(found);
        }
        Ok(self.list.get().expect("BUG: a list that was set is there"))
    }

    fn find_list(&self) -> Result<ChosenList, Failure> {
        let given = self.globals.list.clone();
        if !self.url.is_one_list() {
            return Ok(project::choose(&Surroundings::from_env(given))?);
        }
        let only = self.engine.lists()?.pop().expect("BUG: a store of one list has it");
        Ok(project::choose_only(given.as_deref(), only.name, &self.engine.store().describe())?)
    }

    /// The list.
    pub(crate) fn list(&self) -> Result<&ListName, Failure> {
        Ok(&self.chosen_list()?.name)
    }

    /// The name to act under: registered, with a session that lives as long as the leases taken under it.
    pub(crate) fn caller(&self) -> Result<&Identity, Failure> {
        if self.caller.get().is_none() {
            let (name, parent) = self.wished_name();
            let client = CLIENT.to_owned();
            let wish = Registration { name, parent, client, span: Span::Command, ..Registration::default() };
            let _first = self.caller.set(self.engine.register_name(&wish)?);
        }
        Ok(self.caller.get().expect("BUG: a name that was set is there"))
    }

    /// The name that commands act under, before it is registered.
    pub(crate) fn name(&self) -> String {
        self.globals.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(user::name)
    }

    /// The name that was asked for, by `--as` or its variable.
    pub(crate) fn given_name(&self) -> Option<&str> {
        self.globals.name.as_deref().filter(|name| !name.is_empty())
    }

    /// A child's display name is `parent/name`.
    fn wished_name(&self) -> (String, Option<String>) {
        let name = self.name();
        match name.rsplit_once('/') {
            Some((parent, name)) => (name.to_owned(), Some(parent.to_owned())),
            None => (name, None),
        }
    }

    /// Runs a command.
    pub(crate) fn execute(
        &self,
        list: Option<&ListName>,
        command: Command,
        key: Option<Key>,
    ) -> Result<Answer, Failure> {
        Ok(self.engine.execute(&self.request(list, command, key)?)?)
    }

    /// A command as a request.
    pub(crate) fn request(
        &self,
        list: Option<&ListName>,
        command: Command,
        key: Option<Key>,
    ) -> Result<Request, Failure> {
        Ok(Request { caller: self.caller()?.clone(), list: list.cloned(), command, key })
    }

    /// Runs a command that may make its list: the project's own without a word, another one when `create` says so
    /// or, if `willing`, after saying it.
    pub(crate) fn execute_making_list(
        &self,
        command: Command,
        key: Option<Key>,
        making: Making,
    ) -> Result<Answer, Failure> {
        let list = self.chosen_list()?;
        let request = self.request(Some(&list.name), command, key)?;
        match self.engine.execute(&request) {
            Err(Error::Refused(Refusal::NotFound(Missing::List { .. }))) if making.may_make(list) => {
                if making.says_so(list) {
                    say(&format!("making the list {}", list.name));
                }
                self.make_list(&list.name, making.rules)?;
                Ok(self.engine.execute(&request)?)
            }
            answer => Ok(answer?),
        }
    }

    /// Makes the list if it is not there, after saying so unless it is the project's own.
    pub(crate) fn ensure_list(&self) -> Result<&ListName, Failure> {
        let list = self.chosen_list()?;
        if let Err(Error::Refused(Refusal::NotFound(Missing::List { .. }))) = self.engine.tally(&list.name) {
            if list.source == Source::Named {
                say(&format!("making the list {}", list.name));
            }
            self.make_list(&list.name, ListRules::default())?;
        }
        Ok(&list.name)
    }

    /// Somebody else may have made it in between, with rules of theirs: good enough.
    fn make_list(&self, name: &ListName, rules: ListRules) -> Result<(), Failure> {
        match self.engine.create_list(self.caller()?, name, rules) {
            Ok(_) | Err(Error::Refused(Refusal::Conflict(Conflict::ListExists { .. }))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Under what conditions a command makes its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Making {
    /// `--create` was given.
    pub(crate) create: bool,
    /// It makes any list, after saying so.
    pub(crate) willing: bool,
    /// The settings of the new list.
    pub(crate) rules: ListRules,
}

impl Making {
    fn may_make(self, list: &ChosenList) -> bool {
        self.create || self.willing || list.source != Source::Named
    }

    fn says_so(self, list: &ChosenList) -> bool {
        !self.create && list.source == Source::Named
    }
}
