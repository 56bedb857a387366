//! Foreign text made fit to be shown: what another program wrote keeps to none of our rules. The files keep what
//! was written as long as nobody changes that field.

use taskbus_core::limits::{IDENTITY_BYTES_MAX, SUBJECT_BYTES_MAX};
use taskbus_core::name::Identity;
use taskbus_core::text::{Body, Subject, is_hidden};

/// What is shown of a description that is longer than ours may be, in bytes: it leaves room for the rest of the task.
const BODY_BYTES_SHOWN_MAX: usize = 32 * 1024;
const CUT: &str = "…";
const NO_SUBJECT: &str = "(no subject)";

/// A subject: on one line, of the length that is allowed, and never nothing.
pub(super) fn subject(text: &str) -> Subject {
    Subject::new(text).or_else(|_| Subject::new(one_line(text, SUBJECT_BYTES_MAX))).unwrap_or_else(|_| no_subject())
}

fn no_subject() -> Subject {
    Subject::new(NO_SUBJECT).expect("BUG: a plain text is a subject")
}

/// An active form, if anything of it can be seen.
pub(super) fn label(text: &str) -> Option<Subject> {
    Subject::new(text).or_else(|_| Subject::new(one_line(text, SUBJECT_BYTES_MAX))).ok()
}

/// A description; an empty one is none.
pub(super) fn body(text: &str) -> Option<Body> {
    if text.is_empty() {
        return None;
    }
    let text = text.replace('\0', "\u{fffd}");
    Body::new(text.as_str()).or_else(|_| Body::new(cut(&text, BODY_BYTES_SHOWN_MAX))).ok()
}

/// An owner, without the quotes that some writers leave around it; nothing visible is none.
pub(super) fn owner(text: &str) -> Option<Identity> {
    let bare = unquoted(text.trim());
    let seen = |text: &str| text.replace(is_hidden, " ");
    Identity::new(bare).or_else(|_| Identity::new(cut(seen(bare).trim(), IDENTITY_BYTES_MAX))).ok()
}

fn unquoted(text: &str) -> &str {
    let inside = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

fn one_line(text: &str, max: usize) -> String {
    let bad = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let text: String = text.chars().map(|c| if bad(c) { ' ' } else { c }).collect();
    cut(text.trim(), max)
}

fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{}{CUT}", &text[..text.floor_char_boundary(max - CUT.len())])
}

/// JSON text in which halves of surrogate pairs, which another program's cut left alone, are replacement
/// characters; none if there were none.
pub(super) fn mended(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    let (mut rest, mut mended) = (json, false);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (keep, skip) = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (Some(&rest[..12]), 12),
            (Some(0xD800..=0xDFFF), _) => (None, 6),
            (Some(_), _) => (Some(&rest[..6]), 6),
            (None, _) => {
                let end = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
                (Some(&rest[..end]), end)
            }
        };
        mended |= keep.is_none();
        out.push_str(keep.unwrap_or("\u{fffd}"));
        rest = &rest[skip..];
    }
    out.push_str(rest);
    mended.then_some(out)
}

/// The UTF-16 unit that a text begins with, written as an escape.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_becomes_a_subject() {
        assert_eq!(subject("Fix it").as_str(), "Fix it");
        assert_eq!(subject(" two\nlines\t").as_str(), "two lines");
        for empty in ["", " ", "\u{200b}", "\n"] {
            assert_eq!(subject(empty).as_str(), NO_SUBJECT, "{empty:?}");
            assert_eq!(label(empty), None, "{empty:?}");
        }
        let long = subject(&"é".repeat(200));
        assert!(long.as_str().len() <= SUBJECT_BYTES_MAX && long.as_str().ends_with("é…"));
    }

    #[test]
    fn owners_lose_their_quotes() {
        let name = |text| owner(text).map(|name| name.to_string());
        assert_eq!(name("\"worker-1\"").as_deref(), Some("worker-1"));
        assert_eq!(name("'worker-1' ").as_deref(), Some("worker-1"));
        assert_eq!(name("O'Neil").as_deref(), Some("O'Neil"));
        assert_eq!(name("a\nb").as_deref(), Some("a b"));
        assert_eq!(name("\"\""), None);
        assert_eq!(name(&"x".repeat(500)).map(|name| name.len()), Some(IDENTITY_BYTES_MAX));
    }

    #[test]
    fn descriptions_are_cut_and_lose_their_nulls() {
        assert_eq!(body(""), None);
        assert_eq!(body("a\0b\n").unwrap().as_str(), "a\u{fffd}b\n");
        let long = body(&"日".repeat(50_000)).unwrap();
        assert!(long.as_str().len() <= BODY_BYTES_SHOWN_MAX && long.as_str().ends_with(CUT));
    }

    #[test]
    fn lone_halves_of_surrogate_pairs_are_mended() {
        let read =
            |json: &str| serde_json::from_str::<String>(&mended(json).unwrap_or_else(|| json.to_owned())).unwrap();
        assert_eq!(mended(r#""a\u00e9\\u d83d\n""#), None);
        assert_eq!(read(r#""cut \ud83d""#), "cut \u{fffd}");
        assert_eq!(read(r#""\ud83d\ud83d\ude00\ude00""#), "\u{fffd}😀\u{fffd}");
        assert_eq!(read(r#""\\ud83d""#), "\\ud83d");
        assert_eq!(mended("\"open \\"), None);
        assert_eq!(mended("\"\\日"), None);
    }
}
