//! Refusals and failures as JSON: `{code, message, retryable, …facts}` (spec/tasks.md 10).

use serde_json::{Map, Value, json};
use taskbus::engine::Error;
use taskbus::store::StoreError;
use taskbus_core::refusal::Refusal;

/// The error of a call.
pub(crate) fn error(error: &Error) -> Map<String, Value> {
    match error {
        Error::Refused(refusal) => refused(refusal),
        Error::Store(error) => failed(error),
    }
}

/// A refusal of the rules.
pub(crate) fn refused(refusal: &Refusal) -> Map<String, Value> {
    body(refusal.code(), &refusal.to_string(), refusal.retryable(), refusal.facts())
}

/// A failure of the store: code `internal`, with one word for the reason.
pub(crate) fn failed(error: &StoreError) -> Map<String, Value> {
    let facts = Map::from_iter([("reason".to_owned(), json!(reason(error)))]);
    body("internal", &error.to_string(), error.retryable(), facts)
}

/// An error in the common form.
pub(crate) fn body(code: &str, message: &str, retryable: bool, facts: Map<String, Value>) -> Map<String, Value> {
    let head = [("code", json!(code)), ("message", json!(message)), ("retryable", json!(retryable))];
    head.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(facts).collect()
}

fn reason(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable { .. } => "store_unavailable",
        StoreError::Damaged { .. } => "store_damaged",
        StoreError::Newer { .. } => "store_newer",
        StoreError::ReadOnly { .. } => "store_read_only",
        StoreError::Busy { .. } => "store_busy",
        StoreError::Moved { .. } => "store_moved",
        StoreError::Full { .. } => "store_full",
        StoreError::Failed { .. } => "store_failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskbus_core::id::TaskId;
    use taskbus_core::refusal::Conflict;

    #[test]
    fn a_refusal_carries_its_facts() {
        let refusal = Refusal::Conflict(Conflict::Blocked { id: TaskId::Number(3), blockers: vec![TaskId::Number(1)] });
        let json = Value::Object(refused(&refusal));
        assert_eq!(
            json,
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
        let json = failed(&StoreError::Busy { store: "sqlite:x".to_owned(), waited_ms: 5 });
        assert_eq!(
            (&json["code"], &json["reason"], &json["retryable"]),
            (&json!("internal"), &json!("store_busy"), &json!(true))
        );
    }
}
