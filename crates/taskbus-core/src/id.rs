//! Task ids: minted by a store, never by a caller, never reused.
//!
//! A number on the bus and in a Claude directory, `t_<unix_ms>_<rand>` in a Kin sidecar. Ordering is the
//! contract's: numbers ascending, then text lexicographically.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The id of a task.
///
/// ```compile_fail
/// let id: taskbus_core::id::TaskId = taskbus_core::name::Identity::new("a").unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskId {
    /// A positive number that fits 63 bits.
    Number(u64),
    /// Text that is no number: 1 to 128 visible ASCII characters.
    Text(Box<str>),
}

/// Why a text is no task id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing was given.
    #[error("a task id is empty")]
    Empty,
    /// Zero, negative, fractional or beyond 63 bits.
    #[error("task ids are whole numbers from 1 to 9223372036854775807")]
    Range,
    /// Characters that no id has.
    #[error("a task id has only letters, digits, '_', '-' and '.'")]
    Characters,
}

const TEXT_BYTES_MAX: usize = 128;

impl TaskId {
    /// The id with this number.
    ///
    /// # Errors
    /// [`IdError::Range`] for 0 and for numbers beyond 63 bits.
    pub fn number(number: u64) -> Result<Self, IdError> {
        if number == 0 || number > i64::MAX as u64 {
            return Err(IdError::Range);
        }
        Ok(Self::Number(number))
    }

    /// The number, if it is one.
    #[must_use]
    pub fn as_number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }
}

/// Accepts every spelling a model uses for one task: `7`, `#7`, `007`, `7.0` (docs/rules.md 9).
impl FromStr for TaskId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let text = text.trim();
        let text = text.strip_prefix('#').unwrap_or(text);
        let Some(first) = text.chars().next() else {
            return Err(IdError::Empty);
        };
        if first.is_ascii_digit() || first == '-' || first == '+' {
            return number_from(text);
        }
        if text.len() > TEXT_BYTES_MAX || !text.bytes().all(is_id_byte) {
            return Err(IdError::Characters);
        }
        Ok(Self::Text(text.into()))
    }
}

fn number_from(text: &str) -> Result<TaskId, IdError> {
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|b| b == b'0') => whole,
        Some(_) => return Err(IdError::Range),
        None => text,
    };
    TaskId::number(whole.parse().map_err(|_| IdError::Range)?)
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = TaskId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a task id")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<TaskId, E> {
                TaskId::number(number).map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TaskId, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Result<TaskId, IdError>) {
        assert_eq!(text.parse::<TaskId>(), *expected, "{text:?}");
    }

    #[test]
    fn every_spelling_of_seven_is_seven() {
        for text in ["7", "#7", "007", "7.0", " 7 ", "#007", "+7"] {
            check(text, &Ok(TaskId::Number(7)));
        }
    }

    #[test]
    fn numbers_beyond_the_range_are_refused_and_large_ones_survive() {
        check("9007199254740993", &Ok(TaskId::Number(9_007_199_254_740_993)));
        check("9223372036854775807", &Ok(TaskId::Number(i64::MAX as u64)));
        for text in ["0", "-1", "9223372036854775808", "1.5", "1.", "7x", "99999999999999999999"] {
            check(text, &Err(IdError::Range));
        }
    }

    #[test]
    fn text_ids_are_plain() {
        check("t_1720600000000_a1b2", &Ok(TaskId::Text("t_1720600000000_a1b2".into())));
        check("", &Err(IdError::Empty));
        check("#", &Err(IdError::Empty));
        check("a b", &Err(IdError::Characters));
        check("../x", &Err(IdError::Characters));
    }

    #[test]
    fn numbers_sort_before_text_and_by_value() {
        let mut ids: Vec<TaskId> = ["t-10", "10", "2", "t-9", "1"].iter().map(|t| t.parse().unwrap()).collect();
        ids.sort();
        let shown: Vec<String> = ids.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["1", "2", "10", "t-10", "t-9"]);
    }

    #[test]
    fn json_keeps_every_bit() {
        let id = TaskId::Number(9_007_199_254_740_993);
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, "9007199254740993");
        assert_eq!(serde_json::from_str::<TaskId>(&json).unwrap(), id);
    }
}
