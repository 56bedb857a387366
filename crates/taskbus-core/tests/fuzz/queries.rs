//! What somebody searches for: any text is read or refused, and what was read means the same when it is read again.

use taskbus_core::bus::fold;
use taskbus_core::bus::query::{Query, Term};

use crate::harness::{Made, Target};

#[test]
fn any_query_is_read_or_refused() {
    let words = &["\"", "*", " OR ", "NEAR(", "-", "col:", " ", "^", "wal-file", "straße", "\u{3a3}", "(", "\u{a0}"];
    Target { name: "queries", corpus: include_str!("corpus/queries.txt"), words, take }.hunt_both(20_000);
}

fn take(input: &[u8]) -> Made {
    let text = String::from_utf8_lossy(input);
    let query = match Query::parse(&text) {
        Ok(query) => query,
        Err(refusal) => {
            assert_eq!(refusal.code(), "validation");
            return Made::Refused;
        }
    };
    let all = fold::words(&text);
    for term in &query.terms {
        assert!(
            !term.words.is_empty() && term.words.iter().all(|word| fold::words(word) == [word.as_str()]),
            "{term:?}"
        );
        assert!(term.is_in(&all), "{term:?} is in its own text");
    }
    let written: Vec<String> = query.terms.iter().map(written).collect();
    if !written.is_empty() {
        assert_eq!(Query::parse(&written.join(" ")).map(|query| query.terms), Ok(query.terms.clone()), "{written:?}");
    }
    assert_eq!(Query::parse(&query.plain).map(|again| again.plain), Ok(query.plain.clone()));
    Made::of(!query.terms.is_empty())
}

/// A term as somebody would write it.
fn written(term: &Term) -> String {
    format!("{}{}", term.words.join("-"), if term.prefix { "*" } else { "" })
}
