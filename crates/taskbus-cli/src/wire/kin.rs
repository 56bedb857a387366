//! Tasks as Kin shows them: compact rows, with what is blocked derived. A deleted task is a row like the others, and
//! an owner is shown only where the list keeps owners.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use taskbus::answer::TaskView;
use taskbus::engine::Overview;
use taskbus_core::content;
use taskbus_core::id::TaskId;
use taskbus_core::neighbourhood::Tally;
use taskbus_core::task::Status;

use super::fit;

/// What a row says as the status of a deleted task.
pub(crate) const DELETED: &str = "deleted";
/// The longest content of a row among others, when there is a budget, in bytes.
const CONTENT_BYTES: usize = 512;
/// What the end of rows that were cut takes at most, in bytes.
const END_BYTES: usize = 160;

/// A row of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Its id.
    pub(crate) id: TaskId,
    /// Its status as a word.
    pub(crate) status: &'static str,
    /// Whether it waits for something that is still to be done.
    pub(crate) is_blocked: bool,
    /// As it is shown.
    pub(crate) json: Map<String, Value>,
}

/// A graph, or as much of it as was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// The rows: what is in progress, what is pending, what is completed, what is deleted.
    pub(crate) rows: Vec<Row>,
    tally: Tally,
    deleted: u64,
}

impl Graph {
    /// The graph of a list.
    pub(crate) fn of(overview: &Overview) -> Self {
        let live = overview.tasks.iter().map(|task| (task, false));
        let all = live.chain(overview.deleted.iter().map(|task| (task, true)));
        let rows = all.map(|(task, deleted)| row(task, deleted, overview)).collect();
        Self { rows, tally: overview.tally, deleted: overview.deleted_total }
    }

    /// The graph of a list that is not there.
    pub(crate) fn empty() -> Self {
        Self { rows: Vec::new(), tally: Tally::default(), deleted: 0 }
    }

    /// How many rows there are, of one status or of all.
    pub(crate) fn total(&self, status: Option<&str>) -> u64 {
        let is = |word: &str| status.is_none_or(|status| status == word);
        let of = |status: Status| u64::from(is(status.as_str()));
        of(Status::InProgress) * self.tally.in_progress
            + of(Status::Pending) * self.tally.pending()
            + of(Status::Completed) * self.tally.completed
            + u64::from(is(DELETED)) * self.deleted
    }

    /// How many pending rows wait for something.
    pub(crate) fn total_blocked(&self) -> u64 {
        self.tally.blocked
    }

    /// All rows, by id.
    pub(crate) fn whole(&self) -> Map<String, Value> {
        Map::from_iter([("tasks".to_owned(), by_id(&self.rows, |row| row.json.clone()))])
    }

    /// As many rows as fit, the first of them, by id; with how many are left out.
    pub(crate) fn within(&self, budget: usize) -> Map<String, Value> {
        shown(&self.rows, self.total(None), budget)
    }
}

/// As many of some rows as fit, by id; if not all, `truncated` and the total.
pub(crate) fn shown(rows: &[Row], total: u64, budget: usize) -> Map<String, Value> {
    let mut left = budget.saturating_sub(END_BYTES);
    let fits = |row: &&Row| {
        let rest = left.checked_sub(fit::size(&shortened(row)) + 1);
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let count = rows.iter().take_while(fits).count();
    let mut shown = Map::from_iter([("tasks".to_owned(), by_id(&rows[..count], shortened))]);
    if (count as u64) < total {
        shown.insert("truncated".to_owned(), json!(true));
        shown.insert("total".to_owned(), json!(total));
    }
    shown
}

/// Numbers ascending, then texts: the order in which ids were minted.
fn by_id(rows: &[Row], json: impl Fn(&Row) -> Map<String, Value>) -> Value {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    rows.into_iter().map(|row| Value::Object(json(row))).collect()
}

fn shortened(row: &Row) -> Map<String, Value> {
    let mut json = row.json.clone();
    if let Some(Value::String(content)) = json.get_mut("content") {
        *content = super::error::cut(content, CONTENT_BYTES).into_owned();
    }
    json
}

/// A task as a row. What is empty is left out.
pub(crate) fn row(task: &TaskView, deleted: bool, overview: &Overview) -> Row {
    let (policy, blocks) = (overview.policy, blocks(task, &overview.deleted));
    let status = if deleted { DELETED } else { task.status.as_str() };
    let mut fields = vec![
        ("id", json!(task.id.to_string())),
        ("content", json!(content::join(&task.subject, task.description.as_ref()))),
        ("status", json!(status)),
    ];
    fields.extend(task.owner.iter().filter(|_| policy.guards_owners()).map(|owner| ("owner", json!(owner))));
    let links = [("blockedBy", &task.blocked_by), ("blocks", &blocks)];
    fields.extend(links.into_iter().filter(|(_, ids)| !ids.is_empty()).map(|(name, ids)| (name, texts(ids))));
    fields.extend(task.active_form.iter().map(|form| ("active_form", json!(form))));
    fields.extend(task.completed_at.filter(|_| !deleted).map(|at| ("completed_at", json!(at))));
    let json = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Row { id: task.id.clone(), status, is_blocked: task.blocked && !deleted, json }
}

fn texts(ids: &[TaskId]) -> Value {
    ids.iter().map(ToString::to_string).collect()
}

/// What waits for a task. Who was deleted still names what it waited for, as long as its row is there.
fn blocks(task: &TaskView, deleted: &[TaskView]) -> Vec<TaskId> {
    let waiting = deleted.iter().filter(|gone| gone.blocked_by.contains(&task.id)).map(|gone| &gone.id);
    let all: BTreeSet<&TaskId> = task.blocks.iter().chain(waiting).collect();
    all.into_iter().cloned().collect()
}
