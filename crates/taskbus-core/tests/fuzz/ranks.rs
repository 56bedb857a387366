//! Rank keys: the first two lines are stored keys, what is behind them a row of places to insert at.

use taskbus_core::limits::RANK_BYTES_MAX;
use taskbus_core::rank::Rank;

use crate::harness::{Made, Target};

#[test]
fn any_two_keys_have_one_between_them_or_none() {
    let words = &["U1", "U2", "V11", "T1", "Tz", "z", "1", "\n", "U1U1", "Uz"];
    Target { name: "ranks", corpus: include_str!("corpus/ranks.txt"), words, take }.hunt_both(20_000);
}

fn take(input: &[u8]) -> Made {
    let mut parts = input.splitn(3, |byte| *byte == b'\n');
    let mut key =
        || parts.next().filter(|part| !part.is_empty()).map(|part| String::from_utf8_lossy(part).into_owned());
    let (left, right) = (key().map(Rank::from_stored), key().map(Rank::from_stored));
    inserts(parts.next().unwrap_or_default());
    let between = Rank::between(left.as_ref(), right.as_ref());
    match &between {
        Ok(rank) => between_both(rank, left.as_ref(), right.as_ref()),
        Err(_) => assert!(!has_room(left.as_ref(), right.as_ref()), "{left:?} {right:?}"),
    }
    Made::of(between.is_ok())
}

fn between_both(rank: &Rank, left: Option<&Rank>, right: Option<&Rank>) {
    assert!(left.is_none_or(|left| left < rank) && right.is_none_or(|right| rank < right), "{left:?} {rank} {right:?}");
    assert!(rank.as_str().len() <= RANK_BYTES_MAX && !rank.as_str().ends_with('0'), "{rank}");
    assert!(rank.as_str().len() > 20 || is_well_formed(rank), "{rank}");
}

/// Short keys of ours, in order, always have room.
fn has_room(left: Option<&Rank>, right: Option<&Rank>) -> bool {
    let ours = |rank: Option<&Rank>| rank.is_none_or(|rank| rank.as_str().len() <= 20 && is_well_formed(rank));
    let in_order = left.zip(right).is_none_or(|(left, right)| left < right);
    ours(left) && ours(right) && in_order
}

fn is_well_formed(rank: &Rank) -> bool {
    Rank::between(Some(rank), None).is_ok() && Rank::between(None, Some(rank)).is_ok()
}

/// Each byte is a place in the row so far; a row without room is ranked anew, as the rules do.
fn inserts(places: &[u8]) {
    let mut row = vec![Rank::first()];
    for place in places.iter().take(200) {
        let at = usize::from(*place) % (row.len() + 1);
        let (left, right) = (at.checked_sub(1).map(|at| &row[at]), row.get(at));
        match Rank::between(left, right) {
            Ok(rank) => row.insert(at, rank),
            Err(_) => row = Rank::evenly(row.len() + 1),
        }
    }
    assert!(row.is_sorted_by(|a, b| a < b), "{row:?}");
}
