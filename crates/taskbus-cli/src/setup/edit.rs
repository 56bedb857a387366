//! What is changed in a file of a client: bytes in, bytes out. An edit says what should be there; applying it twice is
//! applying it once, and reverting it takes away what is ours and nothing else.

use serde_json::{Map, Value, json};

use super::hooks::Hook;
use super::json::{self, Step};
use super::{hooks, toml};

/// Why a file is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// It cannot be read as what it should be.
    #[error("it is no text")]
    NoText,
    /// No JSON.
    #[error("it is no JSON: {0}")]
    NoJson(String),
    /// No TOML.
    #[error("it is no TOML: {0}")]
    NoToml(String),
    /// Something else stands where our entry goes.
    #[error("{0} in it is not what the client's documentation says it is")]
    NoPlace(String),
    /// The change cannot be made without touching more.
    #[error("the change cannot be made there without touching more than it should")]
    Unsure,
}

/// What should be in a file.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// An entry for the server in a JSON object.
    Entry {
        /// Where it goes.
        keys: &'static [&'static str],
        /// What it says.
        value: Value,
    },
    /// Commands that the client runs at certain moments, in JSON.
    Hooks(Vec<Hook>),
    /// An entry for the server in TOML, below `mcp_servers`.
    Table(Map<String, Value>),
    /// A file of our own.
    Whole(&'static str),
}

impl Edit {
    /// The file with the change; the same bytes when it has it already.
    pub(super) fn apply(&self, old: Option<&[u8]>) -> Result<Vec<u8>, Refused> {
        let text = std::str::from_utf8(old.unwrap_or_default()).map_err(|_| Refused::NoText)?;
        Ok(match self {
            Edit::Entry { keys, value } => entry(text, keys, value)?,
            Edit::Hooks(wanted) => wanted.iter().try_fold(text.to_owned(), |text, hook| hooks::add(&text, hook))?,
            Edit::Table(fields) => toml::set(text, fields)?,
            Edit::Whole(content) => (*content).to_owned(),
        }
        .into_bytes())
    }

    /// The file without the change; none when nothing is left of it.
    pub(super) fn revert(&self, old: &[u8]) -> Result<Option<Vec<u8>>, Refused> {
        let text = std::str::from_utf8(old).map_err(|_| Refused::NoText)?;
        let left = match self {
            Edit::Entry { keys, .. } => {
                let steps: Vec<Step<'_>> = keys.iter().map(|key| Step::Key(key)).collect();
                json::remove(text, &steps)?
            }
            Edit::Hooks(wanted) => wanted.iter().try_fold(text.to_owned(), |text, hook| hooks::remove(&text, hook))?,
            Edit::Table(_) => toml::unset(text)?,
            Edit::Whole(content) if text == *content => return Ok(None),
            Edit::Whole(_) => text.to_owned(),
        };
        Ok(Some(left.into_bytes()))
    }

    /// What to put in by hand, for a file that is left alone.
    pub(super) fn snippet(&self) -> String {
        match self {
            Edit::Entry { keys, value } => {
                format!("{:#}", keys.iter().rev().fold(value.clone(), |inner, key| json!({*key: inner})))
            }
            Edit::Hooks(_) | Edit::Table(_) | Edit::Whole(_) => {
                self.apply(None).map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
            }
        }
    }
}

fn entry(text: &str, keys: &[&str], value: &Value) -> Result<String, Refused> {
    let root = json::read(text)?;
    let steps: Vec<Step<'_>> = keys.iter().map(|key| Step::Key(key)).collect();
    let found = json::find(&root, &steps).map(super::tree::Node::to_value);
    let wanted = merged(found.as_ref(), value);
    if found.as_ref() == Some(&wanted) { Ok(text.to_owned()) } else { json::set(text, keys, &wanted) }
}

/// What somebody wrote for our server by hand stays, as long as it starts it; only what is missing is added.
pub(super) fn merged(found: Option<&Value>, ours: &Value) -> Value {
    let (Some(Value::Object(found)), Value::Object(ours)) = (found, ours) else { return ours.clone() };
    let mut merged = found.clone();
    if !starts_us(found) {
        for key in ["command", "args"] {
            match ours.get(key) {
                Some(value) => merged.insert(key.to_owned(), value.clone()),
                None => merged.shift_remove(key),
            };
        }
    }
    for (key, value) in ours {
        merged.entry(key).or_insert_with(|| value.clone());
    }
    Value::Object(merged)
}

/// Whether an entry starts `taskbus mcp`, and a program that is there.
fn starts_us(entry: &Map<String, Value>) -> bool {
    let command = entry.get("command");
    let mut words = command.into_iter().chain(entry.get("args")).flat_map(|value| match value {
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>(),
        value => value.as_str().into_iter().collect(),
    });
    let program = std::path::Path::new(words.next().unwrap_or_default());
    let is_ours = program.file_name().is_some_and(|name| name == "taskbus");
    is_ours && (program.is_relative() || program.exists()) && words.next() == Some("mcp")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Value {
        json!({"type": "stdio", "command": "/opt/taskbus", "args": ["mcp"]})
    }

    #[test]
    fn what_somebody_wrote_by_hand_stays() {
        let theirs = json!({"command": "taskbus", "args": ["mcp", "--tools", "full"], "env": {"TASKBUS_LIST": "x"}});
        let merged = super::merged(Some(&theirs), &ours());
        assert_eq!(
            (&merged["command"], &merged["args"], &merged["env"]),
            (&theirs["command"], &theirs["args"], &theirs["env"])
        );
        assert_eq!(merged["type"], "stdio");
        assert_eq!(super::merged(Some(&merged), &ours()), merged);
    }

    #[test]
    fn an_entry_that_starts_something_else_is_mended() {
        for theirs in [
            json!({"command": "/nowhere/taskbus", "args": ["mcp"]}),
            json!({"url": "http://x"}),
            json!({"command": "npx", "args": ["taskbus"]}),
        ] {
            let merged = super::merged(Some(&theirs), &ours());
            assert_eq!((&merged["command"], &merged["args"]), (&json!("/opt/taskbus"), &json!(["mcp"])), "{theirs}");
        }
        assert_eq!(super::merged(Some(&json!("x")), &ours()), ours());
        assert_eq!(super::merged(None, &ours()), ours());
        let list = json!({"type": "local", "command": ["taskbus", "mcp"]});
        assert_eq!(super::merged(Some(&list), &json!({"type": "local", "command": ["/opt/taskbus", "mcp"]})), list);
    }
}
