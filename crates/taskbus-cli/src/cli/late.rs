//! Parsing the arguments of one command without building the flags of all others: a process that claims a task would
//! spend more on those than on the claim. What is accepted, and what is said about the rest, is as the table of
//! commands in `args` has it.

use std::ffi::OsString;
use std::ops::Deref;

use clap::{ArgMatches, Args, Command as Table, CommandFactory as _, Error, FromArgMatches, Parser as _, Subcommand};

use super::args::Cli;

/// The arguments of a command, whose flags are built only when the command is used or explained.
#[derive(Debug)]
pub(crate) struct Late<T>(pub(crate) T);

impl<T> Deref for Late<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What the table says of the command stands above what its arguments say of themselves.
fn keeping_words(command: Table, augment: fn(Table) -> Table) -> Table {
    let words = [command.get_about(), command.get_long_about(), command.get_after_help()].map(Option::<&_>::cloned);
    let setters = [Table::about, Table::long_about, Table::after_help];
    let command = augment(command).long_about(None);
    let said = words.into_iter().zip(setters).filter_map(|(words, set)| Some((words?, set)));
    said.fold(command, |command, (words, set)| set(command, words))
}

impl<T: Args> Args for Late<T> {
    fn augment_args(command: Table) -> Table {
        command.defer(|command| keeping_words(command, T::augment_args))
    }

    fn augment_args_for_update(command: Table) -> Table {
        command.defer(|command| keeping_words(command, T::augment_args_for_update))
    }
}

impl<T: Subcommand> Subcommand for Late<T> {
    fn augment_subcommands(command: Table) -> Table {
        command.defer(|command| keeping_words(command, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Table) -> Table {
        command.defer(|command| keeping_words(command, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

impl<T: FromArgMatches> FromArgMatches for Late<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}

/// The command that the arguments name. What goes wrong is explained with the whole table at hand.
pub(crate) fn parse(args: &[OsString]) -> Result<Cli, Error> {
    parse_alone(args).map_or_else(|| Cli::try_parse_from(args), Ok)
}

/// The same for a command that comes first and is all right.
fn parse_alone(args: &[OsString]) -> Option<Cli> {
    let name = args.get(1)?.to_str().filter(|name| !name.starts_with('-'))?;
    let table = Cli::command();
    let command = table.get_subcommands().find(|command| command.get_name() == name)?;
    let alone = Table::new("taskbus").args(table.get_arguments()).subcommand(command.clone());
    let mut matches = alone.try_get_matches_from(args).ok()?;
    Cli::from_arg_matches_mut(&mut matches).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command line for each command and each kind of flag.
    const LINES: [&str; 14] = [
        "add x --json",
        "claim 7 --as zed --lease 5m",
        "claim",
        "claim 7 --what",
        "list --limit 5 --json",
        "next --list demo --store memory:",
        "mcp --tools core,full",
        "hook stop",
        "channel",
        "memory --help",
        "wait --ready 5",
        "nothing",
        "--json list",
        "update 7 --label x --config y.toml",
    ];

    #[test]
    fn what_is_parsed_alone_is_what_the_whole_table_says() {
        let mut alone = 0;
        for line in LINES {
            let args: Vec<OsString> = ["taskbus"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
            let whole = Cli::try_parse_from(&args).map(|cli| format!("{cli:?}")).map_err(|error| error.to_string());
            let ours = parse(&args).map(|cli| format!("{cli:?}")).map_err(|error| error.to_string());
            assert_eq!(ours, whole, "{line}");
            alone += usize::from(parse_alone(&args).is_some());
        }
        assert!(alone >= 6, "{alone}");
    }
}
