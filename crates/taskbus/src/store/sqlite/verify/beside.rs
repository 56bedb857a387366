//! What stands beside the rows of live tasks: edges and labels of no task, the order of dependencies, deleted tasks.
//! That no edge or label is missing is looked at with the rows.

use rusqlite::Row as SqlRow;

use super::super::error::Answer;
use super::super::scope::Scope;
use super::{Findings, readable};

const LOOSE_EDGES: &str = "
    SELECT e.task, e.blocker FROM edges e LEFT JOIN tasks t ON t.id = e.task WHERE t.id IS NULL ORDER BY e.task";
const DISORDER: &str = "
    SELECT t.id, b.id FROM edges e JOIN tasks t ON t.id = e.task JOIN tasks b ON b.id = e.blocker
    WHERE b.ord >= t.ord ORDER BY t.id, b.id";
const LOOSE_LABELS: &str = "
    SELECT l.task, l.list, l.label FROM task_labels l LEFT JOIN tasks t ON t.id = l.task AND t.list = l.list
    WHERE t.id IS NULL OR instr(' ' || t.labels || ' ', ' ' || l.label || ' ') = 0 ORDER BY l.task";
const LOOSE_TOMBSTONES: &str = "
    SELECT d.id, d.list, d.seq FROM tombstones d LEFT JOIN messages m ON m.seq = d.seq
    WHERE m.seq IS NULL OR m.type <> 'deleted' OR m.list <> d.list OR m.memory_id <> d.id ORDER BY d.id";
const TWICE: &str = "SELECT d.id FROM tombstones d JOIN tasks t ON t.id = d.id ORDER BY d.id";

impl Scope<'_> {
    pub(super) fn check_beside(&self, found: &mut Findings<'_>) -> Answer<()> {
        let pair = |row: &SqlRow<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        for (task, blocker) in self.all(LOOSE_EDGES, [], pair)? {
            found.task(task, Some("blocker"), format!("task {task}: blocker {blocker} is too many"));
        }
        for (task, blocker) in self.all(DISORDER, [], pair)? {
            let what = format!("task {task}: in the order of dependencies it does not follow its blocker {blocker}");
            found.task(task, Some("ord"), what);
        }
        self.check_labels(found)?;
        self.check_tombstones(found)
    }

    fn check_labels(&self, found: &mut Findings<'_>) -> Answer<()> {
        let read = |row: &SqlRow<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?));
        match readable(self.all(LOOSE_LABELS, [], read))? {
            Ok(loose) => loose.into_iter().for_each(|(task, list, label)| {
                let what = format!("task {task}: label {label} of list {list} is too many");
                found.task(task, Some("label"), what);
            }),
            Err(why) => found.push(format!("the labels: {why}")),
        }
        Ok(())
    }

    fn check_tombstones(&self, found: &mut Findings<'_>) -> Answer<()> {
        let read = |row: &SqlRow<'_>| Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?]);
        for [task, list, seq] in self.all(LOOSE_TOMBSTONES, [], read)? {
            let what = format!("task {task}: tombstone {seq} of list {list} is too many");
            found.task(task, Some("seq"), what);
        }
        for task in self.all(TWICE, [], |row| row.get::<_, i64>(0))? {
            found.task(task, None, format!("task {task} is live and deleted at once"));
        }
        Ok(())
    }
}
