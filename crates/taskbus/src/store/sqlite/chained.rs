//! The chain of revisions in this store: one for all lists, in the order of seq, as writers are one after another here
//! anyway. Its head stands in row 0 of the counters, which every writing transaction reads and writes in any case, so
//! that a link costs its hash and nothing else.

use std::collections::BTreeMap;

use rusqlite::Row as SqlRow;

use super::error::{Answer, Fault};
use super::scope::{Scope, link_from};
use crate::store::chain::{Entry, Link};

/// The key of the store's id in `meta`.
pub(super) const STORE_ID: &str = "store";

const ID: &str = "SELECT value FROM meta WHERE key = ?1";

const LISTS: &str = "SELECT id, name FROM lists";
const REMOVED_BETWEEN: &str = "
    SELECT link FROM removed WHERE seq > ?1 AND seq < ?2 ORDER BY seq DESC LIMIT 1";
const HEAD: &str = "SELECT seq, epoch, head, seal FROM counters WHERE id = 0";

/// Sums of marks stay below this, so that adding two never leaves the integers of SQLite.
pub(super) const MARKS: i64 = (1 << 62) - 1;

/// Before the revisions of a list go: the links that whoever follows the chain will need, those of revisions with
/// one of another list, or none, behind them.
const KEEP_LINKS: &str = "
    INSERT INTO removed (seq, link)
    SELECT m.seq, m.link FROM messages m INDEXED BY messages_by_list
    WHERE m.list = ?1 AND (SELECT n.list FROM messages n WHERE n.seq > m.seq ORDER BY n.seq LIMIT 1) IS NOT ?1";
/// After they went: of links with no revision between them only the last is needed.
const DROP_LINKS: &str = "
    DELETE FROM removed
    WHERE (SELECT min(n.seq) FROM removed n WHERE n.seq > removed.seq)
        < coalesce((SELECT min(m.seq) FROM messages m WHERE m.seq > removed.seq), 9223372036854775807)";

impl Scope<'_> {
    /// The id of the store, made when the file was.
    pub(super) fn store_id(&self) -> Answer<String> {
        let found = self.one(ID, [STORE_ID], |row| row.get(0))?;
        found.ok_or_else(|| Fault::Damaged("it has no id".to_owned()))
    }

    /// The link of the newest revision, or what stands before the first.
    pub(super) fn head(&self) -> Answer<Link> {
        match self.head.get() {
            Some(head) => Ok(head),
            None => Ok(Link::first(&self.store_id()?)),
        }
    }

    /// The link of a new revision, which is the head from now on.
    pub(super) fn link(&self, entry: &Entry<'_>) -> Answer<Link> {
        let link = self.head()?.next(entry);
        self.head.set(Some(link));
        Ok(link)
    }

    /// To be called before the revisions of a list go.
    pub(super) fn keep_links(&self, list: i64) -> Answer<()> {
        self.run(KEEP_LINKS, [list])?;
        Ok(())
    }

    /// To be called after they went.
    pub(super) fn drop_needless_links(&self) -> Answer<()> {
        self.run(DROP_LINKS, [])?;
        Ok(())
    }

    /// The seal of the newest seq.
    pub(super) fn seal(&self) -> Answer<Link> {
        Ok(self.head()?.seal(self.seq.get(), self.epoch.get()))
    }
}

/// A walk along the chain, from its beginning.
pub(super) struct Walk<'s, 'c> {
    scope: &'s Scope<'c>,
    lists: BTreeMap<i64, String>,
    seq: i64,
    link: Link,
}

impl<'s, 'c> Walk<'s, 'c> {
    pub(super) fn begin(scope: &'s Scope<'c>) -> Answer<Self> {
        let lists = scope.all(LISTS, [], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect();
        Ok(Self { scope, lists, seq: 0, link: Link::first(&scope.store_id()?) })
    }

    /// Goes on to the next revision there is, in a row with every column; says whether its link is what
    /// follows. From one that does not, the walk goes on as if it did, so that one edit is told once.
    pub(super) fn step(&mut self, row: &SqlRow<'_>) -> Answer<bool> {
        let seq: i64 = row.get("seq")?;
        let before = self.before(seq)?;
        let list = self.lists.get(&row.get("list")?).map_or("", String::as_str);
        let (note, sender): (Option<String>, Option<String>) = (row.get("note")?, row.get("sender")?);
        let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        let expected = before.next(&Entry {
            seq: seq.cast_unsigned(),
            list,
            task: number("memory_id")?,
            revision: number("revision")?,
            previous: number("previous")?,
            kind: text("type")?,
            sender: sender.as_deref(),
            context: text("context")?,
            client: text("client")?,
            at: row.get("created_at")?,
            note: note.as_deref(),
            content: text("content")?,
        });
        let stored = Link::from_stored(row.get_ref("link")?.as_blob().map_err(rusqlite::Error::from)?);
        (self.seq, self.link) = (seq, stored.unwrap_or(expected));
        Ok(stored == Some(expected))
    }

    /// The link in front of a place: that of the last revision, or of a later one that went with its list.
    fn before(&self, seq: i64) -> Answer<Link> {
        let between = || self.scope.one(REMOVED_BETWEEN, (self.seq, seq), |row| row.get::<_, Vec<u8>>(0));
        match if seq > self.seq + 1 { between()? } else { None } {
            Some(bytes) => link_from(&bytes),
            None => Ok(self.link),
        }
    }

    /// At the end: whether the head is the last link, and the seal is that of the head and the newest seq.
    pub(super) fn end(&self) -> Answer<Vec<String>> {
        let mut found = Vec::new();
        let read = |row: &SqlRow<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let Some((seq, epoch, head, seal)) = self.scope.one(HEAD, [], read)? else { return Ok(found) };
        let (seq, epoch): (i64, i64) = (seq, epoch);
        let (head, seal): (Option<Vec<u8>>, Option<Vec<u8>>) = (head, seal);
        let last = self.before(i64::MAX)?;
        let first = Link::first(&self.scope.store_id()?);
        if head.as_deref().map_or(Some(first), Link::from_stored) != Some(last) {
            found.push(format!(
                "the chain ends at revision {} with another link than the store keeps as its head",
                self.seq
            ));
        }
        let expected = last.seal(seq.cast_unsigned(), epoch.cast_unsigned());
        // Nothing was ever written.
        let fresh = (seq, epoch) == (0, 1) && seal.is_none();
        if !fresh && seal.as_deref().and_then(Link::from_stored) != Some(expected) {
            found.push(format!("the seal does not fit the newest seq {seq} of epoch {epoch} and the end of the chain"));
        }
        Ok(found)
    }
}

/// The mark of a task and its place in the order of dependencies: a number that looks like any other.
pub(super) fn mark(id: i64, ord: i64) -> i64 {
    let mut mark = id.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ ord.cast_unsigned();
    for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)] {
        mark = (mark ^ (mark >> shift)).wrapping_mul(factor);
    }
    (mark ^ (mark >> 31)).cast_signed() & MARKS
}
