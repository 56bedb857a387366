//! Ids: given once, ascending, never again.

use std::collections::BTreeSet;

use super::{RowPlace, Verdict, delete, put, snapshot, task, within};

pub(super) fn an_id_is_given_once(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        let ids = within(&*store, |rows| {
            let ids = [rows.allocate()?, rows.allocate()?, rows.allocate()?];
            for id in &ids {
                rows.set(&task(id.clone(), "one of many"))?;
            }
            Ok(ids)
        });
        for id in ids {
            assert!(seen.insert(id.clone()), "{id} was given twice");
        }
    }
    assert_eq!(snapshot(&*store).live.len(), seen.len());
    Verdict::Held
}

pub(super) fn an_id_is_not_given_again_after_a_delete(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let mut seen = BTreeSet::new();
    for _ in 0..10 {
        let id = put(&*store, "short-lived").id;
        assert!(seen.insert(id.clone()), "{id} was given again after its row was deleted");
        assert!(delete(&*store, &id), "the row was there");
    }
    Verdict::Held
}

pub(super) fn a_fresh_id_comes_after_all_that_are_there(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let mut last = put(&*store, "first").id;
    for _ in 0..12 {
        let next = put(&*store, "next").id;
        assert!(last < next, "{next} was given after {last}");
        last = next;
    }
    Verdict::Held
}

pub(super) fn an_id_that_another_program_took_is_not_given(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let newest = put(&*store, "ours").id;
    let Some(foreign) = place.foreign_id(&newest) else {
        return Verdict::NotApplicable("ids that another program could take");
    };
    within(&*store, |rows| rows.set(&task(foreign.clone(), "theirs")));
    for _ in 0..10 {
        assert_ne!(put(&*store, "ours again").id, foreign);
    }
    let theirs = snapshot(&*store).live.into_iter().find(|task| task.id == foreign);
    assert_eq!(theirs.expect("their row is there").subject.as_str(), "theirs");
    Verdict::Held
}
