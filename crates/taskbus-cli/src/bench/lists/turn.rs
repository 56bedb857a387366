//! One turn on one list: each call once in each mode, undone at once, with a bare transaction between two of them.

use std::time::Duration;

use taskbus::store::View;
use taskbus_core::name::Key;

use super::Ground;
use super::calls::{Hub, Timed};
use super::field::Mode;
use super::samples::{Name, Samples};
use crate::term::failure::Failure;

/// The store is opened anew at each of so many turns: it takes as long as many calls.
const TURNS_PER_OPEN: usize = 2;

/// Makes one turn.
pub(super) fn turn(ground: &mut Ground, number: usize, samples: &mut Samples) -> Result<(), Failure> {
    for mode in [Mode::Durable, Mode::Relaxed] {
        Turn { ground, number, mode, samples }.writes()?;
    }
    reads(ground, samples)?;
    if number.is_multiple_of(TURNS_PER_OPEN) {
        samples.add(Name::Open, Mode::Relaxed, ground.tasks, ground.field.open()?);
    }
    Ok(())
}

struct Turn<'a> {
    ground: &'a mut Ground,
    number: usize,
    mode: Mode,
    samples: &'a mut Samples,
}

impl Turn<'_> {
    fn writes(&mut self) -> Result<(), Failure> {
        let (mode, number) = (self.mode, self.number);
        // The other engine has written meanwhile: what is read anew because of that is not what is to be measured.
        self.ground.field.delete(mode, self.ground.field.create(mode, number)?.0)?;
        self.ground.raw.turn(mode)?;
        self.creates()?;
        self.claims(None)?;
        self.claims(Some(self.key("claim")))?;
        self.completes_large()?;
        self.takes(Name::Next, None)?;
        self.takes(Name::NextKeyed, Some(self.key("next")))?;
        self.adds_blocker()
    }

    fn creates(&mut self) -> Result<(), Failure> {
        let created = self.ground.field.create(self.mode, self.number);
        let id = self.note(Name::Create, created)?;
        Ok(self.ground.field.delete(self.mode, id)?)
    }

    /// Claims a task by its id and completes it.
    fn claims(&mut self, key: Option<Key>) -> Result<(), Failure> {
        let name = if key.is_some() { Name::ClaimKeyed } else { Name::Claim };
        let hub = self.ground.field.hub(Hub::Small, self.number);
        let claimed = self.ground.field.claim(self.mode, hub, key);
        let id = self.note(name, claimed)?;
        if name == Name::ClaimKeyed {
            return Ok(self.ground.field.release(self.mode, id)?);
        }
        let completed = self.ground.field.complete(self.mode, id);
        let id = self.note(Name::Complete, completed)?;
        Ok(self.ground.field.reopen(self.mode, id)?)
    }

    fn completes_large(&mut self) -> Result<(), Failure> {
        let hub = self.ground.field.hub(Hub::Large, self.number);
        let (id, _) = self.ground.field.claim(self.mode, hub, None)?;
        let completed = self.ground.field.complete(self.mode, id);
        let id = self.note(Name::CompleteLarge, completed)?;
        Ok(self.ground.field.reopen(self.mode, id)?)
    }

    fn takes(&mut self, name: Name, key: Option<Key>) -> Result<(), Failure> {
        let taken = self.ground.field.next(self.mode, key);
        let id = self.note(name, taken)?;
        Ok(self.ground.field.release(self.mode, id)?)
    }

    fn adds_blocker(&mut self) -> Result<(), Failure> {
        let added = self.ground.field.add_blocker(self.mode, self.number);
        self.note(Name::AddBlocker, added)?;
        Ok(self.ground.field.remove_blocker(self.mode, self.number)?)
    }

    /// Keeps what a call took, and what a bare transaction takes directly after it.
    fn note(&mut self, name: Name, timed: Timed) -> Result<taskbus_core::id::TaskId, Failure> {
        let (id, took) = timed?;
        let bare = self.ground.raw.turn(self.mode)?;
        self.samples.add(name, self.mode, self.ground.tasks, took);
        self.samples.add(Name::Raw, self.mode, self.ground.tasks, bare);
        Ok(id)
    }

    fn key(&self, call: &str) -> Key {
        let key = format!("{call} {:?} {}", self.mode, self.number);
        Key::new(key).expect("BUG: a short word is a key")
    }
}

/// One of each call that reads; pages are read on and on, so that not only the first one is measured.
fn reads(ground: &mut Ground, samples: &mut Samples) -> Result<(), Failure> {
    let field = &ground.field;
    let mut add = |name: Name, took: Duration| samples.add(name, Mode::Relaxed, ground.tasks, took);
    let (page, next) = field.page(View::Tree, ground.cursor.as_ref())?;
    add(Name::Page, page);
    add(Name::ReadyPage, field.page(View::Ready, None)?.0);
    let (alone, whole) = field.scan()?;
    add(Name::Scan, alone);
    add(Name::ScanRead, whole);
    add(Name::Search, field.search()?);
    add(Name::Tick, field.tick()?);
    ground.cursor = next;
    Ok(())
}
