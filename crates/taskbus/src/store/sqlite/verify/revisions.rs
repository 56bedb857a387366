//! The revisions in the order of the store: the chain, the history of each task, and that its newest revision is the
//! one that stands for it.

use rusqlite::{OptionalExtension as _, Row as SqlRow};
use taskbus_core::change::Kind;
use taskbus_core::lineage;
use taskbus_core::policy::Policy;

use super::super::chained::Walk;
use super::super::error::Answer;
use super::super::scope::Scope;
use super::super::snapshot::revision_from;
use super::{Findings, Look, readable};
use crate::store::RevisionRow;

const ALL: &str = "
    SELECT memory_id, revision, created_at, sender, content, sum, type, note, context, client, previous, seq, list, link
    FROM messages ORDER BY seq";
const ONE: &str = "
    SELECT memory_id, revision, created_at, sender, content, sum, type, note, context, client, previous, seq, list
    FROM messages WHERE seq = ?1";
/// Deleted tasks lie in one list too.
const STANDS: &str = "
    SELECT max(seq) FROM (SELECT seq FROM tasks WHERE id = ?1 UNION ALL SELECT seq FROM tombstones WHERE id = ?1)";
/// The numbers of the newest revisions: as many as there are revisions, unless some are in nobody's history.
const COUNTED: &str = "
    SELECT (SELECT coalesce(sum(m.revision), 0) FROM tasks t JOIN messages m ON m.seq = t.seq)
         + (SELECT coalesce(sum(m.revision), 0) FROM tombstones t JOIN messages m ON m.seq = t.seq)";
const POLICY: &str = "SELECT policy FROM lists WHERE id = ?1";
const LISTS: &str = "SELECT id FROM lists";

/// A revision with where it stands.
struct Placed {
    list: i64,
    task: i64,
    previous: u64,
    read: RevisionRow,
}

impl Placed {
    fn from_sql(row: &SqlRow<'_>) -> Answer<Self> {
        let (read, previous) = revision_from(row.get(11)?, row)?;
        Ok(Self { list: row.get(12)?, task: row.get(0)?, previous, read })
    }
}

impl Scope<'_> {
    pub(super) fn check_revisions(&self, look: Look, found: &mut Findings<'_>) -> Answer<()> {
        let policies = if look == Look::History { self.policies()? } else { Vec::new() };
        let mut walk = Walk::begin(self)?;
        let mut statement = self.connection.prepare(ALL)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            found.verdict.revisions += 1;
            found.step();
            let (seq, task): (i64, i64) = (row.get(11)?, row.get(0)?);
            let follows = readable(walk.step(row))?;
            match &follows {
                Ok(true) => {}
                Ok(false) => found.revision(seq, task, "its link does not follow from what it says and the one before"),
                Err(why) => found.revision(seq, task, why),
            }
            match readable(Placed::from_sql(row))? {
                Ok(placed) => self.check_revision(&placed, &policies, found)?,
                // What broke the link broke the sum too, and is told once.
                Err(why) if follows == Ok(true) => found.revision(seq, task, &why),
                Err(_) => {}
            }
        }
        found.extend(walk.end()?);
        self.count_revisions(found)
    }

    fn policies(&self) -> Answer<Vec<(i64, Policy)>> {
        let lists: Vec<i64> = self.all(LISTS, [], |row| row.get(0))?;
        let policy = |list: i64| {
            let word = self.one(POLICY, [list], |row| row.get::<_, String>(0))?.unwrap_or_default();
            Ok((list, super::super::lists::policy_from(&word)?))
        };
        lists.into_iter().map(policy).collect()
    }

    fn check_revision(&self, placed: &Placed, policies: &[(i64, Policy)], found: &mut Findings<'_>) -> Answer<()> {
        let (seq, task) = (placed.read.seq.cast_signed(), placed.task);
        let stands: Option<Option<i64>> = self.one(STANDS, [task], |row| row.get(0))?;
        match stands.flatten() {
            None => found.task(task, None, format!("task {task} has no row, but revision {seq}")),
            Some(stands) if stands < seq => {
                found.task(task, Some("seq"), format!("task {task}: seq is {stands}, but there is revision {seq}"));
            }
            Some(_) => {}
        }
        let policy = policies.iter().find(|(list, _)| *list == placed.list).map(|(_, policy)| *policy);
        if let Some(why) = self.breaks_history(placed, policy)? {
            found.revision(seq, task, &why);
        }
        Ok(())
    }

    /// Why a revision does not go on where the task's one before ended. Without a policy only the numbers count.
    fn breaks_history(&self, placed: &Placed, policy: Option<Policy>) -> Answer<Option<String>> {
        let (seq, previous, number) = (placed.read.seq, placed.previous, placed.read.task.revision);
        let before = if previous == 0 { None } else { readable(self.placed(previous))?.ok().flatten() };
        let last =
            before.as_ref().filter(|before| (before.list, before.task) == (placed.list, placed.task) && previous < seq);
        if previous != 0 && last.is_none() {
            return Ok(Some(format!("it follows {previous}, which is no earlier revision of the task")));
        }
        let expected = last.map_or(1, |last| last.read.task.revision + 1);
        if number != expected {
            return Ok(Some(format!("it is number {number} after {previous}, not {expected}")));
        }
        let Some(policy) = policy else { return Ok(None) };
        let last: Option<(_, Kind)> = last.map(|last| (&last.read.task, last.read.kind));
        let lawful = lineage::follows(last, placed.read.kind, &placed.read.task, policy);
        Ok(lawful.err().map(|unlawful| unlawful.to_string()))
    }

    fn placed(&self, seq: u64) -> Answer<Option<Placed>> {
        let mut statement = self.connection.prepare_cached(ONE)?;
        let mut rows = statement.query([seq])?;
        rows.next().optional()?.flatten().map(Placed::from_sql).transpose()
    }

    fn count_revisions(&self, found: &mut Findings<'_>) -> Answer<()> {
        let counted: i64 = self.one(COUNTED, [], |row| row.get(0))?.unwrap_or(0);
        let there = found.verdict.revisions;
        if u64::try_from(counted) != Ok(there) {
            found.push(format!("there are {there} revisions, but the histories of all tasks have {counted}"));
        }
        Ok(())
    }
}
