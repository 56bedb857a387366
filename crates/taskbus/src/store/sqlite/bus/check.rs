//! The doctor's look at the bus: counts counted again, tags and marks compared with the messages, and every word of the
//! full-text index with the texts that it should know.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};

use taskbus_core::bus::fold::words;

use super::super::error::Answer;
use super::super::scope::Scope;
use super::super::verify::{Findings, readable};
use super::posts;

const COUNTS: &str = "
    SELECT c.name, c.live, c.rows, c.latest_seq, sum(p.standing = 0), count(p.seq), max(p.seq)
    FROM channels c LEFT JOIN posts p ON p.channel = c.id GROUP BY c.id ORDER BY c.name";
const HOMELESS: &str = "SELECT seq FROM posts WHERE channel NOT IN (SELECT id FROM channels)";
const NEWEST: &str = "SELECT coalesce(max(seq), 0) FROM posts";
const TAGGED: &str = "SELECT seq, tags FROM posts WHERE standing < 2 AND tags <> ''";
const TAGS: &str = "SELECT seq, tag FROM message_tags";
const MARKED: &str = "
    SELECT p.seq FROM posts p LEFT JOIN embeddings e ON e.seq = p.seq WHERE p.embedded <> (e.seq IS NOT NULL)";
const USELESS: &str = "
    SELECT e.seq FROM embeddings e LEFT JOIN posts p ON p.seq = e.seq
    WHERE p.standing IS NOT 0 OR p.memory_id IS NULL";
const POSTS: &str = "SELECT seq, subject, content FROM posts WHERE standing = 0 AND seq <= ?1";
const PREVIOUS: &str = "SELECT previous FROM messages WHERE seq = ?1";
const WORDS: &str = "SELECT doc, col, offset, term FROM text_words";
const NEWEST_OF_TASKS: &str = "SELECT id, seq FROM tasks UNION ALL SELECT id, seq FROM tombstones";
/// A task that came, or came back, by a number has a text, unless it went again.
const TEXTS_EXPECTED: &str = "
    SELECT (SELECT count(*) FROM posts WHERE standing = 0 AND seq <= ?1)
         + (SELECT count(*) FROM messages WHERE seq <= ?1 AND (previous = 0 OR type = 'restored'))
         - (SELECT count(*) FROM messages WHERE seq <= ?1 AND type = 'deleted')";
const TEXTS_STORED: &str = "SELECT count(*) FROM texts";
const TEXTS: &str = "SELECT rowid FROM texts";

/// A number for all words of a text together with their places, whatever their order.
struct Prints {
    hasher: RandomState,
    of: BTreeMap<u64, u64>,
}

impl Prints {
    fn add(&mut self, id: u64, place: (&str, u64), word: &str) {
        let print = self.hasher.hash_one((place, word));
        let sum = self.of.entry(id).or_default();
        *sum = sum.wrapping_add(print);
    }

    fn add_text(&mut self, id: u64, subject: &str, rest: &str) {
        self.of.entry(id).or_default();
        for (column, text) in [("subject", subject), ("rest", rest)] {
            for (at, word) in (0..).zip(words(text)) {
                self.add(id, (column, at), &word);
            }
        }
    }
}

impl Scope<'_> {
    /// Everything on the bus that differs from what the messages say. Of the texts in the index, every word or only how
    /// many there are.
    pub(in crate::store::sqlite) fn check_bus(&self, words: bool, found: &mut Findings<'_>) -> Answer<()> {
        self.check_channels(found)?;
        self.check_messages(found)?;
        self.check_tags(found)?;
        for seq in self.all(MARKED, [], |row| row.get::<_, i64>(0))? {
            found.push(format!("message {seq} is not marked as its vector is there"));
        }
        for seq in self.all(USELESS, [], |row| row.get::<_, i64>(0))? {
            found.push(format!("the vector of message {seq} is of no live memory"));
        }
        if words { self.check_texts(found) } else { self.count_texts(found) }
    }

    fn count_texts(&self, found: &mut Findings<'_>) -> Answer<()> {
        let expected = self.one(TEXTS_EXPECTED, [self.indexed()?], |row| row.get::<_, i64>(0))?;
        let stored = self.one(TEXTS_STORED, [], |row| row.get::<_, i64>(0))?;
        if expected != stored {
            let (stored, expected) = (stored.unwrap_or(0), expected.unwrap_or(0));
            found.push(format!("{stored} texts are in the index, which should know {expected}"));
        }
        Ok(())
    }

    fn check_channels(&self, found: &mut Findings<'_>) -> Answer<()> {
        type Counts = (String, [i64; 3], [Option<i64>; 3]);
        let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Counts> {
            let kept = [row.get(1)?, row.get(2)?, row.get(3)?];
            Ok((row.get(0)?, kept, [row.get(4)?, row.get(5)?, row.get(6)?]))
        };
        for (name, kept, counted) in self.all(COUNTS, [], read)? {
            let counted = counted.map(|count| count.unwrap_or(0));
            // Of the newest message that there ever was, nothing need be left.
            if kept[..2] != counted[..2] || kept[2] < counted[2] {
                found.push(format!("the counts of channel {name} are {kept:?}, not {counted:?}"));
            }
        }
        for seq in self.all(HOMELESS, [], |row| row.get::<_, i64>(0))? {
            found.push(format!("message {seq} is in no channel"));
        }
        let newest = self.one(NEWEST, [], |row| row.get::<_, u64>(0))?.unwrap_or(0);
        if newest > self.seq.get() {
            found.push(format!("the newest seq is kept as {}, but there is message {newest}", self.seq.get()));
        }
        Ok(())
    }

    /// Whether each message is as it was written.
    fn check_messages(&self, found: &mut Findings<'_>) -> Answer<()> {
        let mut statement = self.connection.prepare(posts::POSTS)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Err(why) = readable(posts::message_from(row))? {
                found.push(why);
            }
        }
        Ok(())
    }

    fn check_tags(&self, found: &mut Findings<'_>) -> Answer<()> {
        let pair = |row: &rusqlite::Row<'_>| -> rusqlite::Result<(i64, String)> { Ok((row.get(0)?, row.get(1)?)) };
        let named = self.all(TAGGED, [], pair)?.into_iter();
        let named = named.flat_map(|(seq, tags)| tags.split(' ').map(|tag| (seq, tag.to_owned())).collect::<Vec<_>>());
        let (named, stored): (BTreeSet<_>, BTreeSet<_>) =
            (named.collect(), self.all(TAGS, [], pair)?.into_iter().collect());
        found.extend(named.difference(&stored).map(|(seq, tag)| format!("message {seq}: tag {tag} is missing")));
        found.extend(stored.difference(&named).map(|(seq, tag)| format!("message {seq}: tag {tag} is too many")));
        Ok(())
    }

    fn check_texts(&self, found: &mut Findings<'_>) -> Answer<()> {
        let mut expected = Prints { hasher: RandomState::new(), of: BTreeMap::new() };
        self.expect_posts(&mut expected)?;
        for (id, newest) in self.all(NEWEST_OF_TASKS, [], |row| Ok((row.get(0)?, row.get(1)?)))? {
            self.expect_task(id, newest, &mut expected)?;
        }
        let stored = self.stored_prints(expected.hasher.clone())?;
        for (id, print) in &expected.of {
            match stored.of.get(id) {
                None => found.push(format!("text {id} is not in the index")),
                Some(stored) if stored != print => found.push(format!("text {id} is indexed with other words")),
                Some(_) => {}
            }
        }
        let alien = stored.of.keys().filter(|id| !expected.of.contains_key(id));
        found.extend(alien.map(|id| format!("text {id} is in the index, but of nothing that is live")));
        Ok(())
    }

    fn expect_posts(&self, expected: &mut Prints) -> Answer<()> {
        let mut statement = self.connection.prepare_cached(POSTS)?;
        let mut rows = statement.query([self.indexed()?])?;
        while let Some(row) = rows.next()? {
            let (subject, content): (Option<String>, String) = (row.get(1)?, row.get(2)?);
            expected.add_text(row.get(0)?, &subject.unwrap_or_default(), &content);
        }
        Ok(())
    }

    /// The text of a task as it was when the index last looked.
    fn expect_task(&self, id: u64, newest: u64, expected: &mut Prints) -> Answer<()> {
        let (mut at, indexed) = (newest, self.indexed()?);
        while at > indexed {
            let previous = self.one(PREVIOUS, [at], |row| row.get::<_, u64>(0))?.unwrap_or(0);
            // A history that breaks off or runs in a circle is told elsewhere.
            at = if previous < at { previous } else { 0 };
        }
        // So is a revision that cannot be read.
        let Ok(Some(searched)) = self.searched(at) else { return Ok(()) };
        let Ok(notes) = self.notes_until(id, at) else { return Ok(()) };
        expected.add_text(id, &searched.subject, &searched.rest(notes.iter().map(String::as_str)));
        Ok(())
    }

    fn stored_prints(&self, hasher: RandomState) -> Answer<Prints> {
        let mut stored = Prints { hasher, of: BTreeMap::new() };
        for id in self.all(TEXTS, [], |row| row.get(0))? {
            stored.of.insert(id, 0);
        }
        let mut statement = self.connection.prepare_cached(WORDS)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (column, word) = (row.get_ref(1)?.as_str(), row.get_ref(3)?.as_str());
            let (column, word) = (column.map_err(rusqlite::Error::from)?, word.map_err(rusqlite::Error::from)?);
            stored.add(row.get(0)?, (column, row.get(2)?), word);
        }
        Ok(stored)
    }
}
