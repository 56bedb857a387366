//! The gate in front of the SDK. It reads lines, and passes on what the SDK reads well; everything else it answers
//! itself, because the SDK would drop it in silence, buffer it whole, or answer it with another error than the
//! protocol says: lines that are no JSON, too long or nested too deep, batches, broken text, keys that stand twice,
//! unknown methods, and tool calls whose `params` or `arguments` are `null`, missing, or a text.

mod json;
mod lines;
mod mend;
mod reply;
mod scan;

use serde_json::{Map, Value, json};
use taskbus_core::limits;

use self::json::{Fault, Read};
use self::lines::{Line, Lines};
use self::reply::{answer_to_call, protocol_error};
use self::scan::Envelope;
use crate::wire::error::Failure;
use crate::wire::lenient;

/// What to do about a line.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// A message for the SDK.
    Request {
        /// Its id.
        id: Value,
        /// All of it.
        message: Value,
        /// The length of its line.
        bytes: usize,
    },
    /// A message for the SDK that wants no answer.
    Notification(Value),
    /// An answer for the client.
    Answer(Value),
}

/// The methods that this server has. Others are refused before the SDK looks at their parameters.
const METHODS: [&str; 13] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
];

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The state between two reads.
#[derive(Debug)]
pub(super) struct Gate {
    lines: Lines,
}

impl Default for Gate {
    fn default() -> Self {
        Self { lines: Lines::new(limits::REQUEST_BYTES_MAX) }
    }
}

impl Gate {
    /// Takes what was read; hands out what to do, in order.
    pub(super) fn push(&mut self, read: &[u8]) -> Vec<Verdict> {
        let mut lines = Vec::new();
        self.lines.push(read, &mut lines);
        lines.iter().filter_map(judge).collect()
    }

    /// The input has ended; a last line without an end counts.
    pub(super) fn end(&mut self) -> Option<Verdict> {
        self.lines.end().as_ref().and_then(judge)
    }
}

/// What to do about a message that came alone, as over HTTP; none: it wants no answer and does nothing.
pub(super) fn judge_alone(message: &[u8]) -> Option<Verdict> {
    if message.trim_ascii().is_empty() {
        return Some(invalid(None, "the body is empty; send one JSON-RPC message"));
    }
    judge_text(message)
}

fn judge(line: &Line) -> Option<Verdict> {
    match line {
        Line::Whole(text) => judge_text(text),
        Line::TooLong { envelope, bytes } => Some(Verdict::Answer(too_long(envelope, *bytes))),
    }
}

fn too_long(envelope: &Envelope, bytes: u64) -> Value {
    let max = limits::REQUEST_BYTES_MAX;
    let message = format!("the message has {bytes} bytes; at most {max} are read, so shorten it");
    match (&envelope.id, envelope.method.as_deref()) {
        (Some(id), Some("tools/call")) => answer_to_call(id, None, &Failure::shape("arguments", message)),
        (id, _) => protocol_error(id.as_ref(), INVALID_REQUEST, &message),
    }
}

fn judge_text(text: &[u8]) -> Option<Verdict> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii();
    if text.is_empty() {
        return None;
    }
    match json::read(text, limits::REQUEST_DEPTH_MAX) {
        Ok(Read { value: Value::Object(message), fault }) => judge_message(message, fault, text.len()),
        Ok(Read { value: Value::Array(_), .. }) => {
            Some(invalid(None, "batches are not read; send one message at a time"))
        }
        Ok(_) => Some(invalid(None, "a message is a JSON object")),
        Err(error) => {
            let message = format!("the message is no JSON: {error}");
            Some(Verdict::Answer(protocol_error(None, PARSE_ERROR, &message)))
        }
    }
}

fn invalid(id: Option<&Value>, message: &str) -> Verdict {
    Verdict::Answer(protocol_error(id, INVALID_REQUEST, message))
}

fn judge_message(message: Map<String, Value>, fault: Option<Fault>, bytes: usize) -> Option<Verdict> {
    let id = match message.get("id") {
        None => None,
        Some(id) if is_id(id) => Some(id.clone()),
        Some(_) if !message.contains_key("method") => return None,
        Some(_) => return Some(invalid(None, "id must be a text or a whole number")),
    };
    let Some(method) = message.get("method") else { return no_method(&message, id.as_ref()) };
    let Some(method) = method.as_str().map(str::to_owned) else {
        return Some(invalid(id.as_ref(), "method must be a text"));
    };
    match id {
        Some(id) => Some(match settle(&id, &method, message, fault) {
            Ok(message) => Verdict::Request { id, message, bytes },
            Err(answer) => Verdict::Answer(answer),
        }),
        None if fault.is_some() => None,
        None => Some(notification(message)),
    }
}

/// Whether a value can be the id of a request.
fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64()
}

/// This server asks nothing, so it expects no answers: they are passed over.
fn no_method(message: &Map<String, Value>, id: Option<&Value>) -> Option<Verdict> {
    let answers = message.contains_key("result") || message.contains_key("error");
    (!answers).then(|| invalid(id, "method is missing"))
}

fn notification(mut message: Map<String, Value>) -> Verdict {
    if message.get("params").is_some_and(|params| !params.is_object()) {
        message.remove("params");
    }
    Verdict::Notification(Value::Object(message))
}

/// The request as the SDK reads it well, or the answer that says why not.
fn settle(id: &Value, method: &str, mut message: Map<String, Value>, fault: Option<Fault>) -> Result<Value, Value> {
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(protocol_error(Some(id), INVALID_REQUEST, "jsonrpc must be \"2.0\""));
    }
    if !METHODS.contains(&method) {
        let message = format!("there is no method {:?}", crate::wire::error::cut(method, 64));
        return Err(protocol_error(Some(id), METHOD_NOT_FOUND, &message));
    }
    let version = protocol_version(&message);
    if let Some(fault) = fault {
        return Err(faulty(id, method, version.as_deref(), &fault));
    }
    let params = message.entry("params").or_insert(Value::Null);
    if params.is_null() {
        *params = json!({});
    }
    let Value::Object(params) = params else {
        return Err(protocol_error(Some(id), INVALID_PARAMS, "params must be an object"));
    };
    if method == "tools/call"
        && let Err(failure) = settle_arguments(params)
    {
        return Err(answer_to_call(id, version.as_deref(), &failure));
    }
    Ok(Value::Object(message))
}

fn faulty(id: &Value, method: &str, version: Option<&str>, fault: &Fault) -> Value {
    if matches!(fault, Fault::Twice { outermost: true, .. }) {
        return protocol_error(None, INVALID_REQUEST, &fault.to_string());
    }
    if method == "tools/call" {
        return answer_to_call(id, version, &Failure::shape("arguments", fault.to_string()));
    }
    protocol_error(Some(id), INVALID_REQUEST, &fault.to_string())
}

/// The revision of the protocol that a message speaks, if it says so.
fn protocol_version(message: &Map<String, Value>) -> Option<String> {
    let meta = message.get("params")?.get("_meta")?;
    meta.get("io.modelcontextprotocol/protocolVersion")?.as_str().map(str::to_owned)
}

/// `arguments` that are missing or nothing are none; a JSON object in a text is that object.
fn settle_arguments(params: &mut Map<String, Value>) -> Result<(), Failure> {
    let arguments = params.entry("arguments").or_insert(Value::Null);
    if lenient::is_nothing(arguments, true) {
        *arguments = json!({});
    }
    if let Value::String(text) = arguments {
        match json::read(text.as_bytes(), limits::REQUEST_DEPTH_MAX) {
            Ok(Read { value: value @ Value::Object(_), fault: None }) => *arguments = value,
            Ok(Read { fault: Some(fault), .. }) => return Err(Failure::shape("arguments", fault.to_string())),
            Ok(_) | Err(_) => {}
        }
    }
    if arguments.is_object() {
        return Ok(());
    }
    let unlike = lenient::object(arguments).err().map_or_else(String::new, |unlike| unlike.to_string());
    Err(Failure::shape("arguments", format!("arguments {unlike}; send the tool's fields as one object")))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
