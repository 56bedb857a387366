//! Values of flags: durations, moments, pairs. What is wrong with one is an error of usage.

use taskbus_core::command::LeaseAsk;
use taskbus_core::limits;
use taskbus_core::task::Status;
use taskbus_core::time::Timestamp;

/// A lease as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lease {
    /// Until the session ends.
    None,
    /// For so many seconds.
    Seconds(u64),
}

impl From<Lease> for LeaseAsk {
    fn from(lease: Lease) -> Self {
        match lease {
            Lease::None => LeaseAsk::Clear,
            Lease::Seconds(seconds) => LeaseAsk::Seconds(seconds),
        }
    }
}

/// A point in time as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// None any more.
    None,
    /// So many seconds from the time of the call, by the store's clock.
    In(u64),
    /// Then.
    At(Timestamp),
}

/// `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The key.
    pub(crate) key: String,
    /// The value; empty to remove the key.
    pub(crate) value: String,
}

/// `30m`, `1h30m`, `none`.
pub(crate) fn lease(text: &str) -> Result<Lease, String> {
    if text == "none" { Ok(Lease::None) } else { seconds(text).map(Lease::Seconds) }
}

/// `2h`, `2026-12-01T08:00:00Z`, `none`.
pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    if text == "none" {
        return Ok(Moment::None);
    }
    if let Ok(seconds) = duration(text) {
        return Ok(Moment::In(seconds));
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| {
        "use a time from now such as 2h, or one with its offset such as 2026-12-01T08:00:00Z".to_owned()
    })?;
    Ok(Moment::At(Timestamp::from_millis(time.as_millisecond())))
}

/// A duration from a second to a week, in seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    match duration(text)? {
        seconds @ 1..=limits::LEASE_SECONDS_MAX => Ok(seconds),
        _ => Err("it must be from 1s to 7d".to_owned()),
    }
}

fn duration(text: &str) -> Result<u64, String> {
    let wrong = || "use a number and its unit, such as 45s, 30m, 2h or 1h30m".to_owned();
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = rest[digits..].chars().next().and_then(unit_seconds).ok_or_else(wrong)?;
        total = number.checked_mul(unit).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = &rest[digits + 1..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

fn unit_seconds(unit: char) -> Option<u64> {
    match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        _ => None,
    }
}

/// A status by its word.
pub(crate) fn status(text: &str) -> Result<Status, String> {
    Status::from_word(text).ok_or_else(|| "it is pending, in_progress or completed".to_owned())
}

/// `KEY=VALUE`.
pub(crate) fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok(Pair { key: key.to_owned(), value: value.to_owned() }),
        _ => Err("use KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_have_units() {
        for (text, expected) in [("45s", 45), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("7d", 604_800)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "0s",
            "8d",
            "60",
            "h",
            "1.5h",
            "-1h",
            "1 h",
            "1w",
            "1é",
            "99999999999999999999s",
            "9223372036854775807d",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_relative_or_carry_their_offset() {
        assert_eq!(moment("2h"), Ok(Moment::In(7200)));
        assert_eq!(moment("none"), Ok(Moment::None));
        let at = |text| moment(text).unwrap();
        assert_eq!(at("2026-12-01T08:00:00Z"), at("2026-12-01T13:30:00+05:30"));
        for text in ["2026-12-01", "2026-12-01T08:00:00", "tomorrow", ""] {
            assert!(moment(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pairs_split_at_the_first_sign() {
        assert_eq!(pair("a=b=c"), Ok(Pair { key: "a".to_owned(), value: "b=c".to_owned() }));
        assert_eq!(pair("a="), Ok(Pair { key: "a".to_owned(), value: String::new() }));
        assert!(pair("=b").is_err() && pair("a").is_err());
    }

    proptest! {
        #[test]
        fn no_value_is_too_odd(text in any::<String>(), number in any::<u64>(), unit in "[smhdµé]{0,3}") {
            for text in [text, format!("{number}{unit}")] {
                let _judged = (lease(&text), moment(&text), seconds(&text), status(&text), pair(&text));
            }
        }
    }
}
