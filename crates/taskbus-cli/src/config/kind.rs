//! What a value may be: the kinds, their ranges in words, and how a value is read from the file or from a variable
//! of the environment.

use toml::Value;

/// Entries that a command line in the configuration may have.
const WORDS_MAX: usize = 64;
/// Bytes that it may have as JSON.
const WORDS_BYTES_MAX: usize = 32 * 1024;

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// A time in seconds, from the first to the second; may have a fraction.
    Seconds(f64, f64),
    /// Any text.
    Text,
    /// A text that is not empty.
    Name,
    /// One of these.
    Word(&'static [&'static str]),
    /// A path; not empty.
    Directory,
    /// A path, or nothing.
    File,
    /// A program and its arguments, not a line for a shell.
    Command,
    /// The address of a server.
    Address,
    /// A store, with its whole path.
    Store,
    /// A table of anything.
    Table,
}

impl Kind {
    /// Whether the value is of this kind.
    pub(super) fn takes(self, value: &Value) -> bool {
        let text = |fits: fn(&str) -> bool| value.as_str().is_some_and(fits);
        match self {
            Kind::Flag => value.is_bool(),
            Kind::Whole(min, max) => value.as_integer().is_some_and(|number| (min..=max).contains(&number)),
            Kind::Seconds(min, max) => seconds(value).is_some_and(|number| (min..=max).contains(&number)),
            Kind::Text => value.is_str(),
            Kind::Name | Kind::Directory => text(|text| !text.trim().is_empty() && !text.contains('\0')),
            Kind::File => text(|text| !text.contains('\0')),
            Kind::Word(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            Kind::Command => is_command(value),
            Kind::Address => text(|text| text.is_empty() || is_address(text)),
            Kind::Store => text(|text| text.is_empty() || is_store(text)),
            Kind::Table => value.is_table(),
        }
    }

    /// What it may be, for people: after "must be".
    pub(super) fn words(self) -> String {
        match self {
            Kind::Flag => "true or false".to_owned(),
            Kind::Whole(min, i64::MAX) => format!("a whole number from {min}"),
            Kind::Whole(min, max) => format!("a whole number from {min} to {max}"),
            Kind::Seconds(min, max) => format!("a number of seconds from {min} to {max}"),
            Kind::Text => "a text".to_owned(),
            Kind::Name => "a text that is not empty".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Directory => "a path that is not empty".to_owned(),
            Kind::File => "a path".to_owned(),
            Kind::Command => format!(
                "a list of texts, the program and its arguments, at most {WORDS_MAX} and {} KiB",
                WORDS_BYTES_MAX / 1024
            ),
            Kind::Address => "an address such as http://host:port/path".to_owned(),
            Kind::Store => "sqlite:, file: or claude: with a path from /, or memory:".to_owned(),
            Kind::Table => "a table".to_owned(),
        }
    }

    /// A value from a variable of the environment: text as it is, the rest in the spelling of the file.
    pub(super) fn read_variable(self, text: &str) -> Value {
        match self {
            Kind::Text | Kind::Name | Kind::Word(_) | Kind::Directory | Kind::File | Kind::Address | Kind::Store => {
                Value::String(text.to_owned())
            }
            Kind::Flag if text == "1" => Value::Boolean(true),
            Kind::Flag if text == "0" => Value::Boolean(false),
            Kind::Flag | Kind::Whole(..) | Kind::Seconds(..) | Kind::Command | Kind::Table => {
                parsed(text).unwrap_or_else(|| Value::String(text.to_owned()))
            }
        }
    }
}

/// A single value in the spelling of TOML.
pub(super) fn parsed(text: &str) -> Option<Value> {
    text.trim().parse::<Value>().ok()
}

/// A text, or nothing for what is no text.
pub(super) fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A time in seconds.
pub(super) fn seconds(value: &Value) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a range that is checked afterwards")]
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn is_command(value: &Value) -> bool {
    let Some(words) = value.as_array() else { return false };
    let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
    words.is_some_and(|words| {
        let bytes = serde_json::to_string(&words).map_or(usize::MAX, |json| json.len());
        let program = words.first().is_none_or(|program| !program.is_empty());
        program && words.len() <= WORDS_MAX && bytes <= WORDS_BYTES_MAX
    })
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let host = host.map(|host| host.rsplit_once('@').map_or(host, |(_, host)| host));
    let plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    plain && host.is_some_and(|host| !host.is_empty() && !host.starts_with(':'))
}

/// A relative path would mean another file in every directory.
fn is_store(text: &str) -> bool {
    let path = ["sqlite:", "file:", "claude:"].iter().find_map(|scheme| text.strip_prefix(scheme));
    path.is_some_and(|path| path.starts_with('/')) || matches!(text, "memory:" | "claude:")
}
