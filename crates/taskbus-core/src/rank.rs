//! Rank keys: short strings whose byte order is the order of siblings.
//!
//! A key is a chain of *components*. A component is an integer that tells its own length: its first
//! character (the head) says how many digits follow, so that components compare byte by byte in the order of
//! their values. A chain sorts before its extensions. Between two keys there is always a third:
//!
//! ```text
//! after x        ->  inc(x)              append: one component, grows with the logarithm of the count
//! before y       ->  dec(y)
//! x < ? < x.y    ->  x.dec(y)            always in front of the same neighbour: grows logarithmically too
//! x < ? < y      ->  inc(x) if that is below y, else y's own prefix, else x.inc(next of x)
//! ```
//!
//! Digits and heads use `1-9A-Za-z`; `0`, the lowest base-62 digit, is never written, so a key never ends
//! in it. Any scheme that never rewrites keys needs long ones against an adversary: a key that would exceed
//! [`RANK_BYTES_MAX`](crate::limits::RANK_BYTES_MAX) is not handed out, and the caller re-ranks the siblings.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits;

const ALPHABET: &[u8; 61] = b"123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The head of the smallest non-negative component; lower heads are negative and longer going down.
const MIDDLE: usize = 30;

/// A rank key. Foreign text is kept as it came; only well-formed keys have neighbours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rank(String);

/// There is no key: the neighbours are equal, out of order or foreign, or the key would be too long.
/// The caller gives the whole sibling group new keys ([`Rank::evenly`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl Rank {
    /// The key of the first sibling.
    #[must_use]
    pub fn first() -> Self {
        Self::from_components(&[zero()])
    }

    /// Takes stored text as a key, whatever it is.
    #[must_use]
    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A key between two neighbours; `None` is the open end.
    ///
    /// # Errors
    /// [`NoRoom`] when no key of at most 48 bytes exists.
    pub fn between(left: Option<&Rank>, right: Option<&Rank>) -> Result<Rank, NoRoom> {
        let left = left.map(Rank::components).transpose()?;
        let right = right.map(Rank::components).transpose()?;
        let chain = match (left, right) {
            (None, None) => vec![zero()],
            (Some(left), None) => vec![inc(&left[0])?],
            (None, Some(right)) => vec![dec(&right[0])?],
            (Some(left), Some(right)) => inside(&left, &right)?,
        };
        let rank = Self::from_components(&chain);
        if rank.0.len() > limits::RANK_BYTES_MAX { Err(NoRoom) } else { Ok(rank) }
    }

    /// The key that the `n`-th of siblings gets when each is appended in turn, from 1.
    #[must_use]
    pub fn nth(n: u64) -> Self {
        let base = ALPHABET.len() as u64;
        let (mut rest, mut count, mut length) = (n.saturating_sub(1), base, 1);
        while rest >= count {
            rest -= count;
            count = count.saturating_mul(base);
            length += 1;
        }
        let mut component = vec![ALPHABET[0]; length + 1];
        component[0] = ALPHABET[MIDDLE + length - 1];
        for digit in component[1..].iter_mut().rev() {
            *digit = ALPHABET[(rest % base) as usize];
            rest /= base;
        }
        Self::from_components(&[component])
    }

    /// `count` fresh keys in ascending order, for a sibling group that is ranked anew.
    #[must_use]
    pub fn evenly(count: usize) -> Vec<Rank> {
        let next = |rank: &Rank| Rank::between(Some(rank), None).ok();
        std::iter::successors(Some(Rank::first()), next).take(count).collect()
    }

    fn from_components(chain: &[Vec<u8>]) -> Self {
        Self(String::from_utf8(chain.concat()).expect("BUG: rank characters are ASCII"))
    }

    fn components(&self) -> Result<Vec<Vec<u8>>, NoRoom> {
        let mut rest = self.0.as_bytes();
        let mut chain = Vec::new();
        while let Some(&head) = rest.first() {
            let length = 1 + digits_after(position(head)?);
            let component = rest.get(..length).ok_or(NoRoom)?;
            component.iter().try_for_each(|&byte| position(byte).map(drop))?;
            chain.push(component.to_vec());
            rest = &rest[length..];
        }
        if chain.is_empty() { Err(NoRoom) } else { Ok(chain) }
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The chain strictly between two chains (module doc, last two rows).
fn inside(left: &[Vec<u8>], right: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, NoRoom> {
    let shared = left.iter().zip(right).take_while(|(l, r)| l == r).count();
    let prefix = &left[..shared];
    let middle = match (&left[shared..], &right[shared..]) {
        ([], [next, ..]) => vec![dec(next)?],
        ([low, deeper @ ..], [high, rest @ ..]) if low < high => step(low, deeper, high, rest)?,
        _ => return Err(NoRoom),
    };
    Ok([prefix, &middle].concat())
}

fn step(low: &[u8], deeper: &[Vec<u8>], high: &[u8], rest: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, NoRoom> {
    let above = inc(low)?;
    if above.as_slice() < high {
        return Ok(vec![above]);
    }
    if !rest.is_empty() {
        return Ok(vec![high.to_vec()]);
    }
    let last = deeper.first().map_or(Ok(zero()), |next| inc(next))?;
    Ok(vec![low.to_vec(), last])
}

fn zero() -> Vec<u8> {
    vec![ALPHABET[MIDDLE], ALPHABET[0]]
}

fn position(byte: u8) -> Result<usize, NoRoom> {
    ALPHABET.binary_search(&byte).map_err(|_| NoRoom)
}

fn digits_after(head: usize) -> usize {
    if head >= MIDDLE { head - MIDDLE + 1 } else { MIDDLE - head }
}

/// The next component: count up; when all digits are at their highest, the next head with lowest digits.
fn inc(component: &[u8]) -> Result<Vec<u8>, NoRoom> {
    shifted(component, ALPHABET.len() - 1, 0, 1)
}

/// The previous component, the mirror of [`inc`].
fn dec(component: &[u8]) -> Result<Vec<u8>, NoRoom> {
    shifted(component, 0, ALPHABET.len() - 1, -1)
}

fn shifted(component: &[u8], full: usize, fresh: usize, by: isize) -> Result<Vec<u8>, NoRoom> {
    let mut next = component.to_vec();
    for digit in next[1..].iter_mut().rev() {
        let at = position(*digit)?;
        if at != full {
            *digit = ALPHABET[at.checked_add_signed(by).ok_or(NoRoom)?];
            return Ok(next);
        }
        *digit = ALPHABET[fresh];
    }
    let head = position(component[0])?.checked_add_signed(by).ok_or(NoRoom)?;
    let head_byte = *ALPHABET.get(head).ok_or(NoRoom)?;
    Ok([vec![head_byte], vec![ALPHABET[fresh]; digits_after(head)]].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn between(left: &Rank, right: &Rank) -> Rank {
        Rank::between(Some(left), Some(right)).expect("room")
    }

    #[test]
    fn a_million_appends_and_prepends_stay_within_eight_characters() {
        let (mut high, mut low) = (Rank::first(), Rank::first());
        for _ in 0..1_000_000 {
            let (next, previous) =
                (Rank::between(Some(&high), None).unwrap(), Rank::between(None, Some(&low)).unwrap());
            assert!(next > high && previous < low);
            (high, low) = (next, previous);
        }
        assert!(high.as_str().len() <= 8 && low.as_str().len() <= 8, "{high} {low}");
    }

    #[test]
    fn a_hundred_thousand_inserts_at_one_spot_stay_within_eight_characters() {
        let (a, b) = (Rank::first(), Rank::between(Some(&Rank::first()), None).unwrap());
        let (mut after_a, mut before_b) = (b.clone(), a.clone());
        for _ in 0..100_000 {
            let (x, y) = (between(&a, &after_a), between(&before_b, &b));
            assert!(a < x && x < after_a && before_b < y && y < b);
            (after_a, before_b) = (x, y);
        }
        assert!(after_a.as_str().len() <= 8 && before_b.as_str().len() <= 8, "{after_a} {before_b}");
    }

    #[test]
    fn zigzag_inserts_end_in_no_room_and_not_in_a_long_key() {
        let (mut low, mut high) = (Rank::first(), Rank::between(Some(&Rank::first()), None).unwrap());
        let mut count = 0;
        while let Ok(middle) = Rank::between(Some(&low), Some(&high)) {
            assert!(low < middle && middle < high && middle.as_str().len() <= limits::RANK_BYTES_MAX);
            if count % 2 == 0 {
                low = middle;
            } else {
                high = middle;
            }
            count += 1;
        }
        assert!(count >= 15, "only {count} zig-zag inserts fitted");
    }

    #[test]
    fn foreign_and_equal_keys_have_no_room() {
        let odd = Rank::from_stored("0z");
        assert_eq!(Rank::between(Some(&odd), None), Err(NoRoom));
        assert_eq!(Rank::between(Some(&Rank::first()), Some(&Rank::first())), Err(NoRoom));
        assert_eq!(Rank::between(None, Some(&Rank::from_stored(""))), Err(NoRoom));
        let (a, b) = (Rank::first(), Rank::between(Some(&Rank::first()), None).unwrap());
        assert_eq!(Rank::between(Some(&b), Some(&a)), Err(NoRoom), "out of order");
    }

    #[test]
    fn the_nth_key_is_what_appending_comes_to() {
        let keys = Rank::evenly(300_000);
        assert!(keys.iter().zip(1..).all(|(key, n)| *key == Rank::nth(n)));
        let large = Rank::nth(u64::MAX);
        assert!(Rank::nth(i64::MAX as u64) < large && Rank::between(Some(&large), None).is_ok());
    }

    #[test]
    fn even_keys_ascend() {
        let keys = Rank::evenly(5_000);
        assert_eq!(keys.len(), 5_000);
        assert!(keys.is_sorted_by(|a, b| a < b));
    }

    proptest! {
        /// Random inserts at random places: order holds, no key ends in the lowest digit.
        #[test]
        fn any_insert_lands_between_its_neighbours(spots in prop::collection::vec(any::<prop::sample::Index>(), 1..400)) {
            let mut keys: Vec<Rank> = Vec::new();
            for spot in spots {
                let at = spot.index(keys.len() + 1);
                let left = at.checked_sub(1).map(|i| &keys[i]);
                let Ok(key) = Rank::between(left, keys.get(at)) else { continue };
                prop_assert!(left.is_none_or(|l| *l < key) && keys.get(at).is_none_or(|r| key < *r));
                prop_assert!(!key.as_str().ends_with('0') && key.as_str().len() <= limits::RANK_BYTES_MAX);
                keys.insert(at, key);
            }
        }
    }
}
