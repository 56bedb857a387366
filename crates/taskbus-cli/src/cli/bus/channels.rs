//! `channels` and `channel …`.

use std::io::BufRead as _;

use serde_json::{Map, Value, json};
use taskbus::answer::bus::{ChannelView, HistoryView};
use taskbus::answer::status::ChannelGone;
use taskbus::engine::{Follow, HistoryAsk};
use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::bus::rules::Start;
use taskbus_core::bus::tag::{self, TagSet};
use taskbus_core::neighbourhood::ListRules;
use taskbus_core::policy::Policy;
use taskbus_core::time::Timestamp;

use super::args::{Channel, Heard};
use super::show;
use super::talk::channel;
use crate::cli::desk::Desk;
use crate::cli::show::when;
use crate::repo_file::{self, RepoFile};
use crate::repo_name;
use crate::term::failure::Failure;
use crate::term::layout::{Cell, Column, Table};
use crate::term::report::{Report, say};
use crate::term::safe::display_safe;
use crate::wire;

/// Runs one of the commands about a channel.
pub(crate) fn run(desk: &Desk, command: &Channel) -> Result<Box<dyn Report>, Failure> {
    match command {
        Channel::Create { channel: name, kind, max_reclaims } => {
            let kind = kind.as_deref().and_then(ChannelKind::from_word);
            let rules = ListRules { policy: Policy::Strict, max_reclaims: *max_reclaims };
            let made = desk.engine.create_channel(desk.caller()?, &channel(name)?, kind, rules)?;
            Ok(Box::new(Made(made)))
        }
        Channel::Delete { channel: name, yes } => delete(desk, &channel(name)?, *yes),
        Channel::Subscribe { what, oldest } => {
            let from = if *oldest { Start::Oldest } else { Start::Now };
            let subscribed = desk.engine.subscribe(desk.caller()?, &follow(what)?, from)?;
            Ok(Box::new(Changed(wire::object(&subscribed))))
        }
        Channel::Unsubscribe { what } => {
            let unsubscribed = desk.engine.unsubscribe(desk.caller()?, &follow(what)?)?;
            Ok(Box::new(Changed(wire::object(&unsubscribed))))
        }
        Channel::History { channel: name, before, after, count, tags } => {
            let tags = tag::normalize_patterns(tags)?;
            let ask = HistoryAsk { channel: channel(name)?, before: *before, after: *after, count: *count, tags };
            let view = desk.engine.history(desk.caller()?, &ask)?;
            Ok(Box::new(Past { view, now: desk.engine.now()? }))
        }
    }
}

fn follow(what: &Heard) -> Result<Follow, Failure> {
    match &what.channel {
        Some(name) => Ok(Follow::Channel(channel(name)?)),
        None => Ok(Follow::Tags(TagSet::new(&what.tags)?)),
    }
}

/// Shows the channels there are.
pub(crate) fn list(desk: &Desk) -> Result<Box<dyn Report>, Failure> {
    let channels = desk.engine.channels(desk.caller()?)?;
    Ok(Box::new(Channels { channels, now: desk.engine.now()? }))
}

/// Deletes a channel after saying what is lost.
fn delete(desk: &Desk, name: &ChannelName, yes: bool) -> Result<Box<dyn Report>, Failure> {
    if !yes {
        let row = desk.engine.channels(desk.caller()?)?.into_iter().find(|row| row.name == *name);
        let messages = row.map_or(0, |row| row.messages);
        let again =
            if is_followed_here(name) { " The file of this repository makes it anew for who registers." } else { "" };
        let lost = format!(
            "{name} has {messages} messages, memories or tasks; they are lost for everybody.{again} Type yes to go on:"
        );
        confirm(&lost, &["yes", "y"])?;
    }
    Ok(Box::new(Gone(desk.engine.delete_channel(desk.caller()?, name)?)))
}

/// Whether the agents of this repository follow it.
fn is_followed_here(name: &ChannelName) -> bool {
    let path = repo_name::surroundings().ok().and_then(|(cwd, home)| repo_file::find(&cwd, home.as_deref()));
    let followed = path.and_then(|path| RepoFile::read(&path).ok()).and_then(|file| file.channels());
    followed.is_some_and(|followed| followed.iter().any(|it| it == name.as_str()))
}

/// Asks on standard error and reads the answer, which must be one of these words, to the letter.
pub(super) fn confirm(lost: &str, words: &[&str]) -> Result<(), Failure> {
    say(lost);
    let mut answer = String::new();
    // An answer that cannot be read is none.
    let _read = std::io::stdin().lock().read_line(&mut answer);
    let answer = answer.strip_suffix('\n').unwrap_or(&answer);
    if words.contains(&answer) {
        return Ok(());
    }
    Err(Failure::usage(format!("nothing was done: the answer was not {}", words[0])))
}

/// A channel that was deleted.
struct Gone(ChannelGone);

impl Report for Gone {
    fn json(&self) -> Map<String, Value> {
        wire::object(&self.0)
    }

    fn words(&self, _: Option<usize>) -> String {
        format!("deleted {} with {} messages\n", display_safe(self.0.deleted.as_str()), self.0.messages)
    }
}

/// A channel that was made.
struct Made(ChannelView);

impl Report for Made {
    fn json(&self) -> Map<String, Value> {
        wire::object(&self.0)
    }

    fn words(&self, _: Option<usize>) -> String {
        format!("{} is there, of kind {}\n", display_safe(self.0.name.as_str()), self.0.kind.as_str())
    }
}

/// A subscription that was changed.
struct Changed(Map<String, Value>);

impl Report for Changed {
    fn json(&self) -> Map<String, Value> {
        self.0.clone()
    }

    fn words(&self, _: Option<usize>) -> String {
        let told = self.0.iter().map(|(what, which)| {
            let which = which.as_str().map_or_else(|| which.to_string(), str::to_owned);
            format!("{}: {}\n", what.replace('_', " "), display_safe(&which))
        });
        told.collect()
    }
}

/// The channels there are.
struct Channels {
    channels: Vec<ChannelView>,
    now: Timestamp,
}

impl Report for Channels {
    fn json(&self) -> Map<String, Value> {
        let channels: Vec<Value> = self.channels.iter().map(|row| wire::object(row).into()).collect();
        Map::from_iter([("total".to_owned(), json!(channels.len())), ("channels".to_owned(), json!(channels))])
    }

    fn words(&self, width: Option<usize>) -> String {
        let columns =
            [Column::flexible("CHANNEL"), Column::left("KIND"), Column::right("LIVE"), Column::flexible("LAST")];
        let mut table = Table::new(columns);
        for row in &self.channels {
            let last = row.last_activity.map_or_else(String::new, |at| when(at, self.now));
            table.row([row.name.as_str(), row.kind.as_str(), &row.messages.to_string(), &last].map(Cell::plain));
        }
        table.render(width)
    }
}

/// Messages of a channel.
struct Past {
    view: HistoryView,
    now: Timestamp,
}

impl Report for Past {
    fn json(&self) -> Map<String, Value> {
        wire::object(&self.view)
    }

    fn words(&self, _: Option<usize>) -> String {
        let mut words = show::messages(&self.view.messages, self.now);
        if let Some(first) = self.view.messages.first().filter(|_| self.view.truncated) {
            words.push_str(&format!("there are more; earlier ones: --before {}\n", first.seq));
        }
        if words.is_empty() { "no messages\n".to_owned() } else { words }
    }
}
