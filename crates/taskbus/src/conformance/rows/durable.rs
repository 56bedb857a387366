//! Durability, and hearing of what others did.

use std::time::{Duration, Instant};

use super::{RowPlace, RowStore, Verdict, delete, put, set, snapshot, task};

/// Longer than any wake-up may take.
const LONG: Duration = Duration::from_secs(60);
/// A wait that shall end by itself.
const SHORT: Duration = Duration::from_millis(30);

pub(super) fn what_was_acknowledged_is_there(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    if !store.abilities().durable {
        return Verdict::NotApplicable("a store that outlives its process");
    }
    for count in 1..=5 {
        let row = put(&*store, "kept");
        let there = snapshot(&*place.open()).live;
        assert_eq!(there.len(), count, "an acknowledged row is not there");
        assert_eq!(there.last().map(|task| &task.id), Some(&row.id));
        set(&*store, &task(row.id.clone(), "kept, changed"));
        let there = snapshot(&*place.open()).live;
        assert_eq!(there.last().map(|task| task.subject.as_str()), Some("kept, changed"));
    }
    drop(store);
    let there = snapshot(&*place.open()).live;
    let kept = there.iter().filter(|task| task.subject.as_str() == "kept, changed");
    assert_eq!(kept.count(), 5, "lost when nobody had it open any more: {there:?}");
    Verdict::Held
}

pub(super) fn the_version_differs_after_every_change(place: &dyn RowPlace) -> Verdict {
    let (store, other) = (place.open(), place.open());
    let version = |store: &dyn RowStore| store.version().expect("a version");
    let mut seen = vec![version(&*store)];
    let mut check = |what: &str| {
        let now = version(&*store);
        assert!(!seen.contains(&now), "the version is {now} again after {what}");
        assert_eq!(version(&*store), now, "the version changes by itself");
        seen.push(now);
    };
    let row = put(&*store, "row");
    check("a row was made");
    set(&*store, &task(row.id.clone(), "rou"));
    check("a row was changed");
    set(&*other, &task(row.id.clone(), "raw"));
    check("somebody else changed a row");
    delete(&*other, &row.id);
    check("somebody else deleted a row");
    Verdict::Held
}

pub(super) fn a_waiter_hears_of_a_change(place: &dyn RowPlace) -> Verdict {
    let (store, other) = (place.open(), place.open());
    put(&*store, "first");
    let seen = store.version().expect("a version");
    let waited = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let since = Instant::now();
            while store.version().expect("a version") == seen && since.elapsed() < LONG {
                store.wait(seen, LONG).expect("the store can be watched");
            }
            since.elapsed()
        });
        put(&*other, "second");
        waiter.join().expect("the waiter ends")
    });
    assert!(waited < LONG / 2, "a waiter heard of nothing for {waited:?}");
    Verdict::Held
}

pub(super) fn a_waiter_returns_in_time_when_nothing_changes(place: &dyn RowPlace) -> Verdict {
    let store = place.open();
    put(&*store, "first");
    let seen = store.version().expect("a version");
    let since = Instant::now();
    store.wait(seen, SHORT).expect("the store can be watched");
    assert!(since.elapsed() < LONG / 2, "a wait of {SHORT:?} took {:?}", since.elapsed());
    store.wait(seen.wrapping_add(1), LONG).expect("the store can be watched");
    assert!(since.elapsed() < LONG / 2, "what differs already is not waited for");
    Verdict::Held
}
