//! Checks that what the documents say about this repository is true. Tests only: nothing here ships.
//!
//! Each module holds small checkers, pure functions from text to complaints, and two kinds of tests: the checker finds
//! a broken sample, and it finds nothing in the repository.

#[cfg(test)]
mod arrows;
#[cfg(test)]
mod bus_tests;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod files;
#[cfg(test)]
mod proofs;
#[cfg(test)]
mod repo;
#[cfg(test)]
mod source;
#[cfg(test)]
mod tree;
