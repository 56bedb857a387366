//! Kin's tool `tasks`: six actions on one graph, each answered with the graph as it is then (docs/rules.md 8).

use serde_json::{Map, Value, json};
use taskbus::answer::{Answer, TaskView};
use taskbus::engine::{Overview, Together};
use taskbus_core::command::{Command, Draft, Patch};
use taskbus_core::content;
use taskbus_core::drop_in::Asking;
use taskbus_core::id::TaskId;
use taskbus_core::limits::PAGE_ROWS_MAX;
use taskbus_core::task::{Status, Task};
use taskbus_core::text::{Body, Subject};

use super::drop_in::{About, DropIn};
use super::write::cleared;
use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, BUDGET, Desk, Reply};
use crate::options::ToolSet;
use crate::wire::error::Failure;
use crate::wire::fit;
use crate::wire::kin::{self, DELETED, Graph};

/// The actions.
pub(crate) const ACTIONS: &[&str] = &["add", "update", "complete", "remove", "list", "blocked"];
/// The statuses.
pub(crate) const STATUSES: &[&str] = &["pending", "in_progress", "completed", DELETED];

/// What an answer needs around its rows, in bytes.
const AROUND_BYTES: usize = 128;

/// Does one action.
pub(crate) fn tasks(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let action = args.word("action").expect("BUG: the table requires this field");
    let given = Given::read(action, args)?;
    let call = DropIn::begin(desk, asked, ToolSet::Kin)?;
    match action {
        "list" => list(&call, given.filter),
        "blocked" => blocked(&call),
        "add" => add(&call, given),
        _ => change(&call, action, &given),
    }
}

/// The arguments of an action.
#[derive(Debug, Default)]
struct Given {
    id: Option<TaskId>,
    content: Option<String>,
    status: Option<&'static str>,
    blocked_by: Option<Vec<TaskId>>,
    active_form: Option<Option<Subject>>,
    filter: Option<&'static str>,
}

impl Given {
    fn read(action: &'static str, args: &mut Args) -> Result<Self, Failure> {
        let given = Self {
            id: args.id("id"),
            content: args.text("content"),
            status: args.word("status"),
            blocked_by: args.ids("blockedBy"),
            active_form: cleared(args, "active_form", Subject::new)?,
            filter: args.word("status_filter"),
        };
        given.check(action)?;
        Ok(given)
    }

    /// Each action takes its own fields, and needs some of them.
    fn check(&self, action: &str) -> Result<(), Failure> {
        let (takes, needs): (&[&str], &str) = match action {
            "add" => (&["content", "blockedBy", "active_form"], "content"),
            "update" => (&["id", "content", "status", "blockedBy", "active_form"], "id"),
            "complete" | "remove" => (&["id"], "id"),
            "list" => (&["status_filter"], ""),
            _ => (&[], ""),
        };
        // A new task is pending: saying so asks for nothing else.
        let status = self.status.filter(|status| !(action == "add" && *status == Status::Pending.as_str()));
        let fields = [
            ("id", self.id.is_some()),
            ("content", self.content.is_some()),
            ("status", status.is_some()),
            ("blockedBy", self.blocked_by.is_some()),
            ("active_form", self.active_form.is_some()),
            ("status_filter", self.filter.is_some()),
        ];
        if let Some((name, _)) = fields.iter().find(|(name, given)| *given && !takes.contains(name)) {
            let takes = if takes.is_empty() { "nothing else".to_owned() } else { takes.join(", ") };
            return Err(Failure::shape(name, format!("action {action} takes no {name}; it takes {takes}")));
        }
        match fields.iter().find(|(name, given)| *name == needs && !given) {
            Some((name, _)) => {
                Err(Failure::shape(name, format!("action {action} needs {name}; send it and call again")))
            }
            None => Ok(()),
        }
    }
}

fn list(call: &DropIn<'_>, filter: Option<&'static str>) -> Result<Reply, Failure> {
    let graph = graph(call)?;
    let mut rows = graph.rows.clone();
    rows.retain(|row| filter.is_none_or(|filter| row.status == filter));
    let half = (BUDGET - AROUND_BYTES) / 2;
    let mut facts = action("list");
    facts.extend(kin::shown(&rows, graph.total(filter), half));
    facts.insert("snapshot".to_owned(), graph.within(half).into());
    Ok(facts.into())
}

/// What is pending or in progress and waits for something that is not done.
fn blocked(call: &DropIn<'_>) -> Result<Reply, Failure> {
    let graph = graph(call)?;
    let mut rows = graph.rows.clone();
    rows.retain(|row| row.is_blocked && matches!(row.status, "pending" | "in_progress"));
    let mut facts = action("blocked");
    facts.extend(kin::shown(&rows, graph.total_blocked().max(rows.len() as u64), BUDGET - AROUND_BYTES));
    Ok(facts.into())
}

fn graph(call: &DropIn<'_>) -> Result<Graph, Failure> {
    let overview = call.overview(PAGE_ROWS_MAX)?;
    Ok(overview.map_or_else(Graph::empty, |overview| Graph::of(&overview)))
}

fn action(name: &str) -> Map<String, Value> {
    Map::from_iter([("action".to_owned(), json!(name))])
}

fn add(call: &DropIn<'_>, given: Given) -> Result<Reply, Failure> {
    let (subject, description) = content::split(&given.content.unwrap_or_default());
    let draft = Draft {
        description,
        blocked_by: given.blocked_by.unwrap_or_default(),
        active_form: given.active_form.flatten(),
        ..Draft::new(subject)
    };
    let command = Command::Create(Box::new(draft));
    let made = call.run(About::New, Some(PAGE_ROWS_MAX), &mut |_, _| Ok(vec![command.clone()]))?;
    Ok(answered("add", made))
}

fn change(call: &DropIn<'_>, action: &'static str, given: &Given) -> Result<Reply, Failure> {
    let id = given.id.clone().expect("BUG: the action needs this field");
    let change = Change { id, status: status_of(action, given.status), given };
    let mut objection = None;
    let done = call.run(About::Task(&change.id), Some(PAGE_ROWS_MAX), &mut |asking, list| {
        let before = list.task(&change.id)?;
        let gone = if before.is_none() { list.tombstone(&change.id)? } else { None };
        objection = before.as_ref().or(gone.as_ref()).and_then(|before| change.objection(before));
        if objection.is_some() {
            return Ok(Vec::new());
        }
        Ok(change.commands(asking, before.as_ref(), gone.as_ref()))
    })?;
    match objection {
        Some(objection) => Err(objection),
        None => Ok(answered(action, done)),
    }
}

/// Completing and removing are updates of the status.
fn status_of(action: &str, status: Option<&'static str>) -> Option<&'static str> {
    match action {
        "complete" => Some(Status::Completed.as_str()),
        "remove" => Some(DELETED),
        _ => status,
    }
}

/// A change of one task.
struct Change<'a> {
    id: TaskId,
    status: Option<&'static str>,
    given: &'a Given,
}

impl Change<'_> {
    /// A long content takes the place of the description; a description of its own would be lost.
    fn objection(&self, before: &Task) -> Option<Failure> {
        let (_, whole) = content::split(self.given.content.as_deref()?);
        let own = before.description.as_ref().filter(|body| !content::is_split(&before.subject, body));
        let both = whole.is_some() && own.is_some();
        both.then(|| {
            Failure::shape("content", format!("task {} has a description, so its content is one line", self.id))
        })
    }

    /// What is not there is left to the rules, which say so.
    fn commands(&self, asking: Asking<'_>, live: Option<&Task>, gone: Option<&Task>) -> Vec<Command> {
        match live.or(gone) {
            Some(before) => asking.of_kin(before, live.is_none(), self.patch(before)),
            None => vec![Command::Update(self.id.clone(), Box::default())],
        }
    }

    fn patch(&self, before: &Task) -> Patch {
        let (subject, description) = self.content(before);
        let blockers = self.given.blocked_by.as_ref();
        let not_in = |ids: &[TaskId], other: &[TaskId]| ids.iter().filter(|id| !other.contains(id)).cloned().collect();
        Patch {
            status: self.status.and_then(Status::from_word),
            delete: self.status == Some(DELETED),
            subject,
            description,
            active_form: self.given.active_form.clone(),
            add_blocked_by: blockers.map_or_else(Vec::new, |wanted| not_in(wanted, &before.blocked_by)),
            remove_blocked_by: blockers.map_or_else(Vec::new, |wanted| not_in(&before.blocked_by, wanted)),
            ..Patch::default()
        }
    }

    /// A content as subject and description; a description that is not content stays.
    fn content(&self, before: &Task) -> (Option<Subject>, Option<Option<Body>>) {
        let Some(content) = &self.given.content else { return (None, None) };
        let (subject, whole) = content::split(content);
        let was_split = before.description.as_ref().is_some_and(|body| content::is_split(&before.subject, body));
        let description = if whole.is_some() || was_split { Some(whole) } else { None };
        (Some(subject), description)
    }
}

/// The task that was touched, whole, and the graph as it is then.
fn answered(name: &str, done: Together) -> Reply {
    let overview = done.overview.expect("BUG: the overview was asked for");
    let (task, deleted, warnings) = touched(done.answers.last());
    let row = Value::Object(kin::row(task, deleted, &overview).json);
    let left = BUDGET.saturating_sub(fit::size(&row) + fit::size(&warnings) + AROUND_BYTES);
    let mut facts = action(name);
    facts.insert("task".to_owned(), row);
    if !warnings.is_empty() {
        facts.insert("warnings".to_owned(), json!(warnings));
    }
    facts.insert("snapshot".to_owned(), snapshot(&overview, left.max(BUDGET / 2)).into());
    facts.into()
}

fn snapshot(overview: &Overview, budget: usize) -> Map<String, Value> {
    Graph::of(overview).within(budget)
}

fn touched(answer: Option<&Answer>) -> (&TaskView, bool, &[String]) {
    match answer {
        Some(Answer::Created(task)) => (task, false, &[]),
        Some(Answer::Written(written)) => (&written.task, written.deleted, &written.warnings),
        other => unreachable!("BUG: an action ends in a create or an update, not in {other:?}"),
    }
}

#[cfg(test)]
#[path = "kin_tests.rs"]
mod tests;
