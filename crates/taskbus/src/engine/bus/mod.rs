//! The engine's side of the bus: channels, messages, memories, and the maintenance around them. As for tasks, rules are
//! in the core and rows in the store; here is who may ask, in which order things are checked, and what is answered.

use crate::store::bus::{BusSnapshot, BusTx};
use crate::store::{Snapshot, StoreError, Tx};

mod memory;
pub(super) mod reads;
mod search;

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
