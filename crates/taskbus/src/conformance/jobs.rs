//! Work that other processes do on a store while a check watches: the check starts a command, and the process that it
//! is runs the job named in its environment, says `ack …` for each thing that is done, and ends.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use taskbus_core::command::{Command as Ask, Draft};
use taskbus_core::name::ListName;
use taskbus_core::text::Subject;

use super::rows::{add_one, put_new};
use crate::answer::Answer;
use crate::engine::{Engine, Limits, Registration, Request};
use crate::store::Store;
use crate::store::rows::RowStore;
use crate::store::small::Small;

/// The variable that names the job.
pub const JOB: &str = "TASKBUS_CONFORMANCE_JOB";

/// The variable that says where [`worker`] works.
const PLACE: &str = "TASKBUS_CONFORMANCE_PLACE";

/// This program, to be started again to work at a path: its `main` begins with [`place`] and [`work`]. None when this
/// program cannot be found.
#[must_use]
pub fn worker(path: &Path) -> Option<Command> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.env(PLACE, path);
    Some(command)
}

/// Where this process was started to work; none when it was not.
#[must_use]
pub fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// Does the job that this process was started for, on these rows; says whether there was one.
///
/// # Panics
/// When the store fails: the process ends with an error, and the check that watches says so.
pub fn work(rows: Arc<dyn RowStore>) -> bool {
    let Some((job, times)) = job() else { return false };
    match job.as_str() {
        "count" => (0..times).for_each(|_| add_one(&*rows)),
        "put" => (0..times).for_each(|_| acknowledge(&put_new(&*rows).to_string())),
        _ => {
            let list = rows.list_name();
            return work_on_store(&(Arc::new(Small::new(rows).expect("the rows are opened")) as _), &list);
        }
    }
    acknowledge("all");
    true
}

/// Does the job that this process was started for, on this list of this store; says whether there was one.
///
/// # Panics
/// When the store fails.
pub fn work_on_store(store: &Arc<dyn Store>, list: &ListName) -> bool {
    let Some((job, times)) = job() else { return false };
    assert_eq!(job, "add", "a job that there is");
    let engine = Engine::new(Arc::clone(store), Limits::default());
    let wish = Registration { name: format!("p{}", std::process::id()), ..Registration::default() };
    let caller = engine.register(&wish).expect("a name is free").name;
    for _ in 0..times {
        let command = Ask::Create(Box::new(Draft::new(Subject::new("by a process").expect("a subject is valid"))));
        let request = Request { caller: caller.clone(), list: Some(list.clone()), command, key: None };
        let Answer::Created(task) = engine.execute(&request).expect("a task is made") else {
            panic!("a create answers with a task")
        };
        acknowledge(&task.id.to_string());
    }
    acknowledge("all");
    true
}

fn job() -> Option<(String, usize)> {
    let text = std::env::var(JOB).ok()?;
    let (job, times) = text.split_once(' ')?;
    Some((job.to_owned(), times.parse().ok()?))
}

fn acknowledge(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ack {what}").and_then(|()| out.flush()).expect("whoever started this process listens");
}

/// A process at work.
pub(super) struct Worker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts a command on a job.
    pub(super) fn start(mut command: Command, job: &str) -> Self {
        let child = command.env(JOB, job).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the command of the place can be started");
        let lines = BufReader::new(child.stdout.take().expect("BUG: stdout is piped")).lines();
        Self { child, lines }
    }

    /// What it acknowledges next; none when it has ended.
    pub(super) fn next(&mut self) -> Option<String> {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines.find_map(|line| line.split_once("ack ").map(|(_, what)| what.to_owned()))
    }

    /// Everything it acknowledges until it has done all.
    pub(super) fn finish(mut self) -> Vec<String> {
        let mut acks = Vec::new();
        while let Some(ack) = self.next() {
            acks.push(ack);
        }
        assert!(self.child.wait().is_ok_and(|status| status.success()), "a process failed after {acks:?}");
        assert_eq!(acks.pop().as_deref(), Some("all"), "a process ends when it has done all");
        acks
    }

    /// Kills it, in the middle of whatever it does; what it acknowledged before.
    pub(super) fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("a process of ours can be killed");
        let mut acks = Vec::new();
        while let Some(ack) = self.next() {
            acks.push(ack);
        }
        self.child.wait().expect("a process of ours ends");
        acks
    }
}
