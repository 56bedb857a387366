//! Free text with rules: subjects, descriptions, notes. Parsing is the only way in.
//!
//! Bytes are kept as they came (docs/rules.md 1). What is refused is refused on every
//! store alike: NUL everywhere, control characters and invisible text in a subject.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::limits;

/// Why a text is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// No text at all, or only white space.
    #[error("is empty")]
    Empty,
    /// Nothing a reader could see: only white space and invisible characters.
    #[error("has no visible character")]
    Invisible,
    /// More bytes than the limit.
    #[error("is {actual} bytes long; at most {max} are kept")]
    TooLong {
        /// The limit, in bytes.
        max: usize,
        /// What was given, in bytes.
        actual: usize,
    },
    /// More characters than the limit.
    #[error("has {actual} characters; at most {max} are kept")]
    TooManyChars {
        /// The limit, in characters.
        max: usize,
        /// What was given, in characters.
        actual: usize,
    },
    /// A control character where none may stand.
    #[error("has the control character U+{code:04X} at byte {at}")]
    Control {
        /// The character.
        code: u32,
        /// Its byte offset.
        at: usize,
    },
    /// A character in a name that shows nothing, or shows the rest in another order.
    #[error("has U+{code:04X} at byte {at}, which nobody sees: write the name without it")]
    Hidden {
        /// The character.
        code: u32,
        /// Its byte offset.
        at: usize,
    },
    /// Characters outside the allowed set.
    #[error("{rule}")]
    Characters {
        /// What is allowed.
        rule: &'static str,
    },
}

/// One line that says what a task is: 1 to 256 bytes, no control characters, something visible.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subject(String);

/// Free text of any length that the document can hold; no NUL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Body(String);

/// A remark or a result: 1 byte to 16 KiB, no NUL, something visible.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Note(String);

impl Subject {
    /// Checks a subject.
    ///
    /// # Errors
    /// [`TextError`] when it is empty, invisible, longer than 256 bytes or has control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        not_blank(&text)?;
        within(&text, limits::SUBJECT_BYTES_MAX)?;
        no_control(&text)?;
        visible(&text)?;
        Ok(Self(text))
    }
}

impl Body {
    /// Checks a description.
    ///
    /// # Errors
    /// [`TextError::Control`] for NUL, [`TextError::TooLong`] beyond the largest document.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        within(&text, limits::MESSAGE_KIB_MAX * 1024)?;
        no_nul(&text)?;
        Ok(Self(text))
    }
}

impl Note {
    /// Checks a note.
    ///
    /// # Errors
    /// [`TextError`] when it is empty, invisible, longer than 16 KiB or has NUL.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        not_blank(&text)?;
        within(&text, limits::NOTE_BYTES_MAX)?;
        no_nul(&text)?;
        visible(&text)?;
        Ok(Self(text))
    }
}

macro_rules! text_type {
    ($($name:ident),*) => {$(
        impl $name {
            /// The text.
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

        impl TryFrom<String> for $name {
            type Error = TextError;

            fn try_from(text: String) -> Result<Self, TextError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> String {
                text.0
            }
        }
    )*};
}

text_type!(Subject, Body, Note);

pub(crate) fn not_blank(text: &str) -> Result<(), TextError> {
    if text.trim().is_empty() { Err(TextError::Empty) } else { Ok(()) }
}

pub(crate) fn within(text: &str, max: usize) -> Result<(), TextError> {
    if text.len() > max {
        return Err(TextError::TooLong { max, actual: text.len() });
    }
    Ok(())
}

/// Refuses C0, DEL, C1, and the line and paragraph separators.
pub(crate) fn no_control(text: &str) -> Result<(), TextError> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(());
    }
    refuse(text, |c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

pub(crate) fn no_nul(text: &str) -> Result<(), TextError> {
    match text.as_bytes().iter().position(|byte| *byte == 0) {
        Some(at) => Err(TextError::Control { code: 0, at }),
        None => Ok(()),
    }
}

fn refuse(text: &str, bad: impl Fn(char) -> bool) -> Result<(), TextError> {
    match text.char_indices().find(|(_, c)| bad(*c)) {
        Some((at, c)) => Err(TextError::Control { code: u32::from(c), at }),
        None => Ok(()),
    }
}

/// A name as it is kept: composed (NFC), so that what looks the same is the same, and of characters that are seen.
/// Two scripts may still have letters that look alike; nothing here tells them apart.
pub(crate) fn name(text: &str, max: usize) -> Result<String, TextError> {
    not_blank(text)?;
    let text: String = if text.is_ascii() { text.to_owned() } else { text.nfc().collect() };
    within(&text, max)?;
    no_control(&text)?;
    match text.char_indices().find(|(_, c)| is_hidden(*c)) {
        Some((at, c)) => Err(TextError::Hidden { code: u32::from(c), at }),
        None => Ok(text),
    }
}

/// Whether a character has no place in a name: control characters, blanks other than the plain space, what renders
/// as nothing or turns the text around, and characters of private use, which look different everywhere.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    (c != ' ' && is_blank(c)) || matches!(u32::from(c), 0xE000..=0xF8FF | 0xF_0000..=0x10_FFFF)
}

/// Requires a character that leaves a mark.
pub(crate) fn visible(text: &str) -> Result<(), TextError> {
    if text.chars().any(|c| !is_blank(c)) { Ok(()) } else { Err(TextError::Invisible) }
}

/// White space, and the characters that render as nothing (Unicode `Default_Ignorable_Code_Point` and the
/// blank glyphs U+2800, U+115F, U+1160, U+3164, U+FFA0).
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(u32::from(c),
            0x00AD | 0x034F | 0x061C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F
            | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164
            | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3
            | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_limits_hold_at_the_edge() {
        assert!(Subject::new("a".repeat(256)).is_ok());
        assert_eq!(Subject::new("a".repeat(257)), Err(TextError::TooLong { max: 256, actual: 257 }));
        assert_eq!(Subject::new(""), Err(TextError::Empty));
        assert_eq!(Subject::new("   "), Err(TextError::Empty));
    }

    #[test]
    fn a_subject_must_be_seen() {
        for text in ["\u{200B}", "\u{2800}", "\u{FEFF}\u{200D}", "\u{3164}", " \u{2060} "] {
            assert_eq!(Subject::new(text), Err(TextError::Invisible), "{text:?}");
        }
        assert!(Subject::new("\u{200B}x").is_ok());
    }

    #[test]
    fn control_characters_are_named() {
        assert_eq!(Subject::new("a\nb"), Err(TextError::Control { code: 10, at: 1 }));
        assert_eq!(Subject::new("é\u{1b}[2J"), Err(TextError::Control { code: 27, at: 2 }));
        assert_eq!(Subject::new("a\u{2028}b"), Err(TextError::Control { code: 0x2028, at: 1 }));
        assert_eq!(Body::new("a\0"), Err(TextError::Control { code: 0, at: 1 }));
        assert!(Body::new("line\n\tline\u{1b}").is_ok());
    }

    #[test]
    fn notes_have_a_limit() {
        assert!(Note::new("n".repeat(limits::NOTE_BYTES_MAX)).is_ok());
        assert!(Note::new("n".repeat(limits::NOTE_BYTES_MAX + 1)).is_err());
    }
}
