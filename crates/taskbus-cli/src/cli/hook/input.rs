//! What a client tells a hook. Claude Code, Codex and Gemini CLI use the same names for the same things; what one of
//! them leaves out is not there.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;

use serde_json::{Map, Value};
use taskbus_core::limits::REQUEST_BYTES_MAX;

use crate::term::failure::Failure;

/// What a client said.
#[derive(Clone, Debug, Default)]
pub(super) struct Input {
    /// Where the agent works.
    pub(super) cwd: Option<PathBuf>,
    fields: Map<String, Value>,
}

impl Input {
    /// Reads it; nothing was said by somebody who types.
    pub(super) fn read() -> Result<Self, Failure> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Ok(Self::default());
        }
        let mut text = String::new();
        // One byte more tells whether there was more.
        let taken = stdin.take(REQUEST_BYTES_MAX as u64 + 1).read_to_string(&mut text);
        taken.map_err(|error| Failure::machine("standard input cannot be read", error))?;
        if text.len() > REQUEST_BYTES_MAX {
            return Err(Failure::usage("a hook reads one JSON object of at most 1 MiB"));
        }
        Self::parse(&text)
    }

    /// Takes it apart.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let fields: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| Failure::usage(format!("a hook reads a JSON object: {error}")))?;
        let cwd = fields.get("cwd").and_then(Value::as_str).filter(|cwd| !cwd.is_empty()).map(PathBuf::from);
        Ok(Self { cwd, fields })
    }

    /// A text that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Whether the agent goes on only because a hook has made it.
    pub(super) fn goes_on_already(&self) -> bool {
        ["stop_hook_active", "stopHookActive"].iter().any(|name| self.fields.get(*name) == Some(&Value::Bool(true)))
    }

    /// Whether the client keeps commands in the background, as Claude Code does: the others say more of themselves.
    pub(super) fn has_background(&self) -> bool {
        !self.fields.contains_key("turn_id") && !self.fields.contains_key("timestamp")
    }

    /// An object.
    pub(super) fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.fields.get(name).and_then(Value::as_object)
    }
}
