//! The answers that the gate gives itself: protocol errors, and refused tool calls in the form of a tool's result.

use serde_json::{Map, Value, json};

use crate::wire::error::{Failure, cut};
use taskbus_core::limits;

/// From this revision of the protocol on, a result says that it is complete.
const RESULT_TYPE_SINCE: &str = "2026-07-28";

/// A JSON-RPC error. An id of none is `null`: the request could not be read.
pub(super) fn protocol_error(id: Option<&Value>, code: i64, message: &str) -> Value {
    let message = cut(message, limits::ERROR_BYTES_MAX);
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// A refused call of a tool, as the tool itself would answer it.
pub(super) fn answer_to_call(id: &Value, version: Option<&str>, failure: &Failure) -> Value {
    let body = Value::Object(failure.to_object());
    let mut result = Map::new();
    if version.is_some_and(|version| version >= RESULT_TYPE_SINCE) {
        result.insert("resultType".to_owned(), json!("complete"));
    }
    result.insert("content".to_owned(), json!([{"type": "text", "text": body.to_string()}]));
    result.insert("structuredContent".to_owned(), body);
    result.insert("isError".to_owned(), json!(true));
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}
