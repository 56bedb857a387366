//! The lock of a sidecar: one of the kernel's, on a file of its own beside the sidecar, gone with its process however
//! that ends.
//!
//! The file says who holds it and under which name the next sidecar is being written. Whoever gets the lock finds there
//! what a dead holder left over, and removes it.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::time::{Duration, Instant};

use super::place::Place;

/// The shortest sleep between two tries, and the longest, in microseconds.
const NAP_MICROS: (u64, u64) = (100, 2_000);
/// The longest lock file that is one of ours, in bytes.
const NOTE_BYTES_MAX: u64 = 1_024;

/// The right to change a sidecar, as long as this lives.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    temp: String,
}

/// Why there was no lock.
#[derive(Debug)]
pub(super) enum LockError {
    /// Somebody held it all the time.
    Busy { waited: Duration, holder: Option<u32> },
    /// The lock file could not be used.
    Io(io::Error),
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        LockError::Io(error)
    }
}

impl Lock {
    /// Waits for the lock, at most so long.
    pub(super) fn take(place: &Place, patience: Duration) -> Result<Self, LockError> {
        let since = Instant::now();
        for tries in 0.. {
            let file = place.open_lock()?;
            match file.try_lock() {
                Ok(()) if place.is_the_lock(&file)? => return Ok(Self::sign(place, file)?),
                // It was removed or replaced while we waited: that was another lock.
                Ok(()) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) if since.elapsed() >= patience => {
                    let holder = Note::read(&file).ok().and_then(|note| note.pid);
                    return Err(LockError::Busy { waited: since.elapsed(), holder });
                }
                Err(TryLockError::WouldBlock) => nap(tries),
            }
        }
        unreachable!("BUG: the tries never end by themselves")
    }

    /// The name under which the holder writes the sidecar.
    pub(super) fn temp(&self) -> &str {
        &self.temp
    }

    /// Whether it is still the lock of this place: somebody may have removed its file.
    pub(super) fn holds(&self, place: &Place) -> io::Result<bool> {
        place.is_the_lock(&self.file)
    }

    fn sign(place: &Place, mut file: File) -> io::Result<Self> {
        if let Some(temp) = Note::read(&file)?.temp.filter(|temp| place.is_temp_name(temp)) {
            place.remove(&temp)?;
        }
        let temp = place.temp_name();
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(format!("pid {}\nwrites {temp}\n", std::process::id()).as_bytes())?;
        Ok(Self { file, temp })
    }
}

/// What stands in the lock file.
#[derive(Debug, Default)]
struct Note {
    pid: Option<u32>,
    temp: Option<String>,
}

impl Note {
    fn read(mut file: &File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.take(NOTE_BYTES_MAX).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let after = |word: &str| text.lines().find_map(|line| line.strip_prefix(word)).map(str::to_owned);
        Ok(Self { pid: after("pid ").and_then(|pid| pid.parse().ok()), temp: after("writes ") })
    }
}

/// Sleeps a little, longer after many tries, never twice the same.
fn nap(tries: u32) {
    let most = (NAP_MICROS.0 << (tries / 8).min(8)).min(NAP_MICROS.1);
    let mut random = [0_u8; 1];
    getrandom::fill(&mut random).expect("BUG: the operating system always has random bytes");
    std::thread::sleep(Duration::from_micros(most / 2 + most * u64::from(random[0]) / 256));
}
