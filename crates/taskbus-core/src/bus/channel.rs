//! Channels: names, and the kind that a name implies (reference D, "Channels, retention, capacity").

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::name::{Identity, ListName};
use crate::text::{TextError, name};

/// The name of a channel of any sort: a plain name, `general/<name>`, `memory/<name>`, `tasks/<name>`, or the inbox
/// `dm/<identity>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChannelName(String);

/// What a channel keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// Messages that age out.
    Ordinary,
    /// Memories, which are revised and found by search. A task list is of this kind.
    Memory,
}

/// The channel that everybody may talk in.
const GENERAL: &str = "general";
/// The channel for memories of no project.
const MEMORY: &str = "memory";
/// What every inbox name begins with.
const INBOX: &str = "dm/";
/// The prefixes of names, and the kind that each implies.
const PREFIXES: [(&str, ChannelKind); 3] =
    [("general/", ChannelKind::Ordinary), ("memory/", ChannelKind::Memory), (ListName::PREFIX, ChannelKind::Memory)];

impl ChannelKind {
    /// Every kind.
    pub const ALL: [ChannelKind; 2] = [ChannelKind::Ordinary, ChannelKind::Memory];

    /// The word used on every surface.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ChannelKind::Ordinary => "ordinary",
            ChannelKind::Memory => "memory",
        }
    }

    /// The kind with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl ChannelName {
    /// Checks a name that a caller may use: to send to, to read, to subscribe to. Whether the channel exists, and
    /// whether the caller may see it, is not said.
    ///
    /// # Errors
    /// [`TextError`] when it is empty, longer than 128 bytes behind its prefix, has control or hidden characters, has a `/`
    /// behind anything but one of the known prefixes, or is one of the bare words `dm` and `tasks`.
    pub fn new(text: impl Into<String>) -> Result<Self, TextError> {
        let text = text.into();
        if let Some(owner) = text.strip_prefix(INBOX) {
            return Ok(Self::inbox(&Identity::new(owner)?));
        }
        if matches!(text.as_str(), "dm" | "tasks") {
            return Err(TextError::Characters {
                rule: "is a reserved word: name a channel behind it, as in tasks/<name>",
            });
        }
        let prefix = PREFIXES.iter().map(|(prefix, _)| *prefix).find(|prefix| text.starts_with(prefix));
        let (prefix, rest) = text.split_at(prefix.map_or(0, str::len));
        Ok(Self(format!("{prefix}{}", plain(rest)?)))
    }

    /// The inbox of an identity.
    #[must_use]
    pub fn inbox(owner: &Identity) -> Self {
        Self(format!("{INBOX}{owner}"))
    }

    /// The channel that everybody may talk in.
    #[must_use]
    pub fn general() -> Self {
        Self(GENERAL.to_owned())
    }

    /// The channel for memories of no project.
    #[must_use]
    pub fn memory() -> Self {
        Self(MEMORY.to_owned())
    }

    /// The channels that every store has, with their kinds.
    #[must_use]
    pub fn defaults() -> [(Self, ChannelKind); 2] {
        [(Self::general(), ChannelKind::Ordinary), (Self::memory(), ChannelKind::Memory)]
    }

    /// Whether every store has it.
    #[must_use]
    pub fn is_default(&self) -> bool {
        matches!(self.0.as_str(), GENERAL | MEMORY)
    }

    /// Whose inbox it is, if it is one.
    #[must_use]
    pub fn owner(&self) -> Option<Identity> {
        self.0.strip_prefix(INBOX).and_then(|owner| Identity::new(owner).ok())
    }

    /// Whether an identity may read it: an inbox is its owner's alone.
    #[must_use]
    pub fn is_readable_by(&self, who: &Identity) -> bool {
        self.owner().is_none_or(|owner| owner == *who)
    }

    /// The task list it is, if it is one.
    #[must_use]
    pub fn list(&self) -> Option<ListName> {
        ListName::new(self.0.clone()).ok()
    }

    /// The kind that the name implies; none when it may be of either.
    #[must_use]
    pub fn implied_kind(&self) -> Option<ChannelKind> {
        if self.0.starts_with(INBOX) {
            return Some(ChannelKind::Ordinary);
        }
        let default = Self::defaults().into_iter().find(|(name, _)| name == self).map(|(_, kind)| kind);
        default.or_else(|| PREFIXES.iter().find(|(prefix, _)| self.0.starts_with(prefix)).map(|(_, kind)| *kind))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&ListName> for ChannelName {
    fn from(list: &ListName) -> Self {
        Self(list.as_str().to_owned())
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for ChannelName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ChannelName {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        Self::new(text)
    }
}

impl From<ChannelName> for String {
    fn from(name: ChannelName) -> String {
        name.0
    }
}

fn plain(text: &str) -> Result<String, TextError> {
    if text.contains('/') {
        return Err(TextError::Characters {
            rule: "has a '/' that no channel name has: use a plain name, or one behind general/, memory/ or tasks/",
        });
    }
    name(text, limits::CHANNEL_NAME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(text: &str) -> ChannelName {
        ChannelName::new(text).unwrap()
    }

    #[test]
    fn names_are_plain_or_behind_a_known_prefix() {
        for good in ["general", "memory", "x", "general/app", "memory/app", "tasks/app", "dm/Zed", "dm/Zed/impl"] {
            assert_eq!(channel(good).as_str(), good);
        }
        let long = format!("general/{}", "x".repeat(limits::CHANNEL_NAME_BYTES_MAX + 1));
        assert!(ChannelName::new(&long[..long.len() - 1]).is_ok());
        for bad in
            ["", " ", "dm", "tasks", "tasks/", "tasks/a/b", "x/y", "general/", "memory/a/b", "dm/", "a\nb", &long]
        {
            assert!(ChannelName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_prefix_implies_the_kind() {
        for (text, kind) in [
            ("general", Some(ChannelKind::Ordinary)),
            ("general/app", Some(ChannelKind::Ordinary)),
            ("memory", Some(ChannelKind::Memory)),
            ("memory/app", Some(ChannelKind::Memory)),
            ("tasks/app", Some(ChannelKind::Memory)),
            ("dm/Zed", Some(ChannelKind::Ordinary)),
            ("generally", None),
        ] {
            assert_eq!(channel(text).implied_kind(), kind, "{text}");
        }
    }

    #[test]
    fn an_inbox_knows_its_owner_and_a_list_its_name() {
        assert_eq!(channel("dm/Zed/impl").owner(), Some(Identity::new("Zed/impl").unwrap()));
        assert_eq!(ChannelName::inbox(&Identity::new("Zed").unwrap()), channel("dm/Zed"));
        assert_eq!(channel("general/app").owner(), None);
        let zed = Identity::new("Zed").unwrap();
        assert!(channel("dm/Zed").is_readable_by(&zed) && !channel("dm/Zed/impl").is_readable_by(&zed));
        assert!(channel("general/app").is_readable_by(&zed));
        let list = ListName::new("tasks/app").unwrap();
        assert_eq!(channel("tasks/app").list(), Some(list.clone()));
        assert_eq!(ChannelName::from(&list), channel("tasks/app"));
        assert_eq!(channel("memory/app").list(), None);
    }
}
