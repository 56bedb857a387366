//! Search in a memory store: every text is cut into words and looked through.

use taskbus_core::bus::fold::words;
use taskbus_core::bus::message::Message;
use taskbus_core::bus::relevance::{Corpus, Occurrence, relevance};

use super::bus::found;
use crate::store::bus::{Hit, MessageFilter, Term};
use crate::store::look::Facts;

/// A text in words: those of its subject, and the rest.
struct Text<'a> {
    message: &'a Message,
    columns: [Vec<String>; 2],
}

impl Text<'_> {
    fn words(&self) -> u64 {
        self.columns.iter().map(|words| words.len() as u64).sum()
    }

    fn count(&self, term: &Term) -> u64 {
        self.columns.iter().map(|words| term.count_in(words) as u64).sum()
    }
}

/// The texts that have every term, the best first, equals by number.
pub(super) fn search(
    texts: &[(Message, String, String)],
    terms: &[Term],
    filter: &MessageFilter<'_>,
    limit: usize,
) -> Vec<Hit> {
    if terms.is_empty() {
        return Vec::new();
    }
    let texts: Vec<Text<'_>> =
        texts.iter().map(|(message, subject, rest)| Text { message, columns: [words(subject), words(rest)] }).collect();
    let corpus = Corpus { texts: texts.len() as u64, words: texts.iter().map(Text::words).sum() };
    let everywhere = |term| texts.iter().filter(|text| text.count(term) > 0).count() as u64;
    let everywhere: Vec<u64> = terms.iter().map(everywhere).collect();
    let hit = |text: &Text<'_>| {
        let seen =
            terms.iter().zip(&everywhere).map(|(term, texts)| Occurrence { here: text.count(term), texts: *texts });
        let seen: Vec<Occurrence> = seen.collect();
        let all = seen.iter().all(|occurrence| occurrence.here > 0) && Facts::from(text.message).are_looked_at(filter);
        all.then(|| Hit { found: found(text.message), score: relevance(corpus, text.words(), &seen) })
    };
    let mut hits: Vec<Hit> = texts.iter().filter_map(hit).collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.found.cmp(&b.found)));
    hits.truncate(limit);
    hits
}
