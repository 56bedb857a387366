//! The rules of taskbus, and nothing else.
//!
//! Everything here is pure: no I/O, no clock, no randomness, no async, no SQL, no JSON-RPC. A caller
//! hands in a [`Command`](command::Command), a view of the [`Neighbourhood`](neighbourhood::Neighbourhood)
//! and the [`Facts`](decide::Facts); [`run`](decide::run) answers with the
//! [`Change`](change::Change)s to write, or with one [`Refusal`](refusal::Refusal). Stores write rows,
//! surfaces translate; a rule exists once, here.
//!
//! Start reading at [`decide`], then [`task`], then [`rank`].

pub mod board;
pub mod bus;
pub mod change;
pub mod clock;
pub mod command;
pub mod content;
pub mod decide;
pub mod document;
pub mod drop_in;
pub mod glob;
pub mod id;
pub mod limits;
pub mod lineage;
pub mod name;
pub mod neighbourhood;
pub mod policy;
pub mod rank;
pub mod refusal;
pub mod session;
pub mod task;
pub mod text;
pub mod time;
pub mod tree;
