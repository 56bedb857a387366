//! The shared side: read as it stands, written through the engine like by anybody else, under the names that the
//! mirror holds.
//!
//! Whoever works on a task in Claude Code is no session of ours. The mirror holds a session for each such name, as long
//! as it runs, so that what they hold is not taken for abandoned. Where Claude Code names nobody, the mirror's own name
//! stands for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use taskbus_core::command::{Command, Draft, Patch};
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::refusal::{Conflict, Refusal};
use taskbus_core::task::Status;

use super::action::Texts;
use super::fields::{self, CLAUDE_ID, Fields, Hold};
use super::plan::SideView;
use crate::answer::Answer;
use crate::engine::{Engine, Error, Registration, Request};
use crate::store::{PageQuery, Snapshot, StoreError, read_with};

/// Rows of one reading page.
const PAGE_ROWS: usize = 500;
/// The longest wait for the rate limit, in milliseconds.
const RATE_WAIT_MS_MAX: u64 = 5_000;

/// What a write came to.
#[derive(Debug)]
pub(super) enum Outcome<T = ()> {
    /// It was written.
    Done(T),
    /// The task has changed meanwhile: look again.
    Stale,
    /// The state of the list refuses it.
    Conflict(Refusal),
    /// It can never be written as it is.
    Invalid(Refusal),
}

/// The shared side.
pub(super) struct Shared<'a> {
    pub(super) engine: &'a Engine,
    pub(super) list: &'a ListName,
    pub(super) directory: ListName,
    pub(super) me: Identity,
    /// The names that the mirror holds, its own among them.
    names: BTreeSet<Identity>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(engine: &'a Engine, list: &'a ListName, directory: ListName, me: Identity) -> Self {
        Self { engine, list, directory, names: BTreeSet::from([me.clone()]), me }
    }

    /// Every live task, and which of the others that are `asked` for were deleted.
    pub(super) fn view(&self, asked: &BTreeSet<TaskId>) -> Result<SideView, StoreError> {
        let now = self.engine.store().now()?;
        read_with(self.engine.store(), Some(self.list), |snapshot| {
            let mut tasks = BTreeMap::new();
            let mut query = PageQuery::all(PAGE_ROWS, now);
            loop {
                let page = snapshot.page(&query)?;
                for row in &page.rows {
                    if let Some(task) = snapshot.task(&row.id)? {
                        tasks.insert(row.id.clone(), fields::shared(&task, &self.directory, &self.me));
                    }
                }
                query.after = page.rows.last().map(|row| row.path.clone());
                if !page.more || query.after.is_none() {
                    break;
                }
            }
            let others = deleted(snapshot, asked.iter().filter(|id| !tasks.contains_key(*id)))?;
            Ok(SideView { tasks, others })
        })
    }

    pub(super) fn make(&self, file: &TaskId, wanted: &Fields) -> Result<Outcome<TaskId>, Error> {
        let mut metadata: BTreeMap<String, Value> = wanted.metadata.clone().into_iter().collect();
        metadata.insert(CLAUDE_ID.to_owned(), fields::claude_id(&self.directory, file).into());
        let draft = Draft {
            description: wanted.description.clone(),
            active_form: wanted.active_form.clone(),
            blocked_by: wanted.blockers.clone(),
            metadata,
            ..Draft::new(wanted.subject.clone())
        };
        Ok(match self.run(&self.me, Command::Create(Box::new(draft)))? {
            Outcome::Done(Answer::Created(task)) => Outcome::Done(task.id),
            Outcome::Done(_) | Outcome::Stale => Outcome::Stale,
            Outcome::Conflict(refusal) => Outcome::Conflict(refusal),
            Outcome::Invalid(refusal) => Outcome::Invalid(refusal),
        })
    }

    pub(super) fn link(&self, id: &TaskId, revision: u64, file: &TaskId, hold: &Hold) -> Result<Outcome, Error> {
        let said = Value::from(fields::claude_id(&self.directory, file));
        let metadata = BTreeMap::from([(CLAUDE_ID.to_owned(), Some(said))]);
        self.update(id, revision, hold, Patch { metadata, ..Patch::default() })
    }

    pub(super) fn write(&self, id: &TaskId, revision: u64, hold: &Hold, texts: &Texts) -> Result<Outcome, Error> {
        let Texts { subject, description, active_form, metadata } = texts.clone();
        self.update(id, revision, hold, Patch { subject, description, active_form, metadata, ..Patch::default() })
    }

    pub(super) fn edge(
        &self,
        id: &TaskId,
        revision: u64,
        hold: &Hold,
        (add, blocker): (bool, &TaskId),
    ) -> Result<Outcome, Error> {
        let ids = vec![blocker.clone()];
        let patch = match add {
            true => Patch { add_blocked_by: ids, ..Patch::default() },
            false => Patch { remove_blocked_by: ids, ..Patch::default() },
        };
        self.update(id, revision, hold, patch)
    }

    /// Changes status and owner as Claude Code did. From completed to in progress takes two steps.
    pub(super) fn move_to(&mut self, id: &TaskId, revision: u64, from: &Hold, to: &Hold) -> Result<Outcome, Error> {
        if let Some(owner) = &to.owner {
            self.hold_name(owner)?;
        }
        if from.status == Status::Completed && to.status == Status::InProgress {
            let reopen = Patch { status: Some(Status::Pending), ..Patch::default() };
            return self.update(id, revision, from, reopen);
        }
        let status = Some(to.status).filter(|status| *status != from.status);
        let stand_in = (to.status == Status::InProgress).then(|| self.me.clone());
        let owner = match (&to.owner, to.status) {
            (Some(owner), _) => Some(Some(owner.clone())),
            (None, Status::InProgress) => Some(stand_in),
            (None, Status::Pending) => Some(None),
            (None, Status::Completed) => None,
        };
        self.update(id, revision, from, Patch { status, owner, ..Patch::default() })
    }

    /// Keeps a name alive that Claude Code's tasks are held under, unless somebody else does.
    fn hold_name(&mut self, name: &Identity) -> Result<(), Error> {
        if self.names.contains(name) || self.engine.sessions()?.iter().any(|session| session.name == *name) {
            return Ok(());
        }
        let (parent, short) = match name.as_str().rsplit_once('/') {
            Some((parent, short)) => (Some(parent.to_owned()), short),
            None => (None, name.as_str()),
        };
        let wish = Registration {
            name: short.to_owned(),
            parent,
            context: format!("works in Claude Code on {}", self.directory),
            client: super::CLIENT.to_owned(),
            ..Registration::default()
        };
        self.names.insert(self.engine.register(&wish)?.name);
        Ok(())
    }

    /// Changes a task under the name that holds it, if that is one of ours.
    fn update(&self, id: &TaskId, revision: u64, hold: &Hold, patch: Patch) -> Result<Outcome, Error> {
        let holder = hold.owner.as_ref().filter(|owner| self.names.contains(*owner)).unwrap_or(&self.me);
        let patch = Patch { if_revision: Some(revision), ..patch };
        Ok(match self.run(holder, Command::Update(id.clone(), Box::new(patch)))? {
            Outcome::Done(_) => Outcome::Done(()),
            Outcome::Stale => Outcome::Stale,
            Outcome::Conflict(refusal) => Outcome::Conflict(refusal),
            Outcome::Invalid(refusal) => Outcome::Invalid(refusal),
        })
    }

    fn run(&self, caller: &Identity, command: Command) -> Result<Outcome<Answer>, Error> {
        let request = Request { caller: caller.clone(), list: Some(self.list.clone()), command, key: None };
        loop {
            return Ok(match self.engine.execute(&request) {
                Ok(answer) => Outcome::Done(answer),
                Err(Error::Refused(Refusal::RateLimited { wait_ms, .. })) => {
                    std::thread::sleep(Duration::from_millis(wait_ms.min(RATE_WAIT_MS_MAX)));
                    continue;
                }
                Err(Error::Refused(Refusal::Conflict(Conflict::Revision { .. }) | Refusal::NotFound(_))) => {
                    Outcome::Stale
                }
                Err(Error::Refused(refusal @ Refusal::Conflict(_))) => Outcome::Conflict(refusal),
                Err(Error::Refused(refusal @ Refusal::Invalid(_))) => Outcome::Invalid(refusal),
                Err(error) => return Err(error),
            });
        }
    }
}

fn deleted<'i>(snapshot: &dyn Snapshot, ids: impl Iterator<Item = &'i TaskId>) -> Result<BTreeSet<TaskId>, StoreError> {
    let mut deleted = BTreeSet::new();
    for id in ids {
        if snapshot.tombstone(id)?.is_some() {
            deleted.insert(id.clone());
        }
    }
    Ok(deleted)
}
