//! The rude world: what people, other programs and machines do to a store. Each check does one such thing to a store of its
//! own, and says how often it held and what was wrong.

mod clock;
mod files;
mod processes;

use std::path::Path;
use std::sync::Arc;

use taskbus::store::Store as _;
use taskbus::store::sqlite::{SqliteOptions, SqliteStore};
use taskbus_core::name::ListName;

use super::dice::Dice;
use super::hand::library::Library;
use super::hand::{Hand as _, LIST};
use super::place::Place;
use super::record::Number;
use super::report::Phase;
use super::storm::RULES;
use super::told::{Seen, Told};
use super::{NEW, collect};
use crate::term::failure::Failure;

pub(super) use self::processes::{cramp, hold_and_stop};

/// What came of a check: how often it held, and what was wrong.
type Outcome = Result<(u64, Vec<String>), Failure>;
/// One thing that is done to a store.
type Check = fn(&Place, &mut Dice) -> Outcome;

/// All of them, each by what is counted.
const CHECKS: [(&str, Check); 7] = [
    ("stores replaced under a process", files::replaced),
    ("damaged files left as they were", files::damaged),
    ("bits flipped and noticed or harmless", files::flipped),
    ("stale files beside a store", files::stale),
    ("writers held up by a stopped one", processes::stopped),
    ("files that may not grow", processes::cramped),
    ("calls under clocks that jump an hour", clock::jumps),
];

/// Does everything.
pub(super) fn all(place: &Place) -> Result<Phase, Failure> {
    let mut phase = Phase::new("rude world");
    for (part, (what, check)) in (1_000..).zip(CHECKS) {
        let (held, wrongs) = check(place, &mut Dice::of(place.seed, part, 0))?;
        phase.count(what, held);
        phase.wrongs.extend(wrongs.into_iter().map(|wrong| format!("{what}: {wrong}")));
        phase.must_have(what);
    }
    Ok(phase)
}

/// A client on a store that has the list.
pub(super) fn client(store: &Path, options: SqliteOptions) -> Result<Library, Failure> {
    let library = Library::over(Arc::new(SqliteStore::open(store, options)?), "client-0")?;
    library.engine.create_list(&library.caller, &library.list, RULES)?;
    Ok(library)
}

/// Makes a task; what it was told.
fn make(library: &mut Library, number: &mut Number) -> Told {
    number.deed += 1;
    library.act(*number, &NEW, None).unwrap_or_else(|gone| Told::Failed(gone.0))
}

/// Makes some tasks, which must all be acknowledged.
pub(super) fn make_some(library: &mut Library, number: &mut Number, count: usize) -> Result<Vec<Seen>, Failure> {
    let one = |_| match make(library, number) {
        Told::Wrote(mut tasks) if tasks.len() == 1 => Ok(tasks.remove(0)),
        told => Err(Failure::Broken(format!("a task cannot be made: {told:?}"))),
    };
    (0..count).map(one).collect()
}

/// The first of the numbers of a check.
pub(super) fn first_number() -> Number {
    Number { client: 0, life: 0, deed: 0 }
}

/// What is wrong with a store, where these tasks were acknowledged.
pub(super) fn missing(store: &Path, tasks: &[Seen]) -> Result<Vec<String>, Failure> {
    let mut wrongs = collect::verify(store)?;
    let list = ListName::new(LIST).expect("BUG: a constant name is valid");
    SqliteStore::open(store, SqliteOptions::default())?.read(Some(&list), &mut |snapshot| {
        for seen in tasks {
            let rows = snapshot.history(&seen.id, None, usize::MAX >> 1)?;
            if !rows.iter().any(|row| row.task.revision == seen.revision) {
                wrongs.push(format!("{seen:?} was acknowledged and is gone"));
            }
        }
        Ok(())
    })?;
    Ok(wrongs)
}
