//! What several processes do on one store at the same time: this program starts itself, each process with one
//! [`job::Job`], and says when to begin.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;

use self::job::{GO, Job};
use crate::term::failure::Failure;

pub(super) mod drain;
pub(super) mod hammer;
pub(super) mod job;
mod notice;
mod wait;
pub(super) mod wake;
mod write;

/// Processes at work; none is left behind.
struct Crew(Vec<Member>);

struct Member {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Crew {
    /// Starts a process for each job; returns when each is ready.
    fn start(jobs: impl IntoIterator<Item = Job>) -> Result<Self, Failure> {
        let mut crew = Self(Vec::new());
        for job in jobs {
            crew.0.push(spawn(&job)?);
        }
        crew.hear::<()>()?;
        Ok(crew)
    }

    /// Has all of them begin.
    fn go(&mut self) -> Result<(), Failure> {
        for member in &mut self.0 {
            let said = writeln!(member.input, "{GO}").and_then(|()| member.input.flush());
            said.map_err(|error| Failure::machine("a process of the bench cannot be told to begin", error))?;
        }
        Ok(())
    }

    /// The next word of each.
    fn hear<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, Failure> {
        self.0.iter_mut().map(|member| hear(&mut member.output)).collect()
    }

    /// Has all of them begin, and hears what came of it.
    fn run<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, Failure> {
        self.go()?;
        self.hear()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.0 {
            if matches!(member.process.try_wait(), Ok(None)) {
                let _gone = member.process.kill();
                let _reaped = member.process.wait();
            }
        }
    }
}

fn spawn(job: &Job) -> Result<Member, Failure> {
    let cannot = |error: std::io::Error| Failure::machine("a process of the bench cannot be started", error);
    let program = std::env::current_exe().map_err(cannot)?;
    let mut command = Command::new(program);
    command.args(["bench", "--job", &job.to_words()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().map_err(cannot)?;
    let input = process.stdin.take().expect("BUG: the input was piped");
    let output = BufReader::new(process.stdout.take().expect("BUG: the output was piped"));
    Ok(Member { process, input, output })
}

fn hear<T: DeserializeOwned>(output: &mut BufReader<ChildStdout>) -> Result<T, Failure> {
    let mut line = String::new();
    output.read_line(&mut line).map_err(|error| Failure::machine("a process of the bench cannot be heard", error))?;
    serde_json::from_str(&line).map_err(|_| Failure::Machine("a process of the bench ended early".to_owned()))
}

/// The middle one.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
