//! Reads values as models write them: numbers as text, lists as text or as one value, `"null"` for nothing
//! (docs/rules.md 9). Lenient about the spelling, never about the meaning: what could mean two things is an error.

use serde_json::{Map, Value};
use taskbus_core::id::TaskId;
use taskbus_core::limits;
use taskbus_core::time::Timestamp;

/// A value of another kind than was asked for. Reads as the end of a sentence that begins with the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {what}, not {given}")]
pub(crate) struct Unlike {
    /// What was asked for.
    pub(crate) what: &'static str,
    /// What was given, cut.
    pub(crate) given: String,
}

impl Unlike {
    /// Says what was asked for instead of `given`.
    pub(crate) fn new(what: &'static str, given: &Value) -> Self {
        Self { what, given: super::error::cut(&given.to_string(), GIVEN_BYTES_MAX).into_owned() }
    }
}

const GIVEN_BYTES_MAX: usize = 80;
/// From here on a float no longer says which integer was meant.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

const WHOLE: &str = "a whole number";
const ID: &str = "a task id such as 7";
const SEQ: &str = "a number such as 7";
const FLAG: &str = "true or false";
const LIST: &str = "a list";
const OBJECT: &str = "an object";
const TEXT: &str = "text";
const TIME: &str =
    "a time: Unix milliseconds such as 1796054400000, or RFC 3339 with an offset such as 2026-11-30T16:00:00Z";

/// Whether a value says that nothing was given. An empty text counts only where `empty_is_nothing`.
pub(crate) fn is_nothing(value: &Value, empty_is_nothing: bool) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => match text.trim() {
            "" => empty_is_nothing,
            word => matches!(word, "null" | "undefined"),
        },
        Value::Array(items) => matches!(items.as_slice(), [item] if is_nothing(item, true)),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// A whole number: `7`, `"7"`, `7.0`.
pub(crate) fn integer(value: &Value) -> Result<i64, Unlike> {
    let read = match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().and_then(whole)),
        Value::String(text) => integer_text(text.trim()),
        _ => None,
    };
    read.ok_or_else(|| Unlike::new(WHOLE, value))
}

fn integer_text(text: &str) -> Option<i64> {
    match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole.parse().ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and exact")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < EXACT_MAX).then_some(number as i64)
}

/// A task id: `7`, `"7"`, `"#7"`, `"007"`, `7.0`; none for 0.
pub(crate) fn id(value: &Value) -> Result<Option<TaskId>, Unlike> {
    let unlike = || Unlike::new(ID, value);
    if let Ok(0) = integer(value) {
        return Ok(None);
    }
    match value {
        Value::Number(number) => match number.as_u64().or_else(|| number.as_f64().and_then(whole_positive)) {
            Some(number) => TaskId::number(number).map(Some).map_err(|_| unlike()),
            None => Err(unlike()),
        },
        Value::String(text) => text.parse().map(Some).map_err(|_| unlike()),
        _ => Err(unlike()),
    }
}

/// The number of a message or a memory, spelled as ids are; none for 0.
pub(crate) fn seq(value: &Value) -> Result<Option<u64>, Unlike> {
    let unlike = || Unlike::new(SEQ, value);
    match id(value).map_err(|_| unlike())? {
        None => Ok(None),
        Some(id) => id.as_number().map(Some).ok_or_else(unlike),
    }
}

fn whole_positive(number: f64) -> Option<u64> {
    whole(number).and_then(|number| number.try_into().ok())
}

/// Yes or no: `true`, `"true"`.
pub(crate) fn flag(value: &Value) -> Result<bool, Unlike> {
    let word = match value {
        Value::Bool(flag) => return Ok(*flag),
        Value::String(text) => text.trim().to_ascii_lowercase(),
        _ => return Err(Unlike::new(FLAG, value)),
    };
    match word.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Unlike::new(FLAG, value)),
    }
}

/// Text as it is.
pub(crate) fn text(value: &Value) -> Result<&str, Unlike> {
    value.as_str().ok_or_else(|| Unlike::new(TEXT, value))
}

/// Text, or a number as text: for keys and references, where both are usual.
pub(crate) fn word(value: &Value) -> Result<String, Unlike> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(Unlike::new(TEXT, value)),
    }
}

/// A point in time: Unix milliseconds or RFC 3339 with an offset; none for 0.
pub(crate) fn time(value: &Value) -> Result<Option<Timestamp>, Unlike> {
    let millis = match (integer(value), value) {
        (Ok(0), _) => return Ok(None),
        (Ok(millis), _) => Some(millis),
        (Err(_), Value::String(text)) => {
            text.trim().parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
        }
        (Err(_), _) => None,
    };
    let millis = millis.filter(|millis| (0..=limits::TIME_MS_MAX).contains(millis));
    millis.map(|millis| Some(Timestamp::from_millis(millis))).ok_or_else(|| Unlike::new(TIME, value))
}

/// A list: an array, a JSON array in a text, or one value. With `commas`, a text is also cut at its commas; only
/// for items that have none inside.
pub(crate) fn list(value: &Value, commas: bool) -> Result<Vec<Value>, Unlike> {
    let items = match value {
        Value::Array(items) => items.clone(),
        Value::String(text) if text.trim_start().starts_with('[') => match serde_json::from_str(text) {
            Ok(Value::Array(items)) => items,
            _ => return Err(Unlike::new(LIST, value)),
        },
        Value::String(text) if commas => text.split(',').map(|part| part.trim().into()).collect(),
        one => vec![one.clone()],
    };
    Ok(items.into_iter().filter(|item| !is_nothing(item, true)).collect())
}

/// An object, or a JSON object in a text.
pub(crate) fn object(value: &Value) -> Result<Map<String, Value>, Unlike> {
    match value {
        Value::Object(map) => Ok(map.clone()),
        Value::String(text) => serde_json::from_str(text).map_err(|_| Unlike::new(OBJECT, value)),
        _ => Err(Unlike::new(OBJECT, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_spelling_of_seven_is_seven() {
        for value in [json!(7), json!("7"), json!("#7"), json!("007"), json!(7.0), json!("7.0"), json!(" 7 ")] {
            assert_eq!(id(&value), Ok(Some(TaskId::Number(7))), "{value}");
        }
        for value in [json!(0), json!("0"), json!(0.0)] {
            assert_eq!(id(&value), Ok(None), "{value}");
        }
    }

    #[test]
    fn a_message_is_named_as_a_task_is_but_only_by_number() {
        for value in [json!(7), json!("7"), json!("#7"), json!(7.0)] {
            assert_eq!(seq(&value), Ok(Some(7)), "{value}");
        }
        assert_eq!(seq(&json!(0)), Ok(None));
        for value in [json!("t_1_x"), json!(-1), json!(true), json!([7])] {
            assert!(seq(&value).unwrap_err().to_string().starts_with("must be a number such as 7"), "{value}");
        }
    }

    #[test]
    fn large_ids_keep_every_bit_and_wrong_ones_are_named() {
        assert_eq!(id(&json!(9_007_199_254_740_993_u64)), Ok(Some(TaskId::Number(9_007_199_254_740_993))));
        assert_eq!(id(&json!("9007199254740993")), Ok(Some(TaskId::Number(9_007_199_254_740_993))));
        for value in [json!(-1), json!(1.5), json!(9_007_199_254_740_993.0), json!(1e300), json!(u64::MAX)] {
            assert!(id(&value).is_err(), "{value}");
        }
        for value in [json!(true), json!([7]), json!({"id": 7}), json!("a b"), json!("-3")] {
            let error = id(&value).unwrap_err().to_string();
            assert!(error.starts_with("must be a task id such as 7, not "), "{error}");
        }
    }

    #[test]
    fn nothing_has_many_spellings() {
        for value in
            [json!(null), json!(""), json!(" "), json!("null"), json!("undefined"), json!(["null"]), json!([null])]
        {
            assert!(is_nothing(&value, true), "{value}");
        }
        assert!(!is_nothing(&json!(""), false));
        for value in [json!("nil"), json!(0), json!(false), json!([]), json!({}), json!(["a", null])] {
            assert!(!is_nothing(&value, true), "{value}");
        }
    }

    #[test]
    fn numbers_and_flags_accept_their_text() {
        for value in [json!(16), json!("16"), json!(16.0), json!("16.0"), json!("+16")] {
            assert_eq!(integer(&value), Ok(16), "{value}");
        }
        for value in [json!("16x"), json!(1.5), json!("1."), json!(""), json!(true), json!([16]), json!(1e30)] {
            assert!(integer(&value).is_err(), "{value}");
        }
        assert_eq!((flag(&json!("True")), flag(&json!(false))), (Ok(true), Ok(false)));
        for value in [json!("yes"), json!(1), json!("1"), json!([true])] {
            assert!(flag(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn times_are_milliseconds_or_rfc_3339() {
        let expected = Ok(Some(Timestamp::from_millis(1_796_054_400_000)));
        for value in [json!(1_796_054_400_000_i64), json!("1796054400000"), json!("2026-11-30T16:00:00Z")] {
            assert_eq!(time(&value), expected, "{value}");
        }
        assert_eq!(time(&json!("2026-11-30T17:00:00+01:00")), expected);
        assert_eq!(time(&json!(0)), Ok(None));
        for value in [json!("2026-11-30T16:00:00"), json!("tomorrow"), json!(-5), json!(1e18), json!(true)] {
            assert!(time(&value).is_err(), "{value}");
        }
        assert_eq!(time(&json!(limits::TIME_MS_MAX)).unwrap().unwrap().as_millis(), limits::TIME_MS_MAX);
        assert!(time(&json!(limits::TIME_MS_MAX + 1)).is_err());
    }

    #[test]
    fn a_list_may_be_one_value_or_text() {
        for value in [json!(["3", "4"]), json!("[\"3\",\"4\"]"), json!("3, 4"), json!(["3", null, "4", "null"])] {
            assert_eq!(list(&value, true), Ok(vec![json!("3"), json!("4")]), "{value}");
        }
        assert_eq!(list(&json!(3), true), Ok(vec![json!(3)]));
        assert_eq!(list(&json!("src/{a,b}.rs"), false), Ok(vec![json!("src/{a,b}.rs")]));
        assert!(list(&json!("[3"), true).is_err());
    }
}
