//! What looks random in the torture and is not: every choice comes from the seed, so that the same seed makes the same
//! operations, kills and freezes, as far as the processes allow. Pure.

/// A row of numbers that a seed decides.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// The dice of one part of a run: of a client in one of its lives, of the killer.
    pub(super) fn of(seed: u64, part: u64, life: u64) -> Self {
        let mut dice = Self(seed ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ life.wrapping_mul(0xA076_1D64_78BD_642F));
        dice.roll();
        dice
    }

    /// The next number, by Steele, Lea and Flood's mixing of a Weyl sequence (splitmix64).
    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below a bound; 0 when there is none.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.roll() % bound }
    }

    /// Whether so many in a hundred.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several, if there is any.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let at = self.below(from.len() as u64);
        from.get(usize::try_from(at).unwrap_or(0))
    }

    /// One of several, each as often as its weight says.
    pub(super) fn weighted<T: Copy>(&mut self, table: &[(u64, T)]) -> T {
        let mut left = self.below(table.iter().map(|(weight, _)| weight).sum());
        for (weight, what) in table {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *what,
            }
        }
        table.last().expect("BUG: a table of weights has a row").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_rolls_the_same_and_parts_differ() {
        let row = |seed, part, life| {
            let mut dice = Dice::of(seed, part, life);
            (0..20).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(row(1, 2, 3), row(1, 2, 3));
        let others = [row(2, 2, 3), row(1, 3, 3), row(1, 2, 4), row(1, 3, 2)];
        assert!(others.iter().all(|other| *other != row(1, 2, 3)));
    }

    #[test]
    fn weights_are_kept() {
        let mut dice = Dice::of(7, 0, 0);
        let often = (0..10_000).filter(|_| dice.weighted(&[(3, true), (1, false)])).count();
        assert!((7_200..7_800).contains(&often), "{often}");
        assert_eq!((dice.weighted(&[(0, 1), (5, 2)]), dice.below(0), dice.pick::<u8>(&[])), (2, 0, None));
    }
}
