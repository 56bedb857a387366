//! What every store and every surface must answer, as data: scenario scripts and the engine driver that runs them.
//!
//! Beside them the conformance suite of stores: checks cut by subject, on rows and on whole stores. A third party that
//! builds a store runs the same scripts and checks on it. Behind the feature `conformance`.

pub mod engine_driver;
pub mod jobs;
pub mod lockstep;
pub mod place;
pub mod rows;
pub mod scenario;
mod script;
pub mod stores;
pub mod suite;

pub use engine_driver::EngineDriver;
pub use place::{OverRows, Plant, Planted, RowPlace, StorePlace};
pub use scenario::{ALL, Driver, Ran, SHARED, Stopped, run};
pub use suite::{Check, Count, Line, Report, Subject, Verdict, table};
