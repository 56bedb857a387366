//! The command `plan`: a file with many tasks, imported all at once or not at all.

use std::path::Path;

use serde_json::{Map, Value, json};
use taskbus::answer::{Answer, PlannedTask};
use taskbus_core::command::Command;
use taskbus_core::limits;
use taskbus_core::name::{Key, ListName};
use taskbus_core::neighbourhood::ListRules;

use super::args::Plan;
use super::desk::{Desk, Making};
use super::{input, show};
use crate::plan::{self, PlanError};
use crate::term::failure::Failure;
use crate::term::progress::Progress;
use crate::term::report::Report;
use crate::term::safe::display_safe;

/// An import of more than so many tasks may take a moment, and shows that it is under way.
const TASKS_AT_ONCE: usize = 200;

/// Imports a file.
pub(crate) fn import(desk: &Desk, args: &Plan) -> Result<Box<dyn Report>, Failure> {
    let text = desk.input.raw(&args.file)?;
    let list = desk.list()?.clone();
    let key = input::key(&args.key)?.unwrap_or_else(|| key_of(&text, &list));
    let tasks = plan::read(&text).map_err(|error| of_file(&error, &args.file))?;
    let rules = ListRules { max_reclaims: limits::PLAN_MAX_RECLAIMS, ..ListRules::default() };
    let making = Making { create: args.create, willing: false, rules };
    let progress = (tasks.len() > TASKS_AT_ONCE).then(|| Progress::new(tasks.len() as u64));
    let answer = desk.execute_making_list(Command::Plan(tasks), Some(key), making)?;
    drop(progress);
    let Answer::Planned(tasks) = answer else { unreachable!("BUG: a plan answers with its tasks") };
    Ok(Box::new(Imported { list, tasks }))
}

fn of_file(error: &PlanError, path: &Path) -> Failure {
    let file = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
    Failure::Input { line: error.line(), words: format!("{file}, {error}; nothing was imported") }
}

/// The same file on the same list is the same plan.
fn key_of(text: &str, list: &ListName) -> Key {
    let mut hash = blake3::Hasher::new();
    hash.update(list.as_str().as_bytes()).update(b"\n").update(text.as_bytes());
    Key::new(format!("plan-{}", hash.finalize().to_hex())).expect("BUG: a hash is a key")
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

    #[test]
    fn the_key_depends_on_the_file_and_the_list() {
        let list = |name| ListName::from_short(name).unwrap();
        let (a, b) = (list("a"), list("b"));
        assert_eq!(key_of("x", &a), key_of("x", &a));
        assert_ne!(key_of("x", &a), key_of("x", &b));
        assert_ne!(key_of("x", &a), key_of("y", &a));
    }
}
