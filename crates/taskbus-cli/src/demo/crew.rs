//! The worker processes of the demo: started each in a process group of its own together with its MCP server, heard
//! through one queue, killed as a group.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};

use super::worker::Event;
use crate::term::failure::Failure;

/// The workers, and what they say.
pub(super) struct Crew {
    members: Vec<Member>,
    events: Receiver<(usize, Event)>,
}

struct Member {
    process: Child,
    input: ChildStdin,
}

/// Where the workers work.
pub(super) struct Workplace<'a> {
    /// The store.
    pub(super) store: &'a OsStr,
    /// The list.
    pub(super) channel: &'a str,
    /// What every worker can do.
    pub(super) labels: &'a [String],
}

/// The name that a worker asks for.
pub(super) fn name(worker: usize) -> String {
    format!("worker-{}", worker + 1)
}

impl Crew {
    /// Starts so many workers.
    pub(super) fn start(count: usize, place: &Workplace<'_>) -> Result<Self, Failure> {
        let (sender, events) = channel();
        let mut crew = Self { members: Vec::new(), events };
        for worker in 0..count {
            let mut process = spawn(worker, place)?;
            let input = process.stdin.take().expect("BUG: the input was piped");
            let output = process.stdout.take().expect("BUG: the output was piped");
            let sender = sender.clone();
            thread::spawn(move || listen(worker, output, &sender));
            crew.members.push(Member { process, input });
        }
        Ok(crew)
    }

    /// The next event of any worker; none when the deadline is over.
    pub(super) fn hear(&self, deadline: Instant) -> Result<Option<(usize, Event)>, Failure> {
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::Machine("every worker is gone".to_owned())),
        }
    }

    /// Says something to a worker. One that is gone is heard of by its own event.
    pub(super) fn tell(&mut self, worker: usize, word: &str) {
        let input = &mut self.members[worker].input;
        let _gone = input.write_all(format!("{word}\n").as_bytes()).and_then(|()| input.flush());
    }

    /// Kills a worker and its server with SIGKILL.
    pub(super) fn kill(&mut self, worker: usize) -> Result<(), Failure> {
        let process = &mut self.members[worker].process;
        kill_process_group(Pid::from_child(process), Signal::KILL)
            .map_err(|error| Failure::machine(format!("{} cannot be killed", name(worker)), error))?;
        process.wait().map_err(|error| Failure::machine(name(worker), error))?;
        Ok(())
    }
}

impl Drop for Crew {
    /// Nobody is left behind, however the demo ends.
    fn drop(&mut self) {
        for member in &mut self.members {
            if matches!(member.process.try_wait(), Ok(None)) {
                let _gone = kill_process_group(Pid::from_child(&member.process), Signal::KILL);
                let _reaped = member.process.wait();
            }
        }
    }
}

fn spawn(worker: usize, place: &Workplace<'_>) -> Result<Child, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::machine("this program is not found", error))?;
    let mut command = Command::new(program);
    command.arg("demo-worker").args(["--worker", &name(worker), "--list", place.channel]);
    command.arg("--store").arg(place.store);
    for label in place.labels {
        command.args(["--label", label]);
    }
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().map_err(|error| Failure::machine(format!("{} does not start", name(worker)), error))
}

/// Passes on what a worker says until its output ends.
fn listen(worker: usize, output: ChildStdout, sender: &Sender<(usize, Event)>) {
    for line in BufReader::new(output).lines() {
        let event = match line.map(|line| serde_json::from_str(&line)) {
            Ok(Ok(event)) => event,
            Ok(Err(error)) => Event::Failed { why: format!("it says what is no event: {error}") },
            Err(error) => Event::Failed { why: format!("it cannot be heard: {error}") },
        };
        if sender.send((worker, event)).is_err() {
            return;
        }
    }
    let _unheard = sender.send((worker, Event::Gone));
}
