//! The command line: arguments in, one call of the engine, a report out. It decides nothing; it translates.
//!
//! Read [`run`], then [`args`] for what there is, [`desk`] for what a command works at, and [`crate::term::failure`] for
//! how it may end.

mod about;
mod args;
mod backup;
mod bus;
mod change;
mod desk;
mod follow;
mod hook;
mod identity;
mod import;
mod init;
mod input;
mod json;
mod late;
mod mirror;
mod next;
mod panel;
mod read;
mod setup;
mod show;
mod user;
mod values;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use taskbus::store::View;

use self::args::{AtDesk, Cli, Command};
use self::desk::Desk;
use crate::config;
use crate::options::Doors;
use crate::term::failure::{DONE, Failure};
use crate::term::report::{self, Report};

/// Runs the command line.
pub(crate) fn main(doors: &Doors) -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let json = before_dashes(&args).any(|arg| arg == "--json");
    run(doors, &args, json).unwrap_or_else(|failure| report::print_failure(&failure, json).into())
}

fn run(doors: &Doors, args: &[OsString], json: bool) -> Result<ExitCode, Failure> {
    let Cli { globals, command } = match late::parse(args) {
        Ok(cli) => cli,
        // A client that knows more moments than this program must not be stopped by that.
        Err(_) if args.get(1).is_some_and(|arg| arg == "hook") && args.len() > 2 && !wants_help(args) => {
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return explain(&error).map(ExitCode::from),
    };
    let report = match command {
        Command::Mcp(mcp) => return Ok((doors.mcp)(globals, &mcp)),
        Command::Serve(serve) => return (doors.serve)(globals, &serve).map(|()| DONE.into()),
        Command::DemoWorker(worker) => return (doors.demo_worker)(&globals, &worker).map(|()| DONE.into()),
        Command::TortureWorker(worker) => return (doors.torture_worker)(&worker).map(|()| DONE.into()),
        Command::Torture(torture) => (doors.torture)(&globals, &torture)?,
        Command::Demo(demo) => (doors.demo)(&globals, &demo)?,
        Command::Bench(bench) => (doors.bench)(&globals, &bench)?,
        Command::Hook(event) => return Ok(hook::run(&globals, event.0)),
        Command::Init(wish) => init::init(globals, &wish)?,
        Command::Identity => identity::identity()?,
        Command::Setup(wish) => setup::setup(&wish)?,
        Command::Subscribe(wish) => follow::subscribe(&wish)?,
        Command::Unsubscribe(wish) => follow::unsubscribe(&wish)?,
        Command::Doctor(wish) => about::doctor(globals, &wish),
        Command::Config => Box::new(config::here(globals.config.as_deref())?),
        Command::Completions { shell } => about::completions(shell),
        Command::Man { command } => about::man(command.as_deref())?,
        Command::AtDesk(command) => {
            check_no_option(&command, args)?;
            at_desk(&Desk::open(globals)?, command, json)?
        }
    };
    report::print(&*report, json).map(ExitCode::from)
}

fn at_desk(desk: &Desk, command: AtDesk, json: bool) -> Result<Box<dyn Report>, Failure> {
    match command {
        AtDesk::Add(add) => change::add(desk, *add.0),
        AtDesk::Plan(plan) => import::import(desk, &plan),
        AtDesk::Claim(claim) => change::claim(desk, claim.0),
        AtDesk::Done(done) => change::done(desk, done.0),
        AtDesk::Release(release) => change::release(desk, release.0),
        AtDesk::Update(update) => change::update(desk, &update),
        AtDesk::Rm(remove) => change::remove(desk, remove.0),
        AtDesk::Restore(one) => change::restore(desk, one.0),
        AtDesk::Next(next) => next::next(desk, next.0),
        AtDesk::Wait(wait) if wait.events => panel::events(desk, wait_time(&wait)),
        AtDesk::Wait(wait) if wait.ready => next::wait(desk, wait_time(&wait)),
        AtDesk::Wait(wait) => bus::wait::wait(desk, &wait),
        AtDesk::Mirror(mirror) => mirror::mirror(desk, &mirror, json),
        AtDesk::Show(show) => read::show(desk, &show),
        AtDesk::List(list) if list.watch && json => Err(Failure::usage(NO_WATCH)),
        AtDesk::List(list) if list.watch => panel::watch(desk),
        AtDesk::List(list) if list.lite => panel::lite(desk),
        AtDesk::Tree(list) | AtDesk::Ready(list) | AtDesk::Blocked(list) if list.lite => Err(Failure::usage(NO_LITE)),
        AtDesk::List(list) | AtDesk::Tree(list) => read::list(desk, &list, View::Tree),
        AtDesk::Ready(list) => read::list(desk, &list, View::Ready),
        AtDesk::Blocked(list) => read::list(desk, &list, View::Blocked),
        AtDesk::Why(one) => read::why(desk, &one),
        AtDesk::Log(one) => read::log(desk, &one),
        AtDesk::Send(send) => bus::talk::send(desk, &send),
        AtDesk::Recv(recv) => bus::talk::recv(desk, &recv),
        AtDesk::Channels => bus::channels::list(desk),
        AtDesk::Channel(command) => bus::channels::run(desk, &command),
        AtDesk::Memory(command) => bus::memory::run(desk, &command),
        AtDesk::Search(search) => bus::search::search(desk, &search),
        AtDesk::Reset => bus::reset::reset(desk),
        AtDesk::Lists => read::lists(desk),
        AtDesk::Who => read::who(desk),
        AtDesk::Status => about::status(desk),
        AtDesk::Backup(wish) => backup::backup(desk, &wish),
        AtDesk::RestoreBackup(wish) => backup::restore(desk, &wish),
        AtDesk::Verify => verify::verify(desk),
    }
}

/// How long a list is waited for when nothing is said.
fn wait_time(wait: &bus::args::Wait) -> Duration {
    const USUAL: u64 = 50;
    Duration::from_secs(wait.seconds.unwrap_or(USUAL))
}

const NO_WATCH: &str = "--watch is for people; for programs there is: taskbus wait --events";
const NO_LITE: &str = "--lite goes with list alone: taskbus list --lite";

fn wants_help(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--help" || arg == "-h" || arg == "help")
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
        _ => Err(Failure::usage(in_one_line(&text))),
    }
}

/// What was wrong, and the hints below it, without the list of options.
fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let told = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let told: Vec<&str> = told.map(|line| line.trim_start_matches("error: ").trim_start_matches("tip: ")).collect();
    format!("{}; --help shows what there is", told.join("; "))
}

/// A subject such as `--lable` is surely a mistyped option, unless it came after `--`.
fn check_no_option(command: &AtDesk, args: &[OsString]) -> Result<(), Failure> {
    let AtDesk::Add(add) = command else { return Ok(()) };
    let Some(subject) = &add.subject else { return Ok(()) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser as _};
    use proptest::prelude::*;

    #[test]
    fn the_table_of_commands_is_sound() {
        Cli::command().debug_assert();
    }

    proptest! {
        #[test]
        fn no_arguments_are_too_odd(args in prop::collection::vec("(add|plan|next|claim|done|update|list|--json|--list|--as|--lease|--|-|-[a-z]|--[a-z=]{0,6}|.{0,8})", 0..6)) {
            let args: Vec<OsString> = std::iter::once("taskbus".into()).chain(args.into_iter().map(OsString::from)).collect();
            match Cli::try_parse_from(&args) {
                Ok(Cli { command: Command::AtDesk(command), .. }) => {
                    let _judged = check_no_option(&command, &args);
                }
                Ok(_) => {}
                Err(error) => prop_assert!(!error.render().to_string().is_empty()),
            }
        }
    }
}
