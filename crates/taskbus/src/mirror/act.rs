//! Doing what was planned, and remembering what came of it.

use taskbus_core::id::TaskId;
use taskbus_core::task::Status;

use super::action::{Action, Texts};
use super::fields::{Fields, Hold};
use super::files::FileChange;
use super::shared::Outcome;
use super::{Event, Mirror, MirrorError};
use crate::store::StoreError;
use crate::store::rows::RowStore;

impl<R: RowStore> Mirror<'_, R> {
    pub(super) fn act(&mut self, action: &Action, report: &mut dyn FnMut(Event)) -> Result<(), MirrorError> {
        match action {
            Action::MakeFile { .. }
            | Action::LinkFile { .. }
            | Action::WriteFile { .. }
            | Action::RemoveFile { .. } => {
                self.act_on_files(action, report)?;
            }
            Action::MakeShared { .. }
            | Action::LinkShared { .. }
            | Action::WriteShared { .. }
            | Action::MoveShared { .. }
            | Action::EdgeShared { .. } => self.act_on_shared(action, report)?,
            Action::Agree { shared, file, fields } => {
                self.memory.files.insert(shared.clone(), file.clone());
                self.memory.agreed.insert(shared.clone(), (**fields).clone());
            }
            Action::Tell(notice) => {
                self.memory.told.insert(notice.clone());
                report(Event::Notice(notice.clone()));
            }
        }
        Ok(())
    }

    fn act_on_files(&mut self, action: &Action, report: &mut dyn FnMut(Event)) -> Result<(), StoreError> {
        match action {
            Action::MakeFile { shared, fields, agreed } => {
                if let Some(file) = self.files.make(shared, fields)? {
                    self.memory.removed.remove(shared);
                    self.memory.agreed.insert(shared.clone(), (**agreed).clone());
                    self.memory.files.insert(shared.clone(), file.clone());
                    report(Event::FileMade { shared: shared.clone(), file });
                }
            }
            Action::LinkFile { file, shared } => drop(self.files.link(file, shared)?),
            Action::WriteFile { file, shared, was, texts, hold, edges } => {
                let here = edges.iter().map(|(add, id, _)| (*add, id.clone())).collect();
                let change = FileChange { was, texts, hold: hold.as_ref(), edges: here };
                if self.files.change(file, &change)? {
                    let edges: Vec<_> = edges.iter().map(|(add, _, id)| (*add, id.clone())).collect();
                    self.memory.wrote(shared, texts, hold.as_ref(), &edges);
                    report(Event::FileChanged { file: file.clone() });
                }
            }
            Action::RemoveFile { file, shared } => {
                let gone = self.files.remove(file, shared)?;
                if gone {
                    self.memory.removed.insert(shared.clone());
                    self.memory.agreed.remove(shared);
                    report(Event::FileRemoved { file: file.clone() });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn act_on_shared(&mut self, action: &Action, report: &mut dyn FnMut(Event)) -> Result<(), MirrorError> {
        match action {
            Action::MakeShared { file, fields } => self.make_shared(file, fields, report)?,
            Action::LinkShared { shared, file, revision, hold } => {
                if let Outcome::Conflict(_) | Outcome::Invalid(_) = self.shared.link(shared, *revision, file, hold)? {
                    self.memory.untold.insert(shared.clone(), *revision);
                }
            }
            Action::WriteShared { shared, revision, hold, texts, file_says } => {
                let outcome = self.shared.write(shared, *revision, hold, texts)?;
                if let Outcome::Invalid(_) = outcome {
                    self.memory.refused.insert(shared.clone(), (**file_says).clone());
                } else if !matches!(outcome, Outcome::Stale) {
                    self.memory.wrote(shared, texts, None, &[]);
                }
                told(shared, outcome, report);
            }
            Action::MoveShared { shared, revision, from, to } => {
                let outcome = self.shared.move_to(shared, *revision, from, to)?;
                self.note_move(shared, from, to, &outcome);
                told(shared, outcome, report);
            }
            Action::EdgeShared { shared, revision, hold, blocker, add } => {
                let outcome = self.shared.edge(shared, *revision, hold, (*add, blocker))?;
                match outcome {
                    Outcome::Invalid(_) => drop(self.memory.refused_edges.insert((shared.clone(), blocker.clone()))),
                    Outcome::Done(()) | Outcome::Conflict(_) => {
                        self.memory.wrote(shared, &Texts::default(), None, &[(*add, blocker.clone())]);
                    }
                    Outcome::Stale => {}
                }
                told(shared, outcome, report);
            }
            _ => {}
        }
        Ok(())
    }

    /// What was refused is remembered as agreed on, so that the list's own state goes back to the file. A task that
    /// had to be reopened first is not where it should be yet.
    fn note_move(&mut self, shared: &TaskId, from: &Hold, to: &Hold, outcome: &Outcome) {
        let reopened = from.status == Status::Completed && to.status == Status::InProgress;
        match outcome {
            Outcome::Stale => {}
            Outcome::Done(()) if reopened => {
                let hold = Hold { status: Status::Pending, owner: None };
                self.memory.wrote(shared, &Texts::default(), Some(&hold), &[]);
            }
            Outcome::Done(()) | Outcome::Conflict(_) | Outcome::Invalid(_) => {
                self.memory.wrote(shared, &Texts::default(), Some(to), &[]);
            }
        }
    }

    fn make_shared(
        &mut self,
        file: &TaskId,
        fields: &Fields,
        report: &mut dyn FnMut(Event),
    ) -> Result<(), MirrorError> {
        match self.shared.make(file, fields)? {
            Outcome::Done(shared) => {
                self.files.link(file, &shared)?;
                let hold = Hold { status: Status::Pending, owner: None };
                let agreed = Fields { hold, ..fields.clone() };
                self.memory.agreed.insert(shared.clone(), agreed);
                self.memory.files.insert(shared.clone(), file.clone());
                report(Event::TaskMade { shared, file: file.clone() });
            }
            Outcome::Stale => {}
            Outcome::Conflict(refusal) | Outcome::Invalid(refusal) => {
                self.memory.refused_files.insert(file.clone(), fields.clone());
                report(Event::Refused { id: file.clone(), refusal });
            }
        }
        Ok(())
    }
}

fn told(shared: &TaskId, outcome: Outcome, report: &mut dyn FnMut(Event)) {
    match outcome {
        Outcome::Done(()) => report(Event::TaskChanged { shared: shared.clone() }),
        Outcome::Stale => {}
        Outcome::Conflict(refusal) | Outcome::Invalid(refusal) => {
            report(Event::Refused { id: shared.clone(), refusal });
        }
    }
}
