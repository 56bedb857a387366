//! What a change means that a tool of another product asks for in one call: the commands, in their order, given the
//! task as it is. Not how such a tool names its fields, which its surface knows (docs/rules.md 8).

use crate::command::{Command, Patch};
use crate::name::Identity;
use crate::policy::Policy;
use crate::task::{Status, Task};

/// Who asks, and how strict the list is.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The caller.
    pub caller: &'a Identity,
    /// The policy of the list.
    pub policy: Policy,
}

impl Asking<'_> {
    /// A change with the tools of Claude Code: a completed task that starts is reopened first.
    #[must_use]
    pub fn of_claude(self, before: &Task, patch: Patch) -> Vec<Command> {
        let restarts = starts(&patch) && before.status() == Status::Completed;
        let reopened = Patch { status: Some(Status::Pending), ..Patch::default() };
        let first = restarts.then(|| update(before, reopened));
        first.into_iter().chain([update(before, self.owned(before, patch))]).collect()
    }

    /// A change with Kin's tool: a deleted task that gets a status is brought back first.
    #[must_use]
    pub fn of_kin(self, before: &Task, is_deleted: bool, patch: Patch) -> Vec<Command> {
        let first = (is_deleted && patch.status.is_some()).then(|| Command::Restore(before.id.clone()));
        first.into_iter().chain([update(before, self.owned(before, patch))]).collect()
    }

    /// Whoever starts a task and names no owner becomes it: always where owners are kept, so that two do not start the
    /// same one; elsewhere only if the task has none, or keeps one merely as the record of who did it.
    fn owned(self, before: &Task, patch: Patch) -> Patch {
        let is_free = before.owner().is_none() || before.status() == Status::Completed;
        if starts(&patch) && patch.owner.is_none() && (is_free || self.policy.guards_owners()) {
            return Patch { owner: Some(Some(self.caller.clone())), ..patch };
        }
        patch
    }
}

fn starts(patch: &Patch) -> bool {
    patch.status == Some(Status::InProgress)
}

fn update(task: &Task, patch: Patch) -> Command {
    Command::Update(task.id.clone(), Box::new(patch))
}
