//! Ids of a sidecar: `t_<unix_ms>_<4 hex>` (seed 2). Each has a later time than all that are there, so that their order
//! is that of their making, whatever the clock does.

use std::collections::BTreeSet;

use taskbus_core::id::TaskId;
use taskbus_core::limits::TIME_MS_MAX;
use taskbus_core::time::Timestamp;

/// Ids with later times were not minted by a clock; they are left alone, and not counted on from.
const MS_MAX: i64 = TIME_MS_MAX;

/// A fresh id, neither among `taken` nor before any of them.
pub(super) fn mint(now: Timestamp, taken: &BTreeSet<TaskId>) -> TaskId {
    let last = taken.iter().filter_map(minted_at).map(Timestamp::as_millis).max().unwrap_or(0);
    let ms = now.as_millis().clamp(0, MS_MAX).max(last + 1);
    loop {
        let mut random = [0_u8; 2];
        getrandom::fill(&mut random).expect("BUG: the operating system always has random bytes");
        let id = TaskId::Text(format!("t_{ms:013}_{:04x}", u16::from_be_bytes(random)).into());
        if !taken.contains(&id) {
            return id;
        }
    }
}

/// The time in an id of this form.
pub(super) fn minted_at(id: &TaskId) -> Option<Timestamp> {
    let TaskId::Text(text) = id else { return None };
    let (ms, _) = text.strip_prefix("t_")?.split_once('_')?;
    let ms: i64 = ms.parse().ok()?;
    (0..MS_MAX).contains(&ms).then(|| Timestamp::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_though_the_clock_stands_or_runs_back() {
        let mut taken = BTreeSet::new();
        for now in [1_720_600_000_000, 1_720_600_000_000, 5, 1_720_600_000_900] {
            let id = mint(Timestamp::from_millis(now), &taken);
            assert!(taken.last().is_none_or(|last| *last < id), "{id} after {taken:?}");
            taken.insert(id);
        }
        let first = taken.first().unwrap().to_string();
        assert!(first.starts_with("t_1720600000000_") && first.len() == 20, "{first}");
    }

    #[test]
    fn odd_ids_of_others_do_not_carry_the_clock_away() {
        let taken = ["t_99999999999999999_ffff", "t_x_1", "7", "zz"].map(|id| id.parse().unwrap()).into();
        let id = mint(Timestamp::from_millis(1_720_600_000_000), &taken);
        assert_eq!(minted_at(&id), Some(Timestamp::from_millis(1_720_600_000_000)));
    }
}
