//! The chain of revisions: each one carries a hash over the one before and over everything that it says, so that an
//! edit, a removal or a swap anywhere shows at the next look (ADR 0024). Only what a link is stands here; which
//! revision is the one before, and where links are kept, is a store's matter.
//!
//! ```text
//!  store id ─▶ first ─▶ link of revision 1 ─▶ link of revision 2 ─▶ … ─▶ head
//! ```
//!
//! What is hashed begins with words that say what it is and in which form, numbers have eight bytes, the lowest first,
//! and a text comes behind its length, so that no two things are written alike.

use std::fmt;

/// Begins what a link is made of. Another form needs other words.
const REVISION: &[u8] = b"taskbus revision 1";
/// Begins what the link before the first is made of.
const FIRST: &[u8] = b"taskbus store 1";
/// Begins what a seal is made of.
const SEAL: &[u8] = b"taskbus seal 1";

/// The hash of a revision and of all before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link([u8; 32]);

/// Everything that a store keeps of a revision.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its place in the order of the store.
    pub seq: u64,
    /// The name of its list.
    pub list: &'a str,
    /// The id of its task.
    pub task: u64,
    /// Its number in the history of the task.
    pub revision: u64,
    /// The seq of the task's revision before; 0 for none.
    pub previous: u64,
    /// The word of its kind.
    pub kind: &'a str,
    /// Who made it; none for the maintenance.
    pub sender: Option<&'a str>,
    /// The session's context.
    pub context: &'a str,
    /// The client program.
    pub client: &'a str,
    /// When, in milliseconds.
    pub at: i64,
    /// The remark made with it.
    pub note: Option<&'a str>,
    /// The document of the task.
    pub content: &'a str,
}

impl Link {
    /// What stands before the first revision of a store: the chain of one store is that of no other.
    #[must_use]
    pub fn first(store: &str) -> Self {
        Self::of(&Bytes::new(FIRST, store.len()).text(store))
    }

    /// The link of the revision that follows.
    #[must_use]
    pub fn next(&self, entry: &Entry<'_>) -> Self {
        let mut bytes = Bytes::new(REVISION, entry.content.len() + 256).raw(&self.0);
        bytes = bytes.number(entry.seq).text(entry.list).number(entry.task).number(entry.revision);
        bytes = bytes.number(entry.previous).text(entry.kind).optional(entry.sender).text(entry.context);
        bytes = bytes.text(entry.client).number(entry.at.cast_unsigned()).optional(entry.note).text(entry.content);
        Self::of(&bytes)
    }

    /// A hash over the head of the chain and the newest seq, which need not be that of a revision.
    #[must_use]
    pub fn seal(&self, seq: u64, epoch: u64) -> Self {
        Self::of(&Bytes::new(SEAL, 0).raw(&self.0).number(seq).number(epoch))
    }

    /// A stored link; none if these are not its 32 bytes.
    #[must_use]
    pub fn from_stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn of(bytes: &Bytes) -> Self {
        Self(blake3::hash(&bytes.0).into())
    }
}

/// In hexadecimal digits.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({self})")
    }
}

/// What is hashed, in one piece: that is faster than many small ones.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(what: &[u8], room: usize) -> Self {
        let mut bytes = Vec::with_capacity(what.len() + room + 64);
        bytes.extend_from_slice(what);
        Self(bytes)
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn number(self, number: u64) -> Self {
        self.raw(&number.to_le_bytes())
    }

    fn text(self, text: &str) -> Self {
        self.number(text.len() as u64).raw(text.as_bytes())
    }

    fn optional(self, text: Option<&str>) -> Self {
        match text {
            None => self.raw(&[0]),
            Some(text) => self.raw(&[1]).text(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const ENTRY: Entry<'static> = Entry {
        seq: 7,
        list: "tasks/work",
        task: 3,
        revision: 2,
        previous: 3,
        kind: "",
        sender: Some("Zed"),
        context: "tests",
        client: "claude 1",
        at: 5,
        note: None,
        content: "{}",
    };

    #[test]
    fn every_field_and_the_link_before_count() {
        let e = ENTRY;
        let others = [
            Entry { seq: 8, ..e },
            Entry { list: "tasks/worl", ..e },
            Entry { task: 4, ..e },
            Entry { revision: 3, ..e },
            Entry { previous: 4, ..e },
            Entry { kind: "forced", ..e },
            Entry { sender: None, ..e },
            Entry { sender: Some(""), ..e },
            Entry { context: "", ..e },
            Entry { client: "", ..e },
            Entry { at: -5, ..e },
            Entry { note: Some(""), ..e },
            Entry { content: "{ }", ..e },
            // The same characters, cut elsewhere.
            Entry { context: "testsc", client: "laude 1", ..e },
            Entry { kind: "tests", context: "", ..e },
        ];
        let first = Link::first("a");
        let links: HashSet<Link> = others.iter().chain([&e]).map(|entry| first.next(entry)).collect();
        assert_eq!(links.len(), others.len() + 1);
        assert_ne!(Link::first("b").next(&e), first.next(&e));
    }

    #[test]
    fn the_form_never_changes() {
        let link = Link::first("0123").next(&ENTRY);
        assert_eq!(link.to_string(), "c64dd1a65b9c3ffeac988d7ad299da381e1017d829bc32ff1efb42e8303b1fe4");
        assert_eq!(link.seal(9, 1).to_string(), "fe6bea669c166e77979fc89de7d683441460d82de0287d823b52e258baf274b8");
        assert_eq!(Link::from_stored(link.as_bytes()), Some(link));
        assert_eq!(Link::from_stored(&link.as_bytes()[1..]), None);
    }
}
