//! Revisions of tasks as messages of their list's channel, and what of a task is found by a search. Every store with a
//! bus goes by this, so that it reads the same everywhere.

use serde::Deserialize;
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::{Headline, MemoryRef, Message, Sort};
use taskbus_core::change::Kind;
use taskbus_core::limits;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::task::Task;
use taskbus_core::time::Timestamp;

/// A revision of a task, as it is stored.
pub(super) struct Revision<'a> {
    pub(super) list: &'a ListName,
    pub(super) seq: u64,
    pub(super) place: MemoryRef,
    pub(super) kind: Kind,
    pub(super) sender: Option<Identity>,
    pub(super) context: String,
    pub(super) at: Timestamp,
    /// The task as JSON.
    pub(super) document: String,
}

impl Revision<'_> {
    /// The message that subscribers of the list get.
    pub(super) fn into_message(self) -> Message {
        Message {
            seq: self.seq,
            channel: ChannelName::from(self.list),
            sender: self.sender,
            context: self.context,
            created_at: self.at,
            sort: sort_of(self.kind),
            subject: headline(&self.document),
            content: if self.kind == Kind::Deleted { String::new() } else { self.document },
            reply_to: None,
            metadata: None,
            memory: Some(self.place),
            tags: Vec::new(),
            matched_tags: Vec::new(),
        }
    }
}

fn sort_of(kind: Kind) -> Sort {
    Sort::new(kind.as_str()).expect("BUG: the word of a kind is short")
}

/// The subject that a document names, as far as it fits.
fn headline(document: &str) -> Option<Headline> {
    #[derive(Deserialize)]
    struct Named {
        subject: String,
    }
    let Named { subject } = serde_json::from_str(document).ok()?;
    let short: String = subject.chars().take(limits::HEADLINE_CHARS_MAX).collect();
    Headline::new(&short).ok().flatten()
}

/// What a search looks at in a task: its subject, and then its description, its result and its notes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Searched {
    pub(super) subject: String,
    description: Option<String>,
    result: Option<String>,
}

impl Searched {
    /// Reads it from the task as JSON.
    #[cfg(feature = "sqlite")]
    pub(super) fn read(document: &str) -> serde_json::Result<Self> {
        serde_json::from_str(document)
    }

    /// All but the subject, with these notes.
    pub(super) fn rest<'a>(&'a self, notes: impl IntoIterator<Item = &'a str>) -> String {
        let own = [self.description.as_deref(), self.result.as_deref()];
        own.into_iter().flatten().chain(notes).collect::<Vec<_>>().join("\n")
    }
}

impl From<&Task> for Searched {
    fn from(task: &Task) -> Self {
        Self {
            subject: task.subject.as_str().to_owned(),
            description: task.description.as_ref().map(|text| text.as_str().to_owned()),
            result: task.result.as_ref().map(|text| text.as_str().to_owned()),
        }
    }
}
