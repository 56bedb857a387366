//! The command `plan`: a file with many tasks, imported all at once or not at all. The engine decides; here the
//! file is read ([`markdown`], [`list`]) and what is wrong in it is named by its line.

mod list;
mod markdown;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value, json};
use taskbus::answer::{Answer, PlannedTask};
use taskbus_core::command::{Command, Draft, Planned};
use taskbus_core::id::TaskId;
use taskbus_core::limits;
use taskbus_core::name::{Key, ListName};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::text::{Body, Subject};
use taskbus_core::time::Timestamp;

use super::args::Plan;
use super::desk::{Desk, Making};
use super::failure::Failure;
use super::input;
use super::report::Report;
use super::safe::display_safe;
use super::show;

/// Imports a file.
pub(crate) fn plan(desk: &Desk, plan: &Plan) -> Result<Box<dyn Report>, Failure> {
    let text = desk.input.raw(&plan.file)?;
    let list = desk.list()?.clone();
    let key = input::key(&plan.key)?.unwrap_or_else(|| key_of(&text, &list));
    let tasks = read(&text).map_err(|error| error.of(&plan.file))?;
    let rules = ListRules { max_reclaims: limits::PLAN_MAX_RECLAIMS, ..ListRules::default() };
    let making = Making { create: plan.create, willing: false, rules };
    let answer = desk.execute_making_list(Command::Plan(tasks), Some(key), making)?;
    let Answer::Planned(tasks) = answer else { unreachable!("BUG: a plan answers with its tasks") };
    Ok(Box::new(Imported { list, tasks }))
}

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

/// The same file on the same list is the same plan.
fn key_of(text: &str, list: &ListName) -> Key {
    let mut hash = blake3::Hasher::new();
    hash.update(list.as_str().as_bytes()).update(b"\n").update(text.as_bytes());
    Key::new(format!("plan-{}", hash.finalize().to_hex())).expect("BUG: a hash is a key")
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

    /// The error as one of a file.
    fn of(self, path: &Path) -> Failure {
        let file = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
        Failure::Input { line: self.line, words: format!("{file}, {self}; nothing was imported") }
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
        let at = |field: &str, error: &dyn fmt::Display| PlanError::new(self.line, format!("the {field} {error}"));
        let words = |field: &str, failure: &Failure| PlanError::new(self.line, format!("{field}: {}", failure.words()));
        let subject = Subject::new(self.subject).map_err(|error| at("subject", &error))?;
        let description = (!self.description.is_empty()).then(|| Body::new(self.description)).transpose();
        Ok(Draft {
            description: description.map_err(|error| at("description", &error))?,
            active_form: input::active_form(self.active_form).map_err(|error| words("active_form", &error))?,
            not_before: self.not_before,
            labels: input::labels(&self.labels).map_err(|error| words("labels", &error))?,
            paths: input::paths(&self.paths).map_err(|error| words("paths", &error))?,
            metadata: self.metadata,
            ..Draft::new(subject)
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

/// A plan that is in.
struct Imported {
    list: ListName,
    tasks: Vec<PlannedTask>,
}

impl Report for Imported {
    fn json(&self) -> Map<String, Value> {
        Map::from_iter([
            ("channel".to_owned(), json!(self.list)),
            ("tasks".to_owned(), json!(self.tasks)),
            ("total".to_owned(), json!(self.tasks.len())),
        ])
    }

    fn words(&self, _: Option<usize>) -> String {
        let list = display_safe(self.list.as_str());
        let range = match self.tasks.as_slice() {
            [first, .., last] => format!("#{} to #{}", first.id, last.id),
            tasks => show::ids(tasks.iter().map(|task| &task.id)),
        };
        format!("{} tasks are on {list}, {range}; taskbus tree shows them\n", self.tasks.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_key_depends_on_the_file_and_the_list() {
        let list = |name| ListName::from_short(name).unwrap();
        let (a, b) = (list("a"), list("b"));
        assert_eq!(key_of("x", &a), key_of("x", &a));
        assert_ne!(key_of("x", &a), key_of("x", &b));
        assert_ne!(key_of("x", &a), key_of("y", &a));
    }
}
