//! What a disk may hold after a power cut: for each file what was synced, and of what was written since then nothing, all,
//! or any of its sectors; for each directory the names that were synced, or the newer ones.

use std::collections::BTreeMap;
use std::path::Path;

use crate::record::{Event, What};
use crate::workload::ACKS;

/// A disk writes so many bytes at once.
const SECTOR: usize = 512;

/// What becomes of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsynced {
    /// It is gone.
    Lost,
    /// It is there.
    Kept,
    /// Any part of it is there: which, this number decides.
    Torn(u64),
}

/// A file.
#[derive(Clone, Debug, Default)]
struct Sheet {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Since it was synced.
    since: Vec<What>,
}

/// A directory and its files, as one call after the other leaves them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    sheets: BTreeMap<u32, Sheet>,
    names: BTreeMap<String, u32>,
    synced_names: BTreeMap<String, u32>,
    acks: u32,
}

impl Disk {
    /// A disk on which these files are, safely.
    pub(crate) fn with(files: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut disk = Self::default();
        for (number, (name, bytes)) in (1_000_000..).zip(files) {
            let (now, synced, since) = (bytes.clone(), bytes.clone(), Vec::new());
            disk.sheets.insert(number, Sheet { now, synced, since });
            disk.names.insert(name.clone(), number);
        }
        disk.synced_names = disk.names.clone();
        disk
    }

    /// One call.
    pub(crate) fn apply(&mut self, event: &Event) {
        match &event.what {
            What::Opened(name) if name == ACKS => self.acks = event.file + 1,
            What::Opened(name) => self.open(event.file, name),
            What::SyncedNames => self.synced_names = self.names.clone(),
            What::Unlinked => self.names.retain(|_, number| *number != event.file),
            What::Synced => {
                let sheet = self.sheets.entry(event.file).or_default();
                sheet.synced.clone_from(&sheet.now);
                sheet.since.clear();
            }
            what @ (What::Wrote(..) | What::Cut(_)) => {
                let sheet = self.sheets.entry(event.file).or_default();
                write(&mut sheet.now, what, &mut |_| true);
                sheet.since.push(what.clone());
            }
        }
    }

    /// A file that was there before has its bytes under another number.
    fn open(&mut self, number: u32, name: &str) {
        let known = self.names.get(name).copied();
        let sheet = known.and_then(|known| self.sheets.remove(&known)).unwrap_or_default();
        let was_synced = known.is_some() && self.synced_names.get(name) == known.as_ref();
        self.sheets.insert(number, sheet);
        self.names.insert(name.to_owned(), number);
        if was_synced {
            self.synced_names.insert(name.to_owned(), number);
        }
    }

    /// What was acknowledged until now, as it stands in its file.
    pub(crate) fn acks(&self) -> String {
        let sheet = self.acks.checked_sub(1).and_then(|number| self.sheets.get(&number));
        String::from_utf8(sheet.map_or_else(Vec::new, |sheet| sheet.now.clone())).unwrap()
    }

    /// Puts the files into a directory as a power cut leaves them.
    pub(crate) fn lay_out(&self, dir: &Path, unsynced: Unsynced) {
        let mut coin = Coin::of(unsynced);
        let newer = coin.falls();
        let names = if newer { &self.names } else { &self.synced_names };
        for (name, number) in names {
            let sheet = &self.sheets[number];
            let mut bytes = sheet.synced.clone();
            sheet.since.iter().for_each(|what| write(&mut bytes, what, &mut |_| coin.falls()));
            std::fs::write(dir.join(name), bytes).unwrap();
        }
    }
}

/// Writes those sectors of which `keeps` says so.
fn write(bytes: &mut Vec<u8>, what: &What, keeps: &mut dyn FnMut(usize) -> bool) {
    match what {
        What::Cut(size) if keeps(0) => bytes.resize(usize::try_from(*size).unwrap(), 0),
        What::Wrote(at, data) => {
            let (mut at, mut data) = (usize::try_from(*at).unwrap(), &data[..]);
            while !data.is_empty() {
                let (piece, rest) = data.split_at(data.len().min(SECTOR - at % SECTOR));
                if keeps(at / SECTOR) {
                    bytes.resize(bytes.len().max(at + piece.len()), 0);
                    bytes[at..at + piece.len()].copy_from_slice(piece);
                }
                (at, data) = (at + piece.len(), rest);
            }
        }
        _ => {}
    }
}

/// Falls on one side, on the other, or now here and now there.
struct Coin {
    unsynced: Unsynced,
    state: u64,
    /// Of a hundred, so many are kept: some images lose nearly all, others nearly nothing.
    kept: u64,
}

impl Coin {
    fn of(unsynced: Unsynced) -> Self {
        let seed = if let Unsynced::Torn(seed) = unsynced { seed } else { 0 };
        let mut coin = Self { unsynced, state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, kept: 50 };
        coin.kept = [3, 20, 50, 80, 97][usize::try_from(coin.roll() % 5).unwrap()];
        coin
    }

    fn roll(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 11
    }

    fn falls(&mut self) -> bool {
        match self.unsynced {
            Unsynced::Lost => false,
            Unsynced::Kept => true,
            Unsynced::Torn(_) => self.roll() % 100 < self.kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_disk(disk: &Disk, unsynced: Unsynced) -> BTreeMap<String, Vec<u8>> {
        let home = tempfile::tempdir().unwrap();
        disk.lay_out(home.path(), unsynced);
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let files = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect()
    }

    #[test]
    fn what_was_not_synced_may_be_lost_name_and_all() {
        let mut disk = Disk::default();
        let mut happens = |file, what| disk.apply(&Event { file, what });
        happens(0, What::Opened("a".to_owned()));
        happens(0, What::Wrote(0, vec![1; 700]));
        happens(0, What::Synced);
        happens(0, What::Wrote(600, vec![2; 600]));
        assert_eq!(on_disk(&disk, Unsynced::Lost), BTreeMap::new(), "its name was not synced");
        disk.apply(&Event { file: 0, what: What::SyncedNames });
        assert_eq!(on_disk(&disk, Unsynced::Lost)["a"], [1; 700]);
        assert_eq!(on_disk(&disk, Unsynced::Kept)["a"], [[1; 600], [2; 600]].concat());
        let torn: Vec<_> = (0..40).map(|seed| on_disk(&disk, Unsynced::Torn(seed))["a"].clone()).collect();
        assert!(torn.iter().any(|bytes| bytes.len() == 700) && torn.iter().any(|bytes| bytes.len() == 1200));
        assert!(torn.iter().any(|bytes| bytes.len() == 1024), "a write may be torn at a sector");
        disk.apply(&Event { file: 0, what: What::Unlinked });
        assert_eq!(on_disk(&disk, Unsynced::Lost)["a"], [1; 700], "a name may come back");
        assert_eq!(on_disk(&disk, Unsynced::Kept), BTreeMap::new());
    }

    #[test]
    fn what_was_there_before_stays() {
        let mut disk = Disk::with(&BTreeMap::from([("a".to_owned(), vec![7; 10])]));
        disk.apply(&Event { file: 3, what: What::Opened("a".to_owned()) });
        disk.apply(&Event { file: 3, what: What::Wrote(0, vec![8]) });
        assert_eq!(on_disk(&disk, Unsynced::Lost)["a"], [7; 10]);
        disk.apply(&Event { file: 3, what: What::Synced });
        assert_eq!(on_disk(&disk, Unsynced::Lost)["a"][..2], [8, 7]);
    }
}
