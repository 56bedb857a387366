//! Deletes: what they say, and what they leave.

use super::{RowPlace, Verdict, delete, get, ids, put, set, snapshot, task, within};

pub(super) fn a_delete_says_whether_the_row_existed(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let row = put(&*store, "row");
    assert!(delete(&*store, &row.id), "a row that was there");
    assert!(!delete(&*store, &row.id), "a row that was deleted before");
    let never = within(&*store, |rows| rows.allocate());
    assert!(!delete(&*store, &never), "a row that never was");
    assert!(!within(&*place.open(), |rows| rows.delete(&row.id)), "a row that was deleted by somebody else");
    Verdict::Held
}

pub(super) fn a_deleted_row_is_not_live(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let (row, kept) = (put(&*store, "row"), put(&*store, "kept"));
    delete(&*store, &row.id);
    for store in [store, place.open()] {
        assert_eq!(get(&*store, &row.id), None);
        assert_eq!(ids(&snapshot(&*store).live), std::slice::from_ref(&kept.id));
        assert_eq!(within(&*store, |rows| Ok(ids(&rows.list()?.live))), std::slice::from_ref(&kept.id));
    }
    Verdict::Held
}

pub(super) fn a_delete_leaves_the_others_alone(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let made: Vec<_> = (0..5).map(|at| put(&*store, &format!("row {at}"))).collect();
    let mut waits = task(made[4].id.clone(), "waits");
    waits.blocked_by = vec![made[1].id.clone(), made[2].id.clone()];
    set(&*store, &waits);
    delete(&*store, &made[2].id);
    let rows = snapshot(&*store).live;
    let subjects: Vec<&str> = rows.iter().map(|task| task.subject.as_str()).collect();
    assert_eq!(subjects, ["row 0", "row 1", "row 3", "waits"]);
    assert!(rows[3].blocked_by.contains(&made[1].id), "a blocker that is there stays named");
    Verdict::Held
}

pub(super) fn a_deleted_row_can_be_set_again(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let row = put(&*store, "row");
    delete(&*store, &row.id);
    set(&*store, &task(row.id.clone(), "back"));
    for store in [store, place.open()] {
        let rows = snapshot(&*store);
        assert_eq!((ids(&rows.live).as_slice(), rows.deleted.len()), (std::slice::from_ref(&row.id), 0));
        assert_eq!(rows.live[0].subject.as_str(), "back");
    }
    Verdict::Held
}

pub(super) fn a_tombstone_keeps_the_task_as_it_was_last(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let row = put(&*store, "row");
    for subject in ["last words", "other last words"] {
        let last = super::Task { revision: 9, ..task(row.id.clone(), subject) };
        within(&*store, |rows| rows.bury(&last));
        let rows = snapshot(&*place.open());
        assert!(rows.live.is_empty());
        let Some(shown) = rows.deleted.first() else {
            return Verdict::NotApplicable("deleted rows that are shown");
        };
        assert_eq!((&shown.id, shown.subject.as_str(), rows.deleted.len()), (&row.id, subject, 1));
    }
    Verdict::Held
}
