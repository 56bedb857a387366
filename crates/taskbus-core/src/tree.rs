//! Where a task stands in its list: a byte string whose order is depth-first tree order.
//!
//! A path is one segment for each ancestor and one for the task itself. A segment is the rank, the byte 1,
//! and the id in an order-preserving form; so siblings sort by rank, then id (docs/rules.md 6), a parent sorts
//! before its children, and all descendants lie between a path and the path followed by 0xFF.

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::rank::Rank;

const AFTER_RANK: u8 = 0x01;
const TEXT_ID: u8 = 0x7F;
const TEXT_END: u8 = 0x00;

/// The position of a task in depth-first order. Also the cursor of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TreePath(Vec<u8>);

impl TreePath {
    /// The path above all roots.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// Takes stored bytes as a path.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The path as bytes, for a store to keep and to compare.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path of a child with this rank and id.
    #[must_use]
    pub fn child(&self, rank: &Rank, id: &TaskId) -> Self {
        let mut bytes = self.0.clone();
        bytes.extend_from_slice(rank.as_str().as_bytes());
        bytes.push(AFTER_RANK);
        push_id(&mut bytes, id);
        Self(bytes)
    }

    /// The exclusive upper bound of this path and everything below it.
    #[must_use]
    pub fn subtree_end(&self) -> Self {
        let mut bytes = self.0.clone();
        bytes.push(0xFF);
        Self(bytes)
    }

    /// The path as an opaque text cursor.
    #[must_use]
    pub fn to_cursor(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads a cursor made by [`TreePath::to_cursor`]; `None` when it is not one.
    #[must_use]
    pub fn from_cursor(text: &str) -> Option<Self> {
        // Digits alone: a number may begin with a sign, a byte of a cursor may not.
        if text.is_empty() || !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let bytes = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok());
        bytes.collect::<Option<Vec<u8>>>().map(Self)
    }
}

/// A number is its count of bytes and its bytes, big-endian, no leading zero; text follows all numbers.
fn push_id(bytes: &mut Vec<u8>, id: &TaskId) {
    match id {
        TaskId::Number(number) => {
            let all = number.to_be_bytes();
            let skip = all.iter().take_while(|byte| **byte == 0).count();
            bytes.push(u8::try_from(all.len() - skip).expect("BUG: at most 8 bytes"));
            bytes.extend_from_slice(&all[skip..]);
        }
        TaskId::Text(text) => {
            bytes.push(TEXT_ID);
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(TEXT_END);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: u64) -> TaskId {
        TaskId::Number(number)
    }

    #[test]
    fn siblings_sort_by_rank_then_id_and_children_follow_their_parent() {
        let (a, b) = (Rank::first(), Rank::between(Some(&Rank::first()), None).unwrap());
        let inside = Rank::between(Some(&a), Some(&b)).unwrap();
        let top = TreePath::root();
        let parent = top.child(&a, &id(300));
        let order = [
            top.child(&a, &id(2)),
            parent.clone(),
            parent.child(&b, &id(4)),
            parent.child(&b, &id(4)).child(&a, &id(9)),
            top.child(&a, &TaskId::Text("t_1".into())),
            top.child(&inside, &id(1)),
            top.child(&b, &id(1)),
        ];
        assert!(order.is_sorted_by(|x, y| x < y));
        assert!(order[3] < parent.subtree_end() && parent.subtree_end() < order[4]);
    }

    #[test]
    fn cursors_round_trip_and_junk_is_refused() {
        let path = TreePath::root().child(&Rank::first(), &id(77));
        assert_eq!(TreePath::from_cursor(&path.to_cursor()), Some(path));
        for junk in ["", "abc", "zz", "é1", "+f", "0f+1"] {
            assert_eq!(TreePath::from_cursor(junk), None);
        }
    }

    proptest! {
        #[test]
        fn ids_keep_their_order(a in 1_u64..=i64::MAX as u64, b in 1_u64..=i64::MAX as u64) {
            let path = |n| TreePath::root().child(&Rank::first(), &id(n));
            prop_assert_eq!(a.cmp(&b), path(a).cmp(&path(b)));
        }
    }
}
