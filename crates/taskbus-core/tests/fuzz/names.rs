//! Names, ids, keys, patterns and cursors: what is taken keeps to its grammar, and is the same when it is read again.

use std::fmt::{Debug, Display};

use serde::Serialize;
use serde::de::DeserializeOwned;
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::tag::{TagPattern, TagSet};
use taskbus_core::glob::PathGlob;
use taskbus_core::id::TaskId;
use taskbus_core::limits::{IDENTITY_BYTES_MAX, KEY_BYTES_MAX, LABEL_CHARS_MAX, PATH_BYTES_MAX};
use taskbus_core::name::{Identity, Key, Label, ListName};
use taskbus_core::text::is_hidden;
use taskbus_core::tree::TreePath;

use crate::harness::{Made, Target};

#[test]
fn any_text_is_a_name_or_none() {
    let words = &["tasks/", "dm/", "/", "..", "%2e", ":", "*", "#", "0", ".", " ", "\\", "memory/", "[", "**", "?"];
    Target { name: "names", corpus: include_str!("corpus/names.txt"), words, take }.hunt_both(20_000);
}

#[test]
fn any_text_is_a_cursor_or_none() {
    let words = &["00", "ff", "55310101", "+f", "-1", " 1", "0x"];
    Target { name: "cursors", corpus: include_str!("corpus/cursors.txt"), words, take: cursor }.hunt_both(20_000);
}

fn cursor(input: &[u8]) -> Made {
    let text = String::from_utf8_lossy(input);
    let path = TreePath::from_cursor(&text);
    if let Some(path) = &path {
        assert_eq!(path.to_cursor(), text.to_ascii_lowercase(), "a cursor has one form");
        assert!(*path < path.subtree_end());
    }
    Made::of(path.is_some())
}

fn take(input: &[u8]) -> Made {
    let text = &*String::from_utf8_lossy(input);
    let taken = [
        name(Identity::new(text)),
        name(ListName::from_short(text)),
        name(ChannelName::new(text)),
        label(text),
        key(text),
        id(text),
        pattern(text),
        glob(text),
    ];
    Made::of(taken.contains(&true))
}

/// The same after it was written; as JSON too, which anybody may send instead.
fn again<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let json = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&json).ok().as_ref(), Some(value), "{json}");
}

/// Nothing that nobody sees, no way out of its place, and not too long, prefix and all.
fn name<T: Serialize + DeserializeOwned + PartialEq + Debug + Display, E>(name: Result<T, E>) -> bool {
    let Ok(name) = name else { return false };
    again(&name);
    let text = name.to_string();
    assert!(!text.is_empty() && text.len() <= IDENTITY_BYTES_MAX + "memory/".len(), "{text:?}");
    assert!(!text.chars().any(|c| is_hidden(c) || c.is_control()), "{text:?}");
    true
}

fn label(text: &str) -> bool {
    let Ok(label) = Label::new(text) else { return false };
    again(&label);
    assert!(label.as_str().len() <= LABEL_CHARS_MAX && label.as_str().bytes().filter(|byte| *byte == b':').count() < 2);
    true
}

fn key(text: &str) -> bool {
    let Ok(key) = Key::new(text) else { return false };
    again(&key);
    assert!(key.as_str() == text && text.len() <= KEY_BYTES_MAX && !text.chars().any(char::is_control));
    true
}

/// However an id was spelled, it is written in one way, which is plain ASCII and no path.
fn id(text: &str) -> bool {
    let Ok(id) = text.parse::<TaskId>() else { return false };
    again(&id);
    let plain = id.to_string();
    assert_eq!(plain.parse(), Ok(id.clone()), "{plain}");
    assert!(plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)), "{plain}");
    assert!(id.as_number().is_none_or(|number| TaskId::number(number) == Ok(id.clone())));
    true
}

fn pattern(text: &str) -> bool {
    let Ok(pattern) = TagPattern::new(text) else { return false };
    again(&pattern);
    let bare = pattern.as_str().trim_end_matches('*').trim_end_matches(':');
    let tag = Label::new(bare).unwrap();
    assert!(pattern.matches(&tag) || pattern.as_str().ends_with(":*"), "{pattern} matches what it is made of");
    let set = TagSet::new(&[text]).unwrap();
    assert_eq!(set.matches(std::slice::from_ref(&tag)), pattern.matches(&tag));
    true
}

fn glob(text: &str) -> bool {
    let Ok(glob) = PathGlob::new(text) else { return false };
    again(&glob);
    assert!(!text.starts_with('/') && !text.split('/').any(|part| part == "..") && text.len() <= PATH_BYTES_MAX);
    let others = ["**", "src/*.rs", "a?c/**/x"].map(|other| PathGlob::new(other).unwrap());
    assert!(glob.overlaps(&glob) && glob.overlaps(&others[0]), "{glob} is a part of everything");
    assert!(others.iter().all(|other| glob.overlaps(other) == other.overlaps(&glob)), "{glob}: order is no matter");
    true
}
