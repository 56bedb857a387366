//! What the clients were told, against what is stored, and against the clock: an answer that came before a call began is
//! seen by that call.

use std::collections::BTreeMap;
use std::ops::Range;

use taskbus::store::RevisionRow;
use taskbus_core::change::Kind as Why;
use taskbus_core::id::TaskId;

use super::replay::Written;
use super::{Act, Findings, History, Kind};
use crate::torture::told::{Seen, Told};

/// Checks every answer.
pub(super) fn check(history: &History, written: &Written, findings: &mut Findings) {
    let story = Story::new(history, written);
    for act in &history.acts {
        check_repeats(act, findings);
        check_refused(act, findings);
        if let Some((ended, told)) = act.answers.first() {
            story.check_answer(act, *ended, told, findings);
        }
    }
}

/// The same call is answered the same, however often it comes.
fn check_repeats(act: &Act, findings: &mut Findings) {
    let Some((first, others)) = act.answers.split_first() else { return };
    findings.add("answers repeated", others.len() as u64);
    if let Some((_, other)) = others.iter().find(|(_, other)| *other != first.1) {
        let words = format!("{}: was answered {:?} and then {other:?}", act.begin.number.mark(), first.1);
        findings.wrong(Kind::Twice, words);
    }
}

/// Who comes late is refused, and so is another call under a key that is taken.
fn check_refused(act: &Act, findings: &mut Findings) {
    for (_, told) in &act.answers {
        match told {
            Told::Refused { code, .. } => {
                findings.count("refused");
                if code.ends_with("lease_lost") {
                    findings.count("lease lost");
                }
                if act.begin.is_wrong {
                    findings.count("wrong calls refused");
                }
            }
            Told::Failed(words) => {
                findings.count("failed");
                findings.wrong(Kind::Failed, format!("{}: {:?}: {words}", act.begin.number.mark(), act.begin.deed));
            }
            told if act.begin.is_wrong => {
                let words =
                    format!("{}: {:?} had to be refused, but: {told:?}", act.begin.number.mark(), act.begin.deed);
                findings.wrong(Kind::Stale, words);
            }
            _ => {}
        }
    }
}

/// The stored history, by what the answers name.
struct Story<'a> {
    rows: &'a [RevisionRow],
    written: &'a Written,
    /// The places of the revisions of each task.
    of_task: BTreeMap<&'a TaskId, Vec<usize>>,
    /// When answers came, and the highest number that was answered by then.
    answered: Vec<(u64, u64)>,
    /// When the deed of each revision began, where that is known.
    begun: Vec<Option<u64>>,
}

impl<'a> Story<'a> {
    fn new(history: &'a History, written: &'a Written) -> Self {
        let rows = &history.revisions[..];
        let mut of_task: BTreeMap<&TaskId, Vec<usize>> = BTreeMap::new();
        for (place, row) in rows.iter().enumerate() {
            of_task.entry(&row.task.id).or_default().push(place);
        }
        let mut begun = vec![None; rows.len()];
        for act in &history.acts {
            for place in written.get(&act.begin.number).cloned().unwrap_or_default() {
                begun[place] = Some(act.begin.at);
            }
        }
        Self { rows, written, of_task, answered: answered(history, written), begun }
    }

    fn check_answer(&self, act: &Act, ended: u64, told: &Told, findings: &mut Findings) {
        let at = self.written.get(&act.begin.number).cloned();
        match (told, at) {
            (Told::Wrote(seen), Some(at)) => {
                self.check_order(act, &at, findings);
                seen.iter().for_each(|seen| self.check_written(act, &at, seen, findings));
            }
            (Told::Made(ids), Some(at)) => {
                self.check_order(act, &at, findings);
                let made = self.rows[at].iter().map(|row| &row.task.id);
                if !made.eq(ids) {
                    findings.wrong(Kind::Answer, format!("{}: made other tasks than {ids:?}", act.begin.number.mark()));
                }
            }
            (Told::Nothing(seen), _) => seen.iter().for_each(|seen| self.check_seen(act, ended, seen, findings)),
            (Told::Is(seen) | Told::Read(seen), _) => self.check_seen(act, ended, seen, findings),
            _ => {}
        }
    }

    /// What was written stands behind everything that was answered before it began.
    fn check_order(&self, act: &Act, at: &Range<usize>, findings: &mut Findings) {
        let before = self.answered_before(act.begin.at);
        let first = self.rows[at.start].seq;
        if first <= before {
            let words = format!("{}: began after {before} was answered and stands at {first}", act.begin.number.mark());
            findings.wrong(Kind::Time, words);
        }
    }

    /// A task that was written is answered as it is stored; a deleted one as it was.
    fn check_written(&self, act: &Act, at: &Range<usize>, seen: &Seen, findings: &mut Findings) {
        let own = self.rows[at.clone()].iter().filter(|row| row.task.id == seen.id);
        let deleted = |row: &RevisionRow| u64::from(row.kind == Why::Deleted);
        let same = own.filter(|row| row.task.revision == seen.revision + deleted(row)).any(|row| is_seen(row, seen));
        if !same {
            findings
                .wrong(Kind::Answer, format!("{}: was told {seen:?}, which is not stored so", act.begin.number.mark()));
        }
    }

    /// A task that was read is one of its revisions: one that had begun before the answer, and that was not replaced
    /// by anything that was answered before the call.
    fn check_seen(&self, act: &Act, ended: u64, seen: &Seen, findings: &mut Findings) {
        findings.count("reads");
        let mark = act.begin.number.mark();
        let places = self.of_task.get(&seen.id).map_or(&[][..], Vec::as_slice);
        let number = usize::try_from(seen.revision).unwrap_or(usize::MAX).wrapping_sub(1);
        let Some(place) = places.get(number).filter(|place| is_seen(&self.rows[**place], seen)) else {
            return findings.wrong(Kind::Answer, format!("{mark}: read {seen:?}, which is not stored so"));
        };
        if self.begun[*place].is_some_and(|begun| begun > ended) {
            findings.wrong(Kind::Time, format!("{mark}: read {seen:?} before anybody wrote it"));
        }
        let next = places.get(number + 1).map(|place| self.rows[*place].seq);
        if next.is_some_and(|next| next <= self.answered_before(act.begin.at)) {
            findings.wrong(Kind::Time, format!("{mark}: read {seen:?}, which had been replaced before it asked"));
        }
    }

    /// The highest number that was answered before a time.
    fn answered_before(&self, time: u64) -> u64 {
        let count = self.answered.partition_point(|(ended, _)| *ended < time);
        count.checked_sub(1).map_or(0, |last| self.answered[last].1)
    }
}

fn is_seen(row: &RevisionRow, seen: &Seen) -> bool {
    let task = &row.task;
    let lease = task.leased_until().map(taskbus_core::time::Timestamp::as_millis);
    // A task that was completed on the way to the next one is answered in short.
    seen.fence.is_none_or(|fence| {
        let owner = task.owner().map(taskbus_core::name::Identity::as_str);
        fence == task.fence && owner == seen.owner.as_deref() && lease == seen.leased_until
    }) && task.status() == seen.status
}

/// The times of the answers to what was written, each with the highest number answered until then.
fn answered(history: &History, written: &Written) -> Vec<(u64, u64)> {
    let rows = &history.revisions;
    let last = |act: &Act| match act.told() {
        Some(Told::Sent(seq)) => Some(*seq),
        Some(Told::Wrote(_) | Told::Made(_)) => {
            let at = written.get(&act.begin.number)?;
            Some(rows[at.end.checked_sub(1)?].seq)
        }
        _ => None,
    };
    let mut times: Vec<(u64, u64)> =
        history.acts.iter().filter_map(|act| Some((act.answers.first()?.0, last(act)?))).collect();
    times.sort_unstable();
    let mut highest = 0;
    for (_, seq) in &mut times {
        highest = highest.max(*seq);
        *seq = highest;
    }
    times
}
