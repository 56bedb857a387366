//! The commands that only read: list, tree, ready, blocked, show, why, log, lists, who.

use owo_colors::Style;
use serde_json::{Map, Value, json};
use taskbus::answer::{Got, HistoryEntry, ListPage, ListView, SessionView, Summary};
use taskbus::engine::ListAsk;
use taskbus::store::View;
use taskbus_core::id::TaskId;
use taskbus_core::limits;
use taskbus_core::name::ListName;
use taskbus_core::time::Timestamp;

use super::args::{List, One, Show};
use super::desk::Desk;
use super::input;
use super::json;
use super::show::{self, Sheet};
use crate::term::failure::Failure;
use crate::term::layout::{Cell, Column, Table};
use crate::term::report::Report;
use crate::term::safe::display_safe;
use crate::wire;

/// A page of the list, or all of it.
pub(crate) fn list(desk: &Desk, list: &List, view: View) -> Result<Box<dyn Report>, Failure> {
    let name = desk.list()?.clone();
    let mut ask = ListAsk {
        view,
        status: list.status,
        owner: list.owner.as_deref().map(|owner| input::identity("owner", owner)).transpose()?,
        label: list.label.as_deref().map(input::label).transpose()?,
        below: list.below.clone(),
        cursor: list.cursor.clone(),
        limit: if list.all { Some(limits::PAGE_ROWS_MAX) } else { list.limit },
    };
    let mut page = desk.engine.list(None, &name, &ask)?;
    while list.all && page.next.is_some() {
        ask.cursor = page.next.take();
        let more = desk.engine.list(None, &name, &ask)?;
        page.tasks.extend(more.tasks);
        (page.next, page.truncated, page.total) = (more.next, more.truncated, more.total);
    }
    Ok(Box::new(Listed { name, page, view, now: desk.engine.now()? }))
}

/// One task.
pub(crate) fn show(desk: &Desk, show: &Show) -> Result<Box<dyn Report>, Failure> {
    let got = desk.engine.get(None, &show.id, show.history)?;
    Ok(Box::new(Shown { got, now: desk.engine.now()? }))
}

/// Why a task cannot be started.
pub(crate) fn why(desk: &Desk, one: &One) -> Result<Box<dyn Report>, Failure> {
    let got = desk.engine.get(None, &one.id, false)?;
    let blockers = got.task.open_blockers.iter().map(|id| desk.engine.get(None, id, false));
    let blockers = blockers.collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(Why { got, blockers }))
}

/// What happened to a task.
pub(crate) fn log(desk: &Desk, one: &One) -> Result<Box<dyn Report>, Failure> {
    let got = desk.engine.get(None, &one.id, true)?;
    Ok(Box::new(Log { history: got.history.unwrap_or_default(), id: one.id.clone(), now: desk.engine.now()? }))
}

/// The lists there are.
pub(crate) fn lists(desk: &Desk) -> Result<Box<dyn Report>, Failure> {
    Ok(Box::new(Lists(desk.engine.lists()?)))
}

/// Who is at work.
pub(crate) fn who(desk: &Desk) -> Result<Box<dyn Report>, Failure> {
    Ok(Box::new(Who { sessions: desk.engine.sessions()?, now: desk.engine.now()? }))
}

/// A page.
struct Listed {
    name: ListName,
    page: ListPage,
    view: View,
    now: Timestamp,
}

impl Report for Listed {
    fn json(&self) -> Map<String, Value> {
        let mut json = Map::from_iter([("channel".to_owned(), json!(self.name))]);
        json.extend(json::page(&self.page));
        json
    }

    fn words(&self, width: Option<usize>) -> String {
        let mut table = Table::new([Column::right("ID"), Column::flexible("TASK"), Column::flexible("")]);
        for row in &self.page.tasks {
            table.row(self.cells(row));
        }
        format!("{}{}", table.render(width), self.footer())
    }
}

impl Listed {
    fn cells(&self, row: &Summary) -> [Cell; 3] {
        let blocked = !row.open_blockers.is_empty();
        let indent = if self.view == View::Tree { "  ".repeat(row.depth.min(16)) } else { String::new() };
        let subject = format!("{indent}{} {}", show::mark(row.status, blocked), row.subject);
        [
            Cell::new(row.id.to_string(), Style::new().dimmed()),
            Cell::new(subject, show::style(row.status, blocked)),
            Cell::new(show::remarks(row, self.now), Style::new().dimmed()),
        ]
    }

    fn footer(&self) -> String {
        let what = match self.view {
            View::Tree => "tasks",
            View::Ready => "ready tasks",
            View::Blocked => "blocked tasks",
        };
        let (shown, total, name) = (self.page.tasks.len(), self.page.total, display_safe(self.name.as_str()));
        match &self.page.next {
            Some(cursor) => {
                format!("{shown} of {total} {what} on {name}; the next ones: --cursor {cursor}, all: --all\n")
            }
            None if total == 0 => format!("no {what} on {name}\n"),
            None => String::new(),
        }
    }
}

/// One task.
struct Shown {
    got: Got,
    now: Timestamp,
}

impl Report for Shown {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("task".to_owned(), json::got(&self.got).into())])
    }

    fn words(&self, _: Option<usize>) -> String {
        let mut words = show::task(&self.got.task, self.now);
        if !self.got.open_children.is_empty() {
            words.push_str(&format!("  open parts   {}\n", show::ids(&self.got.open_children)));
        }
        if let Some(history) = &self.got.history {
            words.push_str("  history\n");
            words.push_str(&entries(history, self.now));
        }
        words
    }
}

/// Why a task cannot be started.
struct Why {
    got: Got,
    blockers: Vec<Got>,
}

impl Report for Why {
    fn json(&self) -> Map<String, Value> {
        let blockers = self.blockers.iter().map(|got| {
            let task = &got.task;
            json!({"id": task.id, "subject": task.subject, "status": task.status, "owner": task.owner, "ready": got.ready})
        });
        let blockers: Vec<Value> = blockers.map(without_nulls).collect();
        Map::from_iter([
            ("id".to_owned(), json!(self.got.task.id)),
            ("ready".to_owned(), json!(self.got.ready)),
            ("reasons".to_owned(), json!(self.got.not_ready)),
            ("blockers".to_owned(), json!(blockers)),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        let task = &self.got.task;
        let title = show::title(&task.id, task.subject.as_str());
        if self.got.ready {
            return format!("{title}\n  can be started now: taskbus claim {}\n", task.id);
        }
        let mut words = format!("{title}\n");
        for reason in &self.got.not_ready {
            words.push_str(&format!("  {}\n", display_safe(reason)));
        }
        for blocker in &self.blockers {
            let task = &blocker.task;
            let owner = task.owner.as_ref().map_or_else(String::new, |owner| format!(", {owner}"));
            let line = format!(
                "    {} {}{owner}",
                show::mark(task.status, task.blocked),
                show::title(&task.id, task.subject.as_str())
            );
            words.push_str(&format!("{}\n", display_safe(&line)));
        }
        words
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}

/// What happened to a task, newest first.
struct Log {
    id: TaskId,
    history: Vec<HistoryEntry>,
    now: Timestamp,
}

impl Report for Log {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("id".to_owned(), json!(self.id)), ("history".to_owned(), json::history(&self.history))])
    }

    fn words(&self, _: Option<usize>) -> String {
        entries(&self.history, self.now)
    }
}

fn entries(history: &[HistoryEntry], now: Timestamp) -> String {
    let mut words = String::new();
    for entry in history {
        let by = entry.by.as_ref().map_or("taskbus", |by| by.as_str());
        let kind = entry.kind.as_str();
        let kind = match entry.kind {
            taskbus_core::change::Kind::Created => "created",
            _ if kind.is_empty() => "changed",
            _ => kind,
        };
        let head = format!("{:>4}  {}  {by}  {kind}", entry.revision, show::when(entry.at, now));
        words.push_str(&format!("{}\n", display_safe(&head)));
        for change in &entry.changes {
            words.push_str(&format!("      {}\n", display_safe(change)));
        }
        if let Some(note) = &entry.note {
            let mut sheet = Sheet::new("");
            sheet.text("  note", Some(note));
            words.push_str(&sheet.0);
        }
    }
    words
}

/// The lists there are.
struct Lists(Vec<ListView>);

impl Report for Lists {
    fn json(&self) -> Map<String, Value> {
        let lists: Vec<Value> = self.0.iter().map(|list| wire::object(list).into()).collect();
        Map::from_iter([("total".to_owned(), json!(lists.len())), ("lists".to_owned(), json!(lists))])
    }

    fn words(&self, width: Option<usize>) -> String {
        if self.0.is_empty() {
            return "no lists yet; taskbus add SUBJECT makes one\n".to_owned();
        }
        let mut table = Table::new([Column::flexible("LIST"), Column::right("TASKS")]);
        for list in &self.0 {
            table.row([Cell::plain(list.name.as_str()), Cell::plain(list.tasks.to_string())]);
        }
        table.render(width)
    }
}

/// Who is at work.
struct Who {
    sessions: Vec<SessionView>,
    now: Timestamp,
}

impl Report for Who {
    fn json(&self) -> Map<String, Value> {
        let sessions: Vec<Value> = self.sessions.iter().map(|session| wire::object(session).into()).collect();
        Map::from_iter([("total".to_owned(), json!(sessions.len())), ("sessions".to_owned(), json!(sessions))])
    }

    fn words(&self, width: Option<usize>) -> String {
        if self.sessions.is_empty() {
            return "nobody is at work\n".to_owned();
        }
        let columns =
            [Column::flexible("NAME"), Column::left("CLIENT"), Column::flexible("SINCE"), Column::flexible("WORKS ON")];
        let mut table = Table::new(columns);
        for session in &self.sessions {
            let since = show::when(session.registered_at, self.now);
            let texts = [session.name.as_str(), &session.client, &since, &session.context];
            table.row(texts.map(Cell::plain));
        }
        table.render(width)
    }
}
