//! Times as a sidecar writes them. Seed 2 names the fields and not their form, so every usual one is read, and what is
//! written follows the form that is there: a Python `time.time()` stays seconds, an ISO text stays a text.

use serde_json::Value;
use taskbus_core::time::Timestamp;

/// A number below this is in seconds: as milliseconds it would lie before 1973.
const MILLIS_MIN: f64 = 1e11;

/// How a time is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// Unix milliseconds, a whole number. What we write where nothing is there to follow.
    #[default]
    Millis,
    /// Unix seconds, with a fraction.
    Seconds,
    /// RFC 3339.
    Text,
    /// RFC 3339 without an offset, meant as UTC.
    TextWithoutOffset,
}

/// Reads a time and its form; none for what is no time.
pub(super) fn read(value: &Value) -> Option<(Timestamp, Style)> {
    match value {
        Value::Number(number) => number_of(number.as_f64()?),
        Value::String(text) => {
            let time = Timestamp::from_rfc3339(text)?;
            let offset = text.ends_with(['Z', 'z']) || text.get(19..).is_some_and(|rest| rest.contains(['+', '-']));
            Some((time, if offset { Style::Text } else { Style::TextWithoutOffset }))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a time in milliseconds is a whole number below 2^53")]
fn number_of(number: f64) -> Option<(Timestamp, Style)> {
    let (millis, style) =
        if number.abs() < MILLIS_MIN { (number * 1000.0, Style::Seconds) } else { (number, Style::Millis) };
    (millis.abs() < 9e15).then(|| (Timestamp::from_millis(millis.round() as i64), style))
}

/// Writes a time in a form.
pub(super) fn write(time: Timestamp, style: Style) -> Value {
    match style {
        Style::Millis => time.as_millis().into(),
        #[expect(clippy::cast_precision_loss, reason = "a time in milliseconds is a whole number below 2^53")]
        Style::Seconds => (time.as_millis() as f64 / 1000.0).into(),
        Style::Text => time.to_string().into(),
        Style::TextWithoutOffset => time.to_string().trim_end_matches('Z').into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_usual_form_is_read_and_written_back() {
        let forms = [
            (json!(1_796_054_400_250_i64), Style::Millis),
            (json!(1_796_054_400.25), Style::Seconds),
            (json!("2026-11-30T16:00:00.25Z"), Style::Text),
            (json!("2026-11-30T16:00:00.25"), Style::TextWithoutOffset),
        ];
        for (value, style) in forms {
            let time = Timestamp::from_millis(1_796_054_400_250);
            assert_eq!((read(&value), write(time, style)), (Some((time, style)), value));
        }
        assert_eq!(read(&json!("2026-11-30T17:00:00.250+01:00")).unwrap().1, Style::Text);
        for other in [json!(null), json!(true), json!("soon"), json!([1]), json!(1e300)] {
            assert_eq!(read(&other), None, "{other}");
        }
    }
}
