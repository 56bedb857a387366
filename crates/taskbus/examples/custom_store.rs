//! A store that somebody else could have written: a directory of text files, which passes the conformance suite.
//! Each file is the whole list after one change: `12.txt` follows `11.txt`, and the highest number counts. A change is
//! written aside and linked under the next number, which fails if somebody was faster: then it is made again.
//!
//! `cargo run -p taskbus --features conformance --example custom_store` runs the suite on it.

use std::{collections::BTreeMap, fs, io, path::PathBuf, process, sync::Arc, thread};

use taskbus::conformance::{RowPlace, jobs, suite};
use taskbus::core::{document, id::TaskId, name::ListName, task::Stamp, task::Task, time::Timestamp};
use taskbus::store::rows::{RowSet, RowStore, Rows, RowsBody};
use taskbus::store::{Abilities, Abort, StoreError};

/// The list in memory, and the largest id that was ever given.
#[derive(Clone, Default, PartialEq)]
struct Table(BTreeMap<TaskId, Task>, u64);

impl Rows for Table {
    fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.0.get(id).cloned())
    }

    fn set(&mut self, task: &Task) -> Result<(), StoreError> {
        self.1 = self.1.max(task.id.as_number().unwrap_or(0));
        self.0.insert(task.id.clone(), task.clone());
        Ok(())
    }

    fn delete(&mut self, id: &TaskId) -> Result<bool, StoreError> {
        Ok(self.0.remove(id).is_some())
    }

    fn list(&self) -> Result<RowSet, StoreError> {
        Ok(RowSet { live: self.0.values().cloned().collect(), ..RowSet::default() })
    }

    fn allocate(&mut self) -> Result<TaskId, StoreError> {
        self.1 += 1;
        Ok(TaskId::Number(self.1))
    }
}

impl Table {
    /// The largest id, then a line for each task: its id, its revision, when and by whom it was changed, the task.
    fn to_text(&self) -> String {
        let line = |task: &Task| {
            let (at, by) = (task.updated.at.as_millis(), task.updated.by.as_ref().map_or("", |by| by.as_str()));
            format!("{}\t{}\t{at}\t{by}\t{}\n", task.id, task.revision, document::encode(task))
        };
        format!("{}\n{}", self.1, self.0.values().map(line).collect::<String>())
    }

    fn from_text(text: &str) -> Option<Self> {
        let read = |line: &str| {
            let mut words = line.splitn(5, '\t');
            let (id, revision): (TaskId, _) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let at = Timestamp::from_millis(words.next()?.parse().ok()?);
            let stamp = Stamp { at, by: words.next()?.to_owned().try_into().ok() };
            Some((id.clone(), document::decode(id, revision, stamp, words.next()?).ok()?))
        };
        let (mark, lines) = text.split_once('\n')?;
        Some(Self(lines.lines().map(read).collect::<Option<_>>()?, mark.parse().ok()?))
    }
}

struct TextFiles(PathBuf);

impl TextFiles {
    fn newest(&self) -> io::Result<u64> {
        let number = |name: &str| name.strip_suffix(".txt")?.parse().ok();
        let number = |entry: fs::DirEntry| number(&entry.file_name().to_string_lossy()).unwrap_or(0);
        fs::read_dir(&self.0)?.try_fold(0, |most, entry| Ok(number(entry?).max(most)))
    }

    fn load(&self) -> io::Result<(u64, Table)> {
        let number = self.newest()?;
        let read = || fs::read_to_string(self.0.join(format!("{number}.txt")));
        let text = if number == 0 { "0\n".to_owned() } else { read()? };
        Table::from_text(&text).map(|table| (number, table)).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Whether the table became the file with this number, on disk; not if somebody else's did.
    fn commit(&self, number: u64, table: &Table) -> io::Result<bool> {
        let aside = self.0.join(format!("{}-{:?}", process::id(), thread::current().id()));
        fs::write(&aside, table.to_text())?;
        fs::File::open(&aside)?.sync_all()?;
        let linked = fs::hard_link(&aside, self.0.join(format!("{number}.txt")));
        fs::remove_file(&aside)?;
        fs::File::open(&self.0)?.sync_all()?;
        let is_late = linked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists);
        if is_late { Ok(false) } else { linked.map(|()| true) }
    }
}

fn failed(error: io::Error) -> StoreError {
    StoreError::Failed { store: "text files".to_owned(), source: error.into() }
}

impl RowStore for TextFiles {
    fn abilities(&self) -> Abilities {
        Abilities { durable: true, shared_across_processes: true, liveness: false }
    }

    fn list_name(&self) -> ListName {
        ListName::from_short("text-files").expect("BUG: a constant name is valid")
    }

    fn transact(&self, f: &mut RowsBody<'_>) -> Result<(), Abort> {
        loop {
            let (number, old) = self.load().map_err(failed)?;
            let mut new = old.clone();
            f(&mut new)?;
            if new == old || self.commit(number + 1, &new).map_err(failed)? {
                return Ok(());
            }
        }
    }

    fn snapshot(&self) -> Result<RowSet, StoreError> {
        self.load().map_err(failed)?.1.list()
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.newest().map_err(failed)
    }
}

/// Where the suite finds it: a fresh directory, at which this program works as another process, too.
struct Place(tempfile::TempDir);

impl RowPlace for Place {
    fn open(&self) -> Arc<dyn RowStore> {
        Arc::new(TextFiles(self.0.path().to_owned()))
    }

    fn command(&self) -> Option<process::Command> {
        jobs::worker(self.0.path())
    }
}

fn main() {
    if let Some(path) = jobs::place() {
        return assert!(jobs::work(Arc::new(TextFiles(path))), "there was work to do");
    }
    for report in suite::run_on_rows("text files", || Place(tempfile::tempdir().expect("a temporary directory"))) {
        eprintln!("{report}");
        report.assert_held();
    }
}
