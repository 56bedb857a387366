//! Points in time: Unix milliseconds, UTC, as integers. They print as RFC 3339, for people and for models.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in time, in Unix milliseconds UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Wraps Unix milliseconds.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Reads RFC 3339; a time without an offset is taken as UTC, since some writers leave it out.
    #[must_use]
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let zoned = text.parse::<jiff::Timestamp>();
        let time = zoned.or_else(|_| format!("{text}Z").parse::<jiff::Timestamp>()).ok()?;
        Some(Self(time.as_millisecond()))
    }

    /// Unix milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This time plus `millis`, saturating.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints_and_what_others_print() {
        let expected = Some(Timestamp::from_millis(1_796_054_400_250));
        for text in ["2026-11-30T16:00:00.25Z", "2026-11-30T17:00:00.250000+01:00", "2026-11-30T16:00:00.250"] {
            assert_eq!(Timestamp::from_rfc3339(text), expected, "{text}");
        }
        for text in ["", "Z", "yesterday", "2026-11-30", "1796054400250"] {
            assert_eq!(Timestamp::from_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn prints_rfc_3339_in_utc() {
        assert_eq!(Timestamp::from_millis(1_796_054_400_250).to_string(), "2026-11-30T16:00:00.25Z");
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), format!("{} ms", i64::MAX));
    }
}
