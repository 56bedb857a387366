//! What to do next, given both sides and what was the same on both when they last agreed. Pure: it reads no clock and
//! touches nothing, and there is no action that deletes on the shared side.
//!
//! A field that changed on one side goes to the other. Where both changed it, the shared list wins, and that is told.
//! Without a memory of an agreement, the side that was changed later wins.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use taskbus_core::id::TaskId;
use taskbus_core::task::Status;

use super::action::{Action, Memory, Notice, Texts};
use super::difference::{Change, difference, guess};
use super::fields::{Fields, Half, SideTask};

/// One side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideView {
    /// Its live tasks, by id.
    pub tasks: BTreeMap<TaskId, SideTask>,
    /// On the shared list: deleted tasks that files still name. In the directory: files that cannot be read.
    pub others: BTreeSet<TaskId>,
}

/// The pairs of a step, in both directions.
#[derive(Default)]
struct Pairs {
    files: BTreeMap<TaskId, TaskId>,
    shared: BTreeMap<TaskId, TaskId>,
}

impl Pairs {
    fn add(&mut self, shared: &TaskId, file: &TaskId) {
        self.files.insert(shared.clone(), file.clone());
        self.shared.insert(file.clone(), shared.clone());
    }
}

/// What to do next. Nothing, once both sides agree as far as they can.
#[must_use]
pub fn plan_step(shared: &SideView, files: &SideView, memory: &Memory) -> Vec<Action> {
    let mut step = Step { shared, files, memory, pairs: Pairs::default(), actions: Vec::new() };
    step.pair();
    step.unpaired_files();
    step.unpaired_tasks();
    for (task, file) in step.pairs.files.clone() {
        step.compare(&shared.tasks[&task], &files.tasks[&file]);
    }
    step.actions
}

struct Step<'a> {
    shared: &'a SideView,
    files: &'a SideView,
    memory: &'a Memory,
    pairs: Pairs,
    actions: Vec<Action>,
}

impl Step<'_> {
    fn tell(&mut self, notice: Notice) {
        if !self.memory.told.contains(&notice) {
            self.actions.push(Action::Tell(notice));
        }
    }

    /// Finds the pairs: what a file says counts first, then what a task says of a file that says nothing.
    fn pair(&mut self) {
        for file in self.files.tasks.values() {
            let Half::Here(id) = &file.half else { continue };
            if let Some(task) = self.shared.tasks.get(id)
                && !self.pairs.files.contains_key(id)
                && !self.has_another(task, &file.id)
            {
                self.pairs.add(id, &file.id);
            }
        }
        for task in self.shared.tasks.values() {
            let Half::Here(id) = &task.half else { continue };
            // Another file may have got the number meanwhile, if the mark was lost.
            let is_it = |file: &SideTask| file.half == Half::None && file.fields.subject == task.fields.subject;
            let free = self.files.tasks.get(id).is_some_and(is_it);
            if free && !self.pairs.files.contains_key(&task.id) && !self.pairs.shared.contains_key(id) {
                self.pairs.add(&task.id, id);
            }
        }
    }

    /// Whether a task names another file, which names it too: this one is a copy then.
    fn has_another(&self, task: &SideTask, file: &TaskId) -> bool {
        let Half::Here(other) = &task.half else { return false };
        let names_it = |other: &SideTask| other.half == Half::Here(task.id.clone());
        other != file && self.files.tasks.get(other).is_some_and(names_it)
    }

    fn unpaired_files(&mut self) {
        let files = self.files;
        for file in files.tasks.values() {
            if self.pairs.shared.contains_key(&file.id) {
                continue;
            }
            match &file.half {
                Half::Here(id) if self.shared.others.contains(id) => {
                    self.actions.push(Action::RemoveFile { file: file.id.clone(), shared: id.clone() });
                }
                Half::Here(id) => self.tell(Notice::Orphan { file: file.id.clone(), shared: id.clone() }),
                Half::Elsewhere(half) => self.tell(Notice::Elsewhere { id: file.id.clone(), half: half.clone() }),
                Half::None if is_internal(&file.fields) => {}
                Half::None => {
                    let blockers = mapped(&file.fields.blockers, &self.pairs.shared);
                    let fields = Fields { blockers, ..file.fields.clone() };
                    if self.memory.refused_files.get(&file.id) == Some(&fields) {
                        continue;
                    }
                    self.actions.push(Action::MakeShared { file: file.id.clone(), fields });
                }
            }
        }
    }

    fn unpaired_tasks(&mut self) {
        let shared = self.shared;
        for task in shared.tasks.values() {
            if self.pairs.files.contains_key(&task.id) {
                continue;
            }
            let known = self.memory.files.get(&task.id).cloned().map(Half::Here);
            match known.as_ref().filter(|_| task.half == Half::None).unwrap_or(&task.half) {
                Half::Here(id) if self.files.others.contains(id) => {}
                Half::Here(_) if self.memory.removed.contains(&task.id) => self.make_file(task),
                Half::Here(id) => self.tell(Notice::Vanished { shared: task.id.clone(), file: id.clone() }),
                Half::Elsewhere(half) => self.tell(Notice::Elsewhere { id: task.id.clone(), half: half.clone() }),
                // What is done already would only be cleared there.
                Half::None if task.fields.hold.status == Status::Completed => {}
                Half::None => self.make_file(task),
            }
        }
    }

    fn make_file(&mut self, task: &SideTask) {
        let agreed = self.of_task(task);
        let fields = Fields { blockers: mapped(&agreed.blockers, &self.pairs.files), ..agreed.clone() };
        self.actions.push(Action::MakeFile { shared: task.id.clone(), fields, agreed: Box::new(agreed) });
    }

    fn compare(&mut self, task: &SideTask, file: &SideTask) {
        let (shared, id) = (task.id.clone(), file.id.clone());
        if file.half == Half::None {
            self.actions.push(Action::LinkFile { file: id.clone(), shared: shared.clone() });
        }
        if task.half != Half::Here(id.clone()) && self.memory.untold.get(&shared) != Some(&task.revision) {
            let (shared, revision, hold) = (shared.clone(), task.revision, task.fields.hold.clone());
            self.actions.push(Action::LinkShared { shared, file: id.clone(), revision, hold });
        }
        let (ours, theirs) = (self.of_task(task), self.of_file(file, task));
        if ours == theirs {
            if self.memory.agreed.get(&shared) != Some(&ours) {
                self.actions.push(Action::Agree { shared, file: id, fields: Box::new(ours) });
            }
            return;
        }
        let agreed = self.memory.agreed.get(&shared).cloned().unwrap_or_else(|| {
            let (older, newer) = if file.updated > task.updated { (&ours, &theirs) } else { (&theirs, &ours) };
            let guess = guess(older, newer);
            let fields = Box::new(guess.clone());
            self.actions.push(Action::Agree { shared: shared.clone(), file: id.clone(), fields });
            guess
        });
        let difference = difference(&agreed, &ours, &theirs);
        for field in &difference.both {
            self.actions.push(Action::Tell(Notice::BothChanged { shared: shared.clone(), field }));
        }
        self.write_file(task, file, difference.to_file);
        self.write_shared(task, file, difference.to_shared);
    }

    fn write_file(&mut self, task: &SideTask, file: &SideTask, change: Change) {
        if change.is_empty() {
            return;
        }
        let edge = |(add, blocker): (bool, TaskId)| Some((add, self.pairs.files.get(&blocker)?.clone(), blocker));
        let edges = change.edges.into_iter().filter_map(edge).collect();
        self.actions.push(Action::WriteFile {
            file: file.id.clone(),
            shared: task.id.clone(),
            was: Box::new(file.fields.clone()),
            texts: change.texts,
            hold: change.hold,
            edges,
        });
    }

    fn write_shared(&mut self, task: &SideTask, file: &SideTask, change: Change) {
        let refused = self.memory.refused.get(&task.id) == Some(&file.fields);
        let (shared, revision, hold) = (task.id.clone(), task.revision, task.fields.hold.clone());
        // One at a time, as each makes a revision that the next has to know.
        if change.texts != Texts::default() && !refused {
            let (texts, file_says) = (change.texts, Box::new(file.fields.clone()));
            self.actions.push(Action::WriteShared { shared, revision, hold, texts, file_says });
        } else if let Some((add, blocker)) = change.edges.into_iter().next() {
            self.actions.push(Action::EdgeShared { shared, revision, hold, blocker, add });
        } else if let Some(to) = change.hold {
            self.actions.push(Action::MoveShared { shared, revision, from: hold, to });
        }
    }

    /// A task with the blockers that the directory can know.
    fn of_task(&self, task: &SideTask) -> Fields {
        let known = |id: &&TaskId| self.pairs.files.contains_key(*id);
        let mut blockers: Vec<TaskId> = task.fields.blockers.iter().filter(known).cloned().collect();
        blockers.sort();
        Fields { blockers, ..task.fields.clone() }
    }

    /// A file with its blockers as ids of the shared list, without those that the list refused.
    fn of_file(&self, file: &SideTask, task: &SideTask) -> Fields {
        let refused = |id: &TaskId| self.memory.refused_edges.contains(&(task.id.clone(), id.clone()));
        let mut blockers = mapped(&file.fields.blockers, &self.pairs.shared);
        blockers.retain(|id| task.fields.blockers.contains(id) || !refused(id));
        blockers.sort();
        Fields { blockers, ..file.fields.clone() }
    }
}

/// Bookkeeping of Claude Code for its own subagents.
fn is_internal(fields: &Fields) -> bool {
    fields.metadata.get("_internal") == Some(&Value::Bool(true))
}

fn mapped(ids: &[TaskId], map: &BTreeMap<TaskId, TaskId>) -> Vec<TaskId> {
    ids.iter().filter_map(|id| map.get(id)).cloned().collect()
}
