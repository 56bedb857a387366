//! What every store and every surface must answer, as data: scenario scripts and the engine driver that runs them.
//!
//! A third party that builds a store runs the same scripts on it. Behind the feature `conformance`.

pub mod engine_driver;
pub mod lockstep;
pub mod scenario;
mod script;

pub use engine_driver::EngineDriver;
pub use scenario::{ALL, Driver, Ran, run};
