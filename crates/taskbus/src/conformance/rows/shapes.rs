//! Shapes: rows of other programs that lack something or cannot be read.

use super::super::place::Plant;
use super::{RowPlace, Verdict, put, task};
use crate::store::StoreError;

const BY_HAND: Verdict = Verdict::NotApplicable("rows that another program could have written");

pub(super) fn missing_lists_of_blockers_are_empty_ones(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    put(&*store, "ours");
    let Some(planted) = place.plant(Plant::WithoutLists) else { return BY_HAND };
    for store in [store, place.open()] {
        let rows = store.snapshot().expect("a row without lists is a row").live;
        let row = rows.into_iter().find(|task| task.id == planted.id).expect("the row is there");
        assert_eq!((row.subject.as_str(), row.blocked_by.len()), ("planted", 0));
    }
    Verdict::Held
}

/// Either the whole store is refused, or the row is named; it is never taken for one that is not there.
pub(super) fn a_row_that_cannot_be_read_is_reported_and_kept(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    put(&*store, "ours");
    let Some(planted) = place.plant(Plant::Unreadable) else { return BY_HAND };
    let reported = match store.snapshot() {
        Ok(rows) => rows.unreadable.contains(&planted.id),
        Err(error) => matches!(error, StoreError::Damaged { .. }),
    };
    assert!(reported, "{} cannot be read, and nobody says so", planted.id);
    for _ in 0..10 {
        let written = store.transact(&mut |rows| {
            let id = rows.allocate()?;
            assert_ne!(id, planted.id, "the id of a row that cannot be read is taken");
            Ok(rows.set(&task(id, "another"))?)
        });
        assert!(written.is_ok() || reported, "{written:?}");
    }
    let set = store.transact(&mut |rows| Ok(rows.set(&task(planted.id.clone(), "over it"))?));
    assert!(set.is_err(), "a row that cannot be read was written over");
    let deleted = store.transact(&mut |rows| {
        rows.delete(&planted.id)?;
        Ok(())
    });
    assert!(deleted.is_err(), "a row that cannot be read was deleted");
    assert!((planted.is_intact)(), "the row that cannot be read was changed");
    Verdict::Held
}
