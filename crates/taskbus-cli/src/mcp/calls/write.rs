//! `task_create`, `task_claim`, `task_release` and `task_update`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use taskbus::answer::Answer;
use taskbus_core::command::{Command, Draft, Patch, Place};
use taskbus_core::glob::PathGlob;
use taskbus_core::name::{Identity, Label};
use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::task::Status;
use taskbus_core::text::{Body, Note, Subject};

use super::{Act, lease, texts};
use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, BUDGET, Desk, Reply};
use crate::mcp::typed;
use crate::wire::error::Failure;
use crate::wire::{answer, fit, object};

/// Makes one task.
pub(crate) fn create(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let list = desk.list(args)?;
    let mut draft = draft(args)?;
    draft.parent = args.id("parent");
    draft.place = place(args)?;
    draft.blocked_by = args.ids("blocked_by").unwrap_or_default();
    let act = Act::begin(desk, args, asked)?;
    let created = act.run(Some(list), Command::Create(Box::new(draft)))?;
    let Answer::Created(task) = created else { unreachable!("BUG: a create answers what it made") };
    let mut facts = object(&*task);
    fit::task(&mut facts, BUDGET - 256);
    act.sign(&mut facts);
    Ok(facts.into())
}

/// The part of a task that a create and a plan have in common.
pub(super) fn draft(args: &mut Args) -> Result<Draft, Failure> {
    let subject = typed("subject", args.required_text("subject"), Subject::new)?;
    let metadata = args.pairs("metadata").into_iter().filter(|(_, value)| !value.is_empty());
    Ok(Draft {
        description: args.text("description").map(|text| typed("description", text, Body::new)).transpose()?,
        active_form: args.text("active_form").map(|text| typed("active_form", text, Subject::new)).transpose()?,
        not_before: args.time("not_before").flatten(),
        labels: texts("labels", args.texts("labels").unwrap_or_default(), Label::new)?,
        paths: texts("paths", args.texts("paths").unwrap_or_default(), PathGlob::new)?,
        metadata: metadata.map(|(key, value)| (key, Value::String(value))).collect(),
        ..Draft::new(subject)
    })
}

fn place(args: &mut Args) -> Result<Option<Place>, Failure> {
    match (args.id("before"), args.id("after")) {
        (None, None) => Ok(None),
        (Some(id), None) => Ok(Some(Place::Before(id))),
        (None, Some(id)) => Ok(Some(Place::After(id))),
        (Some(_), Some(_)) => Err(Refusal::Invalid(Invalid::BeforeAndAfter).into()),
    }
}

/// Takes one task.
pub(crate) fn claim(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let (lease, if_revision) = (lease(args)?, args.count("if_revision"));
    change(desk, args, asked, |who| Patch { if_revision, ..Patch::claim(who.clone(), lease) })
}

/// Gives one task back.
pub(crate) fn release(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let (note, fence) = (note(args, "note")?, args.count("fence"));
    change(desk, args, asked, |_| Patch { note, fence, ..Patch::release() })
}

/// Changes one task. `delete: false` and nothing else brings a deleted one back; beside other fields it says nothing,
/// as some models fill in every optional field.
pub(crate) fn update(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let undelete = args.choice("delete") == Some(false);
    let patch = patch(args)?;
    if undelete && patch == Patch::default() {
        return restore(desk, args, asked);
    }
    change(desk, args, asked, |_| patch)
}

fn restore(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let id = args.required_id("task_id");
    let act = Act::begin(desk, args, asked)?;
    let answered = act.run(None, Command::Restore(id))?;
    let Answer::Restored(task) = answered else { unreachable!("BUG: a restore answers the task") };
    let mut facts = Map::from_iter([("task".to_owned(), Value::Object(object(&*task)))]);
    act.sign(&mut facts);
    fit_inner(&mut facts);
    Ok(facts.into())
}

fn change(
    desk: &Desk,
    args: &mut Args,
    asked: &Asked<'_>,
    patch: impl FnOnce(&Identity) -> Patch,
) -> Result<Reply, Failure> {
    let id = args.required_id("task_id");
    let act = Act::begin(desk, args, asked)?;
    let patch = Box::new(patch(&act.who.name));
    let answered = act.run(None, Command::Update(id, patch))?;
    let Answer::Written(written) = answered else { unreachable!("BUG: an update answers what it wrote") };
    let mut facts = answer::written(&written);
    act.sign(&mut facts);
    fit_inner(&mut facts);
    Ok(facts.into())
}

/// Makes the task inside an answer fit what the rest leaves.
fn fit_inner(facts: &mut Map<String, Value>) {
    let rest = fit::size(facts) - facts.get("task").map_or(0, fit::size);
    if let Some(Value::Object(task)) = facts.get_mut("task") {
        fit::task(task, BUDGET.saturating_sub(rest));
    }
}

fn patch(args: &mut Args) -> Result<Patch, Failure> {
    Ok(Patch {
        status: args.word("status").and_then(Status::from_word),
        owner: cleared(args, "owner", Identity::new)?,
        subject: args.text("subject").map(|text| typed("subject", text, Subject::new)).transpose()?,
        description: cleared(args, "description", Body::new)?,
        active_form: cleared(args, "active_form", Subject::new)?,
        parent: args.id_or_none("parent"),
        place: place(args)?,
        add_blocked_by: args.ids("add_blocked_by").unwrap_or_default(),
        remove_blocked_by: args.ids("remove_blocked_by").unwrap_or_default(),
        lease: lease(args)?,
        not_before: args.time("not_before"),
        labels: args.texts("labels").map(|given| texts("labels", given, Label::new)).transpose()?,
        paths: args.texts("paths").map(|given| texts("paths", given, PathGlob::new)).transpose()?,
        metadata: merged(args.pairs("metadata")),
        result: note(args, "result")?,
        note: note(args, "note")?,
        delete: args.flag("delete"),
        force: args.flag("force"),
        fence: args.count("fence"),
        if_revision: args.count("if_revision"),
    })
}

pub(super) fn note(args: &mut Args, field: &'static str) -> Result<Option<Note>, Failure> {
    args.text(field).map(|text| typed(field, text, Note::new)).transpose()
}

/// A text that an empty one clears.
pub(super) fn cleared<T>(
    args: &mut Args,
    field: &'static str,
    new: impl Fn(String) -> Result<T, taskbus_core::text::TextError>,
) -> Result<Option<Option<T>>, Failure> {
    match args.text(field) {
        None => Ok(None),
        Some(text) if text.is_empty() => Ok(Some(None)),
        Some(text) => typed(field, text, new).map(|text| Some(Some(text))),
    }
}

/// An empty value removes its key.
fn merged(pairs: Vec<(String, String)>) -> BTreeMap<String, Option<Value>> {
    pairs.into_iter().map(|(key, value)| (key, (!value.is_empty()).then_some(Value::String(value)))).collect()
}
