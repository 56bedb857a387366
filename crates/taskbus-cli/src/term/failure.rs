//! Why a command failed: the one place where errors become words and an exit code.

use std::fmt::Display;
use std::io;

use serde_json::{Map, Value, json};
use taskbus::engine::Error;
use taskbus::store::StoreError;
use taskbus_core::refusal::{Invalid, Missing, Refusal};
use taskbus_core::text::TextError;

use crate::config::ConfigError;
use crate::project::ProjectError;
use crate::repo_file::RepoFileError;
use crate::store::UrlError;
use crate::wire;

/// Done.
pub(crate) const DONE: u8 = 0;
/// Refused by the rules, or a check that did not hold.
pub(crate) const REFUSED: u8 = 1;
/// Wrong usage.
pub(crate) const USAGE: u8 = 2;
/// The store cannot be used.
pub(crate) const UNAVAILABLE: u8 = 3;
/// Nothing came in time.
pub(crate) const LATE: u8 = 4;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line, a file it names, or the environment is wrong.
    Usage(String),
    /// A file to import is wrong at this line.
    Input {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        words: String,
    },
    /// The engine refused or failed.
    Call(Error),
    /// Standard output is gone: nobody reads any more, which is no failure.
    Unread,
    /// Something of the machine failed: a process, a file, a pipe.
    Machine(String),
    /// A demo or a bench did not hold what it promises.
    Broken(String),
    /// Waiting for a message failed, which has an exit code of its own.
    Waiting(Box<Failure>),
}

impl Failure {
    /// An error of usage.
    pub(crate) fn usage(what: impl Display) -> Self {
        Failure::Usage(what.to_string())
    }

    /// A failure of the machine while doing something.
    pub(crate) fn machine(doing: impl Display, error: impl Display) -> Self {
        Failure::Machine(format!("{doing}: {error}"))
    }

    /// A failure of the machine that says it all itself.
    pub(crate) fn machine_error(error: impl Display) -> Self {
        Failure::Machine(error.to_string())
    }

    /// A text that breaks its rule.
    pub(crate) fn text(field: &'static str, error: TextError) -> Self {
        Invalid::Text { field, error }.into()
    }

    /// The process's exit code.
    pub(crate) fn exit(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Waiting(_) => USAGE,
            Failure::Call(Error::Store(_)) | Failure::Machine(_) => UNAVAILABLE,
            Failure::Call(Error::Refused(_)) | Failure::Input { .. } | Failure::Broken(_) => REFUSED,
            Failure::Unread => DONE,
        }
    }

    /// What happened and what to do next.
    pub(crate) fn words(&self) -> String {
        match self {
            Failure::Usage(words) | Failure::Input { words, .. } | Failure::Machine(words) | Failure::Broken(words) => {
                words.clone()
            }
            Failure::Call(Error::Refused(refusal)) => in_commands(refusal),
            Failure::Call(Error::Store(error)) => error.to_string(),
            Failure::Unread => String::new(),
            Failure::Waiting(failure) => failure.words(),
        }
    }

    /// The same as JSON, in the form of every surface.
    pub(crate) fn json(&self) -> Map<String, Value> {
        let (code, retryable, facts) = match self {
            Failure::Usage(_) | Failure::Unread => ("usage", false, None),
            Failure::Input { line, .. } => ("validation", false, Some(("line".to_owned(), json!(line)))),
            Failure::Machine(_) => ("internal", true, None),
            Failure::Broken(_) => ("broken", false, None),
            Failure::Waiting(failure) => return failure.json(),
            Failure::Call(error) => {
                return wire::error::Failure { message: self.words(), ..error.into() }.to_object();
            }
        };
        let facts = facts.into_iter().collect();
        wire::error::Failure { code, message: self.words(), retryable, facts }.to_object()
    }
}

/// A refusal in the words of the command line: it names commands where the tools would name tools.
fn in_commands(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotFound(Missing::List { name }) => {
            format!("there is no list {name}; taskbus lists shows those there are, --create with add or plan makes it")
        }
        _ => COMMANDS.iter().fold(refusal.to_string(), |words, (tool, command)| words.replace(tool, command)),
    }
}

const COMMANDS: [(&str, &str); 6] = [
    ("task_list", "taskbus list"),
    ("task_next", "taskbus next"),
    ("task_claim", "taskbus claim"),
    ("lease_seconds", "--lease"),
    ("set its status to pending first", "taskbus update --status pending first"),
    ("name an identity that register returned", "name somebody who has used taskbus (taskbus who)"),
];

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Call(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Call(error.into())
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Call(refusal.into())
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Refusal::Invalid(invalid).into()
    }
}

impl From<UrlError> for Failure {
    fn from(error: UrlError) -> Self {
        Failure::usage(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::usage(error)
    }
}

impl From<RepoFileError> for Failure {
    fn from(error: RepoFileError) -> Self {
        match error {
            RepoFileError::Io { .. } => Failure::machine_error(error),
            _ => Failure::usage(error),
        }
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        Failure::usage(error)
    }
}

/// An error while printing.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Unread,
            _ => Failure::machine("standard output cannot be written", error),
        }
    }
}
