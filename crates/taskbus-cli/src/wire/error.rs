//! Refusals and failures as JSON: `{code, message, retryable, …facts}` (docs/rules.md 10). The one place that
//! makes them safe to print: a message is cut to its limit, and control characters come out escaped.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use taskbus::engine::Error;
use taskbus::store::StoreError;
use taskbus_core::limits;
use taskbus_core::refusal::Refusal;

/// Why a call gives no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// The stable code.
    pub(crate) code: &'static str,
    /// What happened, which value, what to do next.
    pub(crate) message: String,
    /// Whether the same call may pass later.
    pub(crate) retryable: bool,
    /// The facts a caller needs, as fields.
    pub(crate) facts: Map<String, Value>,
}

impl Failure {
    /// A request that could not be read: code `validation`, naming the field.
    pub(crate) fn shape(field: &str, message: impl Into<String>) -> Self {
        let facts = Map::from_iter([("field".to_owned(), json!(field))]);
        Self { code: "validation", message: message.into(), retryable: false, facts }
    }

    /// A failure that is nobody's fault but ours or the machine's.
    pub(crate) fn internal(reason: &str, message: impl Into<String>, retryable: bool) -> Self {
        let facts = Map::from_iter([("reason".to_owned(), json!(reason))]);
        Self { code: "internal", message: message.into(), retryable, facts }
    }

    /// The same failure, said of one item of a list.
    pub(crate) fn within(mut self, list: &str, index: usize) -> Self {
        self.message = format!("{list}[{index}]: {}", self.message);
        self.facts.insert("index".to_owned(), json!(index));
        self
    }

    /// The common form.
    pub(crate) fn to_object(&self) -> Map<String, Value> {
        let message = cut(&printable(&self.message), limits::ERROR_BYTES_MAX).into_owned();
        let head = [("code", json!(self.code)), ("message", json!(message)), ("retryable", json!(self.retryable))];
        let head = head.into_iter().map(|(name, value)| (name.to_owned(), value));
        head.chain(self.facts.iter().map(|(name, value)| (name.clone(), printable_value(value)))).collect()
    }
}

impl From<&Refusal> for Failure {
    fn from(refusal: &Refusal) -> Self {
        let (code, retryable) = (refusal.code(), refusal.retryable());
        Self { code, message: refusal.to_string(), retryable, facts: refusal.facts() }
    }
}

impl From<&StoreError> for Failure {
    fn from(error: &StoreError) -> Self {
        Self::internal(reason(error), error.to_string(), error.retryable())
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Store(error) => error.into(),
        }
    }
}

/// For `?`.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        (&error).into()
    }
}

/// For `?`.
impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        (&refusal).into()
    }
}

/// One word for what is wrong with a store.
fn reason(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable { .. } => "store_unavailable",
        StoreError::Damaged { .. } => "store_damaged",
        StoreError::Newer { .. } => "store_newer",
        StoreError::ReadOnly { .. } => "store_read_only",
        StoreError::Busy { .. } => "store_busy",
        StoreError::Moved { .. } => "store_moved",
        StoreError::RolledBack { .. } => "store_rolled_back",
        StoreError::Full { .. } => "store_full",
        StoreError::Failed { .. } => "store_failed",
    }
}

/// The text with everything escaped that could drive a terminal, hide text or turn it around.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unprintable(c) { safe.extend(c.escape_unicode()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(u32::from(c), 0x061C | 0x200E | 0x200F | 0x2028..=0x202E | 0x2066..=0x2069 | 0xFEFF)
}

fn printable_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(printable(text).into_owned()),
        Value::Array(items) => items.iter().map(printable_value).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), printable_value(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The text in at most `max` bytes, cut between characters and marked.
pub(crate) fn cut(text: &str, max: usize) -> Cow<'_, str> {
    const MARK: &str = "…";
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let mut end = max.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}{MARK}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskbus_core::id::TaskId;
    use taskbus_core::refusal::Conflict;

    #[test]
    fn a_refusal_carries_its_facts() {
        let refusal = Refusal::Conflict(Conflict::Blocked { id: TaskId::Number(3), blockers: vec![TaskId::Number(1)] });
        assert_eq!(
            Value::Object(Failure::from(refusal).to_object()),
            json!({
                "code": "conflict",
                "message": "task 3 is blocked by 1; complete those first",
                "retryable": false,
                "task_id": 3,
                "open_blockers": [1],
                "reason": "blocked",
            })
        );
    }

    #[test]
    fn a_failure_says_which_and_whether_to_try_again() {
        let busy = StoreError::Busy { store: "sqlite:x".to_owned(), waited_ms: 5 };
        let json = Failure::from(&busy).to_object();
        assert_eq!((&json["code"], &json["reason"]), (&json!("internal"), &json!("store_busy")));
        assert_eq!(json["retryable"], true);
    }

    #[test]
    fn nothing_raw_comes_through() {
        let mut failure = Failure::shape("x", "bad \u{1b}[2J and \u{202e}turned");
        failure.facts.insert("candidates".to_owned(), json!(["a\u{7}"]));
        let json = failure.to_object();
        assert_eq!(json["message"], "bad \\u{1b}[2J and \\u{202e}turned");
        assert_eq!(json["candidates"], json!(["a\\u{7}"]));
    }

    #[test]
    fn messages_are_cut_between_characters() {
        let exact = "é".repeat(limits::ERROR_BYTES_MAX / 2);
        assert_eq!(Failure::shape("x", exact.clone()).to_object()["message"], exact);
        let long = Failure::shape("x", format!("{exact}é")).to_object();
        let message = long["message"].as_str().unwrap();
        assert!(message.len() <= limits::ERROR_BYTES_MAX && message.ends_with('…'), "{}", message.len());
    }
}
