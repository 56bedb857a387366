//! How long rank keys get: no times, only lengths, of the pure rules.

use taskbus_core::limits::RANK_BYTES_MAX;
use taskbus_core::rank::{NoRoom, Rank};

use super::bar::{Bar, Target, Unit};
use crate::term::failure::Failure;

/// Tasks put at the end.
const APPENDS: usize = 1_000_000;
/// Tasks put at the same spot.
const SAME_SPOT: usize = 100_000;
/// Tasks put alternately on both sides of the last one: what makes keys long.
const ZIG_ZAG: usize = 10_000;

/// The lengths.
pub(super) fn bars() -> Result<Vec<Bar>, Failure> {
    let worst = appended().and_then(|append| Ok((append, same_spot()?, zig_zag()?)));
    let (append, same, any) = worst.map_err(|NoRoom| Failure::Broken("a rank key found no room".to_owned()))?;
    let bar = |name: &str, bytes: usize, most: u32| {
        Bar::new(name, bytes as f64, Unit::Bytes, Target::AtMost(f64::from(most)))
    };
    Ok(vec![
        bar("rank_after_1m_appends", append, 8),
        bar("rank_after_100k_at_one_spot", same, 8),
        bar("rank_of_any", any.max(append).max(same), 48),
    ])
}

fn longest(length: usize, rank: &Rank) -> usize {
    length.max(rank.as_str().len())
}

fn appended() -> Result<usize, NoRoom> {
    let (mut last, mut length) = (Rank::first(), 0);
    for _ in 0..APPENDS {
        last = Rank::between(Some(&last), None)?;
        length = longest(length, &last);
    }
    Ok(length)
}

/// Always directly behind the same task, and always directly in front of the same one.
fn same_spot() -> Result<usize, NoRoom> {
    let (first, last) = fresh_ends()?;
    let (mut behind, mut in_front, mut length) = (last.clone(), first.clone(), 0);
    for _ in 0..SAME_SPOT {
        behind = Rank::between(Some(&first), Some(&behind))?;
        in_front = Rank::between(Some(&in_front), Some(&last))?;
        length = longest(longest(length, &behind), &in_front);
    }
    Ok(length)
}

/// Where no key is handed out the siblings are ranked anew, so it begins again.
fn zig_zag() -> Result<usize, NoRoom> {
    let mut length = 0;
    let mut ends = fresh_ends()?;
    for turn in 0..ZIG_ZAG {
        match Rank::between(Some(&ends.0), Some(&ends.1)) {
            Ok(rank) => {
                length = longest(length, &rank);
                *(if turn % 2 == 0 { &mut ends.0 } else { &mut ends.1 }) = rank;
            }
            Err(NoRoom) if length + 2 >= RANK_BYTES_MAX => ends = fresh_ends()?,
            Err(NoRoom) => return Err(NoRoom),
        }
    }
    Ok(length)
}

fn fresh_ends() -> Result<(Rank, Rank), NoRoom> {
    let first = Rank::first();
    let second = Rank::between(Some(&first), None)?;
    Ok((first, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_as_short_as_promised_and_the_worst_ones_are_met() {
        let bars = bars().unwrap();
        assert!(bars.iter().all(|bar| bar.met() == Some(true)), "{bars:?}");
        assert!(bars[2].value > 8.0, "the zig-zag made long keys: {bars:?}");
    }
}
