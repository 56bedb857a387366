//! What a look at the whole of a store came to: that it adds up, or where it does not.

use std::fmt;

use serde::Serialize;

/// Differences told one by one; the rest is only counted.
pub const TOLD_MAX: usize = 100;

/// How a verification went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The id of the store.
    pub store: String,
    /// How often it was put back to an earlier state, from 1 on.
    pub epoch: u64,
    /// The newest seq.
    pub seq: u64,
    /// The end of the chain of revisions, in hexadecimal digits: written down elsewhere, it is an anchor.
    pub head: String,
    /// Revisions looked at.
    pub revisions: u64,
    /// Live tasks looked at.
    pub tasks: u64,
    /// What does not add up, in the order in which it was found, at most [`TOLD_MAX`].
    pub differences: Vec<Difference>,
    /// How many more there are.
    pub more: u64,
}

impl Verdict {
    /// Whether everything adds up.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.differences.is_empty() && self.more == 0
    }
}

/// One thing that does not add up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The seq of the revision that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<i64>,
    /// The id of the task that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<i64>,
    /// The column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<&'static str>,
    /// What is wrong, in a sentence that names all of these.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Told how far a verification is: steps done, and steps in all.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;
