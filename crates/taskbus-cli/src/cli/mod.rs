//! The command line: arguments in, one call of the engine, a report out. It decides nothing; it translates.
//!
//! Read [`run`], then [`args`] for what there is, [`desk`] for what a command works at, and [`failure`] for how it
//! may end.

mod about;
mod args;
mod change;
mod desk;
mod failure;
mod input;
mod json;
mod layout;
mod next;
mod plan;
mod read;
mod report;
mod safe;
mod show;
mod user;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use taskbus::store::View;

use self::args::{Cli, Command};
use self::desk::Desk;
use self::failure::{DONE, Failure};
use self::report::Report;

/// Runs the command line.
pub(crate) fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let json = before_dashes(&args).any(|arg| arg == "--json");
    let code = run(&args, json).unwrap_or_else(|failure| report::print_failure(&failure, json));
    ExitCode::from(code)
}

fn run(args: &[OsString], json: bool) -> Result<u8, Failure> {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    if let Command::Add(add) = &cli.command {
        check_no_option(add.subject.as_deref(), args)?;
    }
    let report = answer(cli)?;
    report::print(&*report, json)
}

fn answer(cli: Cli) -> Result<Box<dyn Report>, Failure> {
    match cli.command {
        Command::Completions { shell } => return Ok(about::completions(shell)),
        Command::Man { command } => return about::man(command.as_deref()),
        Command::Doctor => return Ok(about::doctor(cli.globals)),
        _ => {}
    }
    let desk = Desk::open(cli.globals)?;
    match cli.command {
        Command::Add(add) => change::add(&desk, *add),
        Command::Plan(plan) => plan::plan(&desk, &plan),
        Command::Claim(claim) => change::claim(&desk, claim),
        Command::Done(done) => change::done(&desk, done),
        Command::Release(release) => change::release(&desk, release),
        Command::Update(update) => change::update(&desk, *update),
        Command::Rm(remove) => change::remove(&desk, remove),
        Command::Restore(one) => change::restore(&desk, one),
        Command::Next(next) => next::next(&desk, next),
        Command::Wait(wait) => next::wait(&desk, &wait),
        Command::Show(show) => read::show(&desk, &show),
        Command::List(list) | Command::Tree(list) => read::list(&desk, &list, View::Tree),
        Command::Ready(list) => read::list(&desk, &list, View::Ready),
        Command::Blocked(list) => read::list(&desk, &list, View::Blocked),
        Command::Why(one) => read::why(&desk, &one),
        Command::Log(one) => read::log(&desk, &one),
        Command::Lists => read::lists(&desk),
        Command::Who => read::who(&desk),
        Command::Status => about::status(&desk),
        Command::Completions { .. } | Command::Man { .. } | Command::Doctor => {
            unreachable!("BUG: commands without a store were answered above")
        }
    }
}

/// Help and version are answers; the rest is wrong usage.
fn explain(error: &clap::Error) -> Result<u8, Failure> {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            report::print_words(&text)?;
            Ok(DONE)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Err(Failure::usage(format!("what to do?\n\n{text}"))),
        _ => Err(Failure::usage(text.trim_end().trim_start_matches("error: "))),
    }
}

/// A subject such as `--lable` is surely a mistyped option, unless it came after `--`.
fn check_no_option(subject: Option<&str>, args: &[OsString]) -> Result<(), Failure> {
    let Some(subject) = subject else { return Ok(()) };
    let word = subject.strip_prefix("--").or_else(|| subject.strip_prefix('-'));
    let looks_like_one = word.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
    if looks_like_one && before_dashes(args).count() == args.len() {
        return Err(Failure::usage(format!(
            "there is no option {subject}; if that is the subject, write: taskbus add -- {subject:?}"
        )));
    }
    Ok(())
}

/// The arguments in front of `--`.
fn before_dashes(args: &[OsString]) -> impl Iterator<Item = &OsString> {
    args.iter().take_while(|arg| *arg != "--")
}
