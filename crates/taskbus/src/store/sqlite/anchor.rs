//! The anchor of the store's clock, in row 0 of the counters: read by the first read of every transaction, written by the
//! first write of a boot, and by the first one without leases after the wall clock was set.
//!
//! Three numbers and a sum over them. One whose sum does not fit is none, so that the next write takes a new one.

use taskbus_core::clock::{self, Anchor, Sessions, Settled};
use taskbus_core::time::Timestamp;

use super::error::Answer;
use super::scope::Scope;
use crate::store::steady::Steady;

const PUT: &str = "UPDATE counters SET clock = ?1 WHERE id = 0";
/// The largest integer stands for no lease.
const HAS_LEASES: &str = "
    SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_active WHERE condition = 5 AND lease < 9223372036854775807)";
const END: &str = "UPDATE sessions SET alive_until = ?1 WHERE alive_until > ?1";
const MOVE: &str = "UPDATE sessions SET alive_until = alive_until + ?1";

const NUMBER: usize = 8;
const SUMMED: usize = 3 * NUMBER;

/// An anchor from its column; none if it is not what was written.
pub(super) fn decoded(column: &[u8]) -> Option<Anchor> {
    let (numbers, sum) = column.split_at_checked(SUMMED)?;
    let number = |at: usize| numbers[at * NUMBER..].first_chunk().copied().map(u64::from_le_bytes);
    let began = Timestamp::from_millis(number(1)?.cast_signed());
    (sum == sum_of(numbers)).then_some(Anchor { boot: number(0)?, began, turn: number(2)? })
}

fn encoded(anchor: Anchor) -> Vec<u8> {
    let numbers = [anchor.boot, anchor.began.as_millis().cast_unsigned(), anchor.turn];
    let mut column = numbers.map(u64::to_le_bytes).concat();
    let sum = sum_of(&column);
    column.extend(sum);
    column
}

fn sum_of(numbers: &[u8]) -> [u8; NUMBER] {
    *blake3::hash(numbers).as_bytes().first_chunk().expect("BUG: a hash has 32 bytes")
}

impl Scope<'_> {
    /// Before anything else is done in a transaction that writes: takes a new anchor if it is time to. Says how many rows it
    /// changed, none of which needs to outlive the boot.
    pub(super) fn set_clock(&mut self, steady: &Steady) -> Answer<u64> {
        let (reading, before) = (steady.reading(), self.connection.total_changes());
        let settled = clock::settle(self.anchor, reading, || {
            self.one(HAS_LEASES, [], |row| row.get(0)).map(|found| found.unwrap_or(false))
        })?;
        if let Some(settled) = settled {
            self.anchor = Some(settled.anchor);
            self.now = clock::time(self.anchor, reading);
            self.put_anchor(settled)?;
        }
        steady.take(self.anchor);
        Ok(self.connection.total_changes() - before)
    }

    fn put_anchor(&self, Settled { anchor, sessions }: Settled) -> Answer<()> {
        match sessions {
            Sessions::End => self.run(END, [self.now.as_millis()])?,
            Sessions::Move(0) => 0,
            Sessions::Move(millis) => self.run(MOVE, [millis])?,
        };
        self.run(PUT, [encoded(anchor)]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_reads_back_and_any_bit_of_it_tells() {
        let anchor = Anchor { boot: u64::MAX, began: Timestamp::from_millis(-7), turn: 3 };
        let column = encoded(anchor);
        assert_eq!(decoded(&column), Some(anchor));
        for bit in 0..column.len() * 8 {
            let mut flipped = column.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decoded(&flipped), None, "bit {bit}");
        }
        assert_eq!(
            (decoded(&[]), decoded(&column[..SUMMED]), decoded(&[&column[..], &[0]].concat())),
            (None, None, None)
        );
    }
}
