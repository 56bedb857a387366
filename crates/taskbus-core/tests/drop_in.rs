//! What one call of a tool of another product comes to, on a task in each state and under each policy, and that the
//! rules take those commands (docs/rules.md 8).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use taskbus_core::board::Board;
use taskbus_core::command::{Command, Draft, Patch};
use taskbus_core::decide::{self, Facts, Outcome, Stop};
use taskbus_core::drop_in::Asking;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::{ListRules, Neighbourhood};
use taskbus_core::policy::Policy;
use taskbus_core::task::{State, Status, Task};
use taskbus_core::text::Subject;
use taskbus_core::time::Timestamp;

const ALL: [Policy; 3] = [Policy::Strict, Policy::Claude, Policy::Kin];
const NOW: Timestamp = Timestamp::from_millis(1_796_054_400_000);

fn name(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn to(status: Status) -> Patch {
    Patch { status: Some(status), ..Patch::default() }
}

fn facts(caller: &str) -> Facts {
    Facts { now: NOW, caller: Some(name(caller)) }
}

/// A list of this policy with one task of Zed's making, as it is after these changes of Zed's.
fn list(policy: Policy, patches: &[Patch]) -> (Board, Task) {
    let mut board = Board::new(ListRules { policy, max_reclaims: 0 });
    let make = Command::Create(Box::new(Draft::new(Subject::new("work").unwrap())));
    let Ok(Outcome::Created(task)) = decide::run(&make, &mut board, &facts("zed")) else { panic!("it is made") };
    for patch in patches {
        decide::run(&Command::Update(task.id.clone(), Box::new(patch.clone())), &mut board, &facts("zed")).unwrap();
    }
    let task = board.task(&task.id).unwrap().unwrap_or(task);
    (board, task)
}

fn owned_by(owner: &str, status: Status) -> Patch {
    Patch { owner: Some(Some(name(owner))), ..to(status) }
}

/// The tool sets, as what Amp asks with them of a task that is there.
fn sets(policy: Policy, task: &Task, patch: &Patch) -> BTreeMap<&'static str, Vec<Command>> {
    let amp = name("amp");
    let asking = Asking { caller: &amp, policy };
    BTreeMap::from([
        ("claude", asking.of_claude(task, patch.clone())),
        ("kin", asking.of_kin(task, false, patch.clone())),
    ])
}

/// The owner that the last command names.
fn owner(commands: &[Command]) -> Option<&Identity> {
    let Some(Command::Update(_, patch)) = commands.last() else { panic!("{commands:?}") };
    patch.owner.as_ref()?.as_ref()
}

#[test]
fn who_starts_what_nobody_has_becomes_its_owner() {
    for policy in ALL {
        let (_, task) = list(policy, &[]);
        for (set, commands) in sets(policy, &task, &to(Status::InProgress)) {
            assert_eq!((commands.len(), owner(&commands)), (1, Some(&name("amp"))), "{set} {policy:?}");
        }
    }
}

#[test]
fn who_starts_what_somebody_has_asks_for_it_only_where_owners_are_kept() {
    for policy in ALL {
        let (_, task) = list(policy, &[owned_by("zed", Status::InProgress)]);
        for (set, commands) in sets(policy, &task, &to(Status::InProgress)) {
            let wanted = name("amp");
            let wanted = policy.guards_owners().then_some(&wanted);
            assert_eq!((commands.len(), owner(&commands)), (1, wanted), "{set} {policy:?}");
        }
    }
}

#[test]
fn a_named_owner_stays_and_what_does_not_start_gets_none() {
    let (_, task) = list(Policy::Strict, &[]);
    for (set, commands) in sets(Policy::Strict, &task, &owned_by("roo", Status::InProgress)) {
        assert_eq!(owner(&commands), Some(&name("roo")), "{set}");
    }
    let clears = Patch { owner: Some(None), ..to(Status::InProgress) };
    for patch in [Patch::default(), Patch::delete(), to(Status::Pending), to(Status::Completed), clears] {
        for (set, commands) in sets(Policy::Strict, &task, &patch) {
            let asked = Command::Update(task.id.clone(), Box::new(patch.clone()));
            assert_eq!(commands, [asked], "{set}");
        }
    }
}

#[test]
fn only_claude_code_reopens_what_is_completed_to_start_it() {
    for policy in ALL {
        let (mut board, task) = list(policy, &[owned_by("zed", Status::Completed)]);
        let both = sets(policy, &task, &to(Status::InProgress));
        let reopening = Command::Update(task.id.clone(), Box::new(to(Status::Pending)));
        assert_eq!((both["claude"].len(), &both["claude"][0], both["kin"].len()), (2, &reopening, 1), "{policy:?}");
        assert_eq!((owner(&both["claude"]), owner(&both["kin"])), (Some(&name("amp")), Some(&name("amp"))));
        let kin = decide::run(&both["kin"][0], &mut board.clone(), &facts("amp"));
        let refused = matches!(kin, Err(Stop::Refused(_)));
        assert_eq!(refused, !policy.may_restart_completed(), "{policy:?}");
        for command in &both["claude"] {
            decide::run(command, &mut board, &facts("amp")).unwrap();
        }
        let state = board.task(&task.id).unwrap().unwrap().state;
        assert!(matches!(state, State::InProgress { owner: Some(owner), .. } if owner == name("amp")), "{policy:?}");
    }
}

#[test]
fn a_removed_task_that_gets_a_status_is_brought_back_first() {
    for policy in ALL {
        let (mut board, task) = list(policy, &[Patch::delete()]);
        let amp = name("amp");
        let asking = Asking { caller: &amp, policy };
        for patch in [Patch::default(), Patch::delete()] {
            assert_eq!(asking.of_kin(&task, true, patch).len(), 1, "without a status it stays removed");
        }
        let commands = asking.of_kin(&task, true, to(Status::InProgress));
        assert_eq!((commands.len(), &commands[0]), (2, &Command::Restore(task.id.clone())), "{policy:?}");
        for command in &commands {
            decide::run(command, &mut board, &facts("amp")).unwrap();
        }
        assert_eq!(board.task(&task.id).unwrap().unwrap().owner(), Some(&amp), "{policy:?}");
    }
}
