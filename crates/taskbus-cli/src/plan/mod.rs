//! Reads files with many tasks: Markdown checklists ([`markdown`]) and JSON ([`list`]). What is wrong in one is named
//! by its line. Nothing is decided here; the engine judges the plan as a whole.

mod list;
mod markdown;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;
use taskbus_core::command::{Draft, Planned};
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::name::Label;
use taskbus_core::text::{Body, Subject, TextError};
use taskbus_core::time::Timestamp;

/// The tasks of a plan, Markdown or JSON by what it looks like.
pub(crate) fn read(text: &str) -> Result<Vec<Planned>, PlanError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let items = if is_json(text) { list::parse(text)? } else { markdown::parse(text)? };
    if items.is_empty() {
        return Err(PlanError::new(1, "there is no task in it; a task is a line such as: - [ ] Subject"));
    }
    check_references(&items)?;
    let parents: BTreeSet<usize> = items.iter().filter_map(|item| item.parent).collect();
    let keys: Vec<Option<String>> = (0..items.len()).map(|at| items[at].key_for(parents.contains(&at))).collect();
    items.into_iter().enumerate().map(|(at, item)| item.planned(keys[at].clone(), &keys)).collect()
}

fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let begins_array = text.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with(['{', ']']));
    begins_array || text.starts_with('{')
}

/// What is wrong in a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanError {
    line: usize,
    problem: String,
}

impl PlanError {
    fn new(line: usize, problem: impl Into<String>) -> Self {
        Self { line, problem: problem.into() }
    }

    /// The line, from 1.
    pub(crate) fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

/// A task as a file has it.
#[derive(Clone, Debug, Default)]
struct Item {
    line: usize,
    subject: String,
    description: String,
    active_form: String,
    key: Option<String>,
    /// The item it is nested under, by position.
    parent: Option<usize>,
    /// The parent by name, for formats without nesting.
    parent_name: Option<String>,
    blocked_by: Vec<String>,
    not_before: Option<Timestamp>,
    labels: Vec<String>,
    paths: Vec<String>,
    metadata: BTreeMap<String, Value>,
    done: bool,
}

impl Item {
    /// Its key; one that others are nested under without naming it gets one from its line.
    fn key_for(&self, is_parent: bool) -> Option<String> {
        self.key.clone().or_else(|| is_parent.then(|| format!("line:{}", self.line)))
    }

    fn planned(self, key: Option<String>, keys: &[Option<String>]) -> Result<Planned, PlanError> {
        let parent = self.parent.and_then(|at| keys[at].clone()).or_else(|| self.parent_name.clone());
        Ok(Planned { key, parent, blocked_by: self.blocked_by.clone(), done: self.done, draft: self.draft()? })
    }

    fn draft(self) -> Result<Draft, PlanError> {
        let line = self.line;
        let wrong = move |field: &str| {
            let field = field.to_owned();
            move |error: TextError| PlanError::new(line, format!("the {field} {error}"))
        };
        let some = |text: String| (!text.is_empty()).then_some(text);
        let labels: Result<BTreeSet<Label>, _> = self.labels.into_iter().map(Label::new).collect();
        let paths: Result<BTreeSet<PathGlob>, _> = self.paths.into_iter().map(PathGlob::new).collect();
        Ok(Draft {
            description: some(self.description).map(Body::new).transpose().map_err(wrong("description"))?,
            active_form: some(self.active_form).map(Subject::new).transpose().map_err(wrong("active form"))?,
            not_before: self.not_before,
            labels: labels.map_err(wrong("label"))?,
            paths: paths.map_err(wrong("path"))?,
            metadata: self.metadata,
            ..Draft::new(Subject::new(self.subject).map_err(wrong("subject"))?)
        })
    }
}

/// Every key is there once, and every reference is a key or looks like the id of a task.
fn check_references(items: &[Item]) -> Result<(), PlanError> {
    let mut keys = BTreeMap::new();
    for item in items {
        let Some(key) = &item.key else { continue };
        if let Some(first) = keys.insert(key.as_str(), item.line) {
            return Err(PlanError::new(
                item.line,
                format!("the id {key:?} is taken by line {first}; give each its own"),
            ));
        }
    }
    for item in items {
        for name in item.blocked_by.iter().chain(&item.parent_name) {
            let is_id = name.parse::<TaskId>().is_ok_and(|id| id.as_number().is_some());
            if !keys.contains_key(name.as_str()) && !is_id {
                return Err(PlanError::new(
                    item.line,
                    format!("{name:?} is no id in this file; give its task (id: {name})"),
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_checklist_becomes_a_plan() {
        let tasks = read("\u{feff}- [ ] a\n  - [x] b (id: b)\n- [ ] c (after: b, 7) @rust\n").unwrap();
        let [a, b, c] = tasks.as_slice() else { panic!("{tasks:?}") };
        assert_eq!((a.key.as_deref(), a.parent.as_deref(), a.done), (Some("line:1"), None, false));
        assert_eq!((b.key.as_deref(), b.parent.as_deref(), b.done), (Some("b"), Some("line:1"), true));
        assert_eq!((c.key.as_deref(), c.blocked_by.as_slice()), (None, ["b".to_owned(), "7".to_owned()].as_slice()));
        assert_eq!(c.draft.labels.len(), 1);
    }

    #[test]
    fn mistakes_name_their_line() {
        assert!(error("prose\n").starts_with("line 1: there is no task"), "{}", error("prose\n"));
        assert!(error("- [ ] a (after: b)").starts_with("line 1: \"b\" is no id"));
        assert!(error("- [ ] a (id: x)\n\n- [ ] b (id: x)").starts_with("line 3: the id \"x\" is taken by line 1"));
        assert!(error("- [ ] a\n- [ ] \u{7}").starts_with("line 2: the subject has the control character"));
        assert!(error(&format!("- [ ] {}", "x".repeat(257))).starts_with("line 1: the subject is 257 bytes"));
        assert!(error("- [ ] @rust").starts_with("line 1: the subject is empty"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "([-*+0-9.)\\[\\] xX\\t\n{}#(),:@`~\"a-zé日\u{2003}\u{feff}]|id:|after:|- \\[ \\] ){0,60}") {
            if let Ok(tasks) = read(&text) {
                prop_assert!(!tasks.is_empty());
            }
        }

        #[test]
        fn no_json_is_too_odd(text in "[\\[\\]{}\":, 0-9a-z\\\\é\n]{0,60}") {
            let _judged = read(&format!("[{text}"));
            let _judged = read(&format!("[{{\"subject\": {text}}}]"));
        }
    }
}
