//! Texts from flags, standard input and files, and their way into the types of the core.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use taskbus_core::glob::PathGlob;
use taskbus_core::limits;
use taskbus_core::name::{Identity, Key, Label};
use taskbus_core::text::{Body, Note, Subject};

use super::args;
use crate::term::failure::Failure;

/// Reads what flags point at. Standard input can be read once.
#[derive(Debug, Default)]
pub(crate) struct Input {
    stdin_used: Cell<bool>,
}

impl Input {
    /// A flag's text: itself, or standard input for `-`.
    pub(crate) fn text(&self, given: &str) -> Result<String, Failure> {
        if given == "-" { self.stdin() } else { Ok(given.to_owned()) }
    }

    /// A file's text; `-` is standard input. One line break at the end is dropped.
    pub(crate) fn file(&self, path: &Path) -> Result<String, Failure> {
        if path.as_os_str() == "-" {
            return self.stdin();
        }
        let cannot = |error: io::Error| Failure::usage(format!("{} cannot be read: {error}", path.display()));
        read(File::open(path).map_err(cannot)?, &path.display().to_string())
    }

    /// The bytes of a file as they are; `-` is standard input.
    pub(crate) fn raw(&self, path: &Path) -> Result<String, Failure> {
        if path.as_os_str() == "-" {
            self.claim_stdin()?;
            return read_raw(io::stdin(), "standard input");
        }
        let cannot = |error: io::Error| Failure::usage(format!("{} cannot be read: {error}", path.display()));
        read_raw(File::open(path).map_err(cannot)?, &path.display().to_string())
    }

    fn stdin(&self) -> Result<String, Failure> {
        self.claim_stdin()?;
        read(io::stdin(), "standard input")
    }

    fn claim_stdin(&self) -> Result<(), Failure> {
        if self.stdin_used.replace(true) {
            return Err(Failure::usage("standard input (-) is named twice; it can be read once"));
        }
        Ok(())
    }
}

fn read(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = read_raw(from, name)?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

fn read_raw(from: impl Read, name: &str) -> Result<String, Failure> {
    let max = limits::REQUEST_BYTES_MAX as u64;
    let mut bytes = Vec::new();
    let cannot = |error: io::Error| Failure::usage(format!("{name} cannot be read: {error}"));
    from.take(max + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > max {
        return Err(Failure::usage(format!("{name} is longer than {max} bytes; split it")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{name} is no UTF-8 text (byte {at}); convert it first"))
    })
}

/// A subject.
pub(crate) fn subject(text: String) -> Result<Subject, Failure> {
    Subject::new(text).map_err(|error| Failure::text("subject", error))
}

/// An active form; an empty one is none.
pub(crate) fn active_form(text: String) -> Result<Option<Subject>, Failure> {
    some(text).map(|text| Subject::new(text).map_err(|error| Failure::text("active_form", error))).transpose()
}

/// A description; an empty one is none.
pub(crate) fn description(text: String) -> Result<Option<Body>, Failure> {
    some(text).map(|text| Body::new(text).map_err(|error| Failure::text("description", error))).transpose()
}

/// A result or a note.
pub(crate) fn note(field: &'static str, text: Option<&str>, input: &Input) -> Result<Option<Note>, Failure> {
    let read = |text| Note::new(input.text(text)?).map_err(|error| Failure::text(field, error));
    text.map(read).transpose()
}

/// Labels; empty ones are left out.
pub(crate) fn labels(texts: &[String]) -> Result<BTreeSet<Label>, Failure> {
    let filled = texts.iter().filter(|text| !text.is_empty());
    filled.map(|text| label(text)).collect()
}

/// One label.
pub(crate) fn label(text: &str) -> Result<Label, Failure> {
    Label::new(text).map_err(|error| Failure::text("label", error))
}

/// Globs; empty ones are left out.
pub(crate) fn paths(texts: &[String]) -> Result<BTreeSet<PathGlob>, Failure> {
    let filled = texts.iter().filter(|text| !text.is_empty());
    filled.map(|text| PathGlob::new(text.clone()).map_err(|error| Failure::text("path", error))).collect()
}

/// An identity.
pub(crate) fn identity(field: &'static str, text: &str) -> Result<Identity, Failure> {
    Identity::new(text).map_err(|error| Failure::text(field, error))
}

/// An idempotency key.
pub(crate) fn key(key: &args::Key) -> Result<Option<Key>, Failure> {
    let make = |text: &String| Key::new(text.clone()).map_err(|error| Failure::text("key", error));
    key.key.as_ref().map(make).transpose()
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_break_at_the_end_is_dropped() {
        for (text, expected) in [("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a"), ("", "")] {
            assert_eq!(read(text.as_bytes(), "x").unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let words = |bytes: &[u8]| read(bytes, "x").unwrap_err().words();
        assert_eq!(words(b"ab\xff"), "x is no UTF-8 text (byte 2); convert it first");
        let long = vec![b'a'; limits::REQUEST_BYTES_MAX + 1];
        assert!(words(&long).contains("longer than"));
        assert!(read(&long[1..], "x").is_ok());
    }
}
