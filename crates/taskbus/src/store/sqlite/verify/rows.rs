//! The rows of live tasks: each computed anew from its document and from the rows that it depends on.

use rusqlite::Row as SqlRow;
use taskbus_core::change::Kind;
use taskbus_core::task::Task;
use taskbus_core::tree::TreePath;

use super::super::error::Answer;
use super::super::row::{Condition, Row, ids_to};
use super::super::scope::{Scope, as_row_id, task_from, task_id};
use super::{Findings, readable};

const NEWEST: &str = "
    SELECT t.id, t.list, t.seq, m.type, m.list, m.memory_id FROM tasks t LEFT JOIN messages m ON m.seq = t.seq
    ORDER BY t.id";
const DOCUMENT: &str = "SELECT memory_id, revision, created_at, sender, content, sum FROM messages WHERE seq = ?1";
const SPOT: &str = "SELECT path, depth FROM tasks WHERE id = ?1 AND list = ?2";
const EDGES: &str = "SELECT blocker FROM edges INDEXED BY edges_by_task WHERE task = ?1 ORDER BY blocker";
const LABEL: &str = "SELECT 1 FROM task_labels WHERE list = ?1 AND label = ?2 AND task = ?3";

/// A row, and the revision that it says it is of.
struct Pair {
    id: i64,
    list: i64,
    seq: i64,
    /// The kind, the list and the task of the revision; none if there is none.
    revision: Option<(String, i64, i64)>,
}

impl Pair {
    fn from_sql(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        let kind: Option<String> = row.get(3)?;
        let revision = kind.map(|kind| Ok::<_, rusqlite::Error>((kind, row.get(4)?, row.get(5)?))).transpose()?;
        Ok(Self { id: row.get(0)?, list: row.get(1)?, seq: row.get(2)?, revision })
    }

    fn is_live(&self) -> bool {
        let fits = |(kind, list, id): &(String, i64, i64)| {
            kind != Kind::Deleted.as_str() && (*list, *id) == (self.list, self.id)
        };
        self.revision.as_ref().is_some_and(fits)
    }
}

impl Scope<'_> {
    pub(super) fn check_rows(&self, found: &mut Findings<'_>) -> Answer<()> {
        let mut statement = self.connection.prepare(NEWEST)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            found.verdict.tasks += 1;
            found.step();
            let pair = match readable(Pair::from_sql(row).map_err(Into::into))? {
                Ok(pair) if pair.is_live() => pair,
                Ok(pair) => {
                    let what =
                        format!("the row of task {} is of no live task: seq {}, list {}", pair.id, pair.seq, pair.list);
                    found.task(pair.id, Some("seq"), what);
                    continue;
                }
                Err(why) => {
                    found.push(format!("the row of task {}: {why}", row.get::<_, i64>(0)?));
                    continue;
                }
            };
            match readable(self.row_differs(&pair))? {
                Ok(differs) => differs.into_iter().for_each(|(column, what)| {
                    found.task(pair.id, Some(column), format!("task {}: {what}", pair.id));
                }),
                Err(why) => found.task(pair.id, None, format!("task {}: {why}", pair.id)),
            }
        }
        Ok(())
    }

    fn row_differs(&self, pair: &Pair) -> Answer<Vec<(&'static str, String)>> {
        let task = {
            let mut statement = self.connection.prepare_cached(DOCUMENT)?;
            let mut rows = statement.query([pair.seq])?;
            let Some(row) = rows.next()? else { return Ok(Vec::new()) };
            task_from(row)?
        };
        let Some(stored) = Row::read(self.connection, pair.id)? else { return Ok(Vec::new()) };
        let mut differs = stored.differences(&self.expected(&task, &stored)?);
        differs.extend(self.edges_differ(pair.id, &task)?.into_iter().map(|what| ("blocker", what)));
        for label in &task.labels {
            if !self.connection.prepare_cached(LABEL)?.exists((pair.list, label.as_str(), pair.id))? {
                differs.push(("label", format!("label {label} of list {} is missing", pair.list)));
            }
        }
        Ok(differs)
    }

    fn edges_differ(&self, id: i64, task: &Task) -> Answer<Vec<String>> {
        let stored: Vec<i64> = self.all(EDGES, [id], |row| row.get(0))?;
        let named = blockers(task);
        let missing = named.iter().filter(|id| !stored.contains(id)).map(|id| format!("blocker {id} is missing"));
        let extra = stored.iter().filter(|id| !named.contains(id)).map(|id| format!("blocker {id} is too many"));
        Ok(missing.chain(extra).collect())
    }

    /// The row that the document asks for.
    fn expected(&self, task: &Task, stored: &Row) -> Answer<Row> {
        let owner = task.owner().map(|owner| self.name_id(owner)).transpose()?.flatten();
        let mut row = Row::bare(stored.list, stored.id, stored.seq.cast_unsigned(), task, owner.unwrap_or(0));
        self.expect_place(&mut row, task)?;
        row.open = ids_to(&self.open_among(row.list, &blockers(task))?);
        row.has_blockers = !task.blocked_by.is_empty();
        row.ord = stored.ord;
        row.set_condition(task, self.now);
        // Whether a task is due depends on when somebody looked.
        let due = if row.owner == 0 { Condition::Ready } else { Condition::Assigned };
        let either = |condition| condition == due || condition == Condition::Deferred;
        if row.not_before.is_some() && either(row.condition) && either(stored.condition) {
            row.condition = stored.condition;
        }
        Ok(row)
    }

    /// Where the document asks for it, below the row of its parent as that stands.
    fn expect_place(&self, row: &mut Row, task: &Task) -> Answer<()> {
        let read = |row: &SqlRow<'_>| Ok((TreePath::from_bytes(row.get(0)?), row.get::<_, i64>(1)?));
        let above = match row.lost_parent {
            Some(parent) => self.one(SPOT, (parent, row.list), read)?,
            None => None,
        };
        if above.is_some() {
            row.parent = row.lost_parent.take().unwrap_or(0);
        }
        let (path, depth) = above.map_or((TreePath::root(), 0), |(path, depth)| (path, depth.saturating_add(1)));
        row.path = path.child(&task.rank, &task_id(row.id)?).as_bytes().to_vec();
        row.depth = depth;
        Ok(())
    }
}

fn blockers(task: &Task) -> Vec<i64> {
    task.blocked_by.iter().filter_map(as_row_id).collect()
}
