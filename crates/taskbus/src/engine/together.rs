//! Several commands as one: in one write transaction, all of them or none. What they are may depend on the list as it
//! stands under the lock, so that a surface whose one call means several commands need not read first and hope.

use std::cell::RefCell;

use serde_json::Value;
use taskbus_core::command::Command;
use taskbus_core::decide::{self, Facts};
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::{Look, Neighbourhood};

use super::keyed::{About, Asked, Done, Inside};
use super::overview::{Overview, overview};
use super::rate::Cost;
use super::world::Ledger;
use super::write::{answer, cost, operation, outlive_leases, payload};
use super::{Engine, Error, missing_list};
use crate::answer::Answer;
use crate::store::{Abort, Tx, read_with};

/// Says what to do with a list, given as it is. Asked again when the transaction has to begin anew.
pub type Commands<'a> = dyn FnMut(&dyn Neighbourhood) -> Look<Vec<Command>> + 'a;

/// What several commands did.
#[derive(Clone, Debug)]
pub struct Together {
    /// The answer to each, in order.
    pub answers: Vec<Answer>,
    /// The list afterwards, if it was asked for.
    pub overview: Option<Overview>,
}

impl Engine {
    /// Runs the commands that `commands` says, in order, each on what those before it left. With `show`, the answer has
    /// the list as it is then, so many tasks of it at most. Counts as one write; there is no idempotency key.
    ///
    /// # Errors
    /// [`Error`]: the first refusal, or the store's failure; then nothing was written.
    pub fn execute_together(
        &self,
        caller: &Identity,
        list: &ListName,
        commands: &mut Commands<'_>,
        show: Option<usize>,
    ) -> Result<Together, Error> {
        let asked = Asked::new(caller, None, || Value::Null).growing();
        let commands = RefCell::new(commands);
        let told =
            || self.tell_inspector(caller, list, &mut **commands.borrow_mut()).map(|()| About::List(list.clone()));
        let mut together = None;
        self.keyed(&asked, None, told, |tx, inside| {
            let (did, cost) = all(tx, inside, &mut **commands.borrow_mut(), show)?;
            together = Some(did);
            Ok(Done { answer: (), cost, keep: false })
        })?;
        Ok(together.expect("BUG: without a key there is no receipt, so the body ran"))
    }

    /// Asks the inspection about what the commands are now; they may be others once the list is locked, but what they
    /// say is the caller's all the same.
    fn tell_inspector(&self, caller: &Identity, list: &ListName, commands: &mut Commands<'_>) -> Result<(), Error> {
        let Some(inspector) = &self.inspector else { return Ok(()) };
        let planned = read_with(self.store(), Some(list), |snapshot| {
            if snapshot.list(list)?.is_none() {
                return Ok(Err(missing_list(list)));
            }
            Ok(Ok(commands(snapshot)?))
        })??;
        for command in &planned {
            inspector.inspect(operation(command), caller, &payload(command, Some(list)))?;
        }
        Ok(())
    }
}

fn all(
    tx: &mut dyn Tx,
    inside: &Inside<'_>,
    commands: &mut Commands<'_>,
    show: Option<usize>,
) -> Result<(Together, Cost), Abort> {
    let list = inside.list.expect("BUG: commands are about a list");
    if tx.list(list)?.is_none() {
        return Err(missing_list(list).into());
    }
    let facts = Facts { now: inside.now, caller: Some(inside.session.name.clone()) };
    let (mut answers, mut entries) = (Vec::new(), Vec::new());
    for command in commands(&*tx)? {
        let mut ledger = Ledger::new(tx, inside.author());
        let outcome = decide::run(&command, &mut ledger, &facts)?;
        let own = ledger.into_entries();
        answers.push(answer(tx, list, outcome, &own, &facts)?);
        entries.extend(own);
    }
    outlive_leases(tx, inside.session, &entries)?;
    let overview = show.map(|limit| overview(tx, list, limit, facts.now)).transpose()?;
    Ok((Together { answers, overview }, cost(&entries)))
}
