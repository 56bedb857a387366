//! What a client of the storm does next: the mix of operations, chosen by dice from what the client has seen. It knows
//! nothing of the store but what it was told.

use std::time::{SystemTime, UNIX_EPOCH};

use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::task::Status;

use super::deed::Deed;
use super::dice::Dice;
use super::record::Number;
use super::told::{Seen, Told};

/// Shortest and longest lease that a client of the storm asks for, in milliseconds.
const LEASE_MS: std::ops::Range<u64> = 200..1_500;
/// The end of a lease tells which deed asked for it: by its rest when divided by this.
const LEASE_RESTS: i64 = 251;
/// After so many deeds a client looks around again.
const LOOK_EVERY: u64 = 8;

/// A kind of deed.
#[derive(Clone, Copy, Debug)]
enum Wish {
    Add,
    Plan,
    Claim,
    Next,
    Done,
    Release,
    Renew,
    Edit,
    Reopen,
    Assign,
    Move,
    Block,
    Unblock,
    Delete,
    Restore,
    Get,
    Send,
    Receive,
}

/// How often each, by weight. As many tasks are deleted as are made, so that the list stays small.
const MIX: [(u64, Wish); 18] = [
    (14, Wish::Add),
    (1, Wish::Plan),
    (12, Wish::Claim),
    (14, Wish::Next),
    (12, Wish::Done),
    (4, Wish::Release),
    (4, Wish::Renew),
    (8, Wish::Edit),
    (2, Wish::Reopen),
    (3, Wish::Assign),
    (4, Wish::Move),
    (7, Wish::Block),
    (2, Wish::Unblock),
    (14, Wish::Delete),
    (2, Wish::Restore),
    (5, Wish::Get),
    (6, Wish::Send),
    (6, Wish::Receive),
];

/// A task that the client holds, as far as it knows.
#[derive(Clone, Debug)]
struct Hold {
    id: TaskId,
    fence: u64,
}

/// What a client knows.
pub(super) struct Mind {
    dice: Dice,
    names: Vec<Identity>,
    looked: u64,
    seen: Vec<TaskId>,
    held: Vec<Hold>,
    deleted: Vec<TaskId>,
    batch: Option<String>,
}

impl Mind {
    /// A client that has seen nothing, and knows these others.
    pub(super) fn new(dice: Dice, names: Vec<Identity>) -> Self {
        let (seen, held, deleted) = (Vec::new(), Vec::new(), Vec::new());
        Self { dice, names, looked: 0, seen, held, deleted, batch: None }
    }

    /// Whether it is time to look around, and at what.
    pub(super) fn wants_to_look(&mut self, deed: u64) -> Option<Status> {
        if deed < self.looked {
            return None;
        }
        self.looked = deed + LOOK_EVERY;
        Some(self.dice.weighted(&[(6, Status::Pending), (2, Status::InProgress), (2, Status::Completed)]))
    }

    /// It has looked around.
    pub(super) fn has_seen(&mut self, tasks: Vec<(TaskId, Option<Identity>)>) {
        self.seen = tasks.into_iter().map(|(id, _)| id).collect();
    }

    /// What to do next, and whether under a key.
    pub(super) fn next(&mut self, number: Number) -> (Deed, bool) {
        let mut deed = None;
        while deed.is_none() {
            let wish = self.dice.weighted(&MIX);
            deed = self.deed(wish, number);
        }
        let deed = deed.expect("BUG: one was found");
        let keyed = deed.takes_key() && self.dice.percent(40);
        (deed, keyed)
    }

    /// Whether a keyed deed that was answered is sent once more, as an agent does that lost the answer.
    pub(super) fn repeats(&mut self) -> bool {
        self.dice.percent(10)
    }

    /// It was told this.
    pub(super) fn learn(&mut self, deed: &Deed, told: &Told) {
        match (deed, told) {
            (Deed::Receive { .. }, Told::Received { batch, .. }) => self.batch.clone_from(batch),
            (Deed::Delete { id }, Told::Wrote(_)) => {
                self.forget(id);
                self.deleted.push(id.clone());
            }
            (_, Told::Wrote(tasks) | Told::Nothing(tasks)) => tasks.iter().for_each(|task| self.learn_task(task)),
            (_, Told::Is(task) | Told::Read(task)) => self.learn_task(task),
            (_, Told::Made(ids)) => self.seen.extend(ids.iter().cloned()),
            (Deed::Done { id, .. } | Deed::Renew { id, .. } | Deed::Release { id, .. }, Told::Refused { .. }) => {
                self.held.retain(|hold| hold.id != *id);
            }
            _ => {}
        }
    }

    fn learn_task(&mut self, task: &Seen) {
        self.held.retain(|hold| hold.id != task.id);
        let ours =
            task.owner.as_deref().is_some_and(|owner| self.names.first().is_some_and(|own| own.as_str() == owner));
        if let Some(fence) = task.fence.filter(|_| ours && task.status == Status::InProgress) {
            self.held.push(Hold { id: task.id.clone(), fence });
        }
        if !self.seen.contains(&task.id) {
            self.seen.push(task.id.clone());
        }
    }

    fn forget(&mut self, id: &TaskId) {
        self.seen.retain(|seen| seen != id);
        self.held.retain(|hold| hold.id != *id);
    }

    fn deed(&mut self, wish: Wish, number: Number) -> Option<Deed> {
        Some(match wish {
            Wish::Add => Deed::Add {
                parent: self.sometimes_any(20),
                blocked_by: self.sometimes_any(30).into_iter().collect(),
                before: self.sometimes_any(5),
            },
            Wish::Plan => Deed::Plan { tasks: 2 + usize::try_from(self.dice.below(4)).unwrap_or(0) },
            Wish::Claim => Deed::Claim { id: self.any()?, until: self.until(number), force: self.dice.percent(4) },
            Wish::Next => {
                let complete = self.held().filter(|_| self.dice.percent(50)).map(|hold| (hold.id, hold.fence));
                let count = 1 + usize::try_from(self.dice.below(2)).unwrap_or(0);
                Deed::Next { count, until: self.until(number), complete }
            }
            Wish::Done => self.held().map(|hold| Deed::Done { id: hold.id, fence: Some(hold.fence) })?,
            Wish::Release => self.held().map(|hold| Deed::Release { id: hold.id, fence: hold.fence })?,
            Wish::Renew => {
                let hold = self.held()?;
                Deed::Renew { id: hold.id, fence: hold.fence, until: self.until(number) }
            }
            Wish::Edit => Deed::Edit { id: self.any()?, fence: None, force: self.dice.percent(2) },
            Wish::Reopen => Deed::Reopen { id: self.any()? },
            Wish::Assign => {
                let to = self.dice.percent(70).then(|| self.dice.pick(&self.names).cloned()).flatten();
                Deed::Assign { id: self.any()?, to }
            }
            Wish::Move => Deed::Move { id: self.any()?, parent: self.sometimes_any(60), before: None },
            Wish::Block => Deed::Block { id: self.any()?, on: self.any()? },
            Wish::Unblock => Deed::Unblock { id: self.any()?, on: self.any()? },
            Wish::Delete => Deed::Delete { id: self.any()? },
            Wish::Restore => Deed::Restore { id: self.dice.pick(&self.deleted).cloned()? },
            Wish::Get => Deed::Get { id: self.any()? },
            Wish::Send => Deed::Send { channel: self.channel() },
            Wish::Receive => Deed::Receive { ack: self.batch.take() },
        })
    }

    fn any(&mut self) -> Option<TaskId> {
        self.dice.pick(&self.seen).cloned()
    }

    fn sometimes_any(&mut self, percent: u64) -> Option<TaskId> {
        if self.dice.percent(percent) { self.any() } else { None }
    }

    fn held(&mut self) -> Option<Hold> {
        self.dice.pick(&self.held).cloned()
    }

    fn channel(&mut self) -> String {
        match self.dice.pick(&self.names).cloned() {
            Some(name) if self.dice.percent(60) => format!("dm/{name}"),
            Some(_) | None => "general".to_owned(),
        }
    }

    fn until(&mut self, number: Number) -> i64 {
        let lease = LEASE_MS.start + self.dice.below(LEASE_MS.end - LEASE_MS.start);
        until(lease, number)
    }
}

/// The end of a lease of so many milliseconds from now, which tells by whom it was asked for.
pub(super) fn until(lease_ms: u64, number: Number) -> i64 {
    let end = now_ms().saturating_add(i64::try_from(lease_ms).unwrap_or(i64::MAX));
    let rest = i64::try_from((number.life.wrapping_mul(17) + number.deed) % LEASE_RESTS.unsigned_abs()).unwrap_or(0);
    end - end % LEASE_RESTS + LEASE_RESTS + rest
}

/// The time now, in Unix ms.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
