//! Messages: what is sent, and what is read. A memory is a message on a memory channel; each of its revisions is a
//! message of its own, and the memory is known by the number of the first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bus::channel::ChannelName;
use crate::limits;
use crate::name::{Identity, Label};
use crate::text::{TextError, no_control, no_nul, not_blank, within};
use crate::time::Timestamp;

/// The one-line summary of a message: 1 to 200 characters, no line break, trimmed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Headline(String);

/// The text of a message: not empty, no NUL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Content(String);

/// What a message is about, as its sender says: at most 128 bytes, no control characters; may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sort(String);

/// Free data of a message: text to text.
pub type Metadata = BTreeMap<String, String>;

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The text.
    pub content: Content,
    /// What it is about.
    pub sort: Sort,
    /// Its summary.
    pub subject: Option<Headline>,
    /// The message it answers.
    pub reply_to: Option<u64>,
    /// Free data.
    pub metadata: Option<Metadata>,
    /// Its tags: small letters, sorted, each once.
    pub tags: Vec<Label>,
}

/// How a memory is changed: content, sort and metadata are replaced, what is `None` elsewhere is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The new text.
    pub content: Content,
    /// What it is about from now on.
    pub sort: Sort,
    /// `Some(None)` clears it.
    pub subject: Option<Option<Headline>>,
    /// Free data from now on; none drops it.
    pub metadata: Option<Metadata>,
    /// `Some` replaces them, with none at all too.
    pub tags: Option<Vec<Label>>,
}

/// A revision of a memory, or of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemoryRef {
    /// The number of its first message.
    pub id: u64,
    /// 1, 2, 3 …
    pub revision: u64,
}

/// A message as it is kept. Its JSON form is that of every surface (reference A.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its place in the order of the whole store.
    pub seq: u64,
    /// Where it was sent.
    pub channel: ChannelName,
    /// Who sent it; none, written as the empty text, for the maintenance tick.
    #[serde(with = "sender")]
    pub sender: Option<Identity>,
    /// The sender's context.
    pub context: String,
    /// When, in Unix ms.
    pub created_at: Timestamp,
    /// What it is about.
    #[serde(rename = "type", default, skip_serializing_if = "Sort::is_empty")]
    pub sort: Sort,
    /// Its summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Headline>,
    /// Its text; empty only in the note that something was deleted.
    pub content: String,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<u64>,
    /// Free data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Which memory or task it is a revision of, and the how-manieth.
    #[serde(flatten, with = "memory", default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryRef>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Label>,
    /// Those of its tags that the receiver follows, when it came by tags only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched_tags: Vec<Label>,
}

impl Headline {
    /// Checks a summary and takes the white space off its ends; empty is none.
    ///
    /// # Errors
    /// [`TextError`] when it has a line break or another control character, or more than 200 characters.
    pub fn new(text: &str) -> Result<Option<Self>, TextError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        no_control(text)?;
        let actual = text.chars().count();
        if actual > limits::HEADLINE_CHARS_MAX {
            return Err(TextError::TooManyChars { max: limits::HEADLINE_CHARS_MAX, actual });
        }
        Ok(Some(Self(text.to_owned())))
    }
}

impl Content {
    /// Checks a text.
    ///
    /// # Errors
    /// [`TextError`] when it is empty or has NUL.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        not_blank(&text)?;
        no_nul(&text)?;
        Ok(Self(text))
    }
}

impl Sort {
    /// Checks it.
    ///
    /// # Errors
    /// [`TextError`] when it is longer than 128 bytes or has control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        within(&text, limits::SORT_BYTES_MAX)?;
        no_control(&text)?;
        Ok(Self(text))
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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

        impl From<$name> for String {
            fn from(text: $name) -> String {
                text.0
            }
        }
    )*};
}

text_type!(Headline, Content, Sort);

impl TryFrom<String> for Headline {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        Self::new(&text)?.ok_or(TextError::Empty)
    }
}

impl TryFrom<String> for Content {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        Self::new(text)
    }
}

impl TryFrom<String> for Sort {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        Self::new(text)
    }
}

/// Nobody is written as the empty text.
mod sender {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::name::Identity;

    pub(super) fn serialize<S: Serializer>(sender: &Option<Identity>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(sender.as_ref().map_or("", Identity::as_str))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Identity>, D::Error> {
        let text = String::deserialize(from)?;
        if text.is_empty() { Ok(None) } else { Identity::new(text).map(Some).map_err(D::Error::custom) }
    }
}

/// Two fields beside the others: `memory_id` and `revision`.
mod memory {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::MemoryRef;

    #[derive(Serialize, Deserialize)]
    struct Fields {
        #[serde(default)]
        memory_id: Option<u64>,
        #[serde(default)]
        revision: Option<u64>,
    }

    pub(super) fn serialize<S: Serializer>(memory: &Option<MemoryRef>, to: S) -> Result<S::Ok, S::Error> {
        let (memory_id, revision) = (memory.map(|memory| memory.id), memory.map(|memory| memory.revision));
        Fields { memory_id, revision }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MemoryRef>, D::Error> {
        let Fields { memory_id, revision } = Fields::deserialize(from)?;
        Ok(memory_id.zip(revision).map(|(id, revision)| MemoryRef { id, revision }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_headline_is_one_trimmed_line() {
        assert_eq!(Headline::new("  hi ").unwrap().unwrap().as_str(), "hi");
        assert_eq!(Headline::new("  "), Ok(None));
        assert!(Headline::new("a\nb").is_err());
        assert!(Headline::new(&"ä".repeat(limits::HEADLINE_CHARS_MAX)).is_ok());
        assert_eq!(
            Headline::new(&"ä".repeat(limits::HEADLINE_CHARS_MAX + 1)),
            Err(TextError::TooManyChars { max: 200, actual: 201 })
        );
    }

    #[test]
    fn a_sort_is_a_short_line_or_nothing() {
        assert!(Sort::new("").unwrap().is_empty());
        assert!(Sort::new("x".repeat(limits::SORT_BYTES_MAX)).is_ok());
        assert!(Sort::new("x".repeat(limits::SORT_BYTES_MAX + 1)).is_err() && Sort::new("a\nb").is_err());
    }

    #[test]
    fn content_says_something() {
        assert!(Content::new("a\nb").is_ok());
        assert!(Content::new("").is_err() && Content::new(" \n").is_err() && Content::new("a\0").is_err());
    }

    #[test]
    fn a_message_has_the_fields_of_the_reference_and_no_empty_ones() {
        let plain = Message {
            seq: 7,
            channel: ChannelName::general(),
            sender: None,
            context: String::new(),
            created_at: Timestamp::from_millis(1000),
            sort: Sort::default(),
            subject: None,
            content: "hello".to_owned(),
            reply_to: None,
            metadata: None,
            memory: None,
            tags: Vec::new(),
            matched_tags: Vec::new(),
        };
        let expected = json!({
            "seq": 7, "channel": "general", "sender": "", "context": "", "created_at": 1000, "content": "hello"
        });
        assert_eq!(serde_json::to_value(&plain).unwrap(), expected);
        let full = Message {
            sender: Some(Identity::new("Zed").unwrap()),
            sort: Sort::new("report").unwrap(),
            memory: Some(MemoryRef { id: 3, revision: 2 }),
            tags: vec![Label::new("rust").unwrap()],
            ..plain.clone()
        };
        let written = serde_json::to_value(&full).unwrap();
        assert_eq!(
            (&written["memory_id"], &written["revision"], &written["type"]),
            (&json!(3), &json!(2), &json!("report"))
        );
        for message in [plain, full] {
            let text = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
        }
    }
}
