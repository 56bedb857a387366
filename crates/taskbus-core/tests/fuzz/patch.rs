//! Patches on random states, against a model of what a patch says: what it names is so afterwards, what it does not name
//! is as before, and what is refused changes nothing. The input is a row of bytes that are read as choices.

use std::collections::BTreeSet;

use taskbus_core::board::Board;
use taskbus_core::command::{Command, Draft, LeaseAsk, Next, Patch, Place};
use taskbus_core::decide::{self, Effect, Facts, Outcome, Stop};
use taskbus_core::document;
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, Label};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::policy::Policy;
use taskbus_core::task::{Status, Task};
use taskbus_core::text::{Body, Note, Subject};
use taskbus_core::time::Timestamp;

use crate::harness::{Made, Target};

#[test]
fn a_patch_changes_what_it_names_and_nothing_else() {
    Target { name: "patches", corpus: include_str!("corpus/patches.txt"), words: &[], take }.hunt_both(3_000);
}

const NAMES: [&str; 3] = ["Zed", "Amp", "Jan"];
const START: i64 = 1_796_054_400_000;
const STEPS_MAX: usize = 60;

/// The bytes of an input as choices; none are left at its end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn below(&mut self, end: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % end
    }

    fn maybe<T>(&mut self, odds: usize, f: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(odds) == 1).then(|| f(self))
    }

    fn person(&mut self) -> Identity {
        Identity::new(NAMES[self.below(NAMES.len())]).unwrap()
    }

    /// One of the first few ids, made or not.
    fn id(&mut self) -> TaskId {
        TaskId::Number(self.below(8) as u64 + 1)
    }

    fn ids(&mut self) -> Vec<TaskId> {
        (0..self.below(3)).map(|_| self.id()).collect()
    }

    fn place(&mut self) -> Place {
        let id = self.id();
        if self.below(2) == 0 { Place::Before(id) } else { Place::After(id) }
    }

    fn labels(&mut self) -> BTreeSet<Label> {
        ["rust", "db:x"].iter().take(self.below(3)).map(|label| Label::new(*label).unwrap()).collect()
    }

    fn draft(&mut self) -> Draft {
        Draft {
            parent: self.maybe(3, Self::id),
            blocked_by: self.ids(),
            place: self.maybe(4, Self::place),
            labels: self.labels(),
            ..Draft::new(Subject::new("work").unwrap())
        }
    }

    fn patch(&mut self, caller: &Identity) -> Patch {
        match self.below(10) {
            0 => return Patch::claim(caller.clone(), self.maybe(2, |it| LeaseAsk::Seconds(1 + it.below(60) as u64))),
            1 => return Patch::complete(self.maybe(2, |_| Note::new("came of it").unwrap())),
            2 => return Patch { force: self.below(2) == 1, ..Patch::delete() },
            3 => return Patch::release(),
            _ => {}
        }
        Patch {
            status: self.maybe(4, |it| Status::ALL[it.below(3)]),
            owner: self.maybe(4, |it| it.maybe(2, Self::person)),
            subject: self.maybe(5, |_| Subject::new("other work").unwrap()),
            description: self.maybe(5, |it| it.maybe(2, |_| Body::new("long").unwrap())),
            parent: self.maybe(4, |it| it.maybe(2, Self::id)),
            place: self.maybe(4, Self::place),
            add_blocked_by: self.ids(),
            remove_blocked_by: self.ids(),
            lease: self.maybe(6, |it| LeaseAsk::Seconds(it.below(60) as u64)),
            not_before: self.maybe(5, |it| it.maybe(2, |it| Timestamp::from_millis(START + it.below(99) as i64 * 999))),
            labels: self.maybe(5, Self::labels),
            paths: self.maybe(5, |_| BTreeSet::from([PathGlob::new("src/**").unwrap()])),
            note: self.maybe(5, |_| Note::new("seen").unwrap()),
            force: self.below(5) == 1,
            fence: self.maybe(8, |it| it.below(4) as u64),
            if_revision: self.maybe(8, |it| it.below(6) as u64),
            ..Patch::default()
        }
    }

    fn command(&mut self, caller: &Identity) -> Command {
        match self.below(12) {
            0..=3 => Command::Create(Box::new(self.draft())),
            4 => Command::Restore(self.id()),
            5 => Command::Next(Box::new(Next { count: 1 + self.below(3), labels: self.labels(), ..Next::default() })),
            _ => Command::Update(self.id(), Box::new(self.patch(caller))),
        }
    }
}

fn take(input: &[u8]) -> Made {
    let mut choices = Choices(input);
    let mut board = Board::new(ListRules { policy: Policy::Strict, max_reclaims: 2 });
    let (mut now, mut taken, mut asked) = (START, 0, 0);
    while !choices.0.is_empty() && asked < STEPS_MAX {
        now += 1 + 20_000 * choices.below(3) as i64;
        let caller = choices.person();
        board.set_alive(caller.clone(), Timestamp::from_millis(now + 30_000));
        let facts = Facts { now: Timestamp::from_millis(now), caller: Some(caller.clone()) };
        taken += usize::from(run(&mut board, &choices.command(&caller), &facts));
        asked += 1;
    }
    Made::of(taken * 2 > asked)
}

/// Whether the rules took the command.
fn run(board: &mut Board, command: &Command, facts: &Facts) -> bool {
    let [mut after, mut again] = [board.clone(), board.clone()];
    let (answer, repeated) = (decide::run(command, &mut after, facts), decide::run(command, &mut again, facts));
    match (answer, repeated) {
        (Ok(outcome), Ok(same)) => {
            assert_eq!(outcome, same, "the same facts, the same answer");
            check(board, command, &outcome, &after);
            *board = after;
            true
        }
        (Err(Stop::Refused(refusal)), Err(Stop::Refused(same))) => {
            assert_eq!(refusal, same, "the same facts, the same refusal");
            let message = refusal.to_string();
            assert!((10..2_000).contains(&message.len()) && !refusal.code().is_empty(), "{message}");
            false
        }
        other => panic!("{command:?}: {other:?}"),
    }
}

fn check(before: &Board, command: &Command, outcome: &Outcome, after: &Board) {
    for task in after.tasks() {
        let stored = document::encode(task);
        let read = document::decode(task.id.clone(), task.revision, task.updated.clone(), &stored).unwrap();
        assert_eq!((read, task.owner().is_some() || task.status() != Status::InProgress), (task.clone(), true));
    }
    match (command, outcome) {
        (Command::Update(id, patch), Outcome::Written(effect)) => updated(before.get(id).unwrap(), patch, effect),
        (Command::Create(draft), Outcome::Created(task)) => {
            assert_eq!((&task.parent, &task.labels), (&draft.parent, &draft.labels));
            assert!(draft.blocked_by.iter().all(|id| task.blocked_by.contains(id)), "{draft:?} {task:?}");
        }
        (Command::Next(next), Outcome::Taken { tasks, .. }) => {
            assert!(tasks.len() <= next.count && tasks.iter().all(|task| task.labels.is_subset(&next.labels)));
        }
        // What is there already stays as it is.
        (Command::Restore(id), Outcome::Restored(task)) => assert!(before.get(id).is_none_or(|old| old == task)),
        other => panic!("another answer than was asked for: {other:?}"),
    }
}

/// What a patch names is so, the rest is as it was.
fn updated(old: &Task, patch: &Patch, effect: &Effect) {
    let new = &effect.task;
    if patch.delete {
        assert!(effect.deleted && new.subject == old.subject);
        return;
    }
    let named = |given: bool, same: bool, what: &str| assert!(given || same, "{what}: {patch:?}\n{old:?}\n{new:?}");
    let holds = |given: Option<bool>, what: &str| named(false, given != Some(false), what);
    holds(patch.status.map(|status| new.status() == status), "the status is as asked");
    holds(patch.subject.as_ref().map(|subject| new.subject == *subject), "the subject is as asked");
    named(patch.subject.is_some(), new.subject == old.subject, "the subject stays");
    holds(patch.description.as_ref().map(|text| new.description == *text), "the description is as asked");
    named(patch.description.is_some(), new.description == old.description, "the description stays");
    holds(patch.parent.as_ref().map(|parent| new.parent == *parent), "the parent is as asked");
    named(patch.parent.is_some(), new.parent == old.parent, "the parent stays");
    holds(patch.labels.as_ref().map(|labels| new.labels == *labels), "the labels are as asked");
    named(patch.labels.is_some(), new.labels == old.labels, "the labels stay");
    holds(patch.not_before.map(|at| new.not_before == at), "the time is as asked");
    named(patch.not_before.is_some(), new.not_before == old.not_before, "the time stays");
    named(patch.paths.is_some(), new.paths == old.paths, "the paths stay");
    named(patch.parent.is_some() || patch.place.is_some(), new.rank == old.rank, "the place stays");
    named(false, (&new.created, &new.metadata) == (&old.created, &old.metadata), "what no patch here names");
    owned(old, patch, new);
    blocked(old, patch, new);
}

/// An owner is who was named; nobody loses a task to whoever named none.
fn owned(old: &Task, patch: &Patch, new: &Task) {
    // Releasing what nobody holds changes nothing, its assignment neither (docs/rules.md 3).
    let idle = old.status() == Status::Pending && patch.status == Some(Status::Pending) && patch.owner == Some(None);
    let fits = match &patch.owner {
        _ if idle => new.owner() == old.owner(),
        Some(owner) => new.owner() == owner.as_ref() || new.status() == Status::Completed,
        None => new.owner() == old.owner() || patch.status.is_some() || new.fence > old.fence,
    };
    assert!(fits, "{patch:?}\n{old:?}\n{new:?}");
    assert!(new.fence >= old.fence && new.revision >= old.revision);
}

fn blocked(old: &Task, patch: &Patch, new: &Task) {
    let (add, remove) = (&patch.add_blocked_by, &patch.remove_blocked_by);
    assert!(add.iter().all(|id| new.blocked_by.contains(id)), "{patch:?}\n{new:?}");
    let asked = |id: &TaskId| {
        if old.blocked_by.contains(id) { !remove.contains(id) || add.contains(id) } else { add.contains(id) }
    };
    assert!(new.blocked_by.iter().all(asked), "{patch:?}\n{old:?}\n{new:?}");
}
