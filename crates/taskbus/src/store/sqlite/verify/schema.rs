//! The schema of a file against that of a fresh store: no table, trigger or view more, none less, none changed.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use rusqlite::Connection;

use super::super::error::Answer;
use super::super::migrate;
use super::super::scope::Scope;
use super::Findings;

const SCHEMA: &str = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name";
const MIN_READER: &str = "SELECT min_reader FROM counters WHERE id = 0";

/// Type, name and text of something in a schema.
type Object = (String, String, String);

/// What a fresh store looks like.
pub(super) struct Sample {
    objects: BTreeSet<Object>,
    /// The oldest schema that may open it.
    pub(super) min_reader: i64,
}

/// The sample, made once in a process.
pub(super) fn sample() -> Answer<&'static Sample> {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    if let Some(made) = SAMPLE.get() {
        return Ok(made);
    }
    let connection = migrate::sample()?;
    let min_reader = connection.query_row(MIN_READER, [], |row| row.get(0))?;
    let objects = objects(&connection)?;
    Ok(SAMPLE.get_or_init(|| Sample { objects, min_reader }))
}

fn objects(connection: &Connection) -> Answer<BTreeSet<Object>> {
    let mut statement = connection.prepare_cached(SCHEMA)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

impl Scope<'_> {
    pub(super) fn check_schema(&self, found: &mut Findings<'_>) -> Answer<()> {
        let (stored, known) = (objects(self.connection)?, &sample()?.objects);
        let newer = migrate::version(self.connection)? > migrate::KNOWN;
        found.extend(
            known.difference(&stored).map(|(kind, name, _)| format!("the {kind} {name} is not as it was made")),
        );
        let foreign = stored.difference(known).filter(|_| !newer);
        found.extend(foreign.map(|(kind, name, _)| format!("the {kind} {name} is not one of a store")));
        Ok(())
    }
}
