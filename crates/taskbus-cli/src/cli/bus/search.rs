//! `search`.

use serde_json::{Map, Value};
use taskbus::answer::memory::Found;
use taskbus::engine::SearchAsk;
use taskbus_core::bus::query::Mode;
use taskbus_core::bus::tag;
use taskbus_core::time::Timestamp;

use super::args::Search;
use super::show;
use super::talk::channel;
use crate::cli::desk::Desk;
use crate::cli::input;
use crate::cli::values::Moment;
use crate::term::failure::Failure;
use crate::term::report::Report;
use crate::term::safe::display_safe;
use crate::wire;

/// Finds messages, memories and tasks.
pub(crate) fn search(desk: &Desk, search: &Search) -> Result<Box<dyn Report>, Failure> {
    let now = desk.engine.now()?;
    let ask = SearchAsk {
        query: search.query.join(" "),
        mode: search.mode.as_deref().and_then(Mode::from_word),
        channel: search.channel.as_deref().map(channel).transpose()?,
        sender: search.sender.as_deref().map(|name| input::identity("sender", name)).transpose()?,
        since: search.since.map(at).transpose()?.flatten(),
        until: search.until.map(at).transpose()?.flatten(),
        thread: search.thread,
        tags: tag::normalize_patterns(&search.tags)?,
        count: search.count,
        cursor: search.cursor.clone(),
        // What a person looks up keeps no memory alive.
        touch: false,
    };
    let found = desk.engine.search(desk.caller()?, &ask)?;
    Ok(Box::new(Hits { found, now }))
}

/// A time of the past: one with its date, not one from now on.
fn at(moment: Moment) -> Result<Option<Timestamp>, Failure> {
    match moment {
        Moment::None => Ok(None),
        Moment::At(at) => Ok(Some(at)),
        Moment::In(_) => Err(Failure::usage("name a time with its date and offset, such as 2026-12-01T08:00:00Z")),
    }
}

/// What was found.
struct Hits {
    found: Found,
    now: Timestamp,
}

impl Report for Hits {
    fn json(&self) -> Map<String, Value> {
        wire::object(&self.found)
    }

    fn words(&self, _: Option<usize>) -> String {
        let mut words = show::messages(self.found.hits.iter().map(|hit| &hit.message), self.now);
        if self.found.hits.is_empty() {
            words.push_str("nothing found\n");
        }
        if self.found.semantic_unavailable {
            words.push_str("by words only: nothing answers for the meaning of texts\n");
        }
        words.extend(self.found.next.iter().map(|next| format!("there are more: --cursor {}\n", display_safe(next))));
        words
    }
}
