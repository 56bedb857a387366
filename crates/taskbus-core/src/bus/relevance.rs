//! How well a text fits the words that are asked for: BM25, as SQLite's FTS5 computes it, so that stores which rank by
//! themselves and stores which rank by this agree.

/// How much a word counts that is there more than once (BM25's k1).
const SATURATION: f64 = 1.2;
/// How much a long text is held back (BM25's b).
const LENGTH_WEIGHT: f64 = 0.75;
/// What a word weighs that is in more than half of all texts.
const WEIGHT_MIN: f64 = 1e-6;

/// All texts together, as a ranking needs to know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// How many there are.
    pub texts: u64,
    /// How many words they have in all.
    pub words: u64,
}

/// How often one term is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// In this text.
    pub here: u64,
    /// How many texts have it.
    pub texts: u64,
}

/// How well a text of so many words fits the terms: BM25 as SQLite's FTS5 computes it, negated; higher is better.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "counts of words stay far below 2^52")]
pub fn relevance(corpus: Corpus, words_here: u64, terms: &[Occurrence]) -> f64 {
    let mean = corpus.words as f64 / corpus.texts as f64;
    let scarce = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * words_here as f64 / mean;
    let score = |term: &Occurrence| {
        let weight = ((corpus.texts as f64 - term.texts as f64 + 0.5) / (term.texts as f64 + 0.5)).ln();
        let weight = if weight <= 0.0 { WEIGHT_MIN } else { weight };
        let here = term.here as f64;
        weight * ((here * (SATURATION + 1.0)) / (here + SATURATION * scarce))
    };
    terms.iter().map(score).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_in_short_texts_fit_best() {
        let corpus = Corpus { texts: 10, words: 100 };
        let fit = |words, here, texts| relevance(corpus, words, &[Occurrence { here, texts }]);
        assert!(fit(10, 1, 1) > fit(10, 1, 3), "a rarer word");
        assert!(fit(5, 1, 1) > fit(10, 1, 1), "a shorter text");
        assert!(fit(10, 2, 1) > fit(10, 1, 1), "twice in it");
        assert!(fit(10, 1, 9) > 0.0, "a word that nearly all have still counts");
        let near = |is: f64, expected: f64| assert!((is - expected).abs() < 1e-5, "{is}, not {expected}");
        near(fit(10, 1, 1), 1.84583);
        near(fit(20, 2, 3), 0.81791);
        assert!((fit(10, 1, 6) / 1e-6 - 1.0).abs() < 1e-9, "the least that a word weighs");
        let two = [Occurrence { here: 1, texts: 1 }, Occurrence { here: 1, texts: 3 }];
        assert!((relevance(corpus, 10, &two) - fit(10, 1, 1) - fit(10, 1, 3)).abs() < 1e-12);
    }
}
