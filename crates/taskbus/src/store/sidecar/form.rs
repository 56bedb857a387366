//! A whole sidecar: `{"version": 1, "session_id": …, "tasks": [rows]}` (ADR 0017). Keys beyond these, their order,
//! and the way the file is laid out come back as they were.

use std::collections::BTreeSet;

use serde::Serialize as _;
use serde_json::ser::{CompactFormatter, PrettyFormatter, Serializer};
use serde_json::{Map, Value, json};
use taskbus_core::id::TaskId;

use super::row::{Row, RowError};
use super::times::Style;

/// The version that this program knows.
pub(super) const VERSION: u32 = 1;

/// A sidecar in memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Form {
    /// The whole object; its `tasks` are empty, they are in `rows`.
    head: Map<String, Value>,
    /// The rows, in the order of the file.
    pub(super) rows: Vec<Row>,
    layout: Layout,
}

/// How a file is laid out.
#[derive(Clone, Debug, PartialEq)]
struct Layout {
    /// What each level is indented with; none: all in one line.
    indent: Option<String>,
    /// Whether it ends in a line end.
    ends: bool,
}

/// Why a file is no sidecar.
#[derive(Debug, thiserror::Error)]
pub(super) enum FormError {
    #[error("it is empty, and a sidecar never is")]
    Empty,
    #[error("it is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it is no object with a list of tasks")]
    NoTasks,
    #[error("its version {0} is no whole number")]
    Version(Value),
    #[error("it has version {0}")]
    Newer(u32),
    #[error("row {number} of its tasks is no task: {error}")]
    Row { number: usize, error: RowError },
    #[error("its rows {first} and {second} have the same id {id}")]
    Twice { first: usize, second: usize, id: TaskId },
}

impl Form {
    /// A sidecar with nothing in it.
    pub(super) fn empty(session_id: &str) -> Self {
        let head = json!({"version": VERSION, "session_id": session_id, "tasks": []});
        let Value::Object(head) = head else { unreachable!("BUG: an object is an object") };
        Self { head, rows: Vec::new(), layout: Layout { indent: Some("  ".to_owned()), ends: true } }
    }

    /// Reads a file. Rows that stand as they stood in `before` are taken from there: most do.
    pub(super) fn parse(bytes: &[u8], before: Option<&Form>) -> Result<Self, FormError> {
        if bytes.is_empty() {
            return Err(FormError::Empty);
        }
        let Value::Object(mut head) = serde_json::from_slice(bytes)? else { return Err(FormError::NoTasks) };
        check_version(&head)?;
        let Some(Value::Array(tasks)) = head.get_mut("tasks").map(Value::take) else { return Err(FormError::NoTasks) };
        let known = |place: usize| before.and_then(|before| before.rows.get(place));
        let read = |(place, raw): (usize, Value)| match known(place) {
            Some(row) if raw.as_object() == Some(&row.raw) => Ok(row.clone()),
            Some(_) | None => Row::read(raw, place).map_err(|error| FormError::Row { number: place + 1, error }),
        };
        let rows: Vec<Row> = tasks.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        check_unique(&rows)?;
        Ok(Self { head, rows, layout: Layout::of(bytes) })
    }

    /// The file.
    pub(super) fn render(&self) -> Vec<u8> {
        let mut whole = self.head.clone();
        whole.insert("tasks".to_owned(), self.rows.iter().map(|row| Value::Object(row.raw.clone())).collect());
        self.layout.write(&Value::Object(whole))
    }

    /// How the rows write times, by the first one that has any.
    pub(super) fn style(&self) -> Style {
        self.rows.iter().find_map(Row::style).unwrap_or_default()
    }
}

fn check_version(head: &Map<String, Value>) -> Result<(), FormError> {
    let Some(version) = head.get("version") else { return Ok(()) };
    match version.as_u64().map(u32::try_from) {
        Some(Ok(VERSION)) => Ok(()),
        Some(Ok(newer)) if newer > VERSION => Err(FormError::Newer(newer)),
        Some(_) | None => Err(FormError::Version(version.clone())),
    }
}

fn check_unique(rows: &[Row]) -> Result<(), FormError> {
    let mut seen = BTreeSet::new();
    let Some(second) = rows.iter().position(|row| !seen.insert(&row.task.id)) else { return Ok(()) };
    let id = rows[second].task.id.clone();
    let first = rows.iter().position(|row| row.task.id == id).unwrap_or(second);
    Err(FormError::Twice { first: first + 1, second: second + 1, id })
}

impl Layout {
    fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let inside = text.trim_start().trim_start_matches('{');
        let broken = inside.strip_prefix("\r\n").or_else(|| inside.strip_prefix('\n'));
        let blank = |line: &str| line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
        Self { indent: broken.map(blank), ends: text.ends_with('\n') }
    }

    fn write(&self, value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written = match &self.indent {
            Some(indent) => {
                let pretty = PrettyFormatter::with_indent(indent.as_bytes());
                value.serialize(&mut Serializer::with_formatter(&mut bytes, pretty))
            }
            None => value.serialize(&mut Serializer::with_formatter(&mut bytes, CompactFormatter)),
        };
        written.expect("BUG: a JSON value is always JSON");
        if self.ends {
            bytes.push(b'\n');
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = r#"{"version": 1, "session_id": "s", "x": [1.5, null], "tasks": [
  {"id": "t_1720600000000_a1b2", "content": "Seed", "status": "pending", "blockedBy": [], "created_at": 1720600000.5},
  {"id": "t_1720600000001_a1b2", "content": "a\nb", "status": "deleted", "blockedBy": ["t_1720600000000_a1b2"],
   "updated_at": "2024-07-10T08:26:40Z", "taskbus": {"rank": "V2", "labels": ["rust"], "status": "completed", "y": {}}},
  {"zz": 1, "id": "7", "content": "", "status": "in_progress", "active_form": "Doing", "completed_at": null}
]}"#;

    /// What is read can be written and is then read as the same; nothing of it is lost on the way.
    #[track_caller]
    fn check_round_trip(form: &Form) {
        let bytes = form.render();
        let again = Form::parse(&bytes, None).unwrap();
        assert_eq!((&again.rows, again.render()), (&form.rows, bytes));
        let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        assert_eq!(value(&form.render())["tasks"].as_array().map(Vec::len), Some(form.rows.len()));
    }

    #[test]
    fn a_file_comes_back_as_it_was_read() {
        let form = Form::parse(GOOD.as_bytes(), None).unwrap();
        check_round_trip(&form);
        let value = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
        assert_eq!(value(&form.render()), value(GOOD.as_bytes()));
        assert_eq!(Form::parse(GOOD.as_bytes(), Some(&form)).unwrap(), form, "rows that are known already");
        check_round_trip(&Form::empty("s"));
    }

    #[test]
    fn the_layout_is_kept() {
        for text in ["{\"tasks\":[]}", "{\n\t\"tasks\": []\n}", "{\n    \"tasks\": []\n}\n", "{\"tasks\":[]}\n"] {
            assert_eq!(String::from_utf8(Form::parse(text.as_bytes(), None).unwrap().render()).unwrap(), text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        /// Whatever somebody did to the bytes: the file is refused, or read whole; there is no third way.
        #[test]
        fn spoilt_files_are_refused_or_read(
            spots in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
        ) {
            let mut bytes = GOOD.as_bytes().to_vec();
            for (spot, byte, kind) in spots {
                let at = spot.index(bytes.len());
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            if let Ok(form) = Form::parse(&bytes, None) {
                check_round_trip(&form);
            }
        }
    }
}
