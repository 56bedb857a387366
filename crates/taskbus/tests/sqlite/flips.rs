//! Single bits that turn over in the file and in its log: whatever is read then is the truth, or an error, or something
//! that the high-water file or a look at everything tells. Nothing of it is ever silent.
//!
//! SQLite keeps checksums of the frames of its log and none of the pages of its file. So a bit in the log ends it there,
//! which the high-water file tells. A row in the file has a sum of its own, so that no task, revision or message is served
//! with another bit in it; a count, or the place of a task in an index, can be another until somebody verifies.

use std::fs;
use std::path::Path;

use taskbus::core::bus::channel::{ChannelKind, ChannelName};
use taskbus::core::change::Kind;
use taskbus::core::id::TaskId;
use taskbus::core::name::Label;
use taskbus::core::task::State;
use taskbus::core::text::Subject;
use taskbus::core::tree::TreePath;
use taskbus::store::bus::Place;
use taskbus::store::sqlite::{Recorded, SqliteOptions, SqliteStore};
use taskbus::store::{Page, PageQuery, Snapshot, StoreError, read_with};

use crate::bus_files::{on_bus, post};
use crate::support::{Home, at, change, create, list, who};

/// As many in the file, and in its log.
const FLIPS: usize = 400;
const TASKS: u64 = 30;

/// A store with tasks in every state, and messages.
fn story(home: &Home) {
    drop(home.with_list());
    let store = SqliteStore::open(&home.path, SqliteOptions::default()).unwrap();
    let chat = ChannelName::new("chat").unwrap();
    on_bus(&store, |bus| bus.create_channel(&chat, ChannelKind::Ordinary, at(1)));
    for n in 0..TASKS {
        let task = create(&store, |task| {
            task.subject = Subject::new(format!("Do the thing that is number {n} of them all")).unwrap();
            task.labels = [Label::new(["a", "b", "c"][n as usize % 3]).unwrap()].into();
            task.parent = n.checked_sub(5).and_then(|n| TaskId::number(n * 2 + 1).ok());
        });
        on_bus(&store, |bus| Ok(post(bus, &chat, &format!("said at {n}"), &[], Place::Ordinary)));
        match n % 4 {
            0 => drop(change(&store, &task, Kind::Changed, |task| {
                task.state = State::Completed { by: Some(who("Zed")), at: at(9) };
            })),
            1 => drop(change(&store, &task, Kind::Deleted, |_| {})),
            _ => {}
        }
    }
}

/// Everything that the seam tells of it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Told {
    /// What each task, revision and message says.
    said: String,
    /// How many there are, and in which order.
    order: String,
}

fn told(store: &SqliteStore) -> Result<Told, StoreError> {
    read_with(store, Some(&list()), |snapshot| {
        let mut page = snapshot.page(&PageQuery::all(100, at(1)))?;
        let (lists, deleted) = (snapshot.lists()?, snapshot.deleted(100)?);
        let order = format!("{:?} {} {} {lists:?}", paths(&mut page), page.total, page.more);
        page.rows.sort_by(|a, b| a.id.cmp(&b.id));
        let histories = (1..=3 * TASKS).map(|id| history(snapshot, id)).collect::<Result<Vec<_>, _>>()?;
        let bus = snapshot.bus().unwrap();
        let messages = (1..=3 * TASKS).map(|seq| bus.message(seq)).collect::<Result<Vec<_>, _>>()?;
        let order = format!("{order} {:?}", bus.channels()?);
        Ok(Told { said: format!("{:?} {deleted:?} {histories:?} {messages:?}", page.rows), order })
    })
}

/// Takes out where each row of a page is.
fn paths(page: &mut Page) -> Vec<TreePath> {
    page.rows.iter_mut().map(|row| std::mem::replace(&mut row.path, TreePath::root())).collect()
}

fn history(snapshot: &dyn Snapshot, id: u64) -> Result<String, StoreError> {
    let id = TaskId::number(id).unwrap();
    Ok(format!("{:?} {:?}", snapshot.task(&id)?, snapshot.history(&id, None, 100)?))
}

#[derive(Debug, Default)]
struct Seen {
    /// The same as before.
    truth: usize,
    /// An error.
    refused: usize,
    /// The end of the log was gone, which the high-water file tells.
    lost: usize,
    /// Another count or order than before, which only a look at everything tells.
    verified: usize,
}

impl Seen {
    /// Turns one bit over in a copy, and reads everything.
    fn flip(&mut self, home: &Home, ending: &str, bit: usize) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("taskbus.db");
        for ending in ["", "-wal", "-high"] {
            let of = |path: &Path| format!("{}{ending}", path.display());
            if fs::exists(of(&home.path)).unwrap() {
                fs::copy(of(&home.path), of(&path)).unwrap();
            }
        }
        let target = format!("{}{ending}", path.display());
        let mut bytes = fs::read(&target).unwrap();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&target, bytes).unwrap();
        self.judge(&path, &format!("bit {bit} of the file{ending}"));
    }

    fn judge(&mut self, path: &Path, what: &str) {
        let truth = TRUTH.with_borrow(Clone::clone);
        let store = SqliteStore::lazy(path, SqliteOptions::default());
        match told(&store) {
            Err(_) => self.refused += 1,
            Ok(told) if told == truth => self.truth += 1,
            Ok(_) if matches!(store.high_water().map(|high| high.recorded), Ok(Recorded::Lost(_))) => self.lost += 1,
            Ok(told) => {
                assert_eq!(told.said, truth.said, "{what}: something else is served");
                self.verified += 1;
                let silent = store.check().is_ok_and(|found| found.is_empty());
                assert!(!silent, "{what}: another order or count, and nobody tells");
            }
        }
    }
}

thread_local! {
    static TRUTH: std::cell::RefCell<Told> = const { std::cell::RefCell::new(Told { said: String::new(), order: String::new() }) };
}

/// Numbers that look random, the same in each run.
fn places(bytes: u64) -> impl Iterator<Item = usize> {
    let mut state: u64 = 5;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 20) % (bytes * 8)).unwrap()
    })
}

#[test]
fn a_bit_that_turns_over_never_goes_untold() {
    let home = Home::new();
    story(&home);
    // A short log stays behind.
    let store = SqliteStore::open(&home.path, SqliteOptions::default()).unwrap();
    (0..8).for_each(|_| drop(create(&store, |_| {})));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    drop(store);
    TRUTH.set(told(&SqliteStore::open(&home.path, SqliteOptions::default()).unwrap()).unwrap());
    let mut log = Seen::default();
    let bytes = fs::metadata(format!("{}-wal", home.path.display())).unwrap().len();
    places(bytes).take(FLIPS).for_each(|bit| log.flip(&home, "-wal", bit));
    let raw = rusqlite::Connection::open(&home.path).unwrap();
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(raw);
    let mut file = Seen::default();
    let bytes = fs::metadata(&home.path).unwrap().len();
    places(bytes).take(FLIPS).for_each(|bit| file.flip(&home, "", bit));
    assert_eq!((log.truth + log.refused + log.lost, log.verified), (FLIPS, 0), "{log:?}");
    assert_eq!((file.truth + file.refused + file.verified, file.lost), (FLIPS, 0), "{file:?}");
    assert!(log.lost > FLIPS / 2 && file.refused > FLIPS / 10, "log {log:?}, file {file:?}");
    assert!(file.verified < FLIPS / 100, "{file:?}");
}
