//! Search: by text, by meaning, or both, and one page of what was found. How it is read, ranked and paged is the core's
//! to say; which messages have the words, the store's.

use taskbus_core::bus::fusion::{Hit, Nearest, Shown, fuse};
use taskbus_core::bus::json_bytes;
use taskbus_core::bus::query::{Mode, Query};
use taskbus_core::bus::{receive, rules};
use taskbus_core::limits::SEARCH_CANDIDATES_MAX;
use taskbus_core::name::Identity;

use super::bus;
use crate::answer::memory::{Found, HitView};
use crate::engine::{Engine, Error, SearchAsk};
use crate::store::bus::{BusSnapshot, MessageFilter};
use crate::store::{StoreError, read_with};

/// A vector to search with, and the model it is of.
struct Meaning {
    model: String,
    vector: Vec<f32>,
}

impl Engine {
    /// Searches messages, memories and tasks.
    ///
    /// # Errors
    /// [`Error`]: `validation` for a query of nothing and a bad cursor, `not_found` for an inbox that is not the
    /// caller's. A search by meaning that is not to be had is no error: then the text is searched.
    pub fn search(&self, caller: &Identity, ask: &SearchAsk) -> Result<Found, Error> {
        self.known_caller(caller)?;
        let query = Query::parse(&ask.query)?;
        let shown = ask.cursor.as_deref().filter(|cursor| !cursor.is_empty()).map(Shown::parse).transpose()?;
        ask.channel.as_ref().map_or(Ok(()), |channel| rules::check_read(channel, caller))?;
        let mode = ask.mode.unwrap_or(if self.embedder.is_some() { Mode::Both } else { Mode::Text });
        let meaning = if mode == Mode::Text { None } else { self.meaning_of(&query.plain) };
        let unavailable = mode != Mode::Text && meaning.is_none();
        if let Err(error) = self.store().index_texts() {
            tracing::warn!(%error, "what was written last could not be indexed; a search may miss it");
        }
        let found = read_with(self.store(), None, |snapshot| {
            let bus = bus(snapshot)?;
            let ranking = ranking(bus, &query, mode, meaning.as_ref(), &ask.filter(caller))?;
            let shown = match &shown {
                Some(shown) => shown.clone(),
                None => Shown::nothing(bus.latest_seq()?),
            };
            self.page_of(bus, &ranking, shown, ask, unavailable)
        })?;
        if ask.touch {
            self.note_found(&found);
        }
        Ok(found)
    }

    /// The session of a caller that only reads.
    fn known_caller(&self, caller: &Identity) -> Result<(), Error> {
        Ok(read_with(self.store(), None, |snapshot| Ok(self.session(snapshot, caller)?.map(|_| ())))??)
    }

    /// The query as a vector; none when nobody can make one.
    fn meaning_of(&self, plain: &str) -> Option<Meaning> {
        let embedder = self.embedder.as_ref()?;
        Some(Meaning { vector: embedder.query(plain)?, model: embedder.model().to_owned() })
    }

    /// As many hits of a ranking as were asked for and fit into an answer, one at least.
    fn page_of(
        &self,
        bus: &dyn BusSnapshot,
        ranking: &[Hit],
        mut shown: Shown,
        ask: &SearchAsk,
        semantic_unavailable: bool,
    ) -> Result<Found, StoreError> {
        let count = receive::count(ask.count, self.limits.receive_default_count, self.limits.receive_max_count);
        let max = self.limits.result_default_kib.saturating_mul(1024);
        let rest: Vec<Hit> = shown.rest(ranking).copied().collect();
        let (mut hits, mut bytes, mut looked) = (Vec::new(), 0, 0);
        for hit in &rest {
            if hits.len() == count {
                break;
            }
            let Some(message) = bus.message(hit.found.seq)? else {
                looked += 1;
                continue;
            };
            let view = HitView { message, score: hit.score };
            shown.add([hit.found]);
            let around = Found { hits: Vec::new(), next: shown.cursor(true), semantic_unavailable };
            bytes += json_bytes(&view) + 1;
            if !hits.is_empty() && bytes + json_bytes(&around) > max {
                shown.take_back(hit.found);
                break;
            }
            looked += 1;
            hits.push(view);
        }
        Ok(Found { next: shown.cursor(looked < rest.len()), hits, semantic_unavailable })
    }

    fn note_found(&self, found: &Found) {
        let memories = found.hits.iter().filter(|hit| hit.message.channel.list().is_none());
        let ids: Vec<u64> = memories.filter_map(|hit| hit.message.memory).map(|memory| memory.id).collect();
        self.note_reads(&ids);
    }
}

impl SearchAsk {
    fn filter<'a>(&'a self, caller: &'a Identity) -> MessageFilter<'a> {
        MessageFilter {
            channel: self.channel.as_ref(),
            visible_to: Some(caller),
            sender: self.sender.as_ref(),
            since: self.since,
            until: self.until,
            thread: self.thread,
            any_tags: &self.tags,
        }
    }
}

/// The messages that fit, the best first.
fn ranking(
    bus: &dyn BusSnapshot,
    query: &Query,
    mode: Mode,
    meaning: Option<&Meaning>,
    filter: &MessageFilter<'_>,
) -> Result<Vec<Hit>, StoreError> {
    let by_text = || bus.search(&query.terms, filter, SEARCH_CANDIDATES_MAX);
    let Some(Meaning { model, vector }) = meaning else { return by_text() };
    let mut nearest = Nearest::to(vector.clone(), SEARCH_CANDIDATES_MAX);
    bus.vectors(model, filter, &mut |found, vector| nearest.see(found, vector))?;
    let nearest = nearest.into_ranking();
    Ok(if mode == Mode::Both { fuse(&by_text()?, &nearest) } else { nearest })
}
