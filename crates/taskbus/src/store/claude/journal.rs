//! A transaction that changes several files, as one file: once it is on disk, the transaction has happened.
//!
//! Whoever finds it finishes the work, and whoever only reads sees the work as finished. A file that is no longer as
//! the transaction found it was written already, or changed by somebody else after that, and is left alone.

use serde::{Deserialize, Serialize};

use super::names;

const VERSION: u32 = 1;

/// What a transaction does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    /// Which.
    pub(super) name: String,
    /// Its bytes before; none for a new file.
    pub(super) before: Option<Vec<u8>>,
    /// Its bytes afterwards; none for one that is removed.
    pub(super) after: Option<Vec<u8>>,
}

/// Why a journal cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JournalFault {
    /// A newer taskbus wrote it in a way that this one does not know.
    Newer(u32),
    /// It is none.
    Damaged(String),
}

/// What is left to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Journal {
    entries: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    #[serde(default)]
    writes: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    name: String,
    before: Option<String>,
    after: Option<String>,
}

/// The bytes of a journal.
pub(super) fn encode(writes: &[Write]) -> Vec<u8> {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).expect("BUG: what we write is text");
    let entry = |write: &Write| Entry {
        name: write.name.clone(),
        before: write.before.as_deref().map(print),
        after: write.after.as_ref().map(text),
    };
    let document = Document { version: VERSION, writes: writes.iter().map(entry).collect() };
    serde_json::to_vec(&document).expect("BUG: text is JSON")
}

impl Journal {
    /// Reads a journal.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, JournalFault> {
        let damaged = |error: &dyn ToString| JournalFault::Damaged(error.to_string());
        let document: Document = serde_json::from_slice(bytes).map_err(|error| damaged(&error))?;
        if document.version > VERSION {
            return Err(JournalFault::Newer(document.version));
        }
        match document.writes.iter().find(|entry| names::task_of(&entry.name).is_none()) {
            Some(entry) => Err(damaged(&format!("{:?} is no task file", entry.name))),
            None => Ok(Self { entries: document.writes }),
        }
    }

    /// What is left to do, given what the files are now. It is done in order: what stands before something that was
    /// done was done too, whatever became of it since.
    pub(super) fn left<'a>(&self, current: impl Fn(&str) -> Option<&'a [u8]>) -> Vec<Write> {
        let is_done = |entry: &Entry| current(&entry.name) == entry.after.as_deref().map(str::as_bytes);
        let done = self.entries.iter().rposition(is_done).map_or(0, |at| at + 1);
        let open = self.entries[done..].iter();
        let open = open.filter(|entry| current(&entry.name).map(print) == entry.before);
        let write = |entry: &Entry| Write {
            name: entry.name.clone(),
            before: current(&entry.name).map(<[u8]>::to_vec),
            after: entry.after.clone().map(String::into_bytes),
        };
        open.map(write).collect()
    }
}

fn print(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Files = BTreeMap<String, Vec<u8>>;

    fn files(all: &[(&str, &str)]) -> Files {
        all.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    fn write(name: &str, before: Option<&str>, after: Option<&str>) -> Write {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        Write { name: name.to_owned(), before: bytes(before), after: bytes(after) }
    }

    #[track_caller]
    fn check(now: &[(&str, &str)], left: &[&str]) {
        let writes =
            [write("1.json", Some("a"), Some("A")), write("2.json", Some("b"), None), write("3.json", None, Some("C"))];
        let journal = Journal::read(&encode(&writes)).unwrap();
        let now = files(now);
        let names: Vec<String> =
            journal.left(|name| now.get(name).map(Vec::as_slice)).into_iter().map(|write| write.name).collect();
        assert_eq!(names, left);
    }

    #[test]
    fn what_is_left_is_what_is_still_as_it_was() {
        check(&[("1.json", "a"), ("2.json", "b")], &["1.json", "2.json", "3.json"]);
        check(&[("1.json", "A"), ("2.json", "b")], &["2.json", "3.json"]);
        check(&[("1.json", "A")], &["3.json"]);
        check(&[("1.json", "A"), ("3.json", "C")], &[]);
    }

    #[test]
    fn what_others_changed_is_left_alone() {
        check(&[("1.json", "other"), ("2.json", "b")], &["2.json", "3.json"]);
        check(&[("1.json", "a"), ("2.json", "other"), ("3.json", "C")], &[]);
        check(&[("1.json", "a"), ("2.json", "b"), ("3.json", "other")], &["1.json", "2.json"]);
    }

    #[test]
    fn a_journal_that_cannot_be_followed_says_why() {
        assert!(matches!(Journal::read(b"{\"version\":1"), Err(JournalFault::Damaged(_))));
        assert_eq!(Journal::read(br#"{"version":2}"#), Err(JournalFault::Newer(2)));
        for name in ["../1.json", ".highwatermark", "1.json.tmp.00000000", "/etc/1.json"] {
            let text = format!(r#"{{"version":1,"writes":[{{"name":"{name}","before":null,"after":null}}]}}"#);
            assert!(matches!(Journal::read(text.as_bytes()), Err(JournalFault::Damaged(_))), "{name}");
        }
    }
}
