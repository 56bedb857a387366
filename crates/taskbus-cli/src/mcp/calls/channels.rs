//! `create_channel`, `list_channels`, `subscribe`, `unsubscribe` and `discover`.

use serde_json::{Map, Value, json};
use taskbus::engine::Follow;
use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::rules::Start;
use taskbus_core::bus::tag::TagSet;
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::policy::Policy;
use taskbus_core::refusal::{Invalid, Refusal};

use super::Act;
use crate::mcp::args::Args;
use crate::mcp::desk::{Asked, BUDGET, Desk, Reply};
use crate::mcp::typed;
use crate::wire::error::Failure;
use crate::wire::{answer, fit, object};

/// The words for the kinds of channels, for the table.
pub(crate) const KINDS: &[&str] = &["memory", "ordinary"];
/// The words for where to begin, for the table.
pub(crate) const BEGINNINGS: &[&str] = &["now", "oldest"];

/// Makes a channel.
pub(crate) fn create(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let kind = args.word("kind").and_then(ChannelKind::from_word);
    let name = typed("name", args.required_text("name"), ChannelName::new)?;
    let max_reclaims = args.count("max_reclaims").and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    let act = Act::begin(desk, args, asked)?;
    let rules = ListRules { policy: Policy::Strict, max_reclaims };
    let made = act.engine.create_channel(&act.who.name, &name, kind, rules)?;
    Ok(act.signed(object(&made)))
}

/// Shows the channels there are.
pub(crate) fn list(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let cursor = args.text("cursor");
    let act = Act::begin(desk, args, asked)?;
    let rows = act.engine.channels(&act.who.name)?.iter().map(object).collect();
    Ok(act.rows(page("channels", rows, "name", cursor.as_deref()), "channels"))
}

/// Shows who is here.
pub(crate) fn discover(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let cursor = args.text("cursor");
    let act = Act::begin(desk, args, asked)?;
    let rows = act.engine.discover(&act.who.name)?.iter().map(answer::session).collect();
    Ok(act.rows(page("sessions", rows, "sender", cursor.as_deref()), "sessions"))
}

/// As many of all rows behind the cursor as fit, which are sorted by one of their fields; the cursor of the next page
/// is that field of its last row.
fn page(list: &str, all: Vec<Map<String, Value>>, by: &str, cursor: Option<&str>) -> Map<String, Value> {
    let total = all.len();
    let behind = |row: &Map<String, Value>| cursor.is_none_or(|cursor| row[by].as_str() > Some(cursor));
    let mut rows: Vec<Map<String, Value>> = all.into_iter().filter(behind).collect();
    let mut left = BUDGET - END_BYTES;
    let fits = |row: &&Map<String, Value>| {
        let rest = left.checked_sub(fit::size(row) + 1);
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let fitting = rows.iter().take_while(fits).count();
    let truncated = fitting < rows.len();
    rows.truncate(fitting);
    let next = rows.last().filter(|_| truncated).map(|row| row[by].clone());
    let mut page = Map::from_iter([
        (list.to_owned(), rows.into_iter().map(Value::Object).collect()),
        ("total".to_owned(), json!(total)),
        ("truncated".to_owned(), json!(truncated)),
    ]);
    page.extend(next.map(|next| ("next".to_owned(), next)));
    page
}

/// What stands around the rows of a page, at most.
const END_BYTES: usize = 512;

/// Hears a channel or tags from now on.
pub(crate) fn subscribe(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let follow = follow(args)?;
    let from = if args.word("from") == Some("oldest") { Start::Oldest } else { Start::Now };
    let persistent = args.flag("persistent");
    let act = Act::begin(desk, args, asked)?;
    let mut facts = object(&act.engine.subscribe(&act.who.name, &follow, from)?);
    if persistent {
        desk.repository.follow(&follow)?;
        facts.insert("persistent".to_owned(), json!(true));
    }
    Ok(act.signed(facts))
}

/// Hears them no longer.
pub(crate) fn unsubscribe(desk: &Desk, args: &mut Args, asked: &Asked<'_>) -> Result<Reply, Failure> {
    let follow = follow(args)?;
    let persistent = args.flag("persistent");
    let act = Act::begin(desk, args, asked)?;
    let mut facts = object(&act.engine.unsubscribe(&act.who.name, &follow)?);
    if persistent {
        desk.repository.leave(&follow)?;
        facts.insert("persistent".to_owned(), json!(true));
    }
    Ok(act.signed(facts))
}

fn follow(args: &mut Args) -> Result<Follow, Failure> {
    let tags = args.texts("tags").filter(|tags| !tags.is_empty());
    match (args.text("channel"), tags) {
        (Some(channel), None) => Ok(Follow::Channel(typed("channel", channel, ChannelName::new)?)),
        (None, Some(tags)) => Ok(Follow::Tags(TagSet::new(&tags)?)),
        (None, None) | (Some(_), Some(_)) => {
            Err(Refusal::Invalid(Invalid::EitherOr { one: "channel", other: "tags" }).into())
        }
    }
}
