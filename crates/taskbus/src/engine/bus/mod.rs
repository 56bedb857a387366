//! The engine's side of the bus: channels, messages, memories, and the maintenance around them, on stores that have one.
//! As for tasks, rules are in the core and rows in the store; here is who may ask, in which order things are checked,
//! what is answered, and the waiting.
//!
//! The channels that every store has, and the inbox of whoever registered, are there before their rows are: they are
//! answered as empty, and made with the first write.

use taskbus_core::bus::channel::{ChannelKind, ChannelName};
use taskbus_core::time::Timestamp;

pub use self::history::HistoryAsk;
pub use self::receive::ReceiveAsk;
pub use self::subscribe::Follow;
use crate::store::bus::{BusSnapshot, BusTx, ChannelRow};
use crate::store::{Snapshot, StoreError, Tx};

pub(super) mod capacity;
mod channels;
pub(super) mod embed;
mod history;
pub(super) mod inspect;
pub(super) mod maintain;
mod memory;
mod peek;
mod post;
pub(super) mod reads;
mod receive;
mod register;
mod search;
mod send;
mod subscribe;
mod whole;

pub(super) use self::receive::Polls;
pub(super) use self::register::{Joined, pending};

/// The bus of a snapshot.
///
/// # Errors
/// [`StoreError`] when the store has none.
fn bus(snapshot: &dyn Snapshot) -> Result<&dyn BusSnapshot, StoreError> {
    snapshot.bus().ok_or_else(no_bus)
}

/// The bus of a transaction.
///
/// # Errors
/// [`StoreError`] when the store has none.
fn bus_mut(tx: &mut dyn Tx) -> Result<&mut dyn BusTx, StoreError> {
    tx.bus_mut().ok_or_else(no_bus)
}

fn no_bus() -> StoreError {
    StoreError::Unavailable {
        store: "in use".to_owned(),
        reason: "it keeps task lists only".to_owned(),
        next: "use a sqlite: store for channels, messages and memories",
    }
}

/// A channel, if it is there, with a row or without.
fn channel(snapshot: &dyn Snapshot, name: &ChannelName) -> Result<Option<ChannelRow>, StoreError> {
    if let Some(row) = bus(snapshot)?.channel(name)? {
        return Ok(Some(row));
    }
    let is_there = match name.owner() {
        Some(owner) => snapshot.is_known(&owner)?,
        None => name.is_default(),
    };
    Ok(is_there.then(|| empty(name)))
}

/// Makes the row of a channel that has none.
fn make(bus: &mut dyn BusTx, name: &ChannelName, kind: ChannelKind, now: Timestamp) -> Result<(), StoreError> {
    if bus.channel(name)?.is_none() {
        bus.create_channel(name, kind, now)?;
    }
    Ok(())
}

/// A channel that is there without a row.
fn empty(name: &ChannelName) -> ChannelRow {
    ChannelRow {
        name: name.clone(),
        kind: name.implied_kind().unwrap_or(ChannelKind::Ordinary),
        created_at: Timestamp::from_millis(0),
        live: 0,
        empty: true,
        latest_seq: 0,
        last_activity: None,
        evicted_before: 0,
    }
}
