//! Which files a task touches, as globs, and whether two tasks could touch the same one.
//!
//! `*` is any run without `/`, `**` any run, `?` one character but `/`, `[…]` one of a set. The overlap test
//! asks whether some path matches both; where it cannot know (a set), it answers yes, so that two workers are
//! kept apart rather than let loose on one file (docs/rules.md 7).

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::text::{TextError, no_control, not_blank, within};

/// A relative path pattern: 1 to 512 bytes, no control characters, no leading `/`, no `..` part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathGlob(String);

impl PathGlob {
    /// Checks a pattern.
    ///
    /// # Errors
    /// [`TextError`] when it is empty, too long, absolute, has a `..` part, control characters or an open `[`.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        not_blank(&text)?;
        within(&text, limits::PATH_BYTES_MAX)?;
        no_control(&text)?;
        if text.starts_with('/') || text.split('/').any(|part| part == "..") {
            return Err(TextError::Characters { rule: "is no relative path: leave out the leading '/' and '..'" });
        }
        if tokens(&text).is_none() {
            return Err(TextError::Characters { rule: "has a '[' without its ']'" });
        }
        Ok(Self(text))
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether some path could match both patterns.
    #[must_use]
    pub fn overlaps(&self, other: &PathGlob) -> bool {
        let (a, b) = (self.tokens(), other.tokens());
        let mut seen = HashSet::new();
        let mut todo = vec![(0, 0)];
        while let Some((i, j)) = todo.pop() {
            if i == a.len() && j == b.len() {
                return true;
            }
            if seen.insert((i, j)) {
                advance(&a, &b, (i, j), &mut todo);
            }
        }
        false
    }

    fn tokens(&self) -> Vec<Token> {
        tokens(self.0.strip_prefix("./").unwrap_or(&self.0)).unwrap_or_default()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Exactly(char),
    /// One character that is not `/`.
    One,
    /// Any run of characters that are not `/`.
    Run,
    /// Any run of characters.
    Deep,
}

impl Token {
    fn repeats(self) -> bool {
        matches!(self, Token::Run | Token::Deep)
    }

    /// Whether both can stand for one and the same character.
    fn meets(self, other: Token) -> bool {
        match (self, other) {
            (Token::Deep, _) | (_, Token::Deep) => true,
            (Token::Exactly(a), Token::Exactly(b)) => a == b,
            (Token::Exactly(c), _) | (_, Token::Exactly(c)) => c != '/',
            _ => true,
        }
    }
}

/// Pushes the pairs of positions reachable from one pair: a run may end, or both sides take one character.
fn advance(a: &[Token], b: &[Token], (i, j): (usize, usize), todo: &mut Vec<(usize, usize)>) {
    let (left, right) = (a.get(i).copied(), b.get(j).copied());
    if left.is_some_and(Token::repeats) {
        todo.push((i + 1, j));
    }
    if right.is_some_and(Token::repeats) {
        todo.push((i, j + 1));
    }
    if let (Some(left), Some(right)) = (left, right)
        && left.meets(right)
    {
        todo.push((i + usize::from(!left.repeats()), j + usize::from(!right.repeats())));
    }
}

/// The tokens of a pattern; `None` when a set is not closed. `**/` also matches nothing.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (token, length) = match c {
            '*' if rest.starts_with("**/") => (Token::Deep, 3),
            '*' if rest.starts_with("**") => (Token::Deep, 2),
            '*' => (Token::Run, 1),
            '?' => (Token::One, 1),
            '[' => (Token::One, rest.find(']')? + 1),
            c => (Token::Exactly(c), c.len_utf8()),
        };
        found.push(token);
        rest = &rest[length..];
    }
    Some(found)
}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for PathGlob {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        Self::new(text)
    }
}

impl From<PathGlob> for String {
    fn from(glob: PathGlob) -> String {
        glob.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, overlaps: bool) {
        let (a, b) = (PathGlob::new(a).unwrap(), PathGlob::new(b).unwrap());
        assert_eq!(a.overlaps(&b), overlaps, "{a} and {b}");
        assert_eq!(b.overlaps(&a), overlaps, "{b} and {a}");
    }

    #[test]
    fn overlap_is_found_and_absence_is_too() {
        check("src/main.rs", "src/main.rs", true);
        check("./src/main.rs", "src/main.rs", true);
        check("src/*.rs", "src/main.rs", true);
        check("src/*.rs", "src/a/main.rs", false);
        check("src/**", "src/a/b/c.rs", true);
        check("**/*.rs", "main.rs", true);
        check("docs/**", "src/**", false);
        check("a?c", "abc", true);
        check("a?c", "a/c", false);
        check("[ab]x", "cx", true);
        check("*a", "a*", true);
        check("src/*", "src", false);
    }

    #[test]
    fn hard_patterns_end_in_time() {
        let a = format!("{}b", "*a".repeat(200));
        let b = "a".repeat(500);
        check(&a, &b, false);
    }

    #[test]
    fn paths_outside_are_refused() {
        for bad in ["", "/etc/passwd", "../x", "a/../b", "a[b", "a\nb"] {
            assert!(PathGlob::new(bad).is_err(), "{bad:?}");
        }
        assert!(PathGlob::new("x".repeat(512)).is_ok() && PathGlob::new("x".repeat(513)).is_err());
    }
}
