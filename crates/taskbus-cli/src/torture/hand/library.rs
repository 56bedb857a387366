//! A hand that uses the library, as a program would that embeds taskbus.

use std::path::Path;
use std::sync::Arc;

use taskbus::answer::Answer;
use taskbus::engine::{Engine, Error, Limits, ListAsk, ReceiveAsk, Registration, Request, Span};
use taskbus::store::Store;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Content, Draft, Headline, Sort};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::task::Status;

use super::{Gone, Hand, LIST};
use crate::torture::deed::Deed;
use crate::torture::record::Number;
use crate::torture::told::Told;
use crate::wire::error::Failure;
use crate::wire::{answer, object};

/// An engine, and the name it acts under.
pub(in crate::torture) struct Library {
    /// The engine.
    pub(in crate::torture) engine: Engine,
    /// The name.
    pub(in crate::torture) caller: Identity,
    /// The list.
    pub(in crate::torture) list: ListName,
}

impl Library {
    /// Opens a store under a name that one process after another has.
    pub(in crate::torture) fn open(store: &Path, name: &str) -> Result<Self, Error> {
        Self::over(Arc::new(SqliteStore::open(store, SqliteOptions::default())?), name)
    }

    /// The same over a store that is open.
    pub(in crate::torture) fn over(store: Arc<dyn Store>, name: &str) -> Result<Self, Error> {
        let limits = Limits { writes_per_second: u32::MAX, write_kib_per_second: u32::MAX, ..Limits::default() };
        let engine = Engine::new(store, limits);
        let wish = Registration { name: name.to_owned(), span: Span::Command, ..Registration::default() };
        let caller = engine.register(&wish)?.name;
        let list = ListName::new(LIST).expect("BUG: a constant name is valid");
        Ok(Self { engine, caller, list })
    }

    fn try_it(&self, number: Number, deed: &Deed, key: Option<&str>) -> Result<Told, Failure> {
        let (mark, key) = (number.mark(), key.map(key_of));
        let facts = match deed {
            Deed::Get { id } => object(&self.engine.get(Some(&self.caller), id, false)?),
            Deed::Send { channel } => {
                let channel = ChannelName::new(channel.as_str()).map_err(|error| broken(&error))?;
                object(&self.engine.send(&self.caller, &channel, &letter(&mark)?, key.as_ref())?)
            }
            Deed::Receive { ack } => {
                let ask = ReceiveAsk { ack: ack.clone(), ..ReceiveAsk::default() };
                object(&self.engine.receive(&self.caller, &ask, &|| true)?)
            }
            _ => {
                let command = deed.command(&self.caller, &mark).map_err(|error| broken(&error))?;
                let command = command.expect("BUG: everything else is a command");
                let list = deed.names_list().then(|| self.list.clone());
                let request = Request { caller: self.caller.clone(), list, command, key };
                told(&self.engine.execute(&request)?)
            }
        };
        Told::read(deed, &facts).map_err(|words| Failure::internal("answer", words, false))
    }
}

impl Hand for Library {
    fn caller(&self) -> &Identity {
        &self.caller
    }

    fn act(&mut self, number: Number, deed: &Deed, key: Option<&str>) -> Result<Told, Gone> {
        Ok(self.try_it(number, deed, key).unwrap_or_else(|failure| Told::refused(&failure.to_object())))
    }

    fn look(&mut self, status: Status, limit: usize) -> Result<Vec<(TaskId, Option<Identity>)>, Gone> {
        let ask = ListAsk { status: Some(status), limit: Some(limit), ..ListAsk::default() };
        let page = self.engine.list(Some(&self.caller), &self.list, &ask).map_err(|error| Gone(error.to_string()))?;
        Ok(page.tasks.into_iter().map(|task| (task.id, task.owner)).collect())
    }
}

fn told(answer: &Answer) -> serde_json::Map<String, serde_json::Value> {
    match answer {
        Answer::Created(task) | Answer::Restored(task) => object(&**task),
        Answer::Planned(tasks) => answer::planned(tasks),
        Answer::Written(written) => answer::written(written),
        Answer::Next(taken) => answer::taken(taken, taken.tasks.len()),
    }
}

fn letter(mark: &str) -> Result<Draft, Failure> {
    Ok(Draft {
        content: Content::new(mark).map_err(|error| broken(&error))?,
        sort: Sort::default(),
        subject: Headline::new(mark).map_err(|error| broken(&error))?,
        reply_to: None,
        metadata: None,
        tags: Vec::new(),
    })
}

fn key_of(text: &str) -> Key {
    Key::new(text).expect("BUG: a mark is a key")
}

fn broken(error: &taskbus_core::text::TextError) -> Failure {
    Failure::internal("deed", error.to_string(), false)
}
