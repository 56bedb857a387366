//! Reading what somebody searches for (reference F, "Query parsing"). White space parts the terms; a star at the end
//! of one means that it may go on; nothing else is syntax, whatever punctuation there is. A message is found when it
//! has every term.

use serde::{Deserialize, Serialize};

use crate::bus::fold;
use crate::limits;
use crate::refusal::{Invalid, Refusal};
use crate::text::{TextError, within};

/// One term: words that stand one behind the other, mostly one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Term {
    /// The words, [folded](fold::words), in order; never none.
    pub words: Vec<String>,
    /// Whether the last word is only the beginning of one.
    pub prefix: bool,
}

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The terms, each once. None when there is nothing but punctuation, which no text has: nothing is found then.
    pub terms: Vec<Term>,
    /// The text without the stars, for a search by meaning.
    pub plain: String,
}

/// What a search goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The words of the texts.
    Text,
    /// What memories mean.
    Semantic,
    /// Both, as one ranking.
    Both,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 3] = [Mode::Text, Mode::Semantic, Mode::Both];

    /// The word used on every surface.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Text => "text",
            Mode::Semantic => "semantic",
            Mode::Both => "both",
        }
    }

    /// The mode with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// [`Refusal`] when it has nothing but white space and stars, or is longer than 4 KiB.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        within(text, limits::QUERY_BYTES_MAX)
            .map_err(|error: TextError| Refusal::Invalid(Invalid::Text { field: "query", error }))?;
        let parts: Vec<(&str, bool)> =
            text.split_whitespace().map(unstarred).filter(|(part, _)| !part.is_empty()).collect();
        if parts.is_empty() {
            return Err(Invalid::NoQuery.into());
        }
        let plain = parts.iter().map(|(part, _)| *part).collect::<Vec<_>>().join(" ");
        let mut terms = Vec::new();
        for (part, prefix) in parts {
            let term = Term { words: fold::words(part), prefix };
            if !term.words.is_empty() && !terms.contains(&term) {
                terms.push(term);
            }
        }
        Ok(Self { terms, plain })
    }
}

impl Term {
    /// Whether a text that has these words, in this order, has the term.
    #[must_use]
    pub fn is_in(&self, words: &[String]) -> bool {
        self.count_in(words) > 0
    }

    /// How often a text that has these words, in this order, has the term.
    #[must_use]
    pub fn count_in(&self, words: &[String]) -> usize {
        let Some((last, before)) = self.words.split_last() else { return 0 };
        let ends = |word: &String| if self.prefix { word.starts_with(last) } else { word == last };
        words
            .windows(self.words.len())
            .filter(|window| window[..before.len()] == *before && ends(&window[before.len()]))
            .count()
    }
}

/// A part of a query without the stars at its end, and whether there were any.
fn unstarred(part: &str) -> (&str, bool) {
    let bare = part.trim_end_matches('*');
    (bare, bare.len() < part.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Vec<(String, bool)> {
        let query = Query::parse(text).unwrap();
        query.terms.into_iter().map(|term| (term.words.join(" "), term.prefix)).collect()
    }

    fn is(text: &str, terms: &[(&str, bool)]) {
        let expected: Vec<_> = terms.iter().map(|(words, prefix)| ((*words).to_owned(), *prefix)).collect();
        assert_eq!(parsed(text), expected, "{text:?}");
    }

    #[test]
    fn white_space_parts_terms_and_nothing_else_is_syntax() {
        is("deploy key", &[("deploy", false), ("key", false)]);
        is(" deploy\tkey\n", &[("deploy", false), ("key", false)]);
        is("WAL-file", &[("wal file", false)]);
        is("a OR b", &[("a", false), ("or", false), ("b", false)]);
        is("NOT x NEAR(y)", &[("not", false), ("x", false), ("near y", false)]);
        is("\"quoted phrase\"", &[("quoted", false), ("phrase", false)]);
        is("col:val ^x {y} (z", &[("col val", false), ("x", false), ("y", false), ("z", false)]);
        is("x -y +z %_ '; --", &[("x", false), ("y", false), ("z", false)]);
        is("same SAME", &[("same", false)]);
    }

    #[test]
    fn a_star_at_the_end_is_a_beginning() {
        is("depl*", &[("depl", true)]);
        is("depl***", &[("depl", true)]);
        is("wal-fi*", &[("wal fi", true)]);
        is("de*pl", &[("de pl", false)]);
        is("*deploy", &[("deploy", false)]);
        is("* deploy **", &[("deploy", false)]);
        assert_eq!(Query::parse("de* \"key\" **").unwrap().plain, "de \"key\"");
    }

    #[test]
    fn a_query_of_nothing_is_refused_and_one_of_punctuation_has_no_terms() {
        for text in ["", " \n", "*", "** *"] {
            assert_eq!(Query::parse(text), Err(Refusal::Invalid(Invalid::NoQuery)), "{text:?}");
        }
        assert_eq!(Query::parse("?! \"").unwrap(), Query { terms: Vec::new(), plain: "?! \"".to_owned() });
        assert!(Query::parse(&"x".repeat(limits::QUERY_BYTES_MAX)).is_ok());
        assert!(Query::parse(&"x".repeat(limits::QUERY_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_mode_has_a_word() {
        for mode in Mode::ALL {
            assert_eq!(Mode::from_word(mode.as_str()), Some(mode));
        }
        assert_eq!(Mode::from_word("vector"), None);
    }

    #[test]
    fn a_term_wants_its_words_side_by_side() {
        let term = |text: &str| Query::parse(text).unwrap().terms.remove(0);
        let words = fold::words("The WAL-file of a store, and its WAL files");
        assert!(term("wal").is_in(&words) && !term("wa").is_in(&words) && term("wa*").is_in(&words));
        assert_eq!((term("wal-file").count_in(&words), term("wal-fi*").count_in(&words)), (1, 2));
        assert!(!term("wal-store").is_in(&words) && !term("files-and").is_in(&words));
        assert!(!Term { words: Vec::new(), prefix: true }.is_in(&words));
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_its_terms_are_words(text in "\\PC{0,40}") {
            match Query::parse(&text) {
                Ok(query) => prop_assert!(query.terms.iter().all(|term| !term.words.is_empty())),
                Err(refusal) => prop_assert_eq!(refusal, Refusal::Invalid(Invalid::NoQuery)),
            }
        }

        #[test]
        fn a_text_has_each_of_its_own_words_and_their_beginnings(text in "\\PC{0,40}", cut in 0_usize..8) {
            let all = fold::words(&text);
            let has = |words: Vec<String>, prefix: bool| Term { words, prefix }.is_in(&all);
            for word in &all {
                prop_assert!(has(vec![word.clone()], false));
                let start: String = word.chars().take(cut.max(1)).collect();
                prop_assert!(has(vec![start], true));
            }
            prop_assert!(all.is_empty() || has(all.clone(), true));
        }
    }
}
