//! The revisions against the deeds: the rules are run again, at each place, on the list as it was there, for the deed
//! that the author of the revision says it did; every change must come out as it is stored.

use std::collections::{BTreeMap, VecDeque};

use taskbus::store::RevisionRow;
use taskbus_core::board::Board;
use taskbus_core::change::{Change, Kind as Why};
use taskbus_core::decide::{self, Facts, Stop, World, reclaim_one};
use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::{Look, LookupError};
use taskbus_core::refusal::{Conflict, Refusal};
use taskbus_core::time::Timestamp;

use super::{Act, Findings, History, Kind};
use crate::torture::deed::Deed;
use crate::torture::record::Number;
use crate::torture::told::Told;

/// Where each deed stands in the log: the places of its revisions.
pub(super) type Written = BTreeMap<Number, std::ops::Range<usize>>;

/// Everybody who ever acted is alive as long as the torture lasts: its leases are short, its sessions are not.
const ALIVE: Timestamp = Timestamp::from_millis(i64::MAX);

/// Replays everything; says where each deed stands.
pub(super) fn check(history: &History, findings: &mut Findings) -> Written {
    let mut replay = Replay::new(history);
    while replay.at < history.revisions.len() {
        replay.step(findings);
    }
    replay.end(findings);
    replay.written
}

struct Replay<'a> {
    rows: &'a [RevisionRow],
    at: usize,
    board: Board,
    /// The deeds of each name that may have written something and were not met yet.
    open: BTreeMap<&'a Identity, VecDeque<&'a Act>>,
    written: Written,
}

impl<'a> Replay<'a> {
    fn new(history: &'a History) -> Self {
        let mut board = Board::new(history.rules);
        let mut open: BTreeMap<&Identity, VecDeque<&Act>> = BTreeMap::new();
        for act in &history.acts {
            board.set_alive(act.begin.caller.clone(), ALIVE);
            if may_have_written(act) {
                open.entry(&act.begin.caller).or_default().push_back(act);
            }
        }
        for owner in history.revisions.iter().filter_map(|row| row.task.owner()) {
            board.set_alive(owner.clone(), ALIVE);
        }
        Self { rows: &history.revisions, at: 0, board, open, written: Written::new() }
    }

    /// One transaction.
    fn step(&mut self, findings: &mut Findings) {
        let row = &self.rows[self.at];
        let Some(telling) = self.telling() else { return self.give_back(findings) };
        let Some(act) = row.task.updated.by.as_ref().and_then(|by| self.author(by, &self.rows[telling])) else {
            let (by, id) = (&row.task.updated.by, &row.task.id);
            findings.wrong(
                Kind::Unexpected,
                format!("{:?} of task {id} at {} by {by:?}, who did no such thing", row.kind, row.seq),
            );
            return self.skip(telling);
        };
        if self.is_of_a_look(telling, act) {
            return self.give_back(findings);
        }
        let from = self.at;
        if let Err((kind, words)) = self.run(act) {
            findings.wrong(kind, format!("{}: {:?} at {}: {words}", act.begin.number.mark(), act.begin.deed, row.seq));
            self.skip(telling);
        }
        self.has_met(act, findings);
        findings.count(if act.told().is_some() { "acknowledged" } else { "recovered" });
        self.written.insert(act.begin.number, from..self.at);
    }

    /// The first revision of the transaction that is no reclaim and no re-ranking: it tells whose it is.
    fn telling(&self) -> Option<usize> {
        let first = &self.rows[self.at].task.updated;
        let same = |row: &&RevisionRow| row.task.updated == *first;
        let run = self.rows[self.at..].iter().take_while(same);
        let tells = |row: &RevisionRow| !matches!(row.kind, Why::Reclaimed | Why::Reranked);
        run.enumerate().find(|(_, row)| tells(row)).map(|(ahead, _)| self.at + ahead)
    }

    /// The next deed of this name that wrote such a revision.
    fn author(&self, by: &Identity, row: &RevisionRow) -> Option<&'a Act> {
        self.open.get(by)?.iter().find(|act| is_of(row, act)).copied()
    }

    /// The deed has been met. What stands before it was met nowhere: it may have come to nothing if nobody was told of
    /// it, else it is lost.
    fn has_met(&mut self, act: &Act, findings: &mut Findings) {
        let Some(open) = self.open.get_mut(&act.begin.caller) else { return };
        let place = open.iter().position(|other| other.begin.number == act.begin.number);
        open.drain(..place.unwrap_or(0)).for_each(|other| met_nowhere(other, findings));
        open.pop_front();
    }

    /// Whether a task was given back by a look of the same name, in the same millisecond, before the deed: a deed gives
    /// back by itself only what it is about, or all if it takes what comes next.
    fn is_of_a_look(&self, telling: usize, act: &Act) -> bool {
        let row = &self.rows[self.at];
        let about = || self.at + 1 == telling && self.rows[telling].task.id == row.task.id;
        row.kind == Why::Reclaimed && !matches!(act.begin.deed, Deed::Next { .. }) && !about()
    }

    fn run(&mut self, act: &Act) -> Result<(), (Kind, String)> {
        let begin = &act.begin;
        let command = begin.deed.command(&begin.caller, &begin.number.mark());
        let Ok(Some(command)) = command else { return Err((Kind::Unexpected, "it is no command".to_owned())) };
        let facts = Facts { now: self.rows[self.at].task.updated.at, caller: Some(begin.caller.clone()) };
        let mut expected = Expected { board: &mut self.board, rows: self.rows, at: self.at, differs: None };
        let result = decide::run(&command, &mut expected, &facts);
        let (at, differs) = (expected.at, expected.differs.take());
        match (result, differs) {
            (_, Some(words)) => Err((Kind::Unruly, words)),
            (Ok(_), None) if at == self.at => Err((Kind::Unruly, "the rules find nothing to write".to_owned())),
            (Ok(_), None) => {
                self.at = at;
                Ok(())
            }
            (Err(Stop::Refused(refusal)), None) => Err((kind_of(&refusal), format!("the rules refuse it: {refusal}"))),
            (Err(Stop::Lookup(error)), None) => Err((Kind::Unruly, error.to_string())),
        }
    }

    /// A task that was given back, by whoever looked at it.
    fn give_back(&mut self, findings: &mut Findings) {
        let row = &self.rows[self.at];
        let facts = Facts { now: row.task.updated.at, caller: row.task.updated.by.clone() };
        let mut expected = Expected { board: &mut self.board, rows: self.rows, at: self.at, differs: None };
        let result = reclaim_one(&row.task.id, &mut expected, &facts);
        let (at, differs) = (expected.at, expected.differs.take());
        match (result, differs) {
            (Ok(true), None) => {
                findings.count("reclaimed");
                self.at = at;
            }
            (_, differs) => {
                let words = differs.unwrap_or_else(|| "the rules would not give it back".to_owned());
                findings.wrong(Kind::Unruly, format!("task {} given back at {}: {words}", row.task.id, row.seq));
                self.skip(self.at);
            }
        }
    }

    /// Takes the revisions up to this one as they are.
    fn skip(&mut self, last: usize) {
        for row in &self.rows[self.at..=last.max(self.at)] {
            self.board.put(&Change { kind: row.kind, task: row.task.clone(), note: row.note.clone() });
        }
        self.at = last.max(self.at) + 1;
    }

    fn end(&self, findings: &mut Findings) {
        self.open.values().flatten().for_each(|act| met_nowhere(act, findings));
    }
}

/// What was told to be written and was met nowhere is lost.
fn met_nowhere(act: &Act, findings: &mut Findings) {
    if act.told().is_some_and(Told::wrote) {
        let words = format!("{}: {:?} was told {:?}", act.begin.number.mark(), act.begin.deed, act.told());
        findings.wrong(Kind::Lost, words);
    } else if act.told().is_none() {
        findings.count("came to nothing");
    }
}

fn is_command(deed: &Deed) -> bool {
    !matches!(deed, Deed::Get { .. } | Deed::Send { .. } | Deed::Receive { .. })
}

/// Whether it may stand in the log: nobody knows, or it was said to be written.
fn may_have_written(act: &Act) -> bool {
    let maybe = act.told().is_none_or(|told| told.wrote() || matches!(told, Told::Is(_) | Told::Failed(_)));
    is_command(&act.begin.deed) && maybe
}

/// Whether a deed could have written a revision: it left its mark there.
fn is_of(row: &RevisionRow, act: &Act) -> bool {
    let (task, mark) = (&row.task, act.begin.number.mark());
    let leased = |until: i64| task.leased_until().is_some_and(|at| at.as_millis() == until);
    let noted = || row.note.as_ref().is_some_and(|note| note.as_str() == mark);
    match &act.begin.deed {
        Deed::Add { .. } | Deed::Plan { .. } => row.kind == Why::Created && task.subject.as_str() == mark,
        Deed::Claim { id, until, .. } => task.id == *id && leased(*until),
        Deed::Next { until, complete, .. } => {
            let completes = |(id, _): &(TaskId, u64)| {
                *id == task.id && task.result.as_ref().is_some_and(|result| result.as_str() == mark)
            };
            leased(*until) || complete.as_ref().is_some_and(completes)
        }
        Deed::Restore { id } => row.kind == Why::Restored && task.id == *id,
        _ => noted(),
    }
}

/// Which promise is broken when something stands there that the rules refuse.
fn kind_of(refusal: &Refusal) -> Kind {
    match refusal {
        Refusal::Conflict(Conflict::Held { .. } | Conflict::Assigned { .. }) => Kind::Owner,
        Refusal::Conflict(Conflict::LeaseLost { .. } | Conflict::Revision { .. }) => Kind::Stale,
        _ => Kind::Unruly,
    }
}

/// The list as it was, on which only what is stored can be written.
struct Expected<'a> {
    board: &'a mut Board,
    rows: &'a [RevisionRow],
    at: usize,
    differs: Option<String>,
}

impl Expected<'_> {
    fn stop(&mut self, words: String) -> LookupError {
        self.differs.get_or_insert(words.clone());
        LookupError(words.into())
    }
}

impl World for Expected<'_> {
    /// New ids are whatever they were; that they were new is seen by the log alone.
    fn mint(&mut self, count: usize) -> Look<Vec<TaskId>> {
        let ids: Vec<TaskId> = self.rows[self.at..].iter().take(count).map(|row| row.task.id.clone()).collect();
        if ids.len() == count { Ok(ids) } else { Err(self.stop("part of it is missing".to_owned())) }
    }

    fn apply(&mut self, change: Change) -> Look<()> {
        let Some(row) = self.rows.get(self.at) else {
            return Err(self.stop(format!("nothing is stored of the change of task {}", change.task.id)));
        };
        if (row.kind, &row.task) != (change.kind, &change.task) {
            let words =
                format!("stored is {:?} {:?}, the rules give {:?} {:?}", row.kind, row.task, change.kind, change.task);
            return Err(self.stop(words));
        }
        self.board.put(&change);
        self.at += 1;
        Ok(())
    }
}

/// Passes every question on to the list.
macro_rules! ask {
    ($world:ident: $($question:ident($($name:ident: $kind:ty),*) -> $answer:ty;)*) => {
        impl taskbus_core::neighbourhood::Neighbourhood for $world<'_> {
            $(fn $question(&self, $($name: $kind),*) -> taskbus_core::neighbourhood::Look<$answer> {
                self.board.$question($($name),*)
            })*
        }
    };
}

/// Answers every question of the rules from the field `board`.
macro_rules! ask_board {
    ($world:ident) => {
        $crate::torture::checker::replay::ask! { $world:
            rules() -> taskbus_core::neighbourhood::ListRules;
            task(id: &taskbus_core::id::TaskId) -> Option<taskbus_core::task::Task>;
            tombstone(id: &taskbus_core::id::TaskId) -> Option<taskbus_core::task::Task>;
            is_known(who: &taskbus_core::name::Identity) -> bool;
            is_alive(who: &taskbus_core::name::Identity, now: taskbus_core::time::Timestamp) -> bool;
            live_of(ids: &[taskbus_core::id::TaskId]) -> Vec<taskbus_core::id::TaskId>;
            open_of(ids: &[taskbus_core::id::TaskId]) -> Vec<taskbus_core::id::TaskId>;
            children(parent: &taskbus_core::id::TaskId, open_only: bool, limit: usize) -> Vec<taskbus_core::id::TaskId>;
            last_sibling(parent: Option<&taskbus_core::id::TaskId>) -> Option<taskbus_core::neighbourhood::Sibling>;
            sibling_before(
                parent: Option<&taskbus_core::id::TaskId>,
                place: &taskbus_core::neighbourhood::Sibling
            ) -> Option<taskbus_core::neighbourhood::Sibling>;
            sibling_after(
                parent: Option<&taskbus_core::id::TaskId>,
                place: &taskbus_core::neighbourhood::Sibling
            ) -> Option<taskbus_core::neighbourhood::Sibling>;
            siblings(parent: Option<&taskbus_core::id::TaskId>) -> Vec<taskbus_core::neighbourhood::Sibling>;
            depth(id: &taskbus_core::id::TaskId) -> usize;
            height(id: &taskbus_core::id::TaskId) -> usize;
            way(
                from: &taskbus_core::id::TaskId,
                to: &taskbus_core::id::TaskId
            ) -> Option<Vec<taskbus_core::id::TaskId>>;
            dependents(blocker: &taskbus_core::id::TaskId) -> Vec<taskbus_core::neighbourhood::Dependent>;
            suspects(now: taskbus_core::time::Timestamp, limit: usize) -> Vec<taskbus_core::id::TaskId>;
            paths_in_use() -> Vec<(taskbus_core::id::TaskId, Vec<taskbus_core::glob::PathGlob>)>;
            ready(scan: &taskbus_core::neighbourhood::ReadyScan) -> Vec<taskbus_core::task::Task>;
            held(limit: usize) -> Vec<taskbus_core::task::Task>;
            tally(now: taskbus_core::time::Timestamp) -> taskbus_core::neighbourhood::Tally;
        }
    };
}
pub(super) use ask;
#[cfg(test)]
pub(super) use ask_board;

ask_board!(Expected);
