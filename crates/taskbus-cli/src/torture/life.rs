//! One life of a client of the storm, from its start to the moment when it is killed or told to end: write down, try,
//! write down, and so on. The same for a client in a process of its own and for one that speaks to a server.

use std::io;

use taskbus_core::name::Identity;

use super::deed::Deed;
use super::dice::Dice;
use super::hand::{Gone, Hand};
use super::mind::Mind;
use super::record::{Begin, Line, Log, Number, nanos};
use super::told::Told;

/// Why a life ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub(super) enum Death {
    /// The way to the store is gone.
    #[error("the way to the store is gone: {}", .0.0)]
    Gone(Gone),
    /// The log cannot be written.
    #[error("the log cannot be written: {0}")]
    Log(io::Error),
}

impl From<Gone> for Death {
    fn from(gone: Gone) -> Self {
        Death::Gone(gone)
    }
}

impl From<io::Error> for Death {
    fn from(error: io::Error) -> Self {
        Death::Log(error)
    }
}

/// A client in one of its lives.
pub(super) struct Life<'a, H: Hand> {
    hand: H,
    log: &'a mut Log,
    number: Number,
    mind: Mind,
}

impl<'a, H: Hand> Life<'a, H> {
    /// The client with this number, in this life; the others it may write to are called so.
    pub(super) fn begin(hand: H, log: &'a mut Log, seed: u64, client: u64, life: u64, others: &[Identity]) -> Self {
        let own = hand.caller().clone();
        let names = std::iter::once(own.clone()).chain(others.iter().filter(|name| **name != own).cloned()).collect();
        let mind = Mind::new(Dice::of(seed, client, life), names);
        Self { hand, log, number: Number { client, life, deed: 0 }, mind }
    }

    /// Does one deed after the other until it is told to end.
    pub(super) fn live(&mut self, left_open: Option<Begin>, mut ends: impl FnMut() -> bool) -> Result<(), Death> {
        if let Some(open) = left_open.filter(|open| open.key.is_some() && open.caller == *self.hand.caller()) {
            self.carry_out(&Begin { at: nanos(), ..open })?;
        }
        while !ends() {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Death> {
        if let Some(status) = self.mind.wants_to_look(self.number.deed) {
            let tasks = self.hand.look(status, 40)?;
            self.mind.has_seen(tasks);
        }
        let (deed, keyed) = self.mind.next(self.number);
        let key = keyed.then(|| self.number.mark());
        let first = self.new_begin(deed, key.clone());
        let told = self.carry_out(&first)?;
        let kept = told.wrote() || matches!(told, Told::Is(_));
        if keyed && kept && self.mind.repeats() {
            self.carry_out(&Begin { at: nanos(), ..first })?;
            let other = self.new_begin(Deed::Add { parent: None, blocked_by: Vec::new(), before: None }, key);
            self.carry_out(&Begin { is_wrong: true, ..other })?;
        }
        Ok(())
    }

    fn new_begin(&mut self, deed: Deed, key: Option<String>) -> Begin {
        let number = self.number;
        self.number.deed += 1;
        Begin { number, at: nanos(), caller: self.hand.caller().clone(), deed, key, is_wrong: false }
    }

    fn carry_out(&mut self, begin: &Begin) -> Result<Told, Death> {
        let told = carry_out(&mut self.hand, self.log, begin)?;
        self.mind.learn(&begin.deed, &told);
        Ok(told)
    }
}

/// Writes down, tries, and writes down what came of it.
pub(super) fn carry_out(hand: &mut impl Hand, log: &mut Log, begin: &Begin) -> Result<Told, Death> {
    log.write(&Line::Begin(begin.clone()))?;
    let told = hand.act(begin.number, &begin.deed, begin.key.as_deref())?;
    log.write(&Line::End { number: begin.number, at: nanos(), told: told.clone() })?;
    Ok(told)
}
