//! The full-text index, and the search in it.
//!
//! Nothing is indexed while it is written: a new text would cost as much again as the write itself. Instead `upkeep`
//! says up to which number the index knows everything, and [`SqliteStore::index_texts`](super::super::SqliteStore)
//! brings it from there to the newest, many texts in one go. What happened to a task in between is compared as a
//! whole: only if its texts differ is it indexed anew. What leaves, leaves the index at once.

use std::collections::BTreeMap;

use taskbus_core::bus::fold::words;
use taskbus_core::change::Kind;

use super::super::error::{Answer, Fault};
use super::super::scope::Scope;
use super::posts::Standing;
use super::streams::Looked;
use crate::store::bus::{Found, Hit, MessageFilter, Term};
use crate::store::revision::Searched;

const INDEXED: &str = "SELECT indexed FROM upkeep WHERE id = 0";
const SET_INDEXED: &str = "UPDATE upkeep SET indexed = ?1 WHERE id = 0";
const POSTS: &str = "
    SELECT seq, subject, content FROM posts WHERE seq > ?1 AND seq <= ?2 AND standing = 0 ORDER BY seq";
const REVISIONS: &str = "
    SELECT memory_id, seq, previous, type, note IS NOT NULL FROM messages WHERE seq > ?1 AND seq <= ?2 ORDER BY seq";
const DOCUMENT: &str = "SELECT type, content FROM messages WHERE seq = ?1";
const NOTE: &str = "SELECT previous, note FROM messages WHERE seq = ?1";
const ADD: &str = "INSERT INTO texts (rowid, subject, rest) VALUES (?1, ?2, ?3)";
const DROP: &str = "DELETE FROM texts WHERE rowid = ?1";
const MATCHES: &str = "SELECT rowid, bm25(texts) FROM texts WHERE texts MATCH ?1";
const TASK_SEQ: &str = "SELECT seq FROM tasks WHERE id = ?1";

/// Numbers taken into the index by one transaction.
pub(in crate::store::sqlite) const STRIDE: u64 = 1000;

/// What happened to a task since the index last knew it.
struct Since {
    /// The revision that the index knows; 0 for none.
    old: u64,
    /// The newest one to be known.
    new: u64,
    deleted: bool,
    noted: bool,
}

impl Scope<'_> {
    /// Up to which number the index knows everything.
    pub(super) fn indexed(&self) -> Answer<u64> {
        Ok(self.one(INDEXED, [], |row| row.get(0))?.unwrap_or(0))
    }

    /// Whether the index knows everything there is.
    pub(in crate::store::sqlite) fn is_indexed(&self) -> Answer<bool> {
        Ok(self.indexed()? >= self.seq.get())
    }

    /// Takes what comes next into the index; says whether there is nothing left.
    pub(in crate::store::sqlite) fn index_next(&self) -> Answer<bool> {
        let (from, newest) = (self.indexed()?, self.seq.get());
        let to = newest.min(from.saturating_add(STRIDE));
        if to > from {
            self.index_posts(from, to)?;
            self.index_tasks(from, to)?;
            self.run(SET_INDEXED, [to])?;
        }
        Ok(to == newest)
    }

    fn index_posts(&self, from: u64, to: u64) -> Answer<()> {
        let mut statement = self.connection.prepare_cached(POSTS)?;
        let mut rows = statement.query((from, to))?;
        while let Some(row) = rows.next()? {
            let (subject, content): (Option<String>, String) = (row.get(1)?, row.get(2)?);
            self.index(row.get(0)?, &subject.unwrap_or_default(), &content)?;
        }
        Ok(())
    }

    fn index_tasks(&self, from: u64, to: u64) -> Answer<()> {
        for (id, since) in self.changed_between(from, to)? {
            let old = self.searched(since.old)?;
            let new = if since.deleted { None } else { self.searched(since.new)? };
            if old == new && !(since.noted && new.is_some()) {
                continue;
            }
            if old.is_some() {
                self.run(DROP, [id])?;
            }
            if let Some(new) = new {
                let notes = self.notes_until(id, since.new)?;
                self.index(id, &new.subject, &new.rest(notes.iter().map(String::as_str)))?;
            }
        }
        Ok(())
    }

    fn changed_between(&self, from: u64, to: u64) -> Answer<BTreeMap<u64, Since>> {
        let mut changed: BTreeMap<u64, Since> = BTreeMap::new();
        let mut statement = self.connection.prepare_cached(REVISIONS)?;
        let mut rows = statement.query((from, to))?;
        while let Some(row) = rows.next()? {
            let (id, seq, old): (u64, u64, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let since = changed.entry(id).or_insert(Since { old, new: seq, deleted: false, noted: false });
            since.new = seq;
            since.deleted = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)? == Kind::Deleted.as_str();
            since.noted |= row.get::<_, bool>(4)?;
        }
        Ok(changed)
    }

    /// What a search looks at in a revision, without notes; nothing in one that deletes its task.
    pub(super) fn searched(&self, seq: u64) -> Answer<Option<Searched>> {
        let found = self.one(DOCUMENT, [seq], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let Some((_, document)) = found.filter(|(kind, _)| kind != Kind::Deleted.as_str()) else { return Ok(None) };
        let read = Searched::read(&document);
        read.map(Some).map_err(|error| Fault::Damaged(format!("revision {seq} cannot be read: {error}")))
    }

    /// The notes of a task up to a revision, oldest first.
    pub(super) fn notes_until(&self, id: u64, newest: u64) -> Answer<Vec<String>> {
        let (mut notes, mut at) = (Vec::new(), newest);
        while at > 0 {
            let found = self.one(NOTE, [at], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, Option<String>>(1)?)))?;
            let Some((previous, note)) = found.filter(|(previous, _)| *previous < at) else {
                return Err(Fault::Damaged(format!("the history of task {id} breaks off at {at}")));
            };
            notes.extend(note);
            at = previous;
        }
        notes.reverse();
        Ok(notes)
    }

    fn index(&self, id: u64, subject: &str, rest: &str) -> Answer<()> {
        self.run(ADD, (id, words(subject).join(" "), words(rest).join(" ")))?;
        Ok(())
    }

    /// Takes a message or a task out of the index, if it knows it.
    pub(super) fn unindex(&self, id: u64) -> Answer<()> {
        if id <= self.indexed()? {
            self.run(DROP, [id])?;
        }
        Ok(())
    }

    pub(super) fn search_texts(&self, terms: &[Term], filter: &MessageFilter<'_>, limit: usize) -> Answer<Vec<Hit>> {
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let mut matches = self.all(MATCHES, [expression(terms)], |row| Ok((-row.get::<_, f64>(1)?, row.get(0)?)))?;
        matches.sort_by(|a: &(f64, i64), b| b.0.total_cmp(&a.0));
        let mut hits: Vec<Hit> = Vec::new();
        for equals in matches.chunk_by_mut(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            if hits.len() >= limit {
                break;
            }
            equals.sort_by_key(|equal| equal.1);
            hits.extend(self.hits_among(equals, filter, limit - hits.len())?);
        }
        Ok(hits)
    }

    /// The first of equally good matches that the filter lets pass, by number. They come by id, and the number of a
    /// message is its id, that of a task's revision a larger one: so whatever is left has larger numbers than the id
    /// looked at.
    fn hits_among(&self, matches: &[(f64, i64)], filter: &MessageFilter<'_>, limit: usize) -> Answer<Vec<Hit>> {
        let mut hits: BTreeMap<Found, Hit> = BTreeMap::new();
        for &(score, id) in matches {
            if hits.len() == limit && hits.last_key_value().is_some_and(|(last, _)| last.seq < id.cast_unsigned()) {
                break;
            }
            let looked = self.live_text(id)?.filter(|looked| looked.facts().are_looked_at(filter));
            hits.extend(looked.map(|looked| (looked.found, Hit { found: looked.found, score })));
            if hits.len() > limit {
                hits.pop_last();
            }
        }
        Ok(hits.into_values().collect())
    }

    /// The live message, or the live revision of the task, that a text is of.
    fn live_text(&self, id: i64) -> Answer<Option<Looked>> {
        if let Some(post) = self.looked_at_post(id)? {
            return Ok(Some(post).filter(|post| post.standing == Standing::Live));
        }
        match self.one(TASK_SEQ, [id], |row| row.get(0))? {
            Some(seq) => self.looked_at_revision(seq),
            None => Ok(None),
        }
    }
}

/// The terms as FTS5 reads them. Words have nothing but letters and digits, so that none is ever syntax.
fn expression(terms: &[Term]) -> String {
    let phrase = |term: &Term| format!("\"{}\"{}", term.words.join(" "), if term.prefix { " *" } else { "" });
    terms.iter().map(phrase).collect::<Vec<_>>().join(" AND ")
}
