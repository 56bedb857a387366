//! `hook`: what a client runs at certain moments of an agent. It reads the client's JSON from standard input and may
//! answer with JSON. A hook must never stand in an agent's way: whatever goes wrong, it says nothing, ends well, and
//! leaves a line in its log.
//!
//! Read [`run`], then [`moments`] for what is said when, and [`who`] for how a hook knows whose it is.

mod input;
mod moments;
mod stop;
mod tasks;
mod who;

use std::panic;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use self::input::Input;
use crate::config::{self, Config};
use crate::log;
use crate::options::Globals;
use crate::term::failure::Failure;
use crate::term::report::print_words;

/// The moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum Event {
    /// A session begins or goes on: say who the agent is here
    SessionStart,
    /// The agent wants to stop: tell it of messages that it has not seen
    Stop,
    /// A subagent begins: say under which name it acts
    SubagentStart,
    /// A tool is about to be called: fill in the name of a subagent
    PreToolUse,
    /// The agent made a task of its own: show it on the shared list, where the repository says so
    TaskCreated,
    /// The agent completed one: complete it there
    TaskCompleted,
}

/// Runs a hook.
pub(crate) fn run(globals: &Globals, event: Event) -> ExitCode {
    log::start("hook", config::here(globals.config.as_deref()).as_ref().map_or("info", Config::log_level));
    panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a hook broke off")));
    let done = panic::catch_unwind(|| answer(globals, event).and_then(|said| said.map_or(Ok(()), |said| say(&said))));
    if let Ok(Err(failure)) = done {
        tracing::warn!(?event, "nothing was said: {}", failure.words());
    }
    ExitCode::SUCCESS
}

fn answer(globals: &Globals, event: Event) -> Result<Option<Value>, Failure> {
    let input = Input::read()?;
    // What the client does not say is as in this process.
    if let Some(cwd) = &input.cwd {
        let _elsewhere = std::env::set_current_dir(cwd);
    }
    match event {
        Event::SessionStart => moments::session_start(globals),
        Event::Stop => stop::stop(globals, &input),
        Event::SubagentStart => moments::subagent_start(globals, &input),
        Event::PreToolUse => moments::pre_tool_use(globals, &input),
        Event::TaskCreated => tasks::created(globals, &input),
        Event::TaskCompleted => tasks::completed(globals, &input),
    }
}

fn say(said: &Value) -> Result<(), Failure> {
    Ok(print_words(&format!("{said}\n"))?)
}
