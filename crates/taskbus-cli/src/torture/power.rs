//! Power cuts, as far as they can be tried without a shim: after each acknowledged change the log's length is noted. What
//! stands behind it may be lost or torn; with any such tail the store must hold everything that was acknowledged by
//! then. Whether what stands before it was really synced is seen only by the tests below `crates/taskbus/tests/faults`.

use std::fs;
use std::path::{Path, PathBuf};

use taskbus::store::sqlite::SqliteOptions;

use super::dice::Dice;
use super::place::Place;
use super::report::Phase;
use super::rude::{client, first_number, make_some, missing};
use super::told::Seen;
use crate::term::failure::Failure;

/// A disk writes so many bytes at once.
const SECTOR: usize = 512;
/// Images made of one store.
const IMAGES_OF_A_STORE: u64 = 100;
/// Changes that are made before the first image.
const BEFORE: usize = 3;

/// What is counted.
pub(super) const IMAGES: &str = "images with a torn tail that hold all";

/// Makes so many images, a few hundred of each store, so that its log is never written back.
pub(super) fn cut(place: &Place, images: u64) -> Result<Phase, Failure> {
    let mut phase = Phase::new("power");
    let mut dice = Dice::of(place.seed, 2_000, 0);
    for store in 0..images.div_ceil(IMAGES_OF_A_STORE) {
        let count = IMAGES_OF_A_STORE.min(images - store * IMAGES_OF_A_STORE);
        cut_one(place, &place.store(&format!("power-{store}")), count, &mut dice, &mut phase)?;
    }
    phase.goals = vec![(IMAGES, images)];
    Ok(phase)
}

fn cut_one(place: &Place, path: &Path, images: u64, dice: &mut Dice, phase: &mut Phase) -> Result<(), Failure> {
    let (mut library, mut number) = (client(path, SqliteOptions::default())?, first_number());
    let mut tasks = make_some(&mut library, &mut number, BEFORE)?;
    for _ in 0..images {
        let acknowledged = read(&log_of(path))?.len();
        let next = make_some(&mut library, &mut number, 1)?;
        let wrongs = image(place, path, acknowledged, &tasks, dice)?;
        phase.count(IMAGES, u64::from(wrongs.is_empty()));
        phase.wrongs.extend(wrongs.into_iter().map(|wrong| format!("after {} changes: {wrong}", tasks.len())));
        tasks.extend(next);
    }
    Ok(())
}

fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::machine(path.display(), error))
}

/// The file as it is, and its log with a tail as a power cut may leave it.
fn image(
    place: &Place,
    path: &Path,
    acknowledged: usize,
    tasks: &[Seen],
    dice: &mut Dice,
) -> Result<Vec<String>, Failure> {
    let copy = place.store("image");
    let write =
        |path: &Path, bytes: &[u8]| fs::write(path, bytes).map_err(|error| Failure::machine(path.display(), error));
    write(&copy, &read(path)?)?;
    write(&log_of(&copy), &torn(&read(&log_of(path))?, acknowledged, dice))?;
    let wrongs = missing(&copy, tasks).unwrap_or_else(|failure| vec![failure.words()]);
    for leftover in [copy.clone(), log_of(&copy), copy.with_extension("db-shm")] {
        let _none = fs::remove_file(leftover);
    }
    Ok(wrongs)
}

/// Of what stands behind the acknowledged part, any sectors are there, up to any length.
fn torn(log: &[u8], acknowledged: usize, dice: &mut Dice) -> Vec<u8> {
    let acknowledged = acknowledged.min(log.len());
    let tail = usize::try_from(dice.below((log.len() - acknowledged) as u64 + 1)).unwrap_or(0);
    let (mut bytes, kept) = (log[..acknowledged + tail].to_vec(), dice.below(101));
    let mut from = acknowledged;
    while from < bytes.len() {
        let to = bytes.len().min((from / SECTOR + 1) * SECTOR);
        if !dice.percent(kept) {
            bytes[from..to].fill(0);
        }
        from = to;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tail_is_torn() {
        let (log, mut dice) = (vec![7; 5_000], Dice::of(1, 0, 0));
        let torn: Vec<Vec<u8>> = (0..60).map(|_| torn(&log, 1_000, &mut dice)).collect();
        assert!(torn.iter().all(|bytes| bytes[..1_000] == log[..1_000]));
        assert!(torn.iter().any(|bytes| bytes.contains(&0)) && torn.iter().any(|bytes| bytes.len() < 4_000));
    }
}
