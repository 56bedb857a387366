//! `task_get` and `task_list`.

use serde_json::{Map, Value};
use taskbus::answer::ListPage;
use taskbus::engine::{Engine, Error, ListAsk};
use taskbus::store::View;
use taskbus_core::name::{Identity, Label, ListName};
use taskbus_core::task::Status;

use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, BUDGET, Desk, Reply};
use crate::mcp::typed;
use crate::wire::error::Failure;
use crate::wire::{answer, fit};

/// What a history gets at least, even beside a task that fills the budget.
const HISTORY_BYTES_MIN: usize = 2048;

/// Shows one task.
pub(crate) fn get(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let (id, history) = (args.required_id("task_id"), args.flag("history"));
    let engine = desk.engine()?;
    let reader = desk.people.reading(args.text("as"), asked, &engine)?;
    let got = engine.get(reader.as_ref(), &id, history)?;
    let mut facts = answer::got(&got);
    fit_history(&mut facts);
    Ok(facts.into())
}

/// The task is shown whole; of its history as much as fits.
fn fit_history(facts: &mut Map<String, Value>) {
    let Some(history) = facts.get("history") else { return };
    let task = fit::size(facts) - fit::size(history);
    let budget = BUDGET.max(task + HISTORY_BYTES_MIN) - 32;
    let dropped = fit::records(facts, "history", 1, budget);
    if dropped > 0 {
        facts.insert("history_left_out".to_owned(), dropped.into());
    }
}

/// Shows a page of a list.
pub(crate) fn list(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let list = desk.list(args)?;
    let ask = ask(args)?;
    let engine = desk.engine()?;
    let reader = desk.people.reading(args.text("as"), asked, &engine)?;
    let page = page_that_fits(&engine, reader.as_ref(), &list, ask)?;
    let facts = answer::page(&page);
    let text = answer::bare(&facts, "tasks").to_string();
    Ok(Reply::told(facts, text))
}

/// A page of a list, as much of it as the budget allows.
pub(in crate::mcp) fn page_that_fits(
    engine: &Engine,
    reader: Option<&Identity>,
    list: &ListName,
    mut ask: ListAsk,
) -> Result<ListPage, Error> {
    loop {
        let page = engine.list(reader, list, &ask)?;
        let fitting = rows_that_fit(&page);
        if fitting == page.tasks.len() {
            return Ok(page);
        }
        // The cursor of a shorter page comes from asking for one.
        ask.limit = Some(fitting);
    }
}

fn ask(args: &mut Args) -> Result<ListAsk, Failure> {
    let view = match args.word("view") {
        Some("ready") => View::Ready,
        Some("blocked") => View::Blocked,
        _ => View::Tree,
    };
    Ok(ListAsk {
        view,
        status: args.word("status").and_then(Status::from_word),
        owner: args.text("owner").map(|text| typed("owner", text, Identity::new)).transpose()?,
        label: args.text("label").map(|text| typed("label", text, Label::new)).transpose()?,
        below: args.id("parent"),
        cursor: args.text("cursor"),
        limit: args.count("limit").map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
    })
}

/// How many rows of a page fit the budget with everything around them; at least one.
fn rows_that_fit(page: &ListPage) -> usize {
    let mut left = BUDGET.saturating_sub(256 + page.next.as_ref().map_or(256, |next| 2 * next.len()));
    let mut fitting = 0;
    for task in &page.tasks {
        let Some(rest) = left.checked_sub(fit::size(task) + 1) else { break };
        left = rest;
        fitting += 1;
    }
    fitting.max(1).min(page.tasks.len())
}
