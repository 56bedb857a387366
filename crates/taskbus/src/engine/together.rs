//! Several commands as one: in one write transaction, all of them or none. What they are may depend on the list as it
//! stands under the lock, so that a surface whose one call means several commands need not read first and hope.

use std::cell::Cell;

use taskbus_core::command::Command;
use taskbus_core::decide::{self, Facts};
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::{Look, Neighbourhood};

use super::overview::{Overview, overview};
use super::rate::Cost;
use super::world::Ledger;
use super::write::{answer, outlive_leases};
use super::{Engine, Error, missing_list};
use crate::answer::Answer;
use crate::store::{Abort, Author, Tx, write_with};

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
        let charged = Cell::new(Cost::default());
        let together = write_with(self.store(), Some(list), |tx| {
            // A store may run this again: what an earlier run charged was for nothing.
            self.rate.refund(caller, charged.take());
            self.all_inside(tx, caller, list, commands, show, &charged)
        });
        if together.is_err() {
            self.rate.refund(caller, charged.get());
        }
        Ok(together?)
    }

    fn all_inside(
        &self,
        tx: &mut dyn Tx,
        caller: &Identity,
        list: &ListName,
        commands: &mut Commands<'_>,
        show: Option<usize>,
        charged: &Cell<Cost>,
    ) -> Result<Together, Abort> {
        let facts = Facts { now: self.store.now()?, caller: Some(caller.clone()) };
        let session = self.enter(tx, caller, facts.now)?;
        if tx.list(list)?.is_none() {
            return Err(missing_list(list).into());
        }
        let (mut answers, mut entries) = (Vec::new(), Vec::new());
        for command in commands(&*tx)? {
            let author = Author { context: session.context.clone(), client: session.client.clone() };
            let mut ledger = Ledger::new(tx, author);
            let outcome = decide::run(&command, &mut ledger, &facts)?;
            let own = ledger.into_entries();
            answers.push(answer(tx, list, outcome, &own, &facts)?);
            entries.extend(own);
        }
        self.charge(caller, &entries, charged)?;
        outlive_leases(tx, &session, &entries)?;
        let overview = show.map(|limit| overview(tx, list, limit, facts.now)).transpose()?;
        Ok(Together { answers, overview })
    }
}
