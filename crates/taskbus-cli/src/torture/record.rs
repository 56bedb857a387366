//! What a client writes down: each deed before it is tried, each answer when it is there, one JSON value a line, in a
//! file that survives the death of its writer. Read back with whatever stands at its end cut off.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use taskbus_core::name::Identity;

use super::deed::Deed;
use super::told::Told;

/// So much of the end of a file is looked at for what its last writer left open.
const TAIL_BYTES: u64 = 8 * 1024;

/// A deed's number: which client, in which of its lives, the how-manieth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Number {
    /// The client.
    pub(super) client: u64,
    /// How often it had been started before.
    pub(super) life: u64,
    /// Counts the deeds of that life.
    pub(super) deed: u64,
}

impl Number {
    /// The text that stands in what the deed writes.
    pub(super) fn mark(self) -> String {
        format!("deed {}.{}.{}", self.client, self.life, self.deed)
    }
}

/// A line. Times are nanoseconds of the clock that all processes of a machine share and that never runs back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// This is tried now.
    Begin(Begin),
    /// This came of it.
    End {
        /// Of which.
        number: Number,
        /// When.
        at: u64,
        /// What.
        told: Told,
    },
}

/// A deed that is tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Begin {
    /// Its number; the same again when it is tried again.
    pub(super) number: Number,
    /// When.
    pub(super) at: u64,
    /// Under which name.
    pub(super) caller: Identity,
    /// What.
    pub(super) deed: Deed,
    /// The key it goes with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// It must be refused: it comes late, under an old claim, or under a key that stands for something else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_wrong: bool,
}

/// The time now, in nanoseconds.
pub(super) fn nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// A file of lines that is written to.
#[derive(Debug)]
pub(super) struct Log(File);

impl Log {
    /// Opens it at its end; a line that its last writer did not finish is ended.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::options().create(true).append(true).read(true).open(path)?;
        if file.metadata()?.len() > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self(file))
    }

    /// Writes a line in one piece.
    pub(super) fn write(&mut self, line: &Line) -> io::Result<()> {
        let text = serde_json::to_string(line)?;
        self.0.write_all(format!("{text}\n").as_bytes())
    }
}

/// The lines of a file; a line that was cut off says nothing.
pub(super) fn read(path: &Path) -> io::Result<Vec<Line>> {
    Ok(lines(&std::fs::read_to_string(path)?))
}

/// What the last writer of a file tried and had no answer to.
pub(super) fn left_open(path: &Path) -> io::Result<Option<Begin>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    Ok(match lines(&String::from_utf8_lossy(&tail)).pop() {
        Some(Line::Begin(begin)) => Some(begin),
        Some(Line::End { .. }) | None => None,
    })
}

fn lines(text: &str) -> Vec<Line> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use taskbus_core::id::TaskId;

    use super::*;

    fn begin(deed: u64) -> Line {
        let number = Number { client: 1, life: 2, deed };
        let caller = Identity::new("Zed").unwrap();
        let deed = Deed::Delete { id: TaskId::Number(4) };
        Line::Begin(Begin { number, at: 5, caller, deed, key: None, is_wrong: false })
    }

    #[test]
    fn a_cut_line_says_nothing_and_the_next_writer_goes_on() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        assert_eq!(left_open(&path).unwrap(), None);
        Log::open(&path).unwrap().write(&begin(0)).unwrap();
        assert!(left_open(&path).unwrap().is_some());
        std::fs::write(&path, [std::fs::read(&path).unwrap(), b"{\"begin\":{\"num".to_vec()].concat()).unwrap();
        let end = Line::End { number: Number { client: 1, life: 2, deed: 0 }, at: 6, told: Told::Sent(1) };
        Log::open(&path).unwrap().write(&end).unwrap();
        assert_eq!(read(&path).unwrap(), [begin(0), end]);
        assert_eq!(left_open(&path).unwrap(), None);
    }

    #[test]
    fn the_clock_never_runs_back() {
        let first = nanos();
        assert!(first > 0 && nanos() >= first);
    }
}
