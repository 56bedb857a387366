//! The tasks that an agent keeps for itself, shown to others: where `.local/taskbus.json` says `"mirror_tasks": true`,
//! a task that Claude Code made of its own also stands on the shared list, assigned to a name below the agent's, so
//! that nobody else takes it. `taskbus mirror` is the whole thing; this needs no process.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskbus::answer::Answer;
use taskbus::engine::{Engine, ListAsk, Registration, Request, Span};
use taskbus_core::command::{Command, Draft, Patch};
use taskbus_core::id::TaskId;
use taskbus_core::limits::PAGE_ROWS_MAX;
use taskbus_core::name::{Identity, Key, ListName};
use taskbus_core::task::Status;
use taskbus_core::text::{Body, Subject};

use super::input::Input;
use super::{moments, who};
use crate::options::Globals;
use crate::project::{self, Surroundings};
use crate::term::failure::Failure;

/// What the agent's own tasks are called by, below its name.
const NAME: &str = "own-tasks";
/// Which session a task belongs to, and which task of it this is.
const MARKS: [&str; 2] = ["claude_session", "claude_task"];

/// Shows a task.
pub(super) fn created(globals: &Globals, input: &Input) -> Result<Option<Value>, Failure> {
    let (Some(mirror), Some([session, id])) = (Mirror::open(globals, input)?, marks(input)) else { return Ok(None) };
    let Some(subject) = input.text("task_subject") else { return Ok(None) };
    let mut draft = Draft::new(Subject::new(subject).map_err(|error| Failure::text("subject", error))?);
    draft.description = input.text("task_description").and_then(|text| Body::new(text).ok());
    draft.metadata = BTreeMap::from([(MARKS[0].to_owned(), json!(session)), (MARKS[1].to_owned(), json!(id))]);
    let key = Key::new(format!("claude:{session}:{id}")).ok();
    let answer = mirror.execute(Some(&mirror.list), Command::Create(Box::new(draft)), key)?;
    if let Answer::Created(task) = answer {
        let assigned = Patch { owner: Some(Some(mirror.name.clone())), ..Patch::default() };
        mirror.execute(None, Command::Update(task.id, Box::new(assigned)), None)?;
    }
    Ok(None)
}

/// Completes it.
pub(super) fn completed(globals: &Globals, input: &Input) -> Result<Option<Value>, Failure> {
    let (Some(mirror), Some(marks)) = (Mirror::open(globals, input)?, marks(input)) else { return Ok(None) };
    if let Some(id) = mirror.find(&marks)? {
        mirror.execute(None, Command::Update(id, Box::new(Patch::complete(None))), None)?;
    }
    Ok(None)
}

fn marks(input: &Input) -> Option<[&str; 2]> {
    Some([input.text("session_id")?, input.text("task_id")?])
}

/// A repository that wants it, and its list.
struct Mirror {
    engine: Engine,
    list: ListName,
    name: Identity,
}

impl Mirror {
    fn open(globals: &Globals, input: &Input) -> Result<Option<Self>, Failure> {
        let is_wanted = who::repository()?.is_some_and(|file| file.mirrors_tasks());
        let parent = if is_wanted { moments::parent(globals, input)? } else { None };
        let (Some(parent), Some(engine)) = (parent, who::engine(globals)?) else { return Ok(None) };
        let list = project::choose(&Surroundings::from_env(globals.list.clone()))?.name;
        let (name, parent) = (NAME.to_owned(), Some(parent.to_string()));
        let client = super::super::desk::CLIENT.to_owned();
        let wish = Registration { name, parent, client, span: Span::Command, ..Registration::default() };
        let name = engine.register_name(&wish)?;
        Ok(Some(Self { engine, list, name }))
    }

    fn execute(&self, list: Option<&ListName>, command: Command, key: Option<Key>) -> Result<Answer, Failure> {
        let request = Request { caller: self.name.clone(), list: list.cloned(), command, key };
        Ok(self.engine.execute(&request)?)
    }

    /// The task with these marks, among the open ones of this name.
    fn find(&self, marks: &[&str; 2]) -> Result<Option<TaskId>, Failure> {
        let (owner, status) = (Some(self.name.clone()), Some(Status::Pending));
        let ask = ListAsk { owner, status, limit: Some(PAGE_ROWS_MAX), ..ListAsk::default() };
        for row in self.engine.list(None, &self.list, &ask)?.tasks {
            let task = self.engine.get(None, &row.id, false)?.task;
            if MARKS.iter().zip(marks).all(|(name, mark)| task.metadata.get(*name) == Some(&json!(mark))) {
                return Ok(Some(row.id));
            }
        }
        Ok(None)
    }
}
