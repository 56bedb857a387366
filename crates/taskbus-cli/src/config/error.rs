//! What is wrong with a configuration: where, which key, which value, and what it may be. Nothing is put right by
//! guessing.

use std::io;
use std::path::PathBuf;

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file is there and cannot be read.
    #[error("{} cannot be read ({error}); make it readable, or name another file with --config", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: String,
    },
    /// The file is no TOML.
    #[error("{} is no TOML: {error}", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Where and why.
        error: String,
    },
    /// A key that does not exist.
    #[error("{}: there is no key {key}; taskbus config lists those there are", .file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
    },
    /// A value that the key cannot have.
    #[error("{place} is {value}, and must be {wanted}; correct it or take it out")]
    Bad {
        /// The file and the key, or the variable.
        place: String,
        /// The value.
        value: String,
        /// What it may be.
        wanted: String,
    },
    /// Two values that do not go together.
    #[error("{place}: {what}")]
    Together {
        /// The file, or what there is instead.
        place: String,
        /// What does not go together, and what to do.
        what: String,
    },
}

impl ConfigError {
    /// A file that could not be read.
    pub(super) fn unreadable(file: PathBuf, error: &io::Error) -> Self {
        ConfigError::Unreadable { file, error: error.to_string() }
    }
}
