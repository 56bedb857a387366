//! Folding text for search: what counts as the same letter, and what counts as a word. Every store indexes what
//! [`words`] says and nothing else, so that a search finds the same in each; how the words are kept is its own affair.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The text as it is compared: composed (NFC), and without case in all of Unicode. `ß`, `ẞ` and `SS` are the same, as
/// are the three forms of sigma; what is folded once stays as it is.
#[must_use]
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // Composing and folding each make work for the other, at most twice: no text is known that needs more.
    let once: String = text.nfc().flat_map(fold_char).collect();
    let twice: String = once.nfc().flat_map(fold_char).collect();
    twice.nfc().collect()
}

/// The words of a text, folded, in order: runs of letters, digits and the marks on them.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    fold(text).split(|c| !is_part(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A letter in small, by way of its capital: only so do letters meet that share one, such as `ς` and `σ`.
fn fold_char(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_is_no_difference_in_any_script() {
        for (one, other) in [
            ("Straße", "STRASSE"),
            ("straße", "STRAẞE"),
            ("ΟΔΟΣ", "οδος"),
            ("ΟΔΟΣ", "οδοσ"),
            ("Привет", "ПРИВЕТ"),
            ("ÄÖÜ", "äöü"),
            ("İstanbul", "i\u{307}stanbul"),
            ("\u{212a}elvin", "kelvin"),
            ("ﬁn", "FIN"),
            ("Ǆ", "ǆ"),
            ("Ꭰ", "ꭰ"),
            ("𐐀", "𐐨"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_ne!(fold("é"), fold("e"));
    }

    #[test]
    fn a_letter_is_the_same_composed_and_in_parts() {
        for (one, other) in [("é", "e\u{301}"), ("Å", "\u{212b}"), ("한", "\u{1112}\u{1161}\u{11ab}")] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
    }

    #[test]
    fn words_are_letters_digits_and_their_marks() {
        let expected = |text: &str, parts: &[&str]| assert_eq!(words(text), parts, "{text:?}");
        expected("", &[]);
        expected(" !?* \"", &[]);
        expected("The store's WAL-file, v2.0!", &["the", "store", "s", "wal", "file", "v2", "0"]);
        expected("snake_case::path", &["snake", "case", "path"]);
        expected("日本語 テスト", &["日本語", "テスト"]);
        expected("हिन्दी", &["हिन्दी"]);
        expected("x\u{301}y", &["x\u{301}y"]);
    }

    #[test]
    fn folding_every_single_letter_twice_changes_nothing_more() {
        for c in ('\0'..=char::MAX).filter(|c| c.is_alphabetic() || is_combining_mark(*c)) {
            let once = fold(&c.to_string());
            assert_eq!(fold(&once), once, "{c:?}");
        }
    }

    proptest! {
        #[test]
        fn folding_twice_changes_nothing_more(text in "\\PC{0,12}") {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once.clone());
            prop_assert_eq!(fold(&text.to_uppercase()), fold(&fold(&text).to_uppercase()));
        }

        #[test]
        fn words_have_nothing_that_splits_them(text in "\\PC{0,40}") {
            for word in words(&text) {
                prop_assert_eq!(words(&word), vec![word.clone()]);
            }
        }
    }
}
