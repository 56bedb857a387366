//! The tools of Claude Code. Their ids are texts, their answers are words, and the structured form says the same.

mod read;
#[cfg(test)]
mod tests;
mod update;

use serde_json::{Map, Value, json};
use taskbus::answer::Answer;
use taskbus_core::command::{Command, Draft};
use taskbus_core::id::TaskId;
use taskbus_core::text::{Body, Subject};

pub(crate) use self::read::{get, list};
pub(crate) use self::update::update;
use super::drop_in::{About, DropIn};
use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, Desk, Reply};
use crate::mcp::typed;
use crate::options::ToolSet;
use crate::wire::error::Failure;

/// What is said of a task that is not there.
const NOT_FOUND: &str = "Task not found";

/// Makes one task.
pub(crate) fn create(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let command = Command::Create(Box::new(draft(args)?));
    let call = DropIn::begin(desk, asked, ToolSet::Claude)?;
    let made = call.run(About::New, None, &mut |_, _| Ok(vec![command.clone()]))?;
    let [Answer::Created(task)] = made.answers.as_slice() else { unreachable!("BUG: a create answers what it made") };
    let id = task.id.to_string();
    let facts = Map::from_iter([("task".to_owned(), json!({"id": id, "subject": task.subject}))]);
    Ok(Reply::told(facts, format!("Task #{id} created successfully: {}", task.subject)))
}

fn draft(args: &mut Args) -> Result<Draft, Failure> {
    let subject = typed("subject", args.required_text("subject"), Subject::new)?;
    let description = args.text("description").filter(|text| !text.is_empty());
    Ok(Draft {
        description: description.map(|text| typed("description", text, Body::new)).transpose()?,
        active_form: args.text("activeForm").map(|text| typed("activeForm", text, Subject::new)).transpose()?,
        metadata: args.data("metadata").into_iter().filter(|(_, value)| !value.is_null()).collect(),
        ..Draft::new(subject)
    })
}

/// Ids as they are in these tools.
fn texts(ids: &[TaskId]) -> Value {
    ids.iter().map(ToString::to_string).collect()
}

/// Ids in words: `#1, #2`.
fn numbers(ids: &[TaskId]) -> String {
    ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}
