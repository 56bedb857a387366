//! A figure, what it should be, and whether it is. A figure without a target is told all the same.

use serde_json::{Map, Value, json};

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
    /// Nothing is demanded.
    None,
}

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Times something else of the same run.
    Times,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Bytes.
    Bytes,
    /// Per cent of one processor.
    Percent,
    /// A number of things.
    Count,
    /// Things in a second.
    PerSecond,
}

impl Unit {
    /// As it is written in JSON.
    fn word(self) -> &'static str {
        match self {
            Unit::Times => "x",
            Unit::Millis => "ms",
            Unit::Micros => "us",
            Unit::Bytes => "bytes",
            Unit::Percent => "percent",
            Unit::Count => "count",
            Unit::PerSecond => "per_second",
        }
    }

    /// As it stands behind a figure in a table.
    fn mark(self) -> &'static str {
        match self {
            Unit::Times => "×",
            Unit::Millis => " ms",
            Unit::Micros => " µs",
            Unit::Bytes => " bytes",
            Unit::Percent => " %",
            Unit::Count => "",
            Unit::PerSecond => " /s",
        }
    }
}

/// A figure and what it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    /// What, and at which size.
    pub(super) name: String,
    /// The figure, rounded as it is shown.
    pub(super) value: f64,
    unit: Unit,
    target: Target,
}

impl Bar {
    /// A figure with a target.
    pub(super) fn new(name: impl Into<String>, value: f64, unit: Unit, target: Target) -> Self {
        Self { name: name.into(), value: rounded(value), unit, target }
    }

    /// A multiple that should be so much at most.
    pub(super) fn at_most(name: impl Into<String>, value: f64, most: f64) -> Self {
        Self::new(name, value, Unit::Times, Target::AtMost(most))
    }

    /// A multiple that should be so much at least.
    pub(super) fn at_least(name: impl Into<String>, value: f64, least: f64) -> Self {
        Self::new(name, value, Unit::Times, Target::AtLeast(least))
    }

    /// A figure of which nothing is demanded.
    pub(super) fn figure(name: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self::new(name, value, unit, Target::None)
    }

    /// Whether it is as it should be; none when nothing is demanded.
    pub(super) fn met(&self) -> Option<bool> {
        match self.target {
            Target::AtMost(most) => Some(self.value <= most),
            Target::AtLeast(least) => Some(self.value >= least),
            Target::None => None,
        }
    }

    /// The figure in words.
    pub(super) fn value_words(&self) -> String {
        format!("{}{}", number(self.value), self.unit.mark())
    }

    /// The target in words.
    pub(super) fn target_words(&self) -> String {
        match self.target {
            Target::AtMost(most) => format!("≤ {most}{}", self.unit.mark()),
            Target::AtLeast(least) => format!("≥ {least}{}", self.unit.mark()),
            Target::None => String::new(),
        }
    }

    /// Its fields.
    pub(super) fn json(&self) -> Value {
        let mut fields = Map::from_iter([
            ("name".to_owned(), json!(self.name)),
            ("value".to_owned(), json!(self.value)),
            ("unit".to_owned(), json!(self.unit.word())),
        ]);
        if let Target::AtMost(target) | Target::AtLeast(target) = self.target {
            let bound = if matches!(self.target, Target::AtMost(_)) { "at_most" } else { "at_least" };
            fields.insert("target".to_owned(), json!(target));
            fields.insert("bound".to_owned(), json!(bound));
            fields.insert("met".to_owned(), json!(self.met()));
        }
        Value::Object(fields)
    }
}

/// One figure divided by another.
pub(super) fn ratio(of: f64, to: f64) -> f64 {
    of / to.max(f64::EPSILON)
}

/// Two places, and four for what is less than one tenth.
fn rounded(value: f64) -> f64 {
    let places = if value.abs() < 0.1 { 10_000.0 } else { 100.0 };
    (value * places).round() / places
}

fn number(value: f64) -> String {
    if value == 0.0 || value.abs() >= 1000.0 {
        format!("{value:.0}")
    } else if value.abs() < 0.1 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_on_the_right_side_of_its_target() {
        let cases = [
            (Bar::at_most("a", 5.004, 5.0), Some(true), "5.00×", "≤ 5×"),
            (Bar::at_most("a", 5.006, 5.0), Some(false), "5.01×", "≤ 5×"),
            (Bar::at_least("a", 0.4, 0.4), Some(true), "0.40×", "≥ 0.4×"),
            (Bar::at_least("a", 0.39, 0.4), Some(false), "0.39×", "≥ 0.4×"),
            (Bar::new("a", 0.00512, Unit::Percent, Target::AtMost(0.01)), Some(true), "0.0051 %", "≤ 0.01 %"),
            (Bar::figure("a", 12_345.6, Unit::PerSecond), None, "12346 /s", ""),
        ];
        for (bar, met, value, target) in cases {
            assert_eq!((bar.met(), &*bar.value_words(), &*bar.target_words()), (met, value, target));
        }
    }
}
