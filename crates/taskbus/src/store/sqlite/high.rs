//! The high-water file beside the store: the largest seq that was acknowledged, so that a store that lost its newest
//! changes, or was put back to an earlier copy, is told from one that did not (ADR 0025).
//!
//! ```text
//!  commit ─▶ on disk ─▶ seq into a slot of the file ─▶ answer          begin ─▶ seq of the store below it? ─▶ refused
//! ```
//!
//! Eight slots of 64 bytes, each whole or not there: who writes seq n writes slot n mod 8, so that writers who overtake each
//! other after their commits do not undo each other's. It is never flushed: what reaches the disk late is only lower. A file
//! that is missing, of another store or unusable never stops anybody; it is made, or written over, by the next change.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;

use super::Durability;
use super::file::Place;
use crate::store::clock::boot;

const SLOTS: usize = 8;
const SLOT: usize = 64;
/// Bytes of a slot that its checksum is over.
const SUMMED: usize = 48;
const FILE_MODE: u32 = 0o600;
/// Without durability the file is written once in so many numbers.
const RELAXED_STRIDE: u64 = 64;
/// Behind the slots lies a byte that says nothing: that it is written to is what those who wait hear.
const BELL: u64 = (SLOTS * SLOT) as u64;

/// What the file has of a store's id.
type Id = [u8; 16];

/// What a slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) seq: u64,
    pub(super) epoch: u64,
    /// The change may not have been on disk.
    pub(super) relaxed: bool,
    /// Which boot of the machine it was; 0 when that is not known.
    pub(super) boot: u64,
}

/// What the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The highest that was on disk.
    pub(super) durable: Option<Mark>,
    /// The highest of all.
    pub(super) any: Option<Mark>,
    /// There are marks of another store.
    pub(super) foreign: bool,
}

/// Where a store stands against its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing that was acknowledged is missing, as far as is known.
    Sound,
    /// Changes that were never promised to be on disk went with a restart of the machine. Up to this mark.
    Permitted(Mark),
    /// Acknowledged changes are missing. Up to this mark.
    RolledBack(Mark),
}

impl Marks {
    /// Where a store with this newest seq stands.
    pub(super) fn judge(&self, seq: u64, epoch: u64, boot: u64) -> Standing {
        let ahead = |mark: &Mark| mark.seq > seq || mark.epoch > epoch;
        let Some(any) = self.any.filter(|mark| ahead(mark) || self.durable.as_ref().is_some_and(ahead)) else {
            return Standing::Sound;
        };
        let lost_durable = self.durable.as_ref().is_some_and(ahead);
        // Within one boot nothing gets lost by a power cut.
        if lost_durable || !any.relaxed || (any.boot == boot && boot != 0) {
            Standing::RolledBack(any)
        } else {
            Standing::Permitted(any)
        }
    }
}

/// The file, held open.
#[derive(Debug)]
pub(super) struct High {
    file: Option<File>,
    id: Id,
    /// What was written last, without durability.
    noted: AtomicU64,
}

impl High {
    /// Opens the file beside the store with this id, and makes it if there is none.
    pub(super) fn open(place: &Place, store: &str) -> Self {
        let file = open(place, true);
        let file = file.inspect_err(|error| tracing::warn!(%error, "the high-water file cannot be used")).ok();
        Self { file, id: id_from(store), noted: AtomicU64::new(0) }
    }

    /// The file, to be locked.
    pub(super) fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Whether the store, whose newest seq this is, has lost anything.
    pub(super) fn judge(&self, seq: u64, epoch: u64) -> Standing {
        self.file.as_ref().map_or(Standing::Sound, |file| read(file, &self.id).judge(seq, epoch, boot()))
    }

    /// Notes a seq that was acknowledged, which those who wait hear. What was is not undone because the file cannot be
    /// written.
    pub(super) fn note(&self, seq: u64, epoch: u64, durability: Durability) {
        let Some(file) = &self.file else { return };
        let relaxed = durability == Durability::Relaxed;
        if relaxed && seq / RELAXED_STRIDE == self.noted.swap(seq, Ordering::Relaxed) / RELAXED_STRIDE {
            return self.ring();
        }
        let mark = Mark { seq, epoch, relaxed, boot: if relaxed { boot() } else { 0 } };
        if let Err(error) = write(file, &self.id, &mark) {
            tracing::warn!(%error, seq, "the high-water file cannot be written");
        }
    }

    /// Wakes those who wait, after a commit that took no number. Who does not hear it looks within a second.
    pub(super) fn ring(&self) {
        if let Some(file) = &self.file {
            let _rung = file.write_at(&[0], BELL);
        }
    }
}

/// What the file beside a store says; an error if there is none that can be read.
pub(super) fn peek(place: &Place, store: &str) -> std::io::Result<Marks> {
    Ok(read(&open(place, false)?, &id_from(store)))
}

/// Never through a symbolic link, and never anything but a regular file.
fn open(place: &Place, make: bool) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = File::options();
    let file = options.read(true).write(make).create(make).truncate(false);
    let file = file.mode(FILE_MODE).custom_flags(flags).open(place.high())?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(file)
}

fn read(file: &File, id: &Id) -> Marks {
    let mut bytes = [0; SLOTS * SLOT];
    let mut filled = 0;
    // A file that cannot be read, or is short, says less.
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(more) if more > 0 => filled += more,
            Ok(_) | Err(_) => break,
        }
    }
    marks(&bytes[..filled], id)
}

/// Of those slots that are whole the highest; only they are summed up, as this is asked before each write.
fn marks(bytes: &[u8], id: &Id) -> Marks {
    let (slots, _) = bytes.as_chunks::<SLOT>();
    let own = |slot: &&[u8; SLOT]| slot[..16] == *id;
    let mut found: Vec<(Mark, &[u8; SLOT])> = slots.iter().filter(own).map(|slot| (mark_from(slot), slot)).collect();
    found.sort_by_key(|(mark, _)| std::cmp::Reverse((mark.epoch, mark.seq)));
    let highest = |durable: bool| {
        let mut fitting = found.iter().filter(|(mark, _)| !durable || !mark.relaxed);
        fitting.find(|(_, slot)| sum(slot) == slot[SUMMED..]).map(|(mark, _)| *mark)
    };
    let foreign = || slots.iter().any(|slot| slot[..16] != *id && sum(slot) == slot[SUMMED..]);
    let any = highest(false);
    Marks { durable: highest(true), any, foreign: any.is_none() && foreign() }
}

fn write(file: &File, id: &Id, mark: &Mark) -> std::io::Result<()> {
    let mut slot = [0; SLOT];
    slot[..16].copy_from_slice(id);
    for (at, number) in [(16, mark.seq), (24, mark.epoch), (32, mark.boot), (40, mark.relaxed.into())] {
        slot[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    let sum = sum(&slot);
    slot[SUMMED..].copy_from_slice(&sum);
    let at = mark.seq % SLOTS as u64 * SLOT as u64;
    file.write_all_at(&slot, at)
}

fn mark_from(slot: &[u8; SLOT]) -> Mark {
    let number = |at: usize| u64::from_le_bytes(*slot[at..].first_chunk().expect("BUG: a slot has 64 bytes"));
    Mark { seq: number(16), epoch: number(24), boot: number(32), relaxed: number(40) != 0 }
}

fn sum(slot: &[u8; SLOT]) -> [u8; SLOT - SUMMED] {
    *blake3::hash(&slot[..SUMMED]).as_bytes().first_chunk().expect("BUG: a hash has 32 bytes")
}

/// The first bytes of the id's hash: an id is any text.
fn id_from(store: &str) -> Id {
    *blake3::hash(store.as_bytes()).as_bytes().first_chunk().expect("BUG: a hash has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(seq: u64, epoch: u64, relaxed: bool, boot: u64) -> Mark {
        Mark { seq, epoch, relaxed, boot }
    }

    fn file_with(marks: &[(Id, Mark)]) -> File {
        let file = tempfile::tempfile().unwrap();
        marks.iter().for_each(|(id, mark)| write(&file, id, mark).unwrap());
        file
    }

    const OWN: Id = [1; 16];
    const OTHER: Id = [2; 16];

    #[test]
    fn the_highest_mark_of_the_store_counts() {
        let high = mark(21, 1, false, 0);
        let file = file_with(&[(OWN, mark(20, 1, false, 0)), (OWN, high), (OTHER, mark(99, 1, false, 0))]);
        assert_eq!(read(&file, &OWN), Marks { durable: Some(high), any: Some(high), foreign: false });
        // Somebody who was overtaken does not undo it.
        write(&file, &OWN, &mark(14, 1, false, 0)).unwrap();
        assert_eq!(read(&file, &OWN).any, Some(high));
        assert_eq!(read(&file, &[3; 16]), Marks { durable: None, any: None, foreign: true });
    }

    #[test]
    fn a_slot_that_is_not_whole_is_not_there() {
        let file = file_with(&[(OWN, mark(20, 1, false, 0)), (OWN, mark(21, 1, false, 0))]);
        file.write_all_at(&[7], 5 * SLOT as u64 + 17).unwrap();
        assert_eq!(read(&file, &OWN).any.map(|mark| mark.seq), Some(20));
        file.set_len(5 * SLOT as u64 + 10).unwrap();
        assert_eq!(read(&file, &OWN).any.map(|mark| mark.seq), Some(20));
        file.set_len(0).unwrap();
        assert_eq!(read(&file, &OWN), Marks::default());
    }

    #[track_caller]
    fn check(marks: &[Mark], seq: u64, epoch: u64, boot: u64, expected: Standing) {
        let own: Vec<(Id, Mark)> = marks.iter().map(|mark| (OWN, *mark)).collect();
        assert_eq!(read(&file_with(&own), &OWN).judge(seq, epoch, boot), expected);
    }

    #[test]
    fn what_is_missing_is_told_from_what_may_be() {
        let (durable, relaxed) = (mark(20, 1, false, 0), mark(30, 1, true, 5));
        check(&[], 1, 1, 5, Standing::Sound);
        check(&[durable], 20, 1, 5, Standing::Sound);
        check(&[durable], 19, 1, 5, Standing::RolledBack(durable));
        check(&[mark(20, 2, false, 0)], 25, 1, 5, Standing::RolledBack(mark(20, 2, false, 0)));
        check(&[durable, relaxed], 25, 1, 6, Standing::Permitted(relaxed));
        check(&[durable, relaxed], 25, 1, 5, Standing::RolledBack(relaxed));
        check(&[durable, relaxed], 19, 1, 6, Standing::RolledBack(relaxed));
        check(&[mark(30, 1, true, 0)], 25, 1, 0, Standing::Permitted(mark(30, 1, true, 0)));
    }
}
