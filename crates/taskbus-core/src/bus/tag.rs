//! Tags of messages, and the patterns by which an identity follows them.
//!
//! A tag has the grammar of a [`Label`]. A pattern is a tag, or 1 to 32 characters of one and a `*`; it matches by a
//! range of bytes, so that an index of tags can answer it (reference M, `TestMatchTag`; N 20).

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::name::Label;
use crate::refusal::{Invalid, Refusal};
use crate::text::{TextError, not_blank, within};

/// A tag or the beginning of one and `*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TagPattern(String);

/// The patterns that one subscription wants together: a message matches when every pattern matches one of its tags.
/// Sorted, each once, 1 to 10.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TagSet(BTreeSet<TagPattern>);

impl TagPattern {
    /// Checks a pattern; capital letters become small ones.
    ///
    /// # Errors
    /// [`TextError`] when it is neither a tag nor the beginning of one with a single `*` at its end.
    pub fn new(text: &str) -> Result<Self, TextError> {
        let text = text.trim().to_ascii_lowercase();
        let Some(prefix) = text.strip_suffix('*') else {
            return Ok(Self(Label::new(text)?.into()));
        };
        not_blank(prefix)?;
        within(prefix, limits::LABEL_CHARS_MAX)?;
        // A beginning may end inside a tag, right behind its colon too.
        Label::new(prefix.strip_suffix(':').unwrap_or(prefix))?;
        if prefix.matches(':').count() > 1 {
            return Err(TextError::Characters { rule: "has two ':'; a tag has at most one" });
        }
        Ok(Self(text))
    }

    /// The tags it matches: from the first text to the second, as bytes, both included.
    #[must_use]
    pub fn range(&self) -> (String, String) {
        match self.0.strip_suffix('*') {
            Some(prefix) => (prefix.to_owned(), format!("{prefix}~")),
            None => (self.0.clone(), self.0.clone()),
        }
    }

    /// Whether it matches a tag.
    #[must_use]
    pub fn matches(&self, tag: &Label) -> bool {
        let (low, high) = self.range();
        (low.as_str()..=high.as_str()).contains(&tag.as_str())
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TagSet {
    /// Checks the patterns of a subscription.
    ///
    /// # Errors
    /// [`Refusal`] when one is malformed, or when there are none or more than 10.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, Refusal> {
        let set = patterns.iter().map(|text| TagPattern::new(text.as_ref())).collect::<Result<BTreeSet<_>, _>>();
        let set = set.map_err(|error| Invalid::Text { field: "tags", error })?;
        check_count(set.len())?;
        if set.is_empty() {
            return Err(Invalid::Text { field: "tags", error: TextError::Empty }.into());
        }
        Ok(Self(set))
    }

    /// The patterns, in order.
    pub fn patterns(&self) -> impl Iterator<Item = &TagPattern> {
        self.0.iter()
    }

    /// The patterns joined by commas: what a set is known by.
    #[must_use]
    pub fn key(&self) -> String {
        self.0.iter().map(TagPattern::as_str).collect::<Vec<_>>().join(",")
    }

    /// Whether every pattern matches one of these tags.
    #[must_use]
    pub fn matches(&self, tags: &[Label]) -> bool {
        self.0.iter().all(|pattern| tags.iter().any(|tag| pattern.matches(tag)))
    }

    /// Those of a message's tags that its patterns match.
    pub fn matched<'a>(&'a self, tags: &'a [Label]) -> impl Iterator<Item = &'a Label> {
        tags.iter().filter(|tag| self.0.iter().any(|pattern| pattern.matches(tag)))
    }
}

impl fmt::Display for TagPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for TagPattern {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        Self::new(&text)
    }
}

impl From<TagPattern> for String {
    fn from(pattern: TagPattern) -> String {
        pattern.0
    }
}

/// The tags of a message as they are kept: in small letters, sorted, each once.
///
/// # Errors
/// [`Refusal`] when one is malformed or there are more than 10.
pub fn normalize<S: AsRef<str>>(tags: &[S]) -> Result<Vec<Label>, Refusal> {
    let tags = tags.iter().map(|tag| Label::new(tag.as_ref().trim().to_ascii_lowercase()));
    let tags = tags.collect::<Result<BTreeSet<_>, _>>().map_err(|error| Invalid::Text { field: "tags", error })?;
    check_count(tags.len())?;
    Ok(tags.into_iter().collect())
}

/// The patterns of a filter as they are kept; any of them may match.
///
/// # Errors
/// [`Refusal`] when one is malformed or there are more than 10.
pub fn normalize_patterns<S: AsRef<str>>(patterns: &[S]) -> Result<Vec<TagPattern>, Refusal> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    Ok(TagSet::new(patterns)?.0.into_iter().collect())
}

fn check_count(actual: usize) -> Result<(), Refusal> {
    if actual > limits::TAGS_MAX {
        return Err(Invalid::TooMany { field: "tags", max: limits::TAGS_MAX, actual }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(texts: &[&str]) -> Vec<Label> {
        normalize(texts).unwrap()
    }

    #[test]
    fn tags_are_small_sorted_and_each_once() {
        let words: Vec<String> = tags(&["B", "env:Prod", "b", "a"]).iter().map(ToString::to_string).collect();
        assert_eq!(words, ["a", "b", "env:prod"]);
        assert!(normalize(&["a b"]).is_err());
        let many: Vec<String> = (0..=limits::TAGS_MAX).map(|n| format!("t{n}")).collect();
        assert!(normalize(&many[..limits::TAGS_MAX]).is_ok());
        assert!(normalize(&many).is_err());
    }

    #[test]
    fn a_pattern_is_a_tag_or_its_beginning() {
        for good in ["env", "env:prod", "env*", "env:*", "E*", &format!("{}*", "x".repeat(32))] {
            assert!(TagPattern::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "*", "a*b", "a**", "a b*", "a:b:*", ":*", &format!("{}*", "x".repeat(33))] {
            assert!(TagPattern::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_beginning_matches_by_its_bytes() {
        let matches = |pattern: &str, tag: &str| TagPattern::new(pattern).unwrap().matches(&Label::new(tag).unwrap());
        assert!(matches("env*", "env") && matches("env*", "env:prod") && matches("env*", "environment"));
        assert!(matches("env:*", "env:prod") && !matches("env:*", "env") && !matches("env:*", "envy"));
        assert!(matches("env", "env") && !matches("env", "env:prod"));
    }

    #[test]
    fn a_set_wants_every_pattern() {
        let set = TagSet::new(&["rust", "env*", "RUST"]).unwrap();
        assert_eq!(set.key(), "env*,rust");
        assert!(set.matches(&tags(&["rust", "env:prod", "x"])));
        assert!(!set.matches(&tags(&["rust", "x"])));
        let found = tags(&["rust", "env:prod", "x"]);
        let matched: Vec<&str> = set.matched(&found).map(Label::as_str).collect();
        assert_eq!(matched, ["env:prod", "rust"]);
        assert!(TagSet::new::<&str>(&[]).is_err());
    }
}
