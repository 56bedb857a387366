//! `memory …`.

use serde_json::{Map, Value, json};
use taskbus::answer::memory::Edited;
use taskbus_core::bus::message::{Headline, Message, Revision};
use taskbus_core::bus::tag;
use taskbus_core::time::Timestamp;

use super::args::{Memory, Said};
use super::show;
use super::talk::{self, Posted};
use crate::cli::desk::Desk;
use crate::cli::input;
use crate::term::failure::Failure;
use crate::term::report::Report;
use crate::wire;

/// Runs one of the commands about a memory.
pub(crate) fn run(desk: &Desk, command: &Memory) -> Result<Box<dyn Report>, Failure> {
    match command {
        Memory::Add { said, channel, subject, tags, key } => {
            let to = talk::channel(channel)?;
            let draft = talk::draft(said, subject.as_deref(), tags, &desk.input)?;
            let sent = desk.engine.send(desk.caller()?, &to, &draft, input::key(key)?.as_ref())?;
            Ok(Box::new(Posted { to, sent }))
        }
        Memory::Show { id } => {
            let memory = desk.engine.memory(desk.caller()?, *id)?;
            Ok(Box::new(Shown { memory, now: desk.engine.now()? }))
        }
        Memory::Edit { id, said, subject, tags, key } => {
            let revision = revision(desk, said, subject.as_deref(), tags.as_deref())?;
            let edited = desk.engine.edit_memory(desk.caller()?, *id, &revision, input::key(key)?.as_ref())?;
            Ok(Box::new(Revised(edited)))
        }
        Memory::Rm { id, key } => {
            let deleted = desk.engine.delete_memory(desk.caller()?, *id, input::key(key)?.as_ref())?;
            Ok(Box::new(Removed { id: *id, json: wire::object(&deleted) }))
        }
    }
}

fn revision(desk: &Desk, said: &Said, subject: Option<&str>, tags: Option<&[String]>) -> Result<Revision, Failure> {
    let headline = |text: &str| Headline::new(text).map_err(|error| Failure::text("subject", error));
    let tags = tags.map(|tags| tags.iter().filter(|tag| !tag.is_empty()).collect::<Vec<_>>());
    Ok(Revision {
        content: talk::content(said, &desk.input)?,
        sort: talk::sort(said)?,
        subject: subject.map(headline).transpose()?,
        metadata: talk::metadata(said),
        tags: tags.map(|tags| tag::normalize(&tags)).transpose()?,
    })
}

/// A memory as it is.
struct Shown {
    memory: Message,
    now: Timestamp,
}

impl Report for Shown {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("memory".to_owned(), json!(self.memory))])
    }

    fn words(&self, _: Option<usize>) -> String {
        show::messages([&self.memory], self.now)
    }
}

/// A memory that was revised.
struct Revised(Edited);

impl Report for Revised {
    fn json(&self) -> Map<String, Value> {
        wire::object(&self.0)
    }

    fn words(&self, _: Option<usize>) -> String {
        format!("memory {} is at revision {}\n", self.0.memory_id, self.0.revision)
    }
}

/// A memory that was deleted.
struct Removed {
    id: u64,
    json: Map<String, Value>,
}

impl Report for Removed {
    fn json(&self) -> Map<String, Value> {
        self.json.clone()
    }

    fn words(&self, _: Option<usize>) -> String {
        format!("deleted memory {}\n", self.id)
    }
}
