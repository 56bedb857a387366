//! What a tool and its fields are. The [table](super::table) is written in these types; the published schema, the
//! decoder and the documentation are read from it, so that a field is described once.

use super::args::Args;
use super::desk::{Asked, Desk, Reply};
use crate::wire::error::Failure;

/// What a call of a tool does.
pub(super) type Run = fn(&Desk, &mut Args, &Asked<'_>) -> Result<Reply, Failure>;

/// A tool as its table entry says.
#[derive(Debug)]
pub(super) struct Tool {
    /// The name by which it is called.
    pub(super) name: &'static str,
    /// A few words for people.
    pub(super) title: &'static str,
    /// For models: what it does, when to use it, what comes back, how it usually refuses. At most 600 characters.
    pub(super) description: &'static str,
    /// What a call does to the store.
    pub(super) effect: Effect,
    /// Loaded without being searched for first, in clients that would otherwise show only its name.
    pub(super) always_load: bool,
    /// What it takes.
    pub(super) fields: &'static [Field],
    /// What a call does.
    pub(super) run: Run,
}

/// What a call does to the store, for the annotations that clients decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing that a reader could see.
    Read,
    /// Adds or changes; the same call again does it again.
    Write,
    /// Adds or changes; the same call again changes nothing more.
    WriteOnce,
    /// May also remove.
    Remove,
}

/// A field of a tool.
#[derive(Debug)]
pub(super) struct Field {
    /// Its name.
    pub(super) name: &'static str,
    /// What it may hold.
    pub(super) kind: Kind,
    /// Whether a call without it is refused.
    pub(super) required: bool,
    /// A few words for models; empty when the name says it all.
    pub(super) doc: &'static str,
    /// Other spellings of the name that are understood and not published.
    pub(super) aliases: &'static [&'static str],
}

impl Field {
    /// A field that may be left out.
    pub(super) const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, required: false, doc, aliases: &[] }
    }

    /// The same field, required.
    pub(super) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The same field, also understood under these names.
    pub(super) const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// The same field with other words.
    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}

/// What a field may hold, and how it is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Text; an empty one counts as absent.
    Text,
    /// Text; an empty one clears what is there.
    Clearable,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Yes or no.
    Flag,
    /// A whole number.
    Integer {
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A task.
    Id,
    /// A task, published as text.
    IdText,
    /// A task, or 0 for none.
    IdOrNone,
    /// The number of a message or of a memory; 0 for none.
    Seq,
    /// Unix milliseconds or RFC 3339, published as a number; 0 clears.
    Millis,
    /// The same, published as text.
    Date,
    /// Tasks.
    Ids,
    /// Tasks, published as texts.
    IdTexts,
    /// Texts without commas inside.
    Words,
    /// Texts.
    Texts,
    /// A key of the plan, or an id.
    Reference,
    /// Several of those.
    References,
    /// Text values by name.
    Metadata,
    /// Any JSON by name.
    Data,
    /// Objects with these fields.
    Items(&'static [Field]),
}
