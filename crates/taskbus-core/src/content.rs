//! Text of any form as a task: the `content` of a Kin task is one text, which may be longer than a subject or have
//! several lines (seed 2); a task has a subject and a description.
//!
//! Content that is a subject becomes just that. Other content is kept whole as the description, under a subject that
//! shortens it; [`join`] knows such a pair and gives the content back as it was.

use crate::limits;
use crate::text::{Body, Subject};

/// What is shown where a content has nothing to see.
const UNTITLED: &str = "(untitled)";

/// The subject of a content, and the content itself if the subject does not say it all.
#[must_use]
pub fn split(content: &str) -> (Subject, Option<Body>) {
    match Subject::new(content) {
        Ok(subject) => (subject, None),
        Err(_) => (shortened(content), Some(body(content))),
    }
}

/// The content of a task: its subject, or the description that the subject shortens.
#[must_use]
pub fn join<'a>(subject: &'a Subject, description: Option<&'a Body>) -> &'a str {
    match description {
        Some(body) if is_split(subject, body) => body.as_str(),
        Some(_) | None => subject.as_str(),
    }
}

/// Whether a subject and a description are one content.
#[must_use]
pub fn is_split(subject: &Subject, description: &Body) -> bool {
    let (shorter, whole) = split(description.as_str());
    shorter == *subject && whole.as_ref() == Some(description)
}

/// The text in one line, cut where it is too long.
fn shortened(content: &str) -> Subject {
    let line: String = content.chars().map(|c| if is_plain(c) { c } else { ' ' }).collect();
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut line = words.join(" ");
    if line.len() > limits::SUBJECT_BYTES_MAX {
        let most = limits::SUBJECT_BYTES_MAX - '…'.len_utf8();
        let end = (0..=most).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        line.truncate(end);
        line.push('…');
    }
    Subject::new(line).unwrap_or_else(|_| Subject::new(UNTITLED).expect("BUG: a constant subject is valid"))
}

fn is_plain(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}')
}

/// As much of the text as a description can hold.
fn body(content: &str) -> Body {
    Body::new(content).unwrap_or_else(|_| {
        let most = limits::MESSAGE_KIB_MAX * 1024;
        let mut text = content.replace('\0', "\u{FFFD}");
        let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        Body::new(text).expect("BUG: a text without NUL within the limit is a description")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_content_that_is_a_subject_is_one() {
        assert_eq!(split("Seed dev fixtures"), (Subject::new("Seed dev fixtures").unwrap(), None));
        assert_eq!(split(&"é".repeat(128)).1, None);
    }

    #[test]
    fn a_long_or_many_lined_content_is_kept_whole() {
        let long = "é".repeat(129);
        let (subject, whole) = split(&long);
        assert!(subject.as_str().ends_with('…') && subject.as_str().len() == 255, "{subject}");
        assert_eq!(join(&subject, whole.as_ref()), long);
        let (subject, whole) = split("first\n  second\u{2028}third\t");
        assert_eq!(subject.as_str(), "first second third");
        assert_eq!(join(&subject, whole.as_ref()), "first\n  second\u{2028}third\t");
    }

    #[test]
    fn a_content_with_nothing_to_see_has_a_subject_all_the_same() {
        for content in ["", "\n", "\u{200B}"] {
            let (subject, whole) = split(content);
            assert_eq!((subject.as_str(), join(&subject, whole.as_ref())), (UNTITLED, content));
        }
    }

    #[test]
    fn a_description_of_its_own_is_no_content() {
        let (subject, own) = (Subject::new("Port it").unwrap(), Body::new("The long form").unwrap());
        assert_eq!(join(&subject, Some(&own)), "Port it");
        assert_eq!(join(&subject, Some(&Body::new("Port it").unwrap())), "Port it");
    }

    #[test]
    fn what_no_description_can_hold_is_cut() {
        let (subject, whole) = split(&format!("a\0{}", "b".repeat(70_000)));
        assert!(subject.as_str().starts_with("a b"));
        assert_eq!(whole.unwrap().as_str().len(), 65_536);
    }

    proptest! {
        #[test]
        fn content_comes_back(content in "[a-zé\n\u{200B} ]{0,300}") {
            let (subject, whole) = split(&content);
            prop_assert_eq!(join(&subject, whole.as_ref()), content);
        }
    }
}
