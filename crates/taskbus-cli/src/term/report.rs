//! What a command answers, and how it is printed: one JSON value, or words.

use std::io::{self, Write as _};

use serde_json::{Map, Value, json};

use super::failure::{DONE, Failure};
use super::safe::display_safe_lines;

/// The version of the JSON forms: the first field of each.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// What a command answers.
pub(crate) trait Report {
    /// The fields behind `schema_version`.
    fn json(&self) -> Map<String, Value>;

    /// The same for people: whole lines. Text of strangers is already safe in it.
    fn words(&self, width: Option<usize>) -> String;

    /// The exit code.
    fn exit(&self) -> u8 {
        DONE
    }

    /// Whether nothing is printed, in words or as JSON: the exit code says it all.
    fn is_silent(&self) -> bool {
        false
    }
}

/// Prints a report; says the exit code.
pub(crate) fn print(report: &dyn Report, json: bool) -> Result<u8, Failure> {
    match json {
        _ if report.is_silent() => {}
        true => print_json(report.json())?,
        false => print_words(&report.words(terminal_width()))?,
    }
    Ok(report.exit())
}

/// Prints a failure; says the exit code.
pub(crate) fn print_failure(failure: &Failure, json: bool) -> u8 {
    if matches!(failure, Failure::Unread) {
        return failure.exit();
    }
    // A failure that cannot be printed still has its exit code.
    let _unprinted = if json {
        print_json(Map::from_iter([("error".to_owned(), Value::Object(failure.json()))]))
    } else {
        say(&failure.words());
        Ok(())
    };
    failure.exit()
}

/// Prints one line of several: a JSON value, or words.
pub(crate) fn print_line(fields: Map<String, Value>, words: &str, json: bool) -> io::Result<()> {
    if json { print_json(fields) } else { print_words(&format!("{}\n", display_safe_lines(words))) }
}

fn print_json(fields: Map<String, Value>) -> io::Result<()> {
    let mut value = Map::from_iter([("schema_version".to_owned(), json!(SCHEMA_VERSION))]);
    value.extend(fields);
    let mut out = io::stdout().lock();
    out.write_all(format!("{}\n", Value::Object(value)).as_bytes())?;
    out.flush()
}

/// Prints words with the colours that the terminal and the environment allow.
pub(crate) fn print_words(words: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(words.as_bytes())?;
    out.flush()
}

/// Says something on standard error, made safe. That nobody hears it is no failure.
pub(crate) fn say(words: &str) {
    let _unheard = writeln!(io::stderr().lock(), "taskbus: {}", display_safe_lines(words));
}

/// How wide the terminal is; none when standard output is no terminal, and then nothing is cut.
fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0).max(20))
}
