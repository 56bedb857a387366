//! `TaskGet` and `TaskList`.

use serde_json::{Map, Value, json};
use taskbus::answer::TaskView;
use taskbus::engine::{Error, Overview};
use taskbus_core::limits::PAGE_ROWS_MAX;
use taskbus_core::neighbourhood::Tally;
use taskbus_core::refusal::{Missing, Refusal};
use taskbus_core::task::Status;

use super::{NOT_FOUND, numbers, texts};
use crate::mcp::args::Args;
use crate::mcp::calls::drop_in::DropIn;
use crate::mcp::desk::{Asked, BUDGET, Desk, Reply};
use crate::options::ToolSet;
use crate::wire::error::Failure;
use crate::wire::fit;

/// What the end of a list that was cut takes at most, in bytes.
const END_BYTES: usize = 256;

/// Shows one task, whole. One of another list is not there.
pub(crate) fn get(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let id = args.required_id("taskId");
    let call = DropIn::begin(desk, asked, ToolSet::Claude)?;
    let task = match call.engine.get(None, &id, false) {
        Ok(got) => Some(got.task).filter(|task| task.channel == call.list),
        Err(Error::Refused(Refusal::NotFound(Missing::Task { .. }))) => None,
        Err(error) => return Err(error.into()),
    };
    let facts = task.as_ref().map_or(Value::Null, |task| Value::Object(whole(task)));
    let words = task.as_ref().map_or_else(|| NOT_FOUND.to_owned(), words);
    Ok(Reply::told(Map::from_iter([("task".to_owned(), facts)]), words))
}

/// The fields that the tool always had come always, the others if they hold something.
fn whole(task: &TaskView) -> Map<String, Value> {
    let mut fields = vec![
        ("id", json!(task.id.to_string())),
        ("subject", json!(task.subject)),
        ("description", json!(task.description.as_ref().map_or("", |text| text.as_str()))),
        ("status", json!(task.status)),
        ("blocks", texts(&task.blocks)),
        ("blockedBy", texts(&task.blocked_by)),
    ];
    if task.blocked {
        fields.push(("openBlockers", texts(&task.open_blockers)));
    }
    fields.extend(task.owner.iter().map(|owner| ("owner", json!(owner))));
    fields.extend(task.active_form.iter().map(|form| ("activeForm", json!(form))));
    if !task.metadata.is_empty() {
        fields.push(("metadata", json!(task.metadata)));
    }
    fields.extend(task.parent.iter().map(|parent| ("parent", json!(parent.to_string()))));
    fields.extend(task.result.iter().map(|result| ("result", json!(result))));
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn words(task: &TaskView) -> String {
    let mut lines = vec![format!("Task #{}: {}", task.id, task.subject), format!("Status: {}", task.status.as_str())];
    let mut say = |name: &str, text: Option<String>| lines.extend(text.map(|text| format!("{name}: {text}")));
    say("Owner", task.owner.as_ref().map(ToString::to_string));
    say("Active form", task.active_form.as_ref().map(ToString::to_string));
    say("Description", task.description.as_ref().map(|text| text.as_str().to_owned()));
    say("Blocked by", (!task.blocked_by.is_empty()).then(|| blockers(task)));
    say("Blocks", (!task.blocks.is_empty()).then(|| numbers(&task.blocks)));
    say("Metadata", (!task.metadata.is_empty()).then(|| json!(task.metadata).to_string()));
    say("Parent", task.parent.as_ref().map(|parent| format!("#{parent}")));
    say("Result", task.result.as_ref().map(|result| result.as_str().to_owned()));
    lines.join("\n")
}

fn blockers(task: &TaskView) -> String {
    let all = numbers(&task.blocked_by);
    match task.open_blockers.len() {
        0 => format!("{all} (none open)"),
        open if open == task.blocked_by.len() => all,
        _ => format!("{all} (open: {})", numbers(&task.open_blockers)),
    }
}

/// Shows the list in short.
pub(crate) fn list(desk: &Desk, _: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let call = DropIn::begin(desk, asked, ToolSet::Claude)?;
    let overview = call.overview(PAGE_ROWS_MAX)?;
    Ok(match overview.filter(|overview| overview.tally.total() > 0) {
        Some(overview) => page(&overview),
        None => Reply::told(Map::from_iter([("tasks".to_owned(), json!([]))]), "No tasks found".to_owned()),
    })
}

/// As much as fits, what is open before what is done; in the order of ids, and with what is left out.
fn page(overview: &Overview) -> Reply {
    let mut shown: Vec<&TaskView> = overview.tasks[..fitting(&overview.tasks)].iter().collect();
    shown.sort_by(|a, b| a.id.cmp(&b.id));
    let mut lines: Vec<String> = shown.iter().map(|task| line(task)).collect();
    let rows = shown.iter().map(|task| Value::Object(row(task)));
    let mut facts = Map::from_iter([("tasks".to_owned(), rows.collect())]);
    if let Some(left_out) = left_out(&shown, &overview.tally) {
        lines.push(format!(
            "… and {}: not shown, as the answer would be too long; TaskGet shows each",
            in_words(&left_out)
        ));
        facts.insert("truncated".to_owned(), json!(true));
        facts.insert("total".to_owned(), json!(overview.tally.total()));
        facts.insert(
            "leftOut".to_owned(),
            left_out.into_iter().map(|(s, n)| (s.as_str().to_owned(), json!(n))).collect(),
        );
    }
    Reply::told(facts, lines.join("\n"))
}

/// How many of these fit the budget in both forms.
fn fitting(tasks: &[TaskView]) -> usize {
    let (mut text, mut facts) = (0, 0);
    let fits = |task: &&TaskView| {
        text += line(task).len() + 1;
        facts += fit::size(&row(task)) + 1;
        text.max(facts) <= BUDGET - END_BYTES
    };
    tasks.iter().take_while(fits).count()
}

fn row(task: &TaskView) -> Map<String, Value> {
    let mut row = Map::from_iter([
        ("id".to_owned(), json!(task.id.to_string())),
        ("subject".to_owned(), json!(task.subject)),
        ("status".to_owned(), json!(task.status)),
    ]);
    row.extend(task.owner.iter().map(|owner| ("owner".to_owned(), json!(owner))));
    row.insert("blockedBy".to_owned(), texts(&task.open_blockers));
    row
}

/// `#3 [pending] Subject (owner: roo) [blocked by #1, #2]`
fn line(task: &TaskView) -> String {
    let owner = task.owner.as_ref().map_or_else(String::new, |owner| format!(" (owner: {owner})"));
    let blocked = if task.blocked { format!(" [blocked by {}]", numbers(&task.open_blockers)) } else { String::new() };
    format!("#{} [{}] {}{owner}{blocked}", task.id, task.status.as_str(), task.subject)
}

/// How many tasks of each status are not among these, if any.
fn left_out(shown: &[&TaskView], tally: &Tally) -> Option<Vec<(Status, u64)>> {
    let all = [
        (Status::InProgress, tally.in_progress),
        (Status::Pending, tally.pending()),
        (Status::Completed, tally.completed),
    ];
    let seen = |status| shown.iter().filter(|task| task.status == status).count() as u64;
    let left: Vec<_> = all.into_iter().map(|(status, all)| (status, all.saturating_sub(seen(status)))).collect();
    let left: Vec<_> = left.into_iter().filter(|(_, count)| *count > 0).collect();
    (!left.is_empty()).then_some(left)
}

fn in_words(left_out: &[(Status, u64)]) -> String {
    let total: u64 = left_out.iter().map(|(_, count)| count).sum();
    let parts: Vec<String> = left_out.iter().map(|(status, count)| format!("{count} {}", status.as_str())).collect();
    format!("{total} more ({})", parts.join(", "))
}
