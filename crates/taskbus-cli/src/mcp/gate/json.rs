//! Reads one JSON text into a value, and notes what the ordinary reader lets through or gives up on: a key that
//! stands twice in one object, nesting beyond the limit, broken text, and numbers that nothing can hold. The value
//! is read to its end all the same, because the answer must name the request.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::mend;

/// A value, and the first thing that is wrong with it although it is JSON.
#[derive(Debug, PartialEq)]
pub(super) struct Read {
    /// The value, without what is wrong.
    pub(super) value: Value,
    /// What is wrong.
    pub(super) fault: Option<Fault>,
}

/// What is wrong with a text that is JSON otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// Which of the two is meant?
    #[error("the key {key:?} stands twice in one object; send it once")]
    Twice {
        /// The key.
        key: String,
        /// Whether it is one of the message's own.
        outermost: bool,
    },
    /// Beyond the limit.
    #[error("the message is nested deeper than {max} levels; send it flatter")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// Text that is no Unicode.
    #[error("a text has half of a surrogate pair or bytes that are no UTF-8; send whole characters")]
    BrokenText,
    /// A number too large for any use.
    #[error("a number is too large to read; send a smaller one")]
    HugeNumber,
}

/// Reads a text, nested at most `depth_max` deep.
pub(super) fn read(text: &[u8], depth_max: usize) -> Result<Read, serde_json::Error> {
    let error = match parse(text, depth_max) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    let Some((mended, fault)) = mend::mend(text) else { return Err(error) };
    let read = parse(mended.as_bytes(), depth_max)?;
    Ok(Read { value: read.value, fault: Some(fault) })
}

fn parse(text: &[u8], depth_max: usize) -> Result<Read, serde_json::Error> {
    let fault = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Node { depth: 1, depth_max, fault: &fault }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(Read { value, fault: fault.into_inner() })
}

/// One value on the way down.
#[derive(Clone, Copy)]
struct Node<'a> {
    depth: usize,
    depth_max: usize,
    fault: &'a RefCell<Option<Fault>>,
}

impl Node<'_> {
    fn below(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn note(&self, fault: Fault) {
        self.fault.borrow_mut().get_or_insert(fault);
    }

    /// Whether a list or an object may not begin here.
    fn too_deep(&self) -> bool {
        let beyond = self.depth > self.depth_max;
        if beyond {
            self.note(Fault::TooDeep { max: self.depth_max });
        }
        beyond
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        if self.too_deep() {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self.below())? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        if self.too_deep() {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                self.note(Fault::Twice { key, outermost: self.depth == 1 });
                entries.next_value::<IgnoredAny>()?;
            } else {
                object.insert(key, entries.next_value_seed(self.below())?);
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use taskbus_core::limits::REQUEST_DEPTH_MAX;

    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, value: Value, fault: Option<Fault>) {
        assert_eq!(read(text.as_bytes(), 4).unwrap(), Read { value, fault }, "{text}");
    }

    #[test]
    fn ordinary_json_is_itself() {
        let text = r#"{"a":[1,-2,2.5,"é\n",true,null],"b":9007199254740993,"c":{}}"#;
        check(text, serde_json::from_str(text).unwrap(), None);
    }

    #[test]
    fn a_key_twice_is_noted() {
        check(r#"{"a":1,"a":2}"#, json!({"a": 1}), Some(Fault::Twice { key: "a".into(), outermost: true }));
        check(
            r#"{"p":{"a":1,"a":2}}"#,
            json!({"p": {"a": 1}}),
            Some(Fault::Twice { key: "a".into(), outermost: false }),
        );
    }

    #[test]
    fn depth_has_a_limit() {
        check("[[[[1]]]]", json!([[[[1]]]]), None);
        check("[[[[[1]]],2]]", json!([[[[null]], 2]]), Some(Fault::TooDeep { max: 4 }));
        let max = REQUEST_DEPTH_MAX;
        let nested = |levels: usize| format!("{{\"p\":{}1{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert_eq!(read(nested(max).as_bytes(), max).unwrap().fault, None);
        for levels in [max + 1, 100_000] {
            assert_eq!(read(nested(levels).as_bytes(), max).unwrap().fault, Some(Fault::TooDeep { max }));
        }
    }

    #[test]
    fn broken_text_does_not_hide_the_rest() {
        check(r#"{"id":1,"t":"a\ud800b"}"#, json!({"id": 1, "t": "a\u{fffd}b"}), Some(Fault::BrokenText));
        check(r#"{"n":1e999,"id":1}"#, json!({"n": 0, "id": 1}), Some(Fault::HugeNumber));
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        for text in ["", "{", "{\"a\":}", "nul", "{} {}", "\"\\x\"", "\"a\u{1}\"", "[\"\\ud800\",}"] {
            assert!(read(text.as_bytes(), 32).is_err(), "{text}");
        }
    }
}
