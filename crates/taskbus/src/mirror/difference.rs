//! What differs between the two halves of a task, and which way each field goes.

use std::collections::BTreeSet;

use taskbus_core::id::TaskId;

use super::action::Texts;
use super::fields::{Fields, Hold};

/// What both sides may have agreed on, when nobody remembers: what the older one says, so that the newer one wins.
/// Edges and metadata that only one side has were added there.
pub(super) fn guess(older: &Fields, newer: &Fields) -> Fields {
    let mut guess = older.clone();
    guess.blockers.retain(|id| newer.blockers.contains(id));
    guess.metadata.retain(|key, _| newer.metadata.contains_key(key));
    guess
}

/// What has to change on one side.
#[derive(Default)]
pub(super) struct Change {
    /// The plain fields.
    pub(super) texts: Texts,
    /// Status and owner.
    pub(super) hold: Option<Hold>,
    /// Blockers to add or to take away, as ids of the shared list.
    pub(super) edges: Vec<(bool, TaskId)>,
}

impl Change {
    /// Whether there is nothing to change.
    pub(super) fn is_empty(&self) -> bool {
        self.texts == Texts::default() && self.hold.is_none() && self.edges.is_empty()
    }
}

/// What differs, and which way it goes.
#[derive(Default)]
pub(super) struct Difference {
    /// What the file has to take over.
    pub(super) to_file: Change,
    /// What the shared task has to take over.
    pub(super) to_shared: Change,
    /// The fields that both changed.
    pub(super) both: Vec<&'static str>,
}

enum Way {
    None,
    ToFile,
    ToShared,
    Both,
}

fn way<T: PartialEq>(base: &T, ours: &T, theirs: &T) -> Way {
    match (ours == theirs, ours == base, theirs == base) {
        (true, _, _) => Way::None,
        (false, true, _) => Way::ToShared,
        (false, false, true) => Way::ToFile,
        (false, false, false) => Way::Both,
    }
}

impl Difference {
    fn field<T: PartialEq + Clone>(
        &mut self,
        name: &'static str,
        values: [&T; 3],
        place: impl Fn(&mut Change) -> &mut Option<T>,
    ) {
        let [base, ours, theirs] = values;
        match way(base, ours, theirs) {
            Way::None => {}
            Way::ToShared => *place(&mut self.to_shared) = Some(theirs.clone()),
            Way::ToFile => *place(&mut self.to_file) = Some(ours.clone()),
            Way::Both => {
                *place(&mut self.to_file) = Some(ours.clone());
                self.both.push(name);
            }
        }
    }

    fn metadata(&mut self, base: &Fields, ours: &Fields, theirs: &Fields) {
        let keys: BTreeSet<&String> = ours.metadata.keys().chain(theirs.metadata.keys()).collect();
        for key in keys {
            let values = [base, ours, theirs].map(|fields| fields.metadata.get(key).cloned());
            let [base, ours, theirs] = &values;
            let (place, value) = match way(base, ours, theirs) {
                Way::None => continue,
                Way::ToShared => (&mut self.to_shared, theirs),
                Way::ToFile => (&mut self.to_file, ours),
                Way::Both => {
                    self.both.push("metadata");
                    (&mut self.to_file, ours)
                }
            };
            place.texts.metadata.insert(key.clone(), value.clone());
        }
    }

    /// An edge is there or not, so that at most one side changed it.
    fn edges(&mut self, base: &Fields, ours: &Fields, theirs: &Fields) {
        let all: BTreeSet<&TaskId> = ours.blockers.iter().chain(&theirs.blockers).collect();
        for blocker in all {
            let [base, ours, theirs] = [base, ours, theirs].map(|fields| fields.blockers.contains(blocker));
            match way(&base, &ours, &theirs) {
                Way::None => {}
                Way::ToShared => self.to_shared.edges.push((theirs, blocker.clone())),
                Way::ToFile | Way::Both => self.to_file.edges.push((ours, blocker.clone())),
            }
        }
    }
}

/// What differs between the shared list's and the file's fields, given what both last agreed on.
pub(super) fn difference(base: &Fields, ours: &Fields, theirs: &Fields) -> Difference {
    let mut found = Difference::default();
    let values = [base, ours, theirs];
    found.field("subject", values.map(|f| &f.subject), |change| &mut change.texts.subject);
    found.field("description", values.map(|f| &f.description), |change| &mut change.texts.description);
    found.field("active_form", values.map(|f| &f.active_form), |change| &mut change.texts.active_form);
    found.field("status or owner", values.map(|f| &f.hold), |change| &mut change.hold);
    found.metadata(base, ours, theirs);
    found.edges(base, ours, theirs);
    found
}
