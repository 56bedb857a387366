//! What a repository wishes for the agents that register in it: channels to read, tags to follow, tags to use (reference
//! C.3). What is not understood is told, never a reason to refuse the name.

use std::collections::BTreeMap;

use crate::bus::channel::{ChannelKind, ChannelName};
use crate::bus::tag::TagSet;
use crate::name::Label;

/// As they are written in the repository's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepoWishes {
    /// Channels; none: those that every store has.
    pub channels: Option<Vec<String>>,
    /// Sets of tags to follow.
    pub tag_sets: Vec<Vec<String>>,
    /// The tags that this repository uses.
    pub tags: Vec<String>,
}

/// The same, sorted by what it comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Channels to look at, in their order, each once.
    pub channels: Vec<ChannelName>,
    /// Task lists, which nobody is subscribed to by a file.
    pub ignored_channels: Vec<String>,
    /// Sets of tags to follow.
    pub tag_sets: Vec<TagSet>,
    /// Tags that can be used.
    pub tags: Vec<Label>,
    /// Tags that cannot.
    pub ignored_tags: Vec<String>,
    /// What cannot be done, and why.
    pub failed: BTreeMap<String, String>,
}

/// What to do about one wished channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Read it from now on; make it first if it is not there.
    Follow(ChannelKind),
    /// It is of memories, which are searched, not read: end a subscription to it; make it if it is not there.
    Search(ChannelKind),
    /// It is not there, and its name does not say what it would be.
    Missing,
}

impl RepoWishes {
    /// What they come to.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        let defaults = || ChannelName::defaults().into_iter().map(|(name, _)| name.into()).collect();
        for text in self.channels.clone().unwrap_or_else(defaults) {
            plan.add_channel(&text);
        }
        for set in &self.tag_sets {
            match TagSet::new(set) {
                Ok(set) if plan.tag_sets.contains(&set) => {}
                Ok(set) => plan.tag_sets.push(set),
                Err(refusal) => drop(plan.failed.insert(format!("tags {}", set.join(",")), refusal.to_string())),
            }
        }
        for tag in &self.tags {
            match Label::new(tag.trim().to_ascii_lowercase()) {
                Ok(tag) if plan.tags.contains(&tag) => {}
                Ok(tag) => plan.tags.push(tag),
                Err(_) => plan.ignored_tags.push(tag.clone()),
            }
        }
        plan
    }
}

impl Plan {
    fn add_channel(&mut self, text: &str) {
        // The bare word is reserved, and yet means task lists.
        if text == "tasks" || text.starts_with("tasks/") {
            self.ignored_channels.push(text.to_owned());
            return;
        }
        match ChannelName::new(text) {
            Ok(name) if name.owner().is_some() => {
                self.failed.insert(text.to_owned(), "an inbox is read by its owner without any file".to_owned());
            }
            Ok(name) if self.channels.contains(&name) => {}
            Ok(name) => self.channels.push(name),
            Err(error) => drop(self.failed.insert(text.to_owned(), error.to_string())),
        }
    }
}

/// What to do about a channel, given what kind it is if it is there.
#[must_use]
pub fn wish(name: &ChannelName, there: Option<ChannelKind>) -> Wish {
    match there.or_else(|| name.implied_kind()) {
        Some(kind @ ChannelKind::Ordinary) => Wish::Follow(kind),
        Some(kind @ ChannelKind::Memory) => Wish::Search(kind),
        None => Wish::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn wishes_are_sorted_by_what_they_come_to() {
        let wishes = RepoWishes {
            channels: Some(texts(&["general/app", "tasks/app", "tasks", "a/b", "dm/Zed", "memory/app", "general/app"])),
            tag_sets: vec![texts(&["rust", "env*"]), texts(&["a b"]), texts(&["ENV*", "rust"])],
            tags: texts(&["Rust", "no tag", "rust", "env*"]),
        };
        let plan = wishes.plan();
        assert_eq!(plan.channels.iter().map(ChannelName::as_str).collect::<Vec<_>>(), ["general/app", "memory/app"]);
        assert_eq!(plan.ignored_channels, ["tasks/app", "tasks"]);
        assert_eq!(plan.tag_sets.iter().map(TagSet::key).collect::<Vec<_>>(), ["env*,rust"]);
        assert_eq!(plan.tags.iter().map(Label::as_str).collect::<Vec<_>>(), ["rust"]);
        assert_eq!(plan.ignored_tags, ["no tag", "env*"]);
        assert_eq!(plan.failed.keys().collect::<Vec<_>>(), ["a/b", "dm/Zed", "tags a b"]);
    }

    #[test]
    fn without_a_list_of_channels_the_default_ones_are_wished() {
        let names = |wishes: RepoWishes| wishes.plan().channels.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(RepoWishes::default()), ["general", "memory"]);
        assert!(names(RepoWishes { channels: Some(Vec::new()), ..RepoWishes::default() }).is_empty());
    }

    #[test]
    fn memories_are_searched_and_what_has_a_prefix_can_be_made() {
        let name = |text| ChannelName::new(text).unwrap();
        let (ordinary, memory) = (ChannelKind::Ordinary, ChannelKind::Memory);
        assert_eq!(wish(&name("general/app"), None), Wish::Follow(ordinary));
        assert_eq!(wish(&name("memory/app"), None), Wish::Search(memory));
        assert_eq!(wish(&name("plain"), Some(memory)), Wish::Search(memory));
        assert_eq!(wish(&name("plain"), Some(ordinary)), Wish::Follow(ordinary));
        assert_eq!(wish(&name("plain"), None), Wish::Missing);
    }
}
