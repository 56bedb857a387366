//! Order of pages: the same whole, however it is cut.

use taskbus_core::task::Status;

use super::{Crew, Person, StorePlace, Verdict};
use crate::engine::ListAsk;

/// Every page of so many rows, one after the other.
fn paged(person: &Person, limit: usize) -> Vec<taskbus_core::id::TaskId> {
    let mut ask = ListAsk { limit: Some(limit), ..ListAsk::default() };
    let mut all = Vec::new();
    loop {
        let page = person.engine.list(Some(&person.name), &person.list, &ask).expect("a page can be read");
        assert!(page.tasks.len() <= limit);
        all.extend(page.tasks.into_iter().map(|task| task.id));
        ask.cursor = page.next;
        assert!(all.len() <= 1_000, "the pages never end");
        if ask.cursor.is_none() {
            assert_eq!(page.total, all.len() as u64, "the total counts every page");
            return all;
        }
    }
}

pub(super) fn pages_follow_one_another(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let made: Vec<_> = (0..23).map(|at| zed.add(&format!("task {at}"))).collect();
    for limit in [1, 5, 23, 24] {
        assert_eq!(paged(&zed, limit), made, "pages of {limit}");
    }
    Verdict::Held
}

pub(super) fn filters_keep_the_order(place: &dyn StorePlace) -> Verdict {
    let zed = Crew::at(place).person("zed");
    let made: Vec<_> = (0..9).map(|at| zed.add(&format!("task {at}"))).collect();
    for id in made.iter().step_by(2) {
        zed.complete(id).expect("a task can be completed");
    }
    let of = |status| {
        let ask = ListAsk { status: Some(status), ..ListAsk::default() };
        let page = zed.engine.list(Some(&zed.name), &zed.list, &ask).expect("a page can be read");
        page.tasks.into_iter().map(|task| task.id).collect::<Vec<_>>()
    };
    assert_eq!(of(Status::Completed), made.iter().step_by(2).cloned().collect::<Vec<_>>());
    assert_eq!(of(Status::Pending), made.iter().skip(1).step_by(2).cloned().collect::<Vec<_>>());
    Verdict::Held
}
