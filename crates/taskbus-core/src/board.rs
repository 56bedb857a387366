//! A whole list in memory: the reference model, and the working form of small stores.

/// A list in memory.
#[derive(Clone, Debug, Default)]
pub struct Board {}
