//! Reads the history of a run: the logs of its clients, and what the store says.

use std::collections::BTreeSet;
use std::path::Path;

use taskbus::engine::ReceiveAsk;
use taskbus::store::bus::{BusSnapshot, MessageQuery};
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus::store::{RevisionRow, Snapshot, Store as _, StoreError};
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::message::Message;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::ListRules;

use super::checker::{History, acts};
use super::hand::LIST;
use super::hand::library::Library;
use super::record;
use crate::term::failure::Failure;

/// Messages read at once, and revisions of one task at most.
const PAGE: usize = 1_000;
const REVISIONS_MAX: usize = 1_000_000;

/// The whole history of a run in a directory; `readers` are those whose mail is read to its end.
pub(super) fn history(dir: &Path, store: &Path, rules: ListRules, readers: &[Identity]) -> Result<History, Failure> {
    let lines = logs(dir).map_err(|error| Failure::machine("the logs cannot be read", error))?;
    history_of(store, rules, readers, lines)
}

/// The same of clients that wrote these lines.
pub(super) fn history_of(
    store: &Path,
    rules: ListRules,
    readers: &[Identity],
    lines: Vec<record::Line>,
) -> Result<History, Failure> {
    let opened = SqliteStore::open(store, SqliteOptions::default())?;
    let list = ListName::new(LIST).expect("BUG: a constant name is valid");
    let (mut revisions, mut messages) = (Vec::new(), Vec::new());
    opened.read(Some(&list), &mut |snapshot| {
        revisions = all_revisions(snapshot, &list)?;
        messages = all_messages(snapshot)?;
        Ok(())
    })?;
    let unread = readers.iter().map(|who| Ok((who.clone(), unread(store, who)?))).collect::<Result<_, Failure>>()?;
    Ok(History { rules, revisions, messages, acts: acts(lines), unread })
}

/// What does not add up in the store, as `taskbus verify` says.
pub(super) fn verify(store: &Path) -> Result<Vec<String>, Failure> {
    let verdict = SqliteStore::open(store, SqliteOptions::default())?.verify(&mut |_, _| {})?.unwrap_or_default();
    let more = (verdict.more > 0).then(|| format!("and {} more", verdict.more));
    Ok(verdict.differences.iter().map(ToString::to_string).chain(more).collect())
}

fn logs(dir: &Path) -> std::io::Result<Vec<record::Line>> {
    let mut paths: Vec<_> = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths
        .retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("client-")));
    paths.sort();
    let lines: Vec<Vec<record::Line>> = paths.iter().map(|path| record::read(path)).collect::<std::io::Result<_>>()?;
    Ok(lines.into_iter().flatten().collect())
}

fn all_revisions(snapshot: &dyn Snapshot, list: &ListName) -> Result<Vec<RevisionRow>, StoreError> {
    let told = of_channel(snapshot, &ChannelName::from(list))?;
    let ids: BTreeSet<u64> =
        told.iter().filter_map(|message| message.memory.as_ref()).map(|memory| memory.id).collect();
    let mut rows = Vec::new();
    for id in ids {
        rows.extend(snapshot.history(&TaskId::Number(id), None, REVISIONS_MAX)?);
    }
    rows.sort_by_key(|row| row.seq);
    Ok(rows)
}

fn all_messages(snapshot: &dyn Snapshot) -> Result<Vec<Message>, StoreError> {
    let channels = snapshot.bus().map_or_else(|| Ok(Vec::new()), BusSnapshot::channels)?;
    let mut messages = Vec::new();
    for channel in channels.iter().filter(|channel| channel.name.list().is_none()) {
        messages.extend(of_channel(snapshot, &channel.name)?);
    }
    messages.sort_by_key(|message| message.seq);
    Ok(messages)
}

fn of_channel(snapshot: &dyn Snapshot, channel: &ChannelName) -> Result<Vec<Message>, StoreError> {
    let (mut messages, mut after) = (Vec::new(), 0);
    while let Some(bus) = snapshot.bus() {
        let page = bus.messages(&MessageQuery::of(channel, after, PAGE))?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        messages.extend(page);
    }
    Ok(messages)
}

/// Everything that is unread, in order; it is read by this.
fn unread(store: &Path, who: &Identity) -> Result<Vec<u64>, Failure> {
    let library = Library::open(store, who.as_str())?;
    let (mut seqs, mut ack) = (Vec::new(), None);
    loop {
        let ask = ReceiveAsk { ack: ack.take(), ..ReceiveAsk::default() };
        let received = library.engine.receive(&library.caller, &ask, &|| true)?;
        seqs.extend(received.messages.iter().map(|message| message.seq));
        match received.batch {
            Some(batch) => ack = Some(batch),
            None => return Ok(seqs),
        }
    }
}
