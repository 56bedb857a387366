//! Running a command: who asks, was it asked before, which list, and then one write transaction.

use std::cell::Cell;

use taskbus_core::change::Kind;
use taskbus_core::command::Command;
use taskbus_core::decide::{self, Effect, Facts, Outcome};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::refusal::{Invalid, Refusal};
use taskbus_core::text::TextError;
use taskbus_core::time::Timestamp;

use super::rate::Cost;
use super::world::{Entry, Ledger};
use super::{Engine, Error, Request, missing_list, missing_task, receipts, sessions, view};
use crate::answer::{Answer, PlannedTask, Taken, Written};
use crate::store::{Abort, Author, SessionRow, Snapshot, StoreError, Tx, read_with, write_with};

/// A request on its way through.
pub(super) struct Call<'a> {
    request: &'a Request,
    fingerprint: Option<String>,
    /// What is run: the command of the request, or a later part of it.
    command: Command,
    /// Whether a `next` that found nothing is an answer to keep, or a try among others.
    last_try: bool,
    /// What an earlier try completed.
    completed: Option<Written>,
}

impl<'a> Call<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        let keyed = request.key.is_some();
        let fingerprint = keyed.then(|| receipts::fingerprint(&request.command, request.list.as_ref()));
        Self { request, fingerprint, command: request.command.clone(), last_try: true, completed: None }
    }

    /// The same call as a try after which others may come: an answer of nothing ready is not kept.
    pub(super) fn one_try(self) -> Self {
        Self { last_try: false, ..self }
    }

    /// The same call as a later try: what an earlier one completed is done, and told again.
    pub(super) fn later_try(self, command: Command, completed: Option<Written>) -> Self {
        Self { command, completed, ..self }
    }
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
        if let Some(answer) = self.before(call)? {
            return Ok(answer);
        }
        let list = self.list_of(call.request)?;
        let charged = Cell::new(Cost::default());
        let answer = write_with(self.store(), Some(&list), |tx| self.inside(tx, call, &list, &charged));
        if answer.is_err() {
            self.rate.refund(&call.request.caller, charged.get());
        }
        Ok(answer?)
    }

    /// What can be said without the write lock: the caller holds no session, or the answer was given before.
    fn before(&self, call: &Call<'_>) -> Result<Option<Answer>, Error> {
        let now = self.store.now()?;
        let known = read_with(self.store(), None, |snapshot| match self.session(snapshot, &call.request.caller)? {
            Ok(_) => replayed(snapshot, call, now),
            Err(refusal) => Ok(Err(refusal)),
        })?;
        Ok(known?)
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

    fn inside(&self, tx: &mut dyn Tx, call: &Call<'_>, list: &ListName, charged: &Cell<Cost>) -> Result<Answer, Abort> {
        // A store may run this again: what an earlier run charged was for nothing.
        self.rate.refund(&call.request.caller, charged.take());
        let now = self.store.now()?;
        let session = self.enter(tx, &call.request.caller, now)?;
        if let Some(answer) = replayed(tx, call, now)?? {
            return Ok(answer);
        }
        if tx.list(list)?.is_none() {
            return Err(missing_list(list).into());
        }
        let author = Author { context: session.context.clone(), client: session.client.clone() };
        let facts = Facts { now, caller: Some(call.request.caller.clone()) };
        let mut ledger = Ledger::new(tx, author);
        let outcome = decide::run(&call.command, &mut ledger, &facts)?;
        let entries = ledger.into_entries();
        let mut answer = answer(tx, list, outcome, &entries, &facts)?;
        if let (Answer::Next(taken), Some(completed)) = (&mut answer, &call.completed) {
            taken.completed = Some(completed.clone());
        }
        self.charge(&call.request.caller, &entries, charged)?;
        outlive_leases(tx, &session, &entries)?;
        self.keep(tx, call, &answer, now)?;
        Ok(answer)
    }

    pub(super) fn charge(&self, who: &Identity, entries: &[Entry], charged: &Cell<Cost>) -> Result<(), Abort> {
        let cost = cost(entries);
        self.rate.charge(who, cost, (self.seams.uptime)()).map_err(|wait_ms| Refusal::RateLimited {
            who: who.clone(),
            limit: format!(
                "{} writes or {} KiB a second",
                self.limits.writes_per_second, self.limits.write_kib_per_second
            ),
            wait_ms,
        })?;
        charged.set(cost);
        Ok(())
    }

    fn keep(&self, tx: &mut dyn Tx, call: &Call<'_>, answer: &Answer, now: Timestamp) -> Result<(), StoreError> {
        let (Some(key), Some(fingerprint)) = (&call.request.key, &call.fingerprint) else { return Ok(()) };
        let idle = matches!(answer, Answer::Next(taken) if taken.idle.is_some());
        if idle && !call.last_try {
            return Ok(());
        }
        let receipt = receipts::receipt(fingerprint, answer, now, self.limits.receipt_minutes)?;
        tx.put_receipt(&call.request.caller, key, &receipt)
    }
}

fn replayed(
    snapshot: &dyn Snapshot,
    call: &Call<'_>,
    now: Timestamp,
) -> Result<Result<Option<Answer>, Refusal>, StoreError> {
    match &call.fingerprint {
        Some(fingerprint) => receipts::replay(snapshot, call.request, fingerprint, now),
        None => Ok(Ok(None)),
    }
}

/// One call, and the bytes of what the caller wrote: a tombstone adds none, a reclaim or a re-rank is not the
/// caller's.
fn cost(entries: &[Entry]) -> Cost {
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
