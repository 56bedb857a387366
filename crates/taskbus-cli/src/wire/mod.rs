//! The JSON forms that the surfaces share, so that a fact is spelled the same way in a tool's result and on the
//! command line. Nothing here decides; nothing here knows a surface.

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod fit;
pub(crate) mod kin;
pub(crate) mod lenient;

use serde::Serialize;
use serde_json::{Map, Value};

/// An answer as a JSON object.
pub(crate) fn object(answer: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(answer) {
        Ok(Value::Object(map)) => map,
        other => panic!("BUG: an answer is a JSON object, not {other:?}"),
    }
}
