//! The two ways in which a client of the torture reaches the store: through the library in its own process, and through
//! a real MCP server over a pair of pipes.

pub(super) mod library;
pub(super) mod server;

use taskbus_core::id::TaskId;
use taskbus_core::name::Identity;
use taskbus_core::task::Status;

use super::deed::Deed;
use super::record::Number;
use super::told::Told;

/// The list that the torture works on.
pub(super) const LIST: &str = "tasks/torture";

/// The way to the store does not answer any more.
#[derive(Debug)]
pub(super) struct Gone(pub(super) String);

/// A way to the store.
pub(super) trait Hand {
    /// Under which name it acts.
    fn caller(&self) -> &Identity;

    /// Does a deed.
    fn act(&mut self, number: Number, deed: &Deed, key: Option<&str>) -> Result<Told, Gone>;

    /// Some tasks with this status: their ids, and who has each.
    fn look(&mut self, status: Status, limit: usize) -> Result<Vec<(TaskId, Option<Identity>)>, Gone>;
}
