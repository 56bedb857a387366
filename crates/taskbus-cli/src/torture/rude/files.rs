//! What is done to the files: moved away, replaced, cut, overwritten, flipped, and litter beside them.

use std::fs;
use std::path::{Path, PathBuf};

use taskbus::store::sqlite::{Journal, SqliteOptions, SqliteStore};

use super::{Outcome, client, first_number, make, make_some, missing};
use crate::store::{self, Opener, StoreUrl};
use crate::term::failure::Failure;
use crate::torture::collect;
use crate::torture::dice::Dice;
use crate::torture::place::Place;
use crate::torture::told::{Seen, Told};

/// Bits flipped.
const FLIPS: u64 = 40;
/// Tasks in a store that is damaged.
const TASKS: usize = 12;

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::machine(path.display(), error)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The file is moved away under a process that writes: nothing more is acknowledged, no new store is begun in its
/// place, and when it is back, everything is there.
pub(super) fn replaced(place: &Place, _: &mut Dice) -> Outcome {
    let path = place.store("replaced");
    let (mut library, mut number) = (client(&path, SqliteOptions::default())?, first_number());
    let (mut tasks, mut held, mut wrongs) = (make_some(&mut library, &mut number, 3)?, 0, Vec::new());
    let away = beside(&path, ".away");
    for _ in 0..3 {
        fs::rename(&path, &away).map_err(failed(&path))?;
        match make(&mut library, &mut number) {
            Told::Failed(words) if words.contains("store_moved") => held += 1,
            told => wrongs.push(format!("a write to a file that is not there any more: {told:?}")),
        }
        if SqliteStore::open(&path, SqliteOptions::default()).is_ok() {
            wrongs.push("a new store was begun beside the log of another".to_owned());
        }
        let _begun = fs::remove_file(&path);
        fs::rename(&away, &path).map_err(failed(&away))?;
        library = client(&path, SqliteOptions::default())?;
        tasks.extend(make_some(&mut library, &mut number, 1)?);
    }
    wrongs.extend(missing(&path, &tasks)?);
    Ok((held, wrongs))
}

/// A store that is one file: its bytes, and what was acknowledged.
fn whole_file(place: &Place, name: &str) -> Result<(Vec<u8>, Vec<Seen>), Failure> {
    let path = place.store(name);
    let options = SqliteOptions { journal: Journal::Rollback, ..SqliteOptions::default() };
    let (mut library, mut number) = (client(&path, options)?, first_number());
    let tasks = make_some(&mut library, &mut number, TASKS)?;
    drop(library);
    Ok((fs::read(&path).map_err(failed(&path))?, tasks))
}

/// What is no store any more is refused, and left to the byte as it was.
pub(super) fn damaged(place: &Place, _: &mut Dice) -> Outcome {
    let (bytes, _) = whole_file(place, "sound")?;
    let zeroed = [vec![0; 2_048], bytes[2_048..].to_vec()].concat();
    let (mut held, mut wrongs) = (0, Vec::new());
    for damage in
        [bytes[..100].to_vec(), b"- [ ] a list of another program\n".repeat(40), zeroed, bytes[..9_000].to_vec()]
    {
        let path = place.store("damaged");
        fs::write(&path, &damage).map_err(failed(&path))?;
        let refused = collect::verify(&path).map_or(true, |wrongs| !wrongs.is_empty());
        check_left(&path, &damage, refused, &mut held, &mut wrongs)?;
    }
    for text in [&b"{\"tasks\": [{\"id\": \"1\", \"content\": \"a"[..], b"[]x", b"{\"tasks\": 1}"] {
        let path = place.path().join("cut.tasks.json");
        fs::write(&path, text).map_err(failed(&path))?;
        let url = StoreUrl::Sidecar(path.clone());
        let opened = store::open(&url, SqliteOptions::default(), Opener::Command);
        let refused = opened.and_then(|store| store.read(None, &mut |snapshot| snapshot.lists().map(drop))).is_err();
        check_left(&path, text, refused, &mut held, &mut wrongs)?;
    }
    Ok((held, wrongs))
}

fn check_left(
    path: &Path,
    damage: &[u8],
    refused: bool,
    held: &mut u64,
    wrongs: &mut Vec<String>,
) -> Result<(), Failure> {
    let left = fs::read(path).map_err(failed(path))? == damage;
    if refused && left {
        *held += 1;
    } else {
        wrongs.push(format!("{} bytes of damage: refused: {refused}, left as they were: {left}", damage.len()));
    }
    fs::remove_file(path).map_err(failed(path))
}

/// A flipped bit, in the file or in its log, is told, or it changes nothing that was acknowledged.
pub(super) fn flipped(place: &Place, dice: &mut Dice) -> Outcome {
    let (bytes, tasks) = whole_file(place, "unflipped")?;
    let in_file = flip_bits(place, "", &[("", bytes)], &tasks, dice)?;
    let path = place.store("logged");
    let (mut library, mut number) = (client(&path, SqliteOptions::default())?, first_number());
    let tasks = make_some(&mut library, &mut number, TASKS)?;
    let read = |ending| Ok::<_, Failure>((ending, fs::read(beside(&path, ending)).map_err(failed(&path))?));
    let in_log = flip_bits(place, LOG, &[read("")?, read(LOG)?, read("-high")?], &tasks, dice)?;
    Ok((in_file.0 + in_log.0, [in_file.1, in_log.1].concat()))
}

const LOG: &str = "-wal";

/// Flips bits of the file with this ending, one in each copy of a store.
fn flip_bits(place: &Place, ending: &str, files: &[(&str, Vec<u8>)], tasks: &[Seen], dice: &mut Dice) -> Outcome {
    let (mut held, mut wrongs) = (0, Vec::new());
    let path = place.store("flipped");
    for _ in 0..FLIPS {
        let mut bit = 0;
        for (which, bytes) in files {
            let mut bytes = bytes.clone();
            if *which == ending {
                bit = dice.below(bytes.len() as u64 * 8);
                bytes[usize::try_from(bit / 8).unwrap_or(0)] ^= 1 << (bit % 8);
            }
            fs::write(beside(&path, which), bytes).map_err(failed(&path))?;
        }
        match silently_wrong(&path, tasks) {
            Ok(Some(words)) => wrongs.push(format!("bit {bit} of the file{ending}: {words}")),
            Ok(None) | Err(_) => held += 1,
        }
        for ending in ["", LOG, "-shm", "-journal", "-high"] {
            let _none = fs::remove_file(beside(&path, ending));
        }
    }
    Ok((held, wrongs))
}

/// What is gone although nothing was told: not by reading, and not to whoever wants to write.
fn silently_wrong(path: &Path, tasks: &[Seen]) -> Result<Option<String>, Failure> {
    if !collect::verify(path)?.is_empty() {
        return Ok(None);
    }
    let gone = missing(path, tasks)?.into_iter().next();
    if gone.is_some() {
        drop(client(path, SqliteOptions::default())?);
    }
    Ok(gone)
}

/// What a killed process may leave beside a store does not keep the next one from it.
pub(super) fn stale(place: &Place, dice: &mut Dice) -> Outcome {
    let path = place.store("stale");
    let (mut library, mut number) = (client(&path, SqliteOptions::default())?, first_number());
    let mut tasks = make_some(&mut library, &mut number, 3)?;
    let (mut held, mut wrongs) = (0, Vec::new());
    for _ in 0..4 {
        drop(library);
        let litter: Vec<u8> = (0..32_768).map(|_| dice.roll().to_le_bytes()[0]).collect();
        fs::write(beside(&path, "-shm"), litter).map_err(failed(&path))?;
        fs::write(beside(&path, ".lock"), b"12345").map_err(failed(&path))?;
        library = client(&path, SqliteOptions::default())?;
        tasks.extend(make_some(&mut library, &mut number, 1)?);
        held += 1;
    }
    drop(library);
    wrongs.extend(missing(&path, &tasks)?);
    Ok((held, wrongs))
}
