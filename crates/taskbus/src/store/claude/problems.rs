//! What is wrong in a task directory, in words: nothing here is mended by itself, and nothing stops the list from
//! being used.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use taskbus_core::id::TaskId;

use super::eye::{Lost, Row, View};
use super::file::{Fault, TaskFile};
use super::journal::JournalFault;
use super::names;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// A file that should be a task and is none. Its id stays taken, and what waits for it stays blocked.
    Unreadable {
        /// Which.
        file: String,
        /// Why.
        fault: Fault,
    },
    /// A name that looks like a task's and is none.
    OddName {
        /// Which.
        file: String,
    },
    /// A file that gives another id than its name; the name counts.
    OtherId {
        /// Which.
        file: String,
        /// The id inside.
        inside: String,
    },
    /// Something in a list of ids that is no id.
    OddId {
        /// In which file.
        file: String,
        /// What.
        item: String,
    },
    /// A task that waits for itself or for what waits for it: none of them ever becomes ready.
    Cycle {
        /// The way round; the first waits for the second, the last for the first.
        path: Vec<TaskId>,
    },
    /// Blockers that are not there; they count as done.
    Dangling {
        /// Who names them.
        id: TaskId,
        /// Which.
        blockers: Vec<TaskId>,
    },
    /// An edge of which only the blocker's file knows; it does not block.
    HalfEdge {
        /// The blocker.
        blocker: TaskId,
        /// Who does not know that it waits.
        waiting: TaskId,
    },
    /// Parents that go round; this one is shown as a root.
    ParentLoop {
        /// Which.
        id: TaskId,
    },
    /// A high-water mark that is no number; ids go on from the files.
    BadMark {
        /// What it says.
        text: String,
    },
    /// An unfinished transaction that cannot be finished; until it is, nothing is written.
    BadJournal {
        /// Why.
        reason: String,
    },
    /// A task whose file somebody else removed.
    Vanished(Box<Lost>),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Unreadable { file, fault } => write!(f, "{file} is no task: {fault}; mend it or move it away"),
            Problem::OddName { file } => {
                write!(f, "{file} is not read as a task: ids are written without leading zeros, from 1")
            }
            Problem::OtherId { file, inside } => write!(f, "{file} says that its id is {inside:?}; its name counts"),
            Problem::OddId { file, item } => write!(f, "{file} lists {item}, which is no task id; it is ignored"),
            Problem::Cycle { path } => {
                write!(f, "tasks wait for each other in a circle: {}; take one blocker out", way(path))
            }
            Problem::Dangling { id, blockers } => {
                write!(f, "task {id} waits for {}, not there any more; taken for done", all(blockers))
            }
            Problem::HalfEdge { blocker, waiting } => {
                write!(f, "task {blocker} says that it blocks {waiting}, which does not say so; it does not block")
            }
            Problem::ParentLoop { id } => {
                write!(f, "the parents of task {id} go round in a circle; it is shown as a root")
            }
            Problem::BadMark { text } => {
                write!(f, "the high-water mark says {text:?}, no number; ids go on from the files")
            }
            Problem::BadJournal { reason } => {
                write!(
                    f,
                    "an unfinished change cannot be finished: {}: {reason}; move it away to write again",
                    names::JOURNAL
                )
            }
            Problem::Vanished(lost) => {
                let how = if lost.cleared { "the list was cleared" } else { "its file was removed" };
                write!(f, "task {} ({}) is gone: {how} by another program", lost.task.id, lost.task.subject)
            }
        }
    }
}

/// Everything that is wrong in a view.
pub(super) fn of(view: &View, lost: &[Lost]) -> Vec<Problem> {
    let mut problems: Vec<Problem> = view.rows.values().flat_map(|row| in_file(row)).collect();
    problems.extend(view.odd_names.iter().map(|file| Problem::OddName { file: file.clone() }));
    let live: BTreeMap<&TaskId, &TaskFile> = view.rows.iter().filter_map(|(id, row)| Some((id, row.live()?))).collect();
    problems.extend(cycles(&live).into_iter().map(|path| Problem::Cycle { path }));
    problems.extend(live.values().flat_map(|file| edges(file, view, &live)));
    let mut tasks: Vec<_> = live.values().map(|file| file.task.clone()).collect();
    problems.extend(super::parents::cut_loops(&mut tasks).into_iter().map(|id| Problem::ParentLoop { id }));
    problems.extend(view.bad_mark.iter().map(|text| Problem::BadMark { text: text.clone() }));
    problems.extend(view.bad_journal.iter().map(|fault| Problem::BadJournal { reason: reason(fault) }));
    problems.extend(lost.iter().cloned().map(|lost| Problem::Vanished(Box::new(lost))));
    problems
}

fn reason(fault: &JournalFault) -> String {
    match fault {
        JournalFault::Newer(version) => format!("a newer taskbus wrote it (version {version})"),
        JournalFault::Damaged(why) => why.clone(),
    }
}

fn in_file(row: &Row) -> Vec<Problem> {
    let file = row.name.clone();
    match &row.content {
        Err(fault) => vec![Problem::Unreadable { file, fault: fault.clone() }],
        Ok(task) => {
            let other = task.other_id().map(|inside| Problem::OtherId { file: file.clone(), inside });
            let odd = task.odd_ids().into_iter().map(|item| Problem::OddId { file: file.clone(), item });
            other.into_iter().chain(odd).collect()
        }
    }
}

fn edges(file: &TaskFile, view: &View, live: &BTreeMap<&TaskId, &TaskFile>) -> Vec<Problem> {
    let task = &file.task;
    let gone =
        |id: &&TaskId| view.rows.get(*id).is_none_or(|row| row.content.as_ref().is_ok_and(|file| file.is_deleted));
    let blockers: Vec<TaskId> = task.blocked_by.iter().filter(gone).cloned().collect();
    let dangling = (!blockers.is_empty()).then(|| Problem::Dangling { id: task.id.clone(), blockers });
    let unaware =
        file.blocks.iter().filter(|id| live.get(id).is_some_and(|file| !file.task.blocked_by.contains(&task.id)));
    let half = unaware.map(|id| Problem::HalfEdge { blocker: task.id.clone(), waiting: id.clone() });
    dangling.into_iter().chain(half).collect()
}

/// One way round for each knot of tasks that wait for each other, none of them done. Does not recurse.
fn cycles(live: &BTreeMap<&TaskId, &TaskFile>) -> Vec<Vec<TaskId>> {
    let open = |id: &TaskId| live.get(id).filter(|file| file.task.is_open());
    let mut found = Vec::new();
    let mut done: BTreeSet<&TaskId> = BTreeSet::new();
    for start in live.keys() {
        // Each step of the way, with its blockers not tried yet.
        let mut way: Vec<(&TaskId, std::slice::Iter<'_, TaskId>)> = Vec::new();
        let mut on_way: BTreeSet<&TaskId> = BTreeSet::new();
        let mut next = Some(*start);
        loop {
            if let Some(file) = next.filter(|id| !done.contains(*id)).and_then(open) {
                on_way.insert(&file.task.id);
                way.push((&file.task.id, file.task.blocked_by.iter()));
            }
            let Some((id, rest)) = way.last_mut() else { break };
            next = rest.next();
            match next {
                Some(blocker) if on_way.contains(blocker) => {
                    let ring = way.iter().map(|(id, _)| *id).skip_while(|id| *id != blocker);
                    found.push(ring.cloned().collect());
                    done.extend(on_way.iter().copied());
                    break;
                }
                Some(_) => {}
                None => {
                    done.insert(*id);
                    on_way.remove(*id);
                    way.pop();
                }
            }
        }
    }
    found
}

fn all(ids: &[TaskId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn way(ids: &[TaskId]) -> String {
    let round = ids.iter().chain(ids.first());
    round.map(ToString::to_string).collect::<Vec<_>>().join(" -> ")
}
