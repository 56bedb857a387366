//! Transactions: all or nothing, alone, and seen by nobody before their end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::{Abort, RowPlace, RowStore, Rows, Verdict, get, put, refusal, snapshot, task, within};
use crate::store::StoreError;

/// How long a reader may take that waits for nobody.
const SOON: Duration = Duration::from_secs(10);

/// A body that changes, makes and deletes a row.
fn spoil(rows: &mut dyn Rows, store: &dyn RowStore) -> Result<(), StoreError> {
    let all = snapshot(store).live;
    rows.set(&task(all[0].id.clone(), "changed"))?;
    let id = rows.allocate()?;
    rows.set(&task(id, "made"))?;
    assert!(rows.delete(&all[1].id)?, "the row was there");
    Ok(())
}

/// Two rows; then a body that spoils them and ends badly; then nothing of it is there and the next body works.
#[track_caller]
fn check_undone(place: &dyn RowPlace, end: impl Fn(&dyn RowStore, &dyn RowStore)) {
    let (store, other) = (place.open(), place.open());
    put(&*store, "one");
    put(&*store, "two");
    let before = snapshot(&*store);
    end(&*store, &*other);
    assert_eq!(snapshot(&*store), before, "something was kept");
    assert_eq!(snapshot(&*place.open()), before, "something was kept on disk");
    assert_eq!(within(&*store, |rows| rows.list()), before, "something was kept for the next body");
    put(&*other, "next");
    assert_eq!(snapshot(&*store).live.len(), 3, "the next body is kept");
}

pub(super) fn what_a_body_refused_is_not_kept(place: &dyn RowPlace) -> Verdict {
    check_undone(place, |store, other| {
        let refused = store.transact(&mut |rows| {
            spoil(rows, other)?;
            Err(refusal())
        });
        assert!(matches!(refused, Err(Abort::Refused(_))), "the refusal comes through: {refused:?}");
    });
    Verdict::Held
}

pub(super) fn what_a_body_failed_in_is_not_kept(place: &dyn RowPlace) -> Verdict {
    check_undone(place, |store, other| {
        let failed = store.transact(&mut |rows| {
            spoil(rows, other)?;
            Err(StoreError::Moved { store: "a test".to_owned() }.into())
        });
        assert!(matches!(failed, Err(Abort::Failed(StoreError::Moved { .. }))), "the error comes through: {failed:?}");
    });
    Verdict::Held
}

pub(super) fn what_a_body_panicked_in_is_not_kept(place: &dyn RowPlace) -> Verdict {
    check_undone(place, |store, other| {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            store.transact(&mut |rows| {
                spoil(rows, other)?;
                std::panic::resume_unwind(Box::new("a panic on purpose"));
            })
        }));
        assert!(panicked.is_err(), "the panic comes through");
    });
    Verdict::Held
}

pub(super) fn many_rows_are_kept_together(place: &dyn RowPlace) -> Verdict {
    let (store, other) = (place.open(), place.open());
    let first = put(&*store, "first");
    let made = within(&*store, |rows| {
        let made = [rows.allocate()?, rows.allocate()?];
        for id in &made {
            rows.set(&task(id.clone(), "made"))?;
        }
        rows.delete(&first.id)?;
        rows.set(&task(made[0].clone(), "changed"))?;
        Ok(made)
    });
    for store in [store, other, place.open()] {
        let rows = snapshot(&*store).live;
        let subjects: Vec<&str> = rows.iter().map(|task| task.subject.as_str()).collect();
        assert_eq!(
            (super::ids(&rows).as_slice(), subjects.as_slice()),
            (made.as_slice(), ["changed", "made"].as_slice())
        );
    }
    Verdict::Held
}

pub(super) fn a_body_sees_what_it_wrote(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let old = put(&*store, "old");
    within(&*store, |rows| {
        let new = task(rows.allocate()?, "new");
        rows.set(&new)?;
        rows.set(&task(old.id.clone(), "old, changed"))?;
        let subject = |task: Option<super::Task>| task.map(|task| task.subject.to_string());
        assert_eq!(subject(rows.get(&new.id)?).as_deref(), Some("new"), "a row set by the same body");
        assert_eq!(subject(rows.get(&old.id)?).as_deref(), Some("old, changed"));
        assert_eq!(rows.list()?.live.len(), 2, "a list in the same body");
        assert!(rows.delete(&old.id)?, "the row was there");
        assert_eq!(rows.get(&old.id)?, None, "a row deleted by the same body");
        assert_eq!(super::ids(&rows.list()?.live), [new.id]);
        Ok(())
    });
    Verdict::Held
}

/// The reader is another thread: one that waits for the writer would never come back.
pub(super) fn nobody_sees_a_body_before_its_end_nor_waits_for_it(place: &dyn RowPlace) -> Verdict {
    let (store, other) = (place.open(), place.open());
    let row = put(&*store, "before");
    within(&*store, |rows| {
        rows.set(&task(row.id.clone(), "after"))?;
        let (tell, hear) = channel();
        let other = std::sync::Arc::clone(&other);
        std::thread::spawn(move || tell.send(other.snapshot()));
        let seen = hear.recv_timeout(SOON).expect("a reader waits for a writer");
        let seen = seen.expect("the rows can be read").live;
        assert_eq!(seen[0].subject.as_str(), "before", "a reader saw a body that had not ended");
        Ok(())
    });
    assert_eq!(get(&*other, &row.id).expect("the row is there").subject.as_str(), "after");
    Verdict::Held
}

pub(super) fn a_body_that_writes_nothing_changes_nothing(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    put(&*store, "row");
    let (before, version) = (snapshot(&*store), store.version().expect("a version"));
    within(&*store, |rows| rows.list());
    within(&*store, |_| Ok(()));
    assert_eq!(snapshot(&*store), before);
    assert_eq!(store.version().expect("a version"), version, "the version changed though nothing did");
    Verdict::Held
}
