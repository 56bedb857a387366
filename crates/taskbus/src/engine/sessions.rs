//! Sessions: who may act under which name, and for how long.
//!
//! A name is held by a token. An engine's own token lives as long as its heartbeat; a name taken with
//! [`Span::Command`] has a token made from the name, so that one command after another holds it. A name that
//! changes hands gives up what its last holder held, first: sessions are known by name, and a new holder must not
//! make orphaned tasks look alive.

use std::sync::PoisonError;

use taskbus_core::decide::{Facts, reclaim_one};
use taskbus_core::id::TaskId;
use taskbus_core::limits::{IDENTITY_BYTES_MAX, IDS_SHOWN_MAX, SESSION_EXPIRY_MS};
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::refusal::{Conflict, Invalid, NotRegistered, Refusal};
use taskbus_core::session::{check_context, display_name};
use taskbus_core::time::Timestamp;

use super::bus::{Joined, pending};
use super::world::Ledger;
use super::{Engine, Error, Registration, Span, view};
use crate::answer::{ListView, Registered, SessionView};
use crate::store::{Abort, Author, Harness, SessionRow, Snapshot, StoreError, Tx, read_with, write_with};

/// What every token of [`Span::Command`] begins with.
const COMMAND_TOKEN: &str = "command:";
/// A session of [`Span::Command`] is extended when it has less than this left, in milliseconds.
const COMMAND_LEFT_MS: i64 = 20_000;

/// A fresh owner token: 24 hex digits.
pub(super) fn random_token() -> String {
    let mut bytes = [0_u8; 12];
    getrandom::fill(&mut bytes).expect("BUG: the operating system always has random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What one try to take a name came to.
enum Taking {
    /// The name is ours now.
    Done { name: Identity, joined: Box<Joined> },
    /// Its last holder left these tasks; they go back first.
    Orphans { name: Identity, tasks: Vec<(ListName, TaskId)> },
}

impl Engine {
    /// Takes a name: the wished one if nobody else holds it, else with a suffix.
    ///
    /// # Errors
    /// [`Error`]: `validation` for a bad name, or the store's failure. So for every call.
    pub fn register(&self, wish: &Registration) -> Result<Registered, Error> {
        let (name, joined) = self.take_name(wish)?;
        self.registered(name, joined)
    }

    /// The same, and no look around: which name it is, for a program that asks for nothing else.
    ///
    /// # Errors
    /// [`Error`].
    pub fn register_name(&self, wish: &Registration) -> Result<Identity, Error> {
        self.take_name(wish).map(|(name, _)| name)
    }

    /// Every live session.
    ///
    /// # Errors
    /// [`Error`].
    pub fn sessions(&self) -> Result<Vec<SessionView>, Error> {
        let now = self.now()?;
        let rows = read_with(self.store(), None, |snapshot| snapshot.sessions(now))?;
        Ok(rows.into_iter().map(view::session).collect())
    }

    /// Under which name an agent acts, given the program that it runs in: its top-level session that lives and was
    /// registered last. So a hook of the agent finds its name.
    ///
    /// # Errors
    /// [`Error`].
    pub fn session_of_harness(&self, harness: Harness) -> Result<Option<Identity>, Error> {
        let now = self.now()?;
        let rows = read_with(self.store(), None, |snapshot| snapshot.sessions(now))?;
        let own = rows.into_iter().filter(|row| row.harness.is_some_and(|it| it.is(harness)));
        let top = own.filter(|row| row.name.parent().is_none());
        Ok(top.max_by_key(|row| row.registered_at).map(|row| row.name))
    }

    /// Makes a list; the same call again is fine.
    ///
    /// # Errors
    /// [`Error`]: `conflict` when it exists with other settings.
    pub fn create_list(&self, caller: &Identity, name: &ListName, rules: ListRules) -> Result<ListView, Error> {
        let row = write_with(self.store(), None, |tx| {
            let now = self.store.now()?;
            self.enter(tx, caller, now)?;
            if tx.list(name)?.is_none() {
                tx.create_list(name, rules, now)?;
            }
            Ok(tx.list(name)?.expect("BUG: a list that was made is there"))
        })?;
        if row.rules == rules {
            Ok(view::list(row))
        } else {
            Err(Refusal::Conflict(Conflict::ListExists { name: name.clone() }).into())
        }
    }

    /// Keeps this process's sessions alive; call it every
    /// [`HEARTBEAT_MS`](taskbus_core::limits::HEARTBEAT_MS). Says how many there are.
    ///
    /// # Errors
    /// [`Error`].
    pub fn heartbeat(&self) -> Result<usize, Error> {
        if !self.beats() {
            return Ok(0);
        }
        Ok(write_with(self.store(), None, |tx| {
            let until = self.store.now()?.plus_millis(SESSION_EXPIRY_MS);
            Ok(tx.extend_sessions(&self.seams.token, until)?)
        })?)
    }

    /// Ends this process's sessions at once, and waits for what it still does in the background.
    ///
    /// # Errors
    /// [`Error`].
    pub fn close(&self) -> Result<(), Error> {
        self.end_sessions()?;
        if let Some(embedder) = &self.embedder {
            embedder.finish();
        }
        Ok(())
    }

    fn end_sessions(&self) -> Result<(), Error> {
        if !self.beats() {
            return Ok(());
        }
        write_with(self.store(), None, |tx| Ok(tx.end_sessions(&self.seams.token)?))?;
        self.lock_names().retain(|(_, span)| *span != Span::Heartbeat);
        Ok(())
    }

    /// The caller's session, if this process holds it. One whose heartbeat lapsed is still ours as long as nobody
    /// has taken the name.
    pub(super) fn session(
        &self,
        snapshot: &dyn Snapshot,
        who: &Identity,
    ) -> Result<Result<SessionRow, Refusal>, StoreError> {
        let refused = match snapshot.session(who)? {
            Some(row) if self.is_ours(&row) => return Ok(Ok(row)),
            Some(_) if self.knows(who) => NotRegistered::TakenOver { name: who.clone() },
            Some(_) | None => NotRegistered::Never { name: who.clone() },
        };
        Ok(Err(Refusal::NotRegistered(refused)))
    }

    /// The caller's session inside a write, alive from now on if it had lapsed.
    pub(super) fn enter(&self, tx: &mut dyn Tx, who: &Identity, now: Timestamp) -> Result<SessionRow, Abort> {
        let row = self.session(tx, who)??;
        let left_ms = if is_command(&row) { COMMAND_LEFT_MS } else { 0 };
        if row.alive_until <= now.plus_millis(left_ms) {
            tx.extend_sessions(&row.token, now.plus_millis(SESSION_EXPIRY_MS))?;
        }
        Ok(row)
    }

    fn take_name(&self, wish: &Registration) -> Result<(Identity, Joined), Error> {
        check(wish)?;
        loop {
            let taking = write_with(self.store(), None, |tx| self.take(tx, wish))?;
            match taking {
                Taking::Done { name, joined } => {
                    self.lock_names().insert((name.clone(), wish.span));
                    return Ok((name, *joined));
                }
                Taking::Orphans { name, tasks } => self.give_back(wish, &name, &tasks)?,
            }
        }
    }

    fn take(&self, tx: &mut dyn Tx, wish: &Registration) -> Result<Taking, Abort> {
        let now = self.store.now()?;
        let (name, old) = self.free_name(tx, wish, now)?;
        let token = self.token_for(&name, wish.span);
        let resumed = old.filter(|row| row.token == token);
        // Where nobody is known to be dead, nothing is abandoned, and whoever comes back goes on with what the name held.
        if resumed.is_none() && !tx.is_alive(&name, now)? {
            let tasks = orphans(tx, &name)?;
            if !tasks.is_empty() {
                return Ok(Taking::Orphans { name, tasks });
            }
        }
        let fresh = now.plus_millis(SESSION_EXPIRY_MS);
        tx.put_session(&SessionRow {
            name: name.clone(),
            token,
            alive_until: resumed.as_ref().map_or(fresh, |row| row.alive_until.max(fresh)),
            registered_at: resumed.as_ref().map_or(now, |row| row.registered_at),
            context: wish.context.clone(),
            client: client(&wish.client),
            pid: std::process::id(),
            harness: wish.harness,
        })?;
        let mut joined = self.join(tx, &name, wish, now)?;
        joined.resumed |= resumed.is_some();
        Ok(Taking::Done { name, joined: Box::new(joined) })
    }

    /// The first name in the row that is free or ours, and what is left of its last session.
    fn free_name(
        &self,
        tx: &dyn Snapshot,
        wish: &Registration,
        now: Timestamp,
    ) -> Result<(Identity, Option<SessionRow>), Abort> {
        for attempt in 1_u32.. {
            let name = name_for(wish, attempt)?;
            let old = tx.session(&name)?;
            match &old {
                Some(row) if row.alive_until > now && row.token != self.token_for(&name, wish.span) => {}
                Some(_) | None => return Ok((name, old)),
            }
            if wish.span == Span::Command {
                return Err(Refusal::Conflict(Conflict::NameHeld { name }).into());
            }
        }
        unreachable!("BUG: a name grows with its number and ends at its limit")
    }

    /// Returns to their queues what the dead holder of a name held; a fence makes its late writes fail.
    fn give_back(&self, wish: &Registration, name: &Identity, tasks: &[(ListName, TaskId)]) -> Result<(), Error> {
        for same in tasks.chunk_by(|a, b| a.0 == b.0) {
            write_with(self.store(), Some(&same[0].0), |tx| {
                let facts = Facts { now: self.store.now()?, caller: Some(name.clone()) };
                let author = Author { context: wish.context.clone(), client: client(&wish.client) };
                let mut ledger = Ledger::new(tx, author);
                for (_, id) in same {
                    reclaim_one(id, &mut ledger, &facts)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn registered(&self, name: Identity, joined: Joined) -> Result<Registered, Error> {
        let now = self.now()?;
        let (pending, lists, mut others) = read_with(self.store(), None, |snapshot| {
            Ok((pending(snapshot, &name)?, snapshot.lists()?, snapshot.sessions(now)?))
        })?;
        others.retain(|row| row.name != name && self.limits.discovery_enabled);
        Ok(Registered {
            name,
            resumed: joined.resumed,
            pending,
            subscribed: joined.subscribed,
            memory_channels: joined.memory_channels,
            ignored_channels: joined.ignored_channels,
            subscribe_failed: joined.subscribe_failed,
            tag_subscriptions: joined.tag_subscriptions,
            repo_tags: joined.repo_tags,
            ignored_tags: joined.ignored_tags,
            lists: lists.into_iter().take(IDS_SHOWN_MAX).map(view::list).collect(),
            others: others.into_iter().take(IDS_SHOWN_MAX).map(view::session).collect(),
        })
    }

    fn token_for(&self, name: &Identity, span: Span) -> String {
        match span {
            Span::Heartbeat => self.seams.token.clone(),
            Span::Command => format!("{COMMAND_TOKEN}{name}"),
        }
    }

    fn is_ours(&self, row: &SessionRow) -> bool {
        row.token == self.seams.token
            || (is_command(row) && self.lock_names().contains(&(row.name.clone(), Span::Command)))
    }

    fn knows(&self, who: &Identity) -> bool {
        self.lock_names().iter().any(|(name, _)| name == who)
    }

    fn beats(&self) -> bool {
        self.lock_names().iter().any(|(_, span)| *span == Span::Heartbeat)
    }

    fn lock_names(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeSet<(Identity, Span)>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a session belongs to commands that come one after another.
pub(super) fn is_command(row: &SessionRow) -> bool {
    row.token.starts_with(COMMAND_TOKEN)
}

/// What the dead holder of a name still holds and must give back.
fn orphans(tx: &dyn Snapshot, name: &Identity) -> Result<Vec<(ListName, TaskId)>, StoreError> {
    let held = tx.held_by(name)?;
    let mut orphans = Vec::new();
    for (list, id) in held {
        let guarded = tx.list(&list)?.is_some_and(|row| row.rules.policy.guards_owners());
        if guarded {
            orphans.push((list, id));
        }
    }
    orphans.sort();
    Ok(orphans)
}

fn check(wish: &Registration) -> Result<(), Refusal> {
    check_context(&wish.context).map_err(|error| Refusal::Invalid(Invalid::Text { field: "context", error }))?;
    name_for(wish, 1).map(|_| ())
}

fn name_for(wish: &Registration, attempt: u32) -> Result<Identity, Refusal> {
    let invalid = |field, error| Refusal::Invalid(Invalid::Text { field, error });
    display_name(&wish.name, None, attempt).map_err(|error| invalid("name", error))?;
    display_name(&wish.name, wish.parent.as_deref(), attempt).map_err(|error| invalid("parent", error))
}

/// What a client says of itself is kept in short, never refused.
fn client(said: &str) -> String {
    let mut text: String = said.chars().filter(|c| !c.is_control()).collect();
    let mut end = text.len().min(IDENTITY_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
