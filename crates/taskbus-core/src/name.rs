//! Names: who acts, which list, which label. Each is a newtype, and parsing is the only way in.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::text::{TextError, name, no_control, not_blank, visible, within};

/// Who acts on the bus: 1 to 128 bytes, composed (NFC), of characters that are seen. A child's display name is
/// `parent/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Identity(String);

/// A task list: `tasks/<name>`, composed (NFC), of characters that are seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ListName(String);

/// What a worker must match to be handed a task: `[a-z0-9-]+(:[a-z0-9-]+)?`, 1 to 32 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Label(String);

/// An idempotency key, scoped to its sender: 1 to 256 bytes, no control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

impl Identity {
    /// Checks an identity.
    ///
    /// # Errors
    /// [`TextError`] when it is empty, too long, or has control or hidden characters.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        Ok(Self(name(&text.into(), limits::IDENTITY_BYTES_MAX)?))
    }

    /// The identity of which this one is a child, if any.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(parent, _)| parent)
    }
}

impl ListName {
    /// What every list name begins with.
    pub const PREFIX: &str = "tasks/";

    /// Checks a full list name, `tasks/<name>`.
    ///
    /// # Errors
    /// [`TextError`] when the prefix is missing, the bare word `tasks` stands alone, or the rest is no name.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        let Some(rest) = text.strip_prefix(Self::PREFIX) else {
            return Err(TextError::Characters { rule: "is no task list: a task list is named tasks/<name>" });
        };
        if rest.contains('/') {
            return Err(TextError::Characters { rule: "has a second '/': a task list is named tasks/<name>" });
        }
        Ok(Self(format!("{}{}", Self::PREFIX, name(rest, limits::LIST_NAME_BYTES_MAX)?)))
    }

    /// The list that a person names on a command line: `demo` and `tasks/demo` are the same.
    ///
    /// # Errors
    /// As [`ListName::new`].
    pub fn from_short(text: &str) -> Result<Self, TextError> {
        if text.starts_with(Self::PREFIX) { Self::new(text) } else { Self::new(format!("{}{text}", Self::PREFIX)) }
    }

    /// The part after `tasks/`.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.strip_prefix(Self::PREFIX).unwrap_or(&self.0)
    }
}

impl Label {
    /// Checks a label.
    ///
    /// # Errors
    /// [`TextError`] when it does not match `[a-z0-9-]+(:[a-z0-9-]+)?` or is longer than 32 characters.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        not_blank(&text)?;
        within(&text, limits::LABEL_CHARS_MAX)?;
        let mut parts = text.split(':');
        let words = (parts.next().is_some_and(is_word), parts.next().is_none_or(is_word), parts.next().is_none());
        if words != (true, true, true) {
            return Err(TextError::Characters { rule: "is no label: use [a-z0-9-]+ with at most one ':' inside" });
        }
        Ok(Self(text))
    }
}

fn is_word(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

impl Key {
    /// Checks an idempotency key.
    ///
    /// # Errors
    /// [`TextError`] when it is empty, too long, or has control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        not_blank(&text)?;
        within(&text, limits::KEY_BYTES_MAX)?;
        no_control(&text)?;
        visible(&text)?;
        Ok(Self(text))
    }
}

macro_rules! name_type {
    ($($name:ident),*) => {$(
        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = TextError;

            fn try_from(text: String) -> Result<Self, TextError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    )*};
}

name_type!(Identity, ListName, Label, Key);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_names_need_the_prefix_and_one_part() {
        assert_eq!(ListName::new("tasks/work").unwrap().short(), "work");
        for bad in ["tasks", "tasks/", "tasks/a/b", "work", "tasks/ ", "tasks/a\nb"] {
            assert!(ListName::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(ListName::from_short("demo").unwrap(), ListName::from_short("tasks/demo").unwrap());
    }

    #[test]
    fn names_that_look_the_same_are_the_same() {
        for (given, kept) in [("Zoe\u{308}", "Zo\u{eb}"), ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"), ("a b", "a b")] {
            assert_eq!(Identity::new(given).unwrap().as_str(), kept);
            assert_eq!(ListName::from_short(given).unwrap().short(), kept);
        }
        assert!(Identity::new("e\u{301}".repeat(64)).is_ok(), "the limit is on what is kept");
    }

    #[test]
    fn names_have_no_characters_that_nobody_sees() {
        for hidden in
            ["\u{200b}", "\u{202e}", "\u{2066}", "\u{feff}", "\u{ad}", "\u{a0}", "\u{3000}", "\u{e0041}", "\u{e000}"]
        {
            for text in [format!("Zed{hidden}"), format!("{hidden}Zed"), format!("Z{hidden}ed")] {
                assert!(matches!(Identity::new(&*text), Err(TextError::Hidden { .. })), "{text:?}");
                assert!(matches!(ListName::from_short(&text), Err(TextError::Hidden { .. })), "{text:?}");
            }
        }
        assert!(Key::new("Z\u{200b}ed").is_ok(), "a key is compared and never shown");
    }

    #[test]
    fn labels_follow_their_grammar() {
        for good in ["rust", "env:prod", "a-1", &"x".repeat(32)] {
            assert!(Label::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "Rust", "a:b:c", ":a", "a:", "a b", &"x".repeat(33)] {
            assert!(Label::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn identities_have_a_limit_and_a_parent() {
        assert!(Identity::new("a".repeat(128)).is_ok());
        assert!(Identity::new("a".repeat(129)).is_err());
        assert_eq!(Identity::new("Zed/impl").unwrap().parent(), Some("Zed"));
        assert_eq!(Identity::new("Zed").unwrap().parent(), None);
    }
}
