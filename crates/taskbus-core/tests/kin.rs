//! What the Kin policy allows beyond the strict one, and what it still refuses (docs/rules.md 8).
#![allow(clippy::unwrap_used)]

use taskbus_core::board::Board;
use taskbus_core::command::{Command, Draft, Patch};
use taskbus_core::decide::{self, Effect, Facts, Outcome, Stop, World, recovered};
use taskbus_core::id::TaskId;
use taskbus_core::limits::KIN_STALE_MS;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::{ListRules, Neighbourhood};
use taskbus_core::policy::Policy;
use taskbus_core::refusal::{Conflict, Invalid, Missing, Refusal};
use taskbus_core::task::{State, Status};
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;

const START: i64 = 1_796_054_400_000;

fn board(policy: Policy) -> Board {
    Board::new(ListRules { policy, max_reclaims: 0 })
}

fn facts() -> Facts {
    Facts { now: Timestamp::from_millis(START), caller: Some(Identity::new("zed").unwrap()) }
}

/// As a store does it: what is refused leaves nothing behind.
fn run(board: &mut Board, command: &Command) -> Result<Outcome, Refusal> {
    let mut copy = board.clone();
    match decide::run(command, &mut copy, &facts()) {
        Ok(outcome) => {
            *board = copy;
            Ok(outcome)
        }
        Err(Stop::Refused(refusal)) => Err(refusal),
        Err(Stop::Lookup(error)) => panic!("{error}"),
    }
}

fn add(board: &mut Board, blocked_by: &[&TaskId]) -> TaskId {
    let blocked_by = blocked_by.iter().map(|id| (*id).clone()).collect();
    let draft = Draft { blocked_by, ..Draft::new(Subject::new("work").unwrap()) };
    match run(board, &Command::Create(Box::new(draft))) {
        Ok(Outcome::Created(task)) => task.id,
        other => panic!("{other:?}"),
    }
}

fn update(board: &mut Board, id: &TaskId, patch: Patch) -> Result<Effect, Refusal> {
    match run(board, &Command::Update(id.clone(), Box::new(patch)))? {
        Outcome::Written(effect) => Ok(effect),
        other => panic!("{other:?}"),
    }
}

fn to(status: Status) -> Patch {
    Patch { status: Some(status), ..Patch::default() }
}

#[test]
fn any_status_follows_any_other() {
    for from in Status::ALL {
        for target in Status::ALL {
            for deleted in [false, true] {
                let mut board = board(Policy::Kin);
                let id = add(&mut board, &[]);
                update(&mut board, &id, to(from)).unwrap();
                if deleted {
                    assert!(update(&mut board, &id, Patch::delete()).unwrap().deleted);
                }
                let effect = update(&mut board, &id, to(target)).unwrap();
                assert_eq!(effect.task.status(), target, "{from:?} to {target:?}, deleted before: {deleted}");
                assert_eq!(board.get(&id).unwrap().completed_at().is_some(), target == Status::Completed);
            }
        }
    }
}

#[test]
fn a_deleted_row_stays_and_changes_in_place() {
    let mut board = board(Policy::Kin);
    let id = add(&mut board, &[]);
    update(&mut board, &id, Patch::delete()).unwrap();
    let again = update(&mut board, &id, Patch::delete()).unwrap();
    assert_eq!((again.written, again.deleted, again.warnings.len()), (false, true, 1));
    let subject = Some(Subject::new("other words").unwrap());
    let edited = update(&mut board, &id, Patch { subject, ..Patch::default() }).unwrap();
    assert!(edited.deleted && edited.written && board.get(&id).is_none());
    assert_eq!(board.get_tombstone(&id).unwrap().subject.as_str(), "other words");
    let strict = &mut self::board(Policy::Strict);
    let id = add(strict, &[]);
    update(strict, &id, Patch::delete()).unwrap();
    assert_eq!(update(strict, &id, to(Status::Pending)), Err(Refusal::NotFound(Missing::Task { id })));
}

#[test]
fn a_deleted_blocker_is_named_still_and_keeps_nothing_waiting() {
    let mut board = board(Policy::Kin);
    let gone = add(&mut board, &[]);
    let waits = add(&mut board, &[&gone]);
    update(&mut board, &gone, Patch::delete()).unwrap();
    let started = update(&mut board, &waits, to(Status::InProgress)).unwrap();
    assert_eq!((started.task.blocked_by.clone(), started.warnings.len()), (vec![gone.clone()], 0));
    let late = add(&mut board, &[&gone]);
    assert!(board.open_blockers(board.get(&late).unwrap()).is_empty());
    let unknown = TaskId::Number(99);
    let patch = Patch { add_blocked_by: vec![unknown.clone()], ..Patch::default() };
    let refused = update(&mut board, &late, patch);
    assert_eq!(refused, Err(Refusal::Invalid(Invalid::NotLive { field: "add_blocked_by", id: unknown })));
    update(&mut board, &gone, to(Status::Pending)).unwrap();
    assert_eq!(board.open_blockers(board.get(&late).unwrap()), [gone]);
}

#[test]
fn a_blocked_task_starts_with_a_warning() {
    let mut board = board(Policy::Kin);
    let first = add(&mut board, &[]);
    let waits = add(&mut board, &[&first]);
    let started = update(&mut board, &waits, to(Status::InProgress)).unwrap();
    assert!(started.warnings[0].contains(&first.to_string()), "{:?}", started.warnings);
}

#[test]
fn cycles_are_refused_through_deleted_rows_too() {
    let mut board = board(Policy::Kin);
    let a = add(&mut board, &[]);
    let b = add(&mut board, &[&a]);
    let c = add(&mut board, &[&b]);
    update(&mut board, &b, Patch::delete()).unwrap();
    let closing = Patch { add_blocked_by: vec![c.clone()], ..Patch::default() };
    let path = vec![a.clone(), c.clone(), b.clone(), a.clone()];
    assert_eq!(
        update(&mut board, &a, closing.clone()),
        Err(Refusal::Invalid(Invalid::Cycle { field: "add_blocked_by", path }))
    );
    let strict = &mut self::board(Policy::Strict);
    let a = add(strict, &[]);
    let b = add(strict, &[&a]);
    let c = add(strict, &[&b]);
    update(strict, &b, Patch::delete()).unwrap();
    let closing = Patch { add_blocked_by: vec![c], ..Patch::default() };
    assert!(update(strict, &a, closing).is_ok());
    let restored = run(strict, &Command::Restore(b));
    assert!(matches!(restored, Err(Refusal::Conflict(Conflict::RestoreCycle { .. }))), "{restored:?}");
}

#[test]
fn what_was_in_progress_for_more_than_five_minutes_is_given_back_on_opening() {
    let mut board = board(Policy::Kin);
    let id = add(&mut board, &[]);
    update(&mut board, &id, to(Status::InProgress)).unwrap();
    let task = board.get(&id).unwrap().clone();
    let after = |ms: i64| recovered(&task, Policy::Kin, Timestamp::from_millis(START + ms));
    for ms in [0, KIN_STALE_MS, -1, -KIN_STALE_MS - 1, i64::MIN] {
        assert_eq!(after(ms), None, "{ms} ms");
    }
    let change = after(KIN_STALE_MS + 1).unwrap();
    assert_eq!(change.task.state, State::Pending { assignee: None });
    assert_eq!((change.task.revision, change.task.fence), (task.revision + 1, task.fence + 1));
    assert_eq!(change.task.updated.at.as_millis(), START + KIN_STALE_MS + 1);
    let later = Timestamp::from_millis(START + KIN_STALE_MS + 1);
    assert_eq!(recovered(&task, Policy::Claude, later), None);
    board.apply(change).unwrap();
    assert_eq!(recovered(&board.task(&id).unwrap().unwrap(), Policy::Kin, later.plus_millis(KIN_STALE_MS * 2)), None);
}
