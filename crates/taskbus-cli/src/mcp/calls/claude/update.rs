//! `TaskUpdate`: one call that may be several commands, since it can change what other tasks wait for too
//! (docs/rules.md 8). All of it happens, or nothing.

use serde_json::{Map, Value, json};
use taskbus::answer::{Answer, TaskView, Written};
use taskbus_core::command::{Command, Patch};
use taskbus_core::drop_in::Asking;
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::{Look, Neighbourhood};
use taskbus_core::refusal::{Missing, Refusal};
use taskbus_core::task::{Status, Task};
use taskbus_core::text::{Body, Subject};

use super::{NOT_FOUND, numbers, texts};
use crate::mcp::args::Args;
use crate::mcp::calls::drop_in::{About, DropIn};
use crate::mcp::calls::write::cleared;
use crate::mcp::desk::{Asked, Desk, Reply};
use crate::mcp::{typed, voice};
use crate::options::ToolSet;
use crate::wire::error::Failure;

/// Changes one task.
pub(crate) fn update(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let ask = Ask::read(args)?;
    let call = DropIn::begin(desk, asked, ToolSet::Claude)?;
    let mut before = Err(ask.id.clone());
    let done = call.run(About::Task(&ask.id), None, &mut |asking, list| {
        before = ask.found(list)?;
        Ok(before.as_ref().map_or_else(|_| Vec::new(), |before| ask.commands(asking, before)))
    });
    Ok(match (done, before) {
        (Ok(done), Ok(before)) => changed(&ask, &before, &done.answers),
        (Ok(_), Err(id)) => refused(&ask, Refusal::NotFound(Missing::Task { id }).into()),
        (Err(failure), _) => refused(&ask, failure),
    })
}

/// What is asked.
struct Ask {
    id: TaskId,
    patch: Patch,
    /// The tasks that are to wait for this one.
    blocks: Vec<TaskId>,
}

impl Ask {
    fn read(args: &mut Args) -> Result<Self, Failure> {
        let status = args.word("status");
        let metadata = args.data("metadata").into_iter();
        let patch = Patch {
            status: status.and_then(Status::from_word),
            delete: status == Some(DELETED),
            subject: args.text("subject").map(|text| typed("subject", text, Subject::new)).transpose()?,
            description: cleared(args, "description", Body::new)?,
            active_form: cleared(args, "activeForm", Subject::new)?,
            owner: cleared(args, "owner", Identity::new)?,
            add_blocked_by: args.ids("addBlockedBy").unwrap_or_default(),
            metadata: metadata.map(|(key, value)| (key, Some(value).filter(|value| !value.is_null()))).collect(),
            ..Patch::default()
        };
        Ok(Self { id: args.required_id("taskId"), patch, blocks: args.ids("addBlocks").unwrap_or_default() })
    }

    /// The task as it is, or what of the tasks named here is not there. A deleted one is not, also where a change would
    /// bring it back.
    fn found(&self, list: &dyn Neighbourhood) -> Look<Result<Task, TaskId>> {
        for id in &self.blocks {
            if list.task(id)?.is_none() {
                return Ok(Err(id.clone()));
            }
        }
        Ok(list.task(&self.id)?.ok_or_else(|| self.id.clone()))
    }

    /// The commands on the task itself, and then those on the tasks that are to wait for it.
    fn commands(&self, asking: Asking<'_>, before: &Task) -> Vec<Command> {
        let waits = || Patch { add_blocked_by: vec![self.id.clone()], ..Patch::default() };
        let others = self.blocks.iter().map(|waiting| Command::Update(waiting.clone(), Box::new(waits())));
        asking.of_claude(before, self.patch.clone()).into_iter().chain(others).collect()
    }
}

impl Ask {
    /// The fields that are not what they were, as the tool names them. Dead blockers go by themselves and do not count.
    fn updated_fields(&self, before: &Task, after: &TaskView, others: &[&Written]) -> Vec<&'static str> {
        let is_new = |id: &TaskId| after.blocked_by.contains(id) && !before.blocked_by.contains(id);
        let fields = [
            ("subject", before.subject != after.subject),
            ("description", before.description != after.description),
            ("activeForm", before.active_form != after.active_form),
            ("status", before.status() != after.status),
            ("owner", before.owner() != after.owner.as_ref()),
            ("metadata", before.metadata != after.metadata),
            ("blocks", others.iter().any(|other| other.replaced > 0)),
            ("blockedBy", self.patch.add_blocked_by.iter().any(is_new)),
        ];
        fields.into_iter().filter_map(|(name, changed)| changed.then_some(name)).collect()
    }
}

const DELETED: &str = "deleted";

/// What was done: the answers to the commands, of which those to `blocks` are the last.
fn changed(ask: &Ask, before: &Task, answers: &[Answer]) -> Reply {
    let written: Vec<&Written> = answers.iter().map(written).collect();
    let (own, others) = written.split_at(written.len() - ask.blocks.len());
    let last = own.last().expect("BUG: an update has a command of its own");
    let fields = if last.deleted { vec![DELETED] } else { ask.updated_fields(before, &last.task, others) };
    let to = if last.deleted { DELETED } else { last.task.status.as_str() };
    let from = before.status().as_str();
    let said = Said { id: ask.id.to_string(), change: (from != to).then_some((from, to)), fields, last };
    Reply::told(said.facts(), said.words())
}

fn written(answer: &Answer) -> &Written {
    let Answer::Written(written) = answer else { unreachable!("BUG: an update answers what it wrote") };
    written
}

/// What a change comes to.
struct Said<'a> {
    id: String,
    change: Option<(&'static str, &'static str)>,
    fields: Vec<&'static str>,
    last: &'a Written,
}

impl Said<'_> {
    /// The owner, if that is another one; empty for nobody.
    fn owner(&self) -> Option<&str> {
        let owner = self.last.task.owner.as_ref().map_or("", |owner| owner.as_str());
        self.fields.contains(&"owner").then_some(owner)
    }

    /// What the caller should know of a change; that there was none is said by the fields.
    fn warnings(&self) -> &[String] {
        if self.last.replaced == 0 { &[] } else { &self.last.warnings }
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts =
            vec![("success", json!(true)), ("taskId", json!(self.id)), ("updatedFields", json!(self.fields))];
        facts.extend(self.change.map(|(from, to)| ("statusChange", json!({"from": from, "to": to}))));
        facts.extend(self.owner().map(|owner| ("owner", json!(owner))));
        let ids = [("unblocked", &self.last.unblocked), ("openChildren", &self.last.open_children)];
        facts.extend(ids.into_iter().filter(|(_, ids)| !ids.is_empty()).map(|(name, ids)| (name, texts(ids))));
        if self.last.parent_complete {
            facts.push(("parentComplete", json!(true)));
        }
        if !self.warnings().is_empty() {
            facts.push(("warnings", json!(self.warnings())));
        }
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn words(&self) -> String {
        let mut lines = vec![match self.fields.as_slice() {
            [] => format!("Task #{} is as asked already: nothing was changed", self.id),
            fields => format!("Updated task #{} {}", self.id, fields.join(", ")),
        }];
        lines.extend(self.change.map(|(from, to)| format!("Status: {from} -> {to}")));
        let nobody = |owner: &str| if owner.is_empty() { "nobody".to_owned() } else { owner.to_owned() };
        lines.extend(self.owner().map(|owner| format!("Owner: {}", nobody(owner))));
        let ids = [("Free now", &self.last.unblocked), ("Still open below it", &self.last.open_children)];
        let ids = ids.into_iter().filter(|(_, ids)| !ids.is_empty());
        lines.extend(ids.map(|(name, ids)| format!("{name}: {}", numbers(ids))));
        if self.last.parent_complete {
            lines.push("That was the last open task below its parent".to_owned());
        }
        lines.extend(self.warnings().iter().map(|warning| format!("Warning: {warning}")));
        lines.join("\n")
    }
}

/// A refusal in the form of the tool, with the facts behind it.
fn refused(ask: &Ask, failure: Failure) -> Reply {
    let is_missing = failure.code == "not_found" && failure.facts.get("task_id") == Some(&json!(ask.id));
    let reply = voice::refusal(ToolSet::Claude, failure);
    let text = if is_missing { NOT_FOUND.to_owned() } else { reply.text.unwrap_or_default() };
    let head = [
        ("success", json!(false)),
        ("taskId", json!(ask.id.to_string())),
        ("updatedFields", json!([])),
        ("error", json!(text)),
    ];
    let head = head.into_iter().map(|(name, value)| (name.to_owned(), value));
    Reply { facts: head.chain(reply.facts).collect(), text: Some(text), is_error: true }
}
