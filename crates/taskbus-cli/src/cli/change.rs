//! The commands that change one task: add, claim, done, release, update, rm, restore.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use taskbus::answer::{Answer, TaskView, Written};
use taskbus_core::command::{self, Draft, LeaseAsk, Patch};
use taskbus_core::id::TaskId;
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;

use super::args::{Add, Claim, Done, Guard, One, Place, Release, Remove, Update};
use super::desk::{Desk, Making};
use super::input;
use super::json;
use super::show;
use super::values::{Lease, Moment, Pair};
use crate::term::failure::Failure;
use crate::term::report::Report;

/// Adds a task.
pub(crate) fn add(desk: &Desk, add: Add) -> Result<Box<dyn Report>, Failure> {
    let key = input::key(&add.key)?;
    let making = Making { create: add.create, willing: true, rules: ListRules::default() };
    let draft = draft(desk, add)?;
    let answer = desk.execute_making_list(command::Command::Create(Box::new(draft)), key, making)?;
    let (Answer::Created(task) | Answer::Restored(task)) = answer else {
        unreachable!("BUG: create answers with a task")
    };
    Ok(Box::new(Made { task: *task, verb: "added" }))
}

/// Takes a task.
pub(crate) fn claim(desk: &Desk, claim: Claim) -> Result<Box<dyn Report>, Failure> {
    let patch = Patch::claim(desk.caller()?.clone(), lease_ask(claim.lease));
    change(desk, claim.id, guarded(desk, patch, &claim.guard)?, &claim.key, Verb::Claimed)
}

/// Completes a task.
pub(crate) fn done(desk: &Desk, done: Done) -> Result<Box<dyn Report>, Failure> {
    let patch = Patch::complete(input::note("result", done.result.as_deref(), &desk.input)?);
    change(desk, done.id, guarded(desk, patch, &done.guard)?, &done.key, Verb::Completed)
}

/// Gives a task back.
pub(crate) fn release(desk: &Desk, release: Release) -> Result<Box<dyn Report>, Failure> {
    change(desk, release.id, guarded(desk, Patch::release(), &release.guard)?, &release.key, Verb::Released)
}

/// Deletes a task.
pub(crate) fn remove(desk: &Desk, remove: Remove) -> Result<Box<dyn Report>, Failure> {
    change(desk, remove.id, guarded(desk, Patch::delete(), &remove.guard)?, &remove.key, Verb::Deleted)
}

/// Changes a task.
pub(crate) fn update(desk: &Desk, update: &Update) -> Result<Box<dyn Report>, Failure> {
    let (id, patch) = (update.id.clone(), patch(desk, update)?);
    let patch = guarded(desk, patch, &update.guard)?;
    change(desk, id, patch, &update.key, Verb::Updated)
}

/// Brings a task back.
pub(crate) fn restore(desk: &Desk, one: One) -> Result<Box<dyn Report>, Failure> {
    let answer = desk.execute(None, command::Command::Restore(one.id), None)?;
    let (Answer::Created(task) | Answer::Restored(task)) = answer else {
        unreachable!("BUG: restore answers with a task")
    };
    Ok(Box::new(Made { task: *task, verb: "restored" }))
}

/// The lease of a fresh claim; none needs no word.
pub(crate) fn lease_ask(lease: Lease) -> Option<LeaseAsk> {
    match lease {
        Lease::None => None,
        Lease::Seconds(_) => Some(lease.into()),
    }
}

fn change(
    desk: &Desk,
    id: TaskId,
    patch: Patch,
    key: &super::args::Key,
    verb: Verb,
) -> Result<Box<dyn Report>, Failure> {
    let answer = desk.execute(None, command::Command::Update(id, Box::new(patch)), input::key(key)?)?;
    let Answer::Written(written) = answer else { unreachable!("BUG: an update answers with what was written") };
    Ok(Box::new(Changed { written: *written, verb, now: desk.engine.now()? }))
}

fn guarded(desk: &Desk, patch: Patch, guard: &Guard) -> Result<Patch, Failure> {
    let note = input::note("note", guard.note.as_deref(), &desk.input)?;
    Ok(Patch { note, force: guard.force, fence: guard.fence, if_revision: guard.if_revision, ..patch })
}

fn draft(desk: &Desk, add: Add) -> Result<Draft, Failure> {
    let (subject, description) = subject_and_description(desk, &add)?;
    Ok(Draft {
        subject,
        description: input::description(description)?,
        active_form: input::active_form(add.active_form.unwrap_or_default())?,
        parent: add.parent,
        place: place(add.place),
        blocked_by: add.blocked_by,
        not_before: add.not_before.map(|moment| at(desk, moment)).transpose()?.flatten(),
        labels: input::labels(&add.labels)?,
        paths: input::paths(&add.paths)?,
        metadata: metadata(add.metadata).into_iter().filter_map(|(key, value)| Some((key, value?))).collect(),
    })
}

/// From the flags, or both from one text: its first line, and what follows.
fn subject_and_description(desk: &Desk, add: &Add) -> Result<(Subject, String), Failure> {
    let given = add.subject_option.as_ref().or(add.subject.as_ref());
    let text = match (given, &add.file) {
        (Some(dash), _) if dash == "-" => desk.input.text("-")?,
        (Some(subject), _) => {
            let description = add.description.as_deref().map(|text| desk.input.text(text)).transpose()?;
            return Ok((input::subject(subject.clone())?, description.unwrap_or_default()));
        }
        (None, Some(path)) => desk.input.file(path)?,
        (None, None) => String::new(),
    };
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    Ok((input::subject(first.trim_end().to_owned())?, rest.trim_start_matches(['\n', '\r']).to_owned()))
}

fn patch(desk: &Desk, update: &Update) -> Result<Patch, Failure> {
    let given = update.description.as_deref().map(|text| desk.input.text(text));
    let description = given.or_else(|| update.file.as_deref().map(|path| desk.input.file(path))).transpose()?;
    Ok(Patch {
        status: update.status,
        owner: update.owner.as_deref().map(owner).transpose()?,
        subject: update.subject.clone().map(input::subject).transpose()?,
        description: description.map(input::description).transpose()?,
        active_form: update.active_form.clone().map(input::active_form).transpose()?,
        parent: update.parent.as_deref().map(parent).transpose()?,
        place: place(Place { before: update.place.before.clone(), after: update.place.after.clone() }),
        add_blocked_by: update.add_blocked_by.clone(),
        remove_blocked_by: update.remove_blocked_by.clone(),
        lease: update.lease.map(LeaseAsk::from),
        not_before: update.not_before.map(|moment| at(desk, moment)).transpose()?,
        labels: update.labels.as_deref().map(input::labels).transpose()?,
        paths: update.paths.as_deref().map(input::paths).transpose()?,
        metadata: metadata(update.metadata.clone()),
        result: input::note("result", update.result.as_deref(), &desk.input)?,
        ..Patch::default()
    })
}

fn owner(name: &str) -> Result<Option<taskbus_core::name::Identity>, Failure> {
    if name.is_empty() { Ok(None) } else { input::identity("owner", name).map(Some) }
}

fn parent(text: &str) -> Result<Option<TaskId>, Failure> {
    match text {
        "none" | "" | "0" => Ok(None),
        _ => text.parse().map(Some).map_err(|error| Failure::usage(format!("--parent {text:?}: {error}"))),
    }
}

fn place(place: Place) -> Option<command::Place> {
    place.before.map(command::Place::Before).or(place.after.map(command::Place::After))
}

fn at(desk: &Desk, moment: Moment) -> Result<Option<Timestamp>, Failure> {
    Ok(match moment {
        Moment::None => None,
        Moment::In(seconds) => {
            let millis = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
            Some(desk.engine.now()?.plus_millis(millis))
        }
        Moment::At(time) => Some(time),
    })
}

fn metadata(pairs: Vec<Pair>) -> BTreeMap<String, Option<Value>> {
    pairs.into_iter().map(|Pair { key, value }| (key, (!value.is_empty()).then(|| json!(value)))).collect()
}

/// A task that was made or brought back.
struct Made {
    task: TaskView,
    verb: &'static str,
}

impl Report for Made {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([("task".to_owned(), json::task(&self.task).into())])
    }

    fn words(&self, _: Option<usize>) -> String {
        let mut words = format!("{} {}\n", self.verb, show::title(&self.task.id, self.task.subject.as_str()));
        if !self.task.open_blockers.is_empty() {
            words.push_str(&format!("  waits for {}\n", show::ids(&self.task.open_blockers)));
        }
        words
    }
}

/// What a change was meant to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Claimed,
    Completed,
    Released,
    Updated,
    Deleted,
}

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Verb::Claimed => "claimed",
            Verb::Completed => "completed",
            Verb::Released => "released",
            Verb::Updated => "updated",
            Verb::Deleted => "deleted",
        }
    }
}

/// A task that was changed, or already was as asked.
struct Changed {
    written: Written,
    verb: Verb,
    now: Timestamp,
}

impl Report for Changed {
    fn json(&self) -> Map<String, Value> {
        json::written(&self.written)
    }

    fn words(&self, _: Option<usize>) -> String {
        let task = &self.written.task;
        let mut words = format!("{} {}\n", self.verb.word(), show::title(&task.id, task.subject.as_str()));
        if self.verb == Verb::Claimed || (self.verb == Verb::Updated && task.leased_until.is_some()) {
            words.push_str(&hold(task, self.now));
        }
        words.push_str(&consequences(&self.written));
        if self.verb == Verb::Deleted {
            words.push_str(&format!("  taskbus restore {} brings it back\n", task.id));
        }
        words
    }
}

/// How long a task is held, and how to go on.
pub(crate) fn hold(task: &TaskView, now: Timestamp) -> String {
    let id = &task.id;
    match task.leased_until {
        Some(until) => format!(
            "  yours until {}, fence {}; to keep it longer: taskbus update {id} --lease 1h\n",
            show::when(until, now),
            task.fence
        ),
        None => format!(
            "  yours while your session lives (30s after your last command), fence {}; to keep it: taskbus update {id} --lease 1h\n",
            task.fence
        ),
    }
}

/// What a change meant for other tasks.
pub(crate) fn consequences(written: &Written) -> String {
    let mut words = String::new();
    for warning in &written.warnings {
        words.push_str(&format!("  {}\n", crate::term::safe::display_safe(warning)));
    }
    if !written.unblocked.is_empty() {
        words.push_str(&format!("  now ready: {}\n", show::ids(&written.unblocked)));
    }
    if !written.open_children.is_empty() {
        words.push_str(&format!("  its parts are still open: {}\n", show::ids(&written.open_children)));
    }
    if let (true, Some(parent)) = (written.parent_complete, &written.task.parent) {
        words.push_str(&format!("  all parts of #{parent} are done now: taskbus done {parent}\n"));
    }
    words
}
