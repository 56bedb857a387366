//! Reads a JSON array of tasks as a plan: `[{"key", "subject", "description", "active_form", "parent",
//! "blocked_by", "not_before", "labels", "paths", "metadata", "done"}, …]`, alone or as `{"tasks": […]}`.
//! `parent` and `blocked_by` name keys of the array or ids of the list. Values are read leniently, names are not:
//! an unknown field is an error.

use serde_json::Value;

use super::{Item, PlanError};
use crate::wire::lenient;

const FIELDS: [&str; 11] = [
    "key",
    "subject",
    "description",
    "active_form",
    "parent",
    "blocked_by",
    "not_before",
    "labels",
    "paths",
    "metadata",
    "done",
];

/// The tasks of an array. An item's line is its place in the array, from 1, when the text is one long line.
pub(super) fn parse(text: &str) -> Result<Vec<Item>, PlanError> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| PlanError::new(error.line(), format!("no JSON: {error}")))?;
    let tasks = match value {
        Value::Array(tasks) => tasks,
        Value::Object(mut map) => match (map.remove("tasks"), map.keys().next()) {
            (Some(Value::Array(tasks)), None) => tasks,
            _ => return Err(PlanError::new(1, "an object must have the one field \"tasks\", an array")),
        },
        _ => return Err(PlanError::new(1, "a plan is an array of tasks")),
    };
    let lines = lines_of_items(text, tasks.len());
    tasks.into_iter().zip(lines).enumerate().map(|(at, (task, line))| item(task, at, line)).collect()
}

fn item(task: Value, at: usize, line: usize) -> Result<Item, PlanError> {
    let wrong = |problem: String| PlanError::new(line, format!("task {}: {problem}", at + 1));
    let Value::Object(fields) = task else { return Err(wrong("it is no object".to_owned())) };
    let mut item = Item { line, ..Item::default() };
    for (name, value) in fields {
        if !FIELDS.contains(&name.as_str()) {
            return Err(wrong(format!("there is no field {name:?}; there are {}", FIELDS.join(", "))));
        }
        if !lenient::is_nothing(&value, name != "subject") {
            set(&mut item, &name, &value).map_err(|error| wrong(format!("{name} {error}")))?;
        }
    }
    Ok(item)
}

fn set(item: &mut Item, name: &str, value: &Value) -> Result<(), lenient::Unlike> {
    match name {
        "key" => item.key = Some(lenient::word(value)?),
        "subject" => lenient::text(value)?.clone_into(&mut item.subject),
        "description" => lenient::text(value)?.clone_into(&mut item.description),
        "active_form" => lenient::text(value)?.clone_into(&mut item.active_form),
        "parent" => item.parent_name = Some(lenient::word(value)?),
        "blocked_by" => item.blocked_by = words(value, true)?,
        "not_before" => item.not_before = lenient::time(value)?,
        "labels" => item.labels = words(value, true)?,
        "paths" => item.paths = words(value, false)?,
        "metadata" => item.metadata = lenient::object(value)?.into_iter().collect(),
        _ => item.done = lenient::flag(value)?,
    }
    Ok(())
}

fn words(value: &Value, commas: bool) -> Result<Vec<String>, lenient::Unlike> {
    lenient::list(value, commas)?.iter().map(lenient::word).collect()
}

/// The line that each item of the array begins in. Braces are counted outside of strings; items that are no objects
/// have no line of their own, and then all get the first.
fn lines_of_items(text: &str, count: usize) -> Vec<usize> {
    let outer = if text.trim_start().starts_with('{') { 2 } else { 1 };
    let mut lines = Vec::new();
    let (mut line, mut depth, mut in_string, mut escaped) = (1, 0, false, false);
    for c in text.chars() {
        match c {
            '\n' => line += 1,
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '{' | '[' if !in_string => {
                if c == '{' && depth == outer {
                    lines.push(line);
                }
                depth += 1;
            }
            '}' | ']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    if lines.len() == count { lines } else { vec![1; count] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(text: &str, start: &str) {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(start), "{text}: {error}");
    }

    #[test]
    fn fields_are_read_leniently() {
        let text = r#"[
            {"key": 1, "subject": "a", "labels": "x, y", "metadata": "{\"k\": 1}", "done": "true"},
            {"subject": "b", "parent": "1", "blocked_by": ["1", 7], "description": null, "not_before": "2026-12-01T08:00:00Z"}
        ]"#;
        let items = parse(text).unwrap();
        assert_eq!((items[0].key.as_deref(), items[0].labels.len(), items[0].done), (Some("1"), 2, true));
        assert_eq!(items[1].parent_name.as_deref(), Some("1"));
        assert_eq!(items[1].blocked_by, ["1", "7"]);
        assert_eq!((items[0].line, items[1].line), (2, 3));
        assert_eq!(parse(r#"{"tasks": [{"subject": "a {["}, {"subject": "b"}]}"#).unwrap().len(), 2);
    }

    #[test]
    fn mistakes_say_where() {
        check_error("[{]", "line 1: no JSON");
        check_error("[\n{\"subject\": \"a\"},\n{\"subject\": \"b\"", "line 3: no JSON");
        check_error(r#"{"items": []}"#, "line 1: an object must have");
        check_error("[\n\n{\"titel\": \"a\"}]", "line 3: task 1: there is no field \"titel\"");
        check_error("[{\"subject\": \"a\"},\n7]", "line 1: task 2: it is no object");
        check_error("[{\"subject\": [\"a\"]}]", "line 1: task 1: subject must be text");
    }
}
