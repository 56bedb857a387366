//! What a mirror can do, what it remembers, and what it tells.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use taskbus_core::id::TaskId;
use taskbus_core::text::{Body, Subject};

use super::fields::{Fields, Hold};

/// What is remembered between steps, by the id on the shared list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// What both sides last agreed on; blockers are ids of the shared list.
    pub agreed: BTreeMap<TaskId, Fields>,
    /// What the shared list refused to take over from a file; not tried again while the file says the same.
    pub refused: BTreeMap<TaskId, Fields>,
    /// Files that the shared list refused to make tasks of; not tried again while they say the same.
    pub refused_files: BTreeMap<TaskId, Fields>,
    /// Edges, from who waits to what for, that the shared list refused.
    pub refused_edges: BTreeSet<(TaskId, TaskId)>,
    /// The files of shared tasks, also of those that could not be told of it.
    pub files: BTreeMap<TaskId, TaskId>,
    /// Shared tasks that could not be told of their files, at which revision: somebody else holds them.
    pub untold: BTreeMap<TaskId, u64>,
    /// Shared tasks whose files the mirror removed, because they were deleted.
    pub removed: BTreeSet<TaskId>,
    /// What was told already.
    pub told: BTreeSet<Notice>,
}

impl Memory {
    /// Both sides say the same now in what was written to one of them.
    pub fn wrote(&mut self, shared: &TaskId, texts: &Texts, hold: Option<&Hold>, edges: &[(bool, TaskId)]) {
        let Some(agreed) = self.agreed.get_mut(shared) else { return };
        let Texts { subject, description, active_form, metadata } = texts.clone();
        agreed.subject = subject.unwrap_or_else(|| agreed.subject.clone());
        agreed.description = description.unwrap_or_else(|| agreed.description.take());
        agreed.active_form = active_form.unwrap_or_else(|| agreed.active_form.take());
        agreed.hold = hold.cloned().unwrap_or_else(|| agreed.hold.clone());
        for (key, value) in metadata {
            match value {
                Some(value) => drop(agreed.metadata.insert(key, value)),
                None => drop(agreed.metadata.shift_remove(&key)),
            }
        }
        for (add, blocker) in edges {
            agreed.blockers.retain(|id| id != blocker);
            agreed.blockers.extend(add.then(|| blocker.clone()));
        }
        agreed.blockers.sort();
    }
}

/// Something that somebody should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// The file of a task is gone. The task stays on the shared list and is not mirrored any more.
    Vanished {
        /// On the shared list.
        shared: TaskId,
        /// The file.
        file: TaskId,
    },
    /// A file or a task says that its other half is somewhere else; it is left alone.
    Elsewhere {
        /// The id on its own side.
        id: TaskId,
        /// Where.
        half: String,
    },
    /// A file names a task that is not on the shared list, or that has another file; it is left alone.
    Orphan {
        /// The file.
        file: TaskId,
        /// What it names.
        shared: TaskId,
    },
    /// Both sides changed the same field; what the shared list says was kept.
    BothChanged {
        /// On the shared list.
        shared: TaskId,
        /// Which field.
        field: &'static str,
    },
}

/// Changes of the plain fields; what is none stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    /// The subject.
    pub subject: Option<Subject>,
    /// The description.
    pub description: Option<Option<Body>>,
    /// The active form.
    pub active_form: Option<Option<Subject>>,
    /// Metadata by key; none removes it.
    pub metadata: BTreeMap<String, Option<Value>>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make a file for a shared task; `fields` has blockers of the directory.
    MakeFile {
        /// The shared task.
        shared: TaskId,
        /// What the file says.
        fields: Fields,
        /// The same with blockers of the shared list: what both sides agree on then.
        agreed: Box<Fields>,
    },
    /// Make a shared task for a file; `fields` has blockers of the shared list.
    MakeShared {
        /// The file.
        file: TaskId,
        /// What the task says, its hold aside.
        fields: Fields,
    },
    /// Let a file name its shared task.
    LinkFile {
        /// The file.
        file: TaskId,
        /// The shared task.
        shared: TaskId,
    },
    /// Let a shared task name its file.
    LinkShared {
        /// The shared task.
        shared: TaskId,
        /// The file.
        file: TaskId,
        /// Its revision.
        revision: u64,
        /// Who has it now.
        hold: Hold,
    },
    /// Change a file.
    WriteFile {
        /// Which.
        file: TaskId,
        /// Its other half.
        shared: TaskId,
        /// It must still say this.
        was: Box<Fields>,
        /// The plain fields.
        texts: Texts,
        /// Status and owner.
        hold: Option<Hold>,
        /// Blockers to add and to take away, as ids of the directory, each with its id on the shared list.
        edges: Vec<(bool, TaskId, TaskId)>,
    },
    /// Change the plain fields of a shared task.
    WriteShared {
        /// Which.
        shared: TaskId,
        /// It must still have this revision.
        revision: u64,
        /// Who has it now.
        hold: Hold,
        /// The plain fields.
        texts: Texts,
        /// What the file says, to remember if it is refused.
        file_says: Box<Fields>,
    },
    /// Change status and owner of a shared task.
    MoveShared {
        /// Which.
        shared: TaskId,
        /// It must still have this revision.
        revision: u64,
        /// From where.
        from: Hold,
        /// Where to.
        to: Hold,
    },
    /// Add a blocker to a shared task, or take one away.
    EdgeShared {
        /// Who waits.
        shared: TaskId,
        /// It must still have this revision.
        revision: u64,
        /// Who has it now.
        hold: Hold,
        /// For what.
        blocker: TaskId,
        /// Whether it is added.
        add: bool,
    },
    /// Remove the file of a deleted task.
    RemoveFile {
        /// The file.
        file: TaskId,
        /// The deleted task.
        shared: TaskId,
    },
    /// Remember what both sides agree on.
    Agree {
        /// On the shared list.
        shared: TaskId,
        /// In the directory.
        file: TaskId,
        /// What.
        fields: Box<Fields>,
    },
    /// Tell somebody.
    Tell(Notice),
}
