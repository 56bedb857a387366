//! By which clock a store goes: the machine's clock since boot, set once by the clock on the wall.
//!
//! ```text
//!  store's time = time since boot + anchor          the anchor is kept in the store, beside the boot that it holds for
//!     another boot           ─▶ a new anchor, and every session ends
//!     the wall was set       ─▶ the same anchor while a lease runs; then a new one, and sessions move with it
//!     no clock since boot    ─▶ the wall
//! ```
//!
//! So a lease lasts as long as was said, and a session as long as its heartbeat, whoever sets the wall clock (ADR 0032). It
//! reads no clock: a store hands in what it has read.

use crate::limits::CLOCK_APART_MS_MAX;
use crate::time::Timestamp;

/// What the clock says that runs since the machine was started, in suspend too, and that nobody can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinceBoot {
    /// Which start of which machine.
    pub boot: u64,
    /// Milliseconds since then.
    pub millis: i64,
}

/// What a machine's clocks say at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The clock on the wall, which somebody may set.
    pub wall: Timestamp,
    /// None where there is no such clock, or no telling which boot it is.
    pub since_boot: Option<SinceBoot>,
}

/// What ties a store's time to the clock since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The boot that it holds for.
    pub boot: u64,
    /// The store's time at the moment of that boot.
    pub began: Timestamp,
    /// How many anchors the store has had, this one included.
    pub turn: u64,
}

/// What becomes of the sessions when a store takes a new anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// The processes that they belonged to are gone: those that live end now.
    End,
    /// Their ends move by so many milliseconds, as the store's time does.
    Move(i64),
}

/// A new anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// To be kept from now on.
    pub anchor: Anchor,
    /// To be done with it, in one transaction.
    pub sessions: Sessions,
}

/// The store's time.
#[must_use]
pub fn time(anchor: Option<Anchor>, reading: Reading) -> Timestamp {
    match (anchor, reading.since_boot) {
        (Some(anchor), Some(since)) if since.boot == anchor.boot => anchor.began.plus_millis(since.millis),
        _ => reading.wall,
    }
}

/// Whether the store was last written during another boot of the machine.
#[must_use]
pub fn is_of_another_boot(anchor: Option<Anchor>, reading: Reading) -> bool {
    anchor.zip(reading.since_boot).is_some_and(|(anchor, since)| anchor.boot != since.boot)
}

/// Whether the store's time is not that on the wall.
fn is_apart(anchor: Option<Anchor>, reading: Reading) -> bool {
    ahead(anchor, reading).abs() > CLOCK_APART_MS_MAX
}

/// The anchor that a write takes before it does anything else; none when the old one stands. Whether any task is held
/// under a lease is asked only when the wall clock was set.
///
/// # Errors
/// What the question failed with.
pub fn settle<E>(
    anchor: Option<Anchor>,
    reading: Reading,
    has_leases: impl FnOnce() -> Result<bool, E>,
) -> Result<Option<Settled>, E> {
    let Some(since) = reading.since_boot else { return Ok(None) };
    let sessions = if is_of_another_boot(anchor, reading) {
        Sessions::End
    } else if anchor.is_some() && (!is_apart(anchor, reading) || has_leases()?) {
        return Ok(None);
    } else {
        Sessions::Move(ahead(anchor, reading).saturating_neg())
    };
    let began = reading.wall.plus_millis(since.millis.saturating_neg());
    let turn = anchor.map_or(0, |anchor| anchor.turn).saturating_add(1);
    Ok(Some(Settled { anchor: Anchor { boot: since.boot, began, turn }, sessions }))
}

/// By how many milliseconds the store's time is ahead of the wall.
fn ahead(anchor: Option<Anchor>, reading: Reading) -> i64 {
    time(anchor, reading).as_millis().saturating_sub(reading.wall.as_millis())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const HOUR: i64 = 3_600_000;
    const START: i64 = 1_796_000_000_000;

    fn reading(wall: i64, boot: u64, millis: i64) -> Reading {
        Reading { wall: Timestamp::from_millis(START + wall), since_boot: Some(SinceBoot { boot, millis }) }
    }

    fn settled(anchor: Option<Anchor>, reading: Reading, has_leases: bool) -> Option<Settled> {
        settle::<Infallible>(anchor, reading, || Ok(has_leases)).unwrap()
    }

    fn anchor() -> Anchor {
        settled(None, reading(0, 1, 1000), true).unwrap().anchor
    }

    fn passed(anchor: Anchor, reading: Reading) -> i64 {
        time(Some(anchor), reading).as_millis() - START
    }

    #[test]
    fn the_first_anchor_is_the_wall_and_ends_nothing() {
        let first = settled(None, reading(0, 1, 1000), true).unwrap();
        let began = Timestamp::from_millis(START - 1000);
        assert_eq!(first, Settled { anchor: Anchor { boot: 1, began, turn: 1 }, sessions: Sessions::Move(0) });
        assert_eq!(settled(Some(first.anchor), reading(500, 1, 1500), false), None);
    }

    #[test]
    fn time_goes_on_as_the_machine_does_wherever_the_wall_jumps() {
        for jump in [0, -HOUR, HOUR, -365 * 24 * HOUR, 365 * 24 * HOUR] {
            assert_eq!(passed(anchor(), reading(jump + 7, 1, 1007)), 7, "{jump}");
        }
    }

    #[test]
    fn a_wall_that_was_set_is_followed_once_no_lease_runs() {
        for jump in [-HOUR, HOUR] {
            let now = reading(jump, 1, 1000);
            assert_eq!(settled(Some(anchor()), now, true), None);
            let followed = settled(Some(anchor()), now, false).unwrap();
            assert_eq!((followed.sessions, followed.anchor.turn), (Sessions::Move(jump), 2));
            assert_eq!(passed(followed.anchor, now), jump);
        }
    }

    #[test]
    fn a_wall_that_is_a_little_off_is_left_so() {
        for (off, follows) in [(CLOCK_APART_MS_MAX, false), (CLOCK_APART_MS_MAX + 1, true)] {
            for off in [off, -off] {
                let now = reading(off, 1, 1000);
                assert_eq!(settled(Some(anchor()), now, false).is_some(), follows, "{off}");
                assert_eq!(is_apart(Some(anchor()), now), follows, "{off}");
            }
        }
    }

    #[test]
    fn another_boot_ends_the_sessions_whatever_runs() {
        let now = reading(HOUR, 2, 5);
        assert!(is_of_another_boot(Some(anchor()), now));
        assert_eq!(time(Some(anchor()), now), now.wall);
        let new = settled(Some(anchor()), now, true).unwrap();
        assert_eq!((new.sessions, new.anchor.boot, passed(new.anchor, now)), (Sessions::End, 2, HOUR));
    }

    #[test]
    fn without_a_clock_since_boot_the_wall_counts_and_nothing_is_kept() {
        let now = Reading { since_boot: None, ..reading(HOUR, 1, 0) };
        assert_eq!(time(Some(anchor()), now), now.wall);
        assert_eq!((settled(None, now, false), settled(Some(anchor()), now, false)), (None, None));
        assert!(!is_of_another_boot(Some(anchor()), now) && !is_apart(Some(anchor()), now));
    }
}
