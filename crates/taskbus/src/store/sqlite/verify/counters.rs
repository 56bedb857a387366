//! The counters, counted again from the rows, which are compared with the documents elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Row as SqlRow;

use super::super::anchor;
use super::super::chained::{MARKS, mark};
use super::super::error::Answer;
use super::super::migrate::{self, KNOWN};
use super::super::scope::Scope;
use super::Findings;
use super::schema::sample;

const KEPT: &str = "
    SELECT id, seq, ready, blocked, parked, deferred, in_progress, completed, ords, min_reader,
           epoch = 1 AND head IS NULL AND seal IS NULL AND clock IS NULL, clock
    FROM counters ORDER BY id";
const COUNTED: &str = "
    SELECT sum(condition <= 1), sum(condition = 2), sum(condition = 3), sum(condition = 4), sum(condition = 5),
           sum(condition = 6)
    FROM tasks WHERE ?1 IN (0, list)";
const ORDS: &str = "SELECT list, id, ord FROM tasks";
const NEWEST: &str = "SELECT coalesce(max(seq), 0) FROM messages WHERE ?1 IN (0, list)";
const LISTS: &str = "SELECT id FROM lists";

/// A row of the counters.
struct Kept {
    list: i64,
    seq: i64,
    counts: [i64; 6],
    ords: i64,
    min_reader: i64,
    /// It has nothing of what only the whole store has.
    bare: bool,
    clock: Option<Vec<u8>>,
}

impl Kept {
    fn from_sql(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        let counts = [row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?];
        let (ords, min_reader, bare, clock) = (row.get(8)?, row.get(9)?, row.get(10)?, row.get(11)?);
        Ok(Self { list: row.get(0)?, seq: row.get(1)?, counts, ords, min_reader, bare, clock })
    }

    fn name(&self) -> String {
        if self.list == 0 { "the store".to_owned() } else { format!("list {}", self.list) }
    }
}

impl Scope<'_> {
    /// Every counter that is not what is counted.
    pub(super) fn check_counters(&self, found: &mut Findings<'_>) -> Answer<()> {
        let ords = self.sums_of_marks()?;
        let mut missing: BTreeSet<i64> = self.all(LISTS, [], |row| row.get(0))?.into_iter().chain([0]).collect();
        for kept in self.all(KEPT, [], Kept::from_sql)? {
            if !missing.remove(&kept.list) {
                found.push(format!("there are counters of list {}, which does not exist", kept.list));
            }
            self.check_counts(&kept, ords.get(&kept.list).copied().unwrap_or(0), found)?;
            self.check_seq(&kept, found)?;
        }
        found.extend(missing.into_iter().map(|list| format!("there are no counters of list {list}")));
        Ok(())
    }

    fn check_counts(&self, kept: &Kept, ords: i64, found: &mut Findings<'_>) -> Answer<()> {
        let six = |row: &SqlRow<'_>| -> rusqlite::Result<[i64; 6]> {
            let mut counts = [0; 6];
            for (at, count) in counts.iter_mut().enumerate() {
                *count = row.get::<_, Option<i64>>(at)?.unwrap_or(0);
            }
            Ok(counts)
        };
        let counted = self.one(COUNTED, [kept.list], six)?.unwrap_or_default();
        if kept.counts != counted {
            found.push(format!("the counters of {} are {:?}, not {counted:?}", kept.name(), kept.counts));
        }
        if kept.ords != ords {
            let told = "a place in the order of dependencies is not the one that was written";
            found.push(format!("{told}: their sum for {} is {}, not {ords}", kept.name(), kept.ords));
        }
        Ok(())
    }

    /// The newest seq of the store need not be that of a revision, and has its seal.
    fn check_seq(&self, kept: &Kept, found: &mut Findings<'_>) -> Answer<()> {
        let newest = self.one(NEWEST, [kept.list], |row| row.get::<_, i64>(0))?.unwrap_or(0);
        let fits = if kept.list == 0 { newest <= kept.seq } else { newest == kept.seq };
        if !fits {
            found.push(format!("the newest seq of {} is kept as {}, but there is {newest}", kept.name(), kept.seq));
        }
        let min_reader = if kept.list == 0 { self.min_reader(kept)? } else { 0 };
        if kept.min_reader != min_reader || (kept.list != 0 && !kept.bare) {
            found.push(format!("the counters of {} say what no version of taskbus writes", kept.name()));
        }
        if kept.clock.as_deref().is_some_and(|clock| anchor::decoded(clock).is_none()) {
            found.push("what the store's clock goes by is not what was written".to_owned());
        }
        Ok(())
    }

    /// The oldest schema that may open a file of this one; a newer version knows better.
    fn min_reader(&self, kept: &Kept) -> Answer<i64> {
        if migrate::version(self.connection)? > KNOWN {
            return Ok(kept.min_reader);
        }
        Ok(sample()?.min_reader)
    }

    fn sums_of_marks(&self) -> Answer<BTreeMap<i64, i64>> {
        let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
        let mut statement = self.connection.prepare_cached(ORDS)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mark = mark(row.get(1)?, row.get(2)?);
            for list in [0, row.get(0)?] {
                let sum = sums.entry(list).or_default();
                *sum = (*sum + mark) & MARKS;
            }
        }
        Ok(sums)
    }
}
