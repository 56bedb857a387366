//! Order: a list is ordered by id, numbers before text.

use taskbus_core::id::TaskId;

use super::{RowPlace, Verdict, ids, put, set, snapshot, task, within};

pub(super) fn a_list_is_ordered_by_id_whatever_the_order_of_writing(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let made = within(&*store, |rows| {
        let made: Vec<TaskId> = (0..12).map(|_| rows.allocate()).collect::<Result<_, _>>()?;
        for at in [7, 0, 11, 3, 9, 1, 10, 4, 8, 2, 6, 5] {
            rows.set(&task(made[at].clone(), "in any order"))?;
        }
        Ok(made)
    });
    let mut expected = made.clone();
    expected.sort();
    assert_eq!(ids(&snapshot(&*store).live), expected);
    set(&*store, &task(made[4].clone(), "written last"));
    assert_eq!(ids(&snapshot(&*store).live), expected, "after one was written again");
    Verdict::Held
}

pub(super) fn numbers_ascend_before_text(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    let newest = put(&*store, "ours").id;
    let Some(foreign) = place.foreign_id(&newest) else {
        return Verdict::NotApplicable("ids that another program could take");
    };
    let number = |id: u64| TaskId::number(id).expect("a number is an id");
    let mixed = [foreign, number(10), number(9), number(100)];
    let takes_all = |id: &TaskId| store.transact(&mut |rows| Ok(rows.set(&task(id.clone(), "mixed"))?)).is_ok();
    let mut expected: Vec<TaskId> = mixed.into_iter().filter(takes_all).collect();
    expected.push(newest);
    expected.sort();
    expected.dedup();
    assert_eq!(ids(&snapshot(&*store).live), expected, "9, 10, 100, then text");
    Verdict::Held
}

pub(super) fn every_list_has_the_same_order(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    (0..15).for_each(|_| drop(put(&*store, "one of many")));
    let first = ids(&snapshot(&*store).live);
    for _ in 0..5 {
        assert_eq!(ids(&snapshot(&*store).live), first);
        assert_eq!(within(&*store, |rows| Ok(ids(&rows.list()?.live))), first);
        assert_eq!(ids(&snapshot(&*place.open()).live), first);
    }
    Verdict::Held
}
