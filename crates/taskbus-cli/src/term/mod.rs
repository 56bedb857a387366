//! What the surfaces for people share: words that are safe to print, tables that fit, answers as words or as one
//! JSON value, failures as words and an exit code.

pub(crate) mod failure;
pub(crate) mod layout;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod safe;
