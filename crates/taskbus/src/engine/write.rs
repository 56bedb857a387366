//! Running a command: which list, and then the rules inside one write transaction.

use serde_json::{Value, json};
use taskbus_core::change::Kind;
use taskbus_core::command::Command;
use taskbus_core::decide::{self, Effect, Facts, Outcome};
use taskbus_core::id::TaskId;
use taskbus_core::name::ListName;
use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::text::TextError;

use super::keyed::{About, Asked, Done, Inside};
use super::rate::Cost;
use super::world::{Entry, Ledger};
use super::{Engine, Error, Request, missing_list, missing_task, sessions, view};
use crate::answer::{Answer, PlannedTask, Taken, Written};
use crate::store::{Abort, SessionRow, Snapshot, StoreError, Tx};

/// A request on its way through.
pub(super) struct Call<'a> {
    request: &'a Request,
    /// What is run: the command of the request, or a later part of it.
    command: Command,
    /// Whether a `next` that found nothing is an answer to keep, or a try among others.
    last_try: bool,
    /// Whether an earlier try was made.
    is_later: bool,
    /// What an earlier try completed.
    completed: Option<Written>,
}

impl<'a> Call<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self { request, command: request.command.clone(), last_try: true, is_later: false, completed: None }
    }

    /// The same call as a try after which others may come: an answer of nothing ready is not kept.
    pub(super) fn one_try(self) -> Self {
        Self { last_try: false, ..self }
    }

    /// The same call as a later try: what an earlier one completed is done, and told again.
    pub(super) fn later_try(self, command: Command, completed: Option<Written>) -> Self {
        Self { command, completed, is_later: true, ..self }
    }

    /// What is asked, as one that the inspection is told of: once for each call, not for each try.
    fn told(&self, asked: Asked<'a>) -> Asked<'a> {
        let Request { list, command, .. } = self.request;
        let asked = if deletes(command) { asked } else { asked.growing() };
        let operation = operation(command);
        if self.is_later { asked } else { asked.inspected(operation, || payload(command, list.as_ref())) }
    }

    fn keeps(&self, answer: &Answer) -> bool {
        self.last_try || !matches!(answer, Answer::Next(taken) if taken.idle.is_some())
    }
}

/// The tool that a command is known by to the inspection; a claim, a release and a restoration are updates.
pub(super) fn operation(command: &Command) -> &'static str {
    match command {
        Command::Create(_) => "task_create",
        Command::Plan(_) => "task_plan",
        Command::Update(..) | Command::Restore(_) => "task_update",
        Command::Next(_) => "task_next",
    }
}

/// What a command asks for, for the inspection.
pub(super) fn payload(command: &Command, list: Option<&ListName>) -> Value {
    let mut payload = match command {
        Command::Create(draft) => json!(draft),
        Command::Plan(tasks) => json!({"tasks": tasks}),
        Command::Update(_, patch) => json!(patch),
        Command::Next(next) => json!(next),
        Command::Restore(_) => json!({"delete": false}),
    };
    match command {
        Command::Update(id, _) | Command::Restore(id) => payload["task_id"] = json!(id),
        Command::Create(_) | Command::Plan(_) | Command::Next(_) => payload["channel"] = json!(list),
    }
    payload
}

fn deletes(command: &Command) -> bool {
    matches!(command, Command::Update(_, patch) if patch.delete)
}

impl Engine {
    /// Runs a command.
    ///
    /// # Errors
    /// [`Error`]: every refusal of the rules, or the store's failure.
    pub fn execute(&self, request: &Request) -> Result<Answer, Error> {
        self.run(&Call::new(request))
    }

    pub(super) fn run(&self, call: &Call<'_>) -> Result<Answer, Error> {
        let Request { caller, list, command, key } = call.request;
        let asked = Asked::new(caller, key.as_ref(), || json!({"list": list, "command": command}));
        let asked = call.told(asked);
        self.keyed(&asked, None, || self.about(call.request), |tx, inside| run(tx, call, inside))
    }

    /// Who inspects is not asked about a task that is not there.
    fn about(&self, request: &Request) -> Result<About, Error> {
        match (&request.list, &request.command) {
            (None, Command::Update(id, _) | Command::Restore(id)) if self.inspector.is_none() => {
                Ok(About::Task(id.clone()))
            }
            _ => self.list_of(request).map(About::List),
        }
    }

    pub(super) fn list_of(&self, request: &Request) -> Result<ListName, Error> {
        if let Some(list) = &request.list {
            return Ok(list.clone());
        }
        let (Command::Update(id, _) | Command::Restore(id)) = &request.command else {
            return Err(Refusal::Invalid(Invalid::Text { field: "channel", error: TextError::Empty }).into());
        };
        self.store.locate(id)?.ok_or_else(|| missing_task(id).into())
    }
}

fn run(tx: &mut dyn Tx, call: &Call<'_>, inside: &Inside<'_>) -> Result<Done<Answer>, Abort> {
    let list = list_in(inside, &call.command)?;
    if tx.list(list)?.is_none() {
        return Err(missing_list(list).into());
    }
    let facts = Facts { now: inside.now, caller: Some(call.request.caller.clone()) };
    let mut ledger = Ledger::new(tx, inside.author());
    let outcome = decide::run(&call.command, &mut ledger, &facts)?;
    let entries = ledger.into_entries();
    let mut answer = answer(tx, list, outcome, &entries, &facts)?;
    if let (Answer::Next(taken), Some(completed)) = (&mut answer, &call.completed) {
        taken.completed = Some(completed.clone());
    }
    outlive_leases(tx, inside.session, &entries)?;
    Ok(Done { cost: cost(&entries), keep: call.keeps(&answer), answer })
}

fn list_in<'a>(inside: &Inside<'a>, command: &Command) -> Result<&'a ListName, Refusal> {
    match (inside.list, command) {
        (Some(list), _) => Ok(list),
        (None, Command::Update(id, _) | Command::Restore(id)) => Err(missing_task(id)),
        (None, _) => unreachable!("BUG: a command that names no task is about a list"),
    }
}

/// One call, and the bytes of what the caller wrote: a tombstone adds none, a reclaim or a re-rank is not the
/// caller's.
pub(super) fn cost(entries: &[Entry]) -> Cost {
    let own = |kind| !matches!(kind, Kind::Reclaimed | Kind::Reranked);
    let sized = |kind| own(kind) && kind != Kind::Deleted;
    Cost {
        ops: u32::from(entries.iter().any(|entry| own(entry.kind))),
        bytes: entries.iter().filter(|entry| sized(entry.kind)).map(|entry| entry.bytes).sum(),
    }
}

/// A command ends before its lease does: its session lives as long as what it holds.
pub(super) fn outlive_leases(tx: &mut dyn Tx, session: &SessionRow, entries: &[Entry]) -> Result<(), StoreError> {
    if !sessions::is_command(session) {
        return Ok(());
    }
    let own = entries.iter().filter(|entry| entry.task.owner() == Some(&session.name));
    if let Some(until) = own.filter_map(|entry| entry.task.leased_until()).max() {
        tx.extend_sessions(&session.token, until)?;
    }
    Ok(())
}

pub(super) fn answer(
    around: &dyn Snapshot,
    list: &ListName,
    outcome: Outcome,
    entries: &[Entry],
    facts: &Facts,
) -> Result<Answer, StoreError> {
    Ok(match outcome {
        Outcome::Created(task) => Answer::Created(Box::new(view::task(list, task, around)?)),
        Outcome::Planned(tasks) => {
            Answer::Planned(tasks.into_iter().map(|(key, id)| PlannedTask { key, id }).collect())
        }
        Outcome::Written(effect) => Answer::Written(Box::new(written(around, list, effect, entries)?)),
        Outcome::Taken { tasks, completed } => {
            let idle = if tasks.is_empty() { Some(view::idle(around, facts)?) } else { None };
            let tasks = tasks.into_iter().map(|task| view::task(list, task, around)).collect::<Result<_, _>>()?;
            let completed = completed.map(|effect| written(around, list, effect, entries)).transpose()?;
            Answer::Next(Box::new(Taken { tasks, completed, idle }))
        }
        Outcome::Restored(task) => Answer::Restored(Box::new(view::task(list, task, around)?)),
    })
}

fn written(around: &dyn Snapshot, list: &ListName, effect: Effect, entries: &[Entry]) -> Result<Written, StoreError> {
    Ok(Written {
        replaced: replaced(&effect.task.id, entries),
        deleted: effect.deleted,
        unblocked: effect.unblocked,
        open_children: effect.open_children,
        parent_complete: effect.parent_complete,
        warnings: effect.warnings,
        task: view::task(list, effect.task, around)?,
    })
}

/// The seq of the revision that the call's own last change of a task replaced: after a fix-up, the fix-up's; 0 when
/// it changed nothing.
fn replaced(id: &TaskId, entries: &[Entry]) -> u64 {
    let own = |entry: &&Entry| entry.task.id == *id && !matches!(entry.kind, Kind::Reclaimed | Kind::Reranked);
    entries.iter().rev().find(own).map_or(0, |entry| entry.appended.replaced)
}
